"""Each test has listeners of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lakebed
from lakebed.metrics import instruments

Numbers = Callable[..., Any]


@pytest.fixture(autouse=True)
def only_own_listeners() -> Iterator[None]:
    before = list(instruments._listeners)
    instruments._listeners.clear()
    yield
    lakebed.metrics.stop()
    instruments._listeners[:] = before


@pytest.fixture
def counted() -> Numbers:
    """Counts from now on; gives the numbers of one series, by its family and its labels; None if there are none."""
    lakebed.metrics.start()

    def numbers(family: str, **labels: str) -> Any:
        found = [each for each in lakebed.metrics.snapshot()[family] if labels.items() <= each.items()]
        if not found:
            return None
        assert len(found) == 1, found
        return found[0].get("value", found[0].get("count"))

    return numbers
