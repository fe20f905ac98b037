"""Which cases of a product of parameters the default run takes: few that show everything. All of them run nightly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import pytest


def thinned(cases: Iterable[Sequence[Any]], shows: Callable[..., Iterable[Hashable]]) -> list[Any]:
    """All cases as parameters; marked `nightly` but for a few that show, between them, all that cases show."""
    left = list(cases)
    missing = {fact for case in left for fact in shows(*case)}
    chosen = []
    while missing:
        best = max(left, key=lambda case: len(missing.intersection(shows(*case))))
        chosen.append(best)
        missing.difference_update(shows(*best))
    return [pytest.param(*case, marks=() if case in chosen else pytest.mark.nightly) for case in left]


def by_day(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """All values as parameters; marked `nightly` but for those that are chosen."""
    return [pytest.param(value, marks=() if value in chosen else pytest.mark.nightly) for value in values]


def pairs(*values: Hashable) -> list[Hashable]:
    """What a case shows where every value is to meet every value of every other parameter."""
    numbered = list(enumerate(values))
    return list(itertools.combinations(numbered, 2))


__all__ = ["by_day", "pairs", "thinned"]
