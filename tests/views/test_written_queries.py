"""Materialized tables of written queries, under random histories: after every refresh they are what the query gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.views.histories import PRODUCERS, History
from tests.views.judging import difference, folded
from tests.views.queries import COMPUTED, FOLLOWED

_QUERIES = {**FOLLOWED, **COMPUTED}
_NAMES = {name: f"v{number}" for number, name in enumerate(_QUERIES)}


def _lived(history: History, rounds: int, chosen: list[str], engine: str = "auto") -> None:
    lake = history.lake
    history.fill()
    for name in chosen:
        lake.materialize(_NAMES[name], _QUERIES[name], policy="incremental")
    for turn in range(rounds):
        history.happen()
        for name in chosen:
            if turn + 1 < rounds and history.random.random() < 0.25:
                continue  # a refresh that is skipped
            done = lake.refresh(_NAMES[name])
            wrong = difference(lake, _NAMES[name], _QUERIES[name], engine)
            assert wrong is None, f"{name}, round {turn}, {done}: {wrong}"
            ways = ("incremental", "none") if name in FOLLOWED else ("full", "none")
            assert done.way in ways, f"{name}: {done}"
    for name in chosen:
        wrong = folded(lake, _NAMES[name])
        assert wrong is None, f"{name}: {wrong}"


@pytest.mark.parametrize(
    ("producer", "part"),
    [
        pytest.param(name, part, marks=() if part == number % 5 else pytest.mark.nightly)
        for number, name in enumerate(PRODUCERS)
        for part in range(5)
    ],
)
def test_views_are_what_their_queries_give(tmp_path: Path, producer: str, part: int) -> None:
    """After every refresh a materialized table has the rows and types of its query, and its changelog tells them."""
    chosen = list(_QUERIES)[part::5]
    _lived(History(str(tmp_path), producer, seed=part), 2, chosen)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("producer", PRODUCERS)
def test_views_are_what_their_queries_give_for_long(tmp_path: Path, producer: str, seed: int) -> None:
    """The same for every query and many histories."""
    _lived(History(str(tmp_path), producer, seed=100 + seed), 6, list(_QUERIES))
