"""Sums of all measurements of this process, in memory: what a scrape and `snapshot` show."""

from __future__ import annotations

import os
import threading
import weakref
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from lakebed.metrics.families import FAMILIES
from lakebed.metrics.instruments import COUNTER, GAUGE, HISTOGRAM, SECONDS, Instrument
from lakebed.records import dataclass

_MOST_SERIES = 2000
"""So many combinations of labels each family has at most. What comes after them is summed up under `other`: a lake of
very many tables must not make a scrape that nobody can take."""
_OTHER = "other"


@dataclass(slots=True)
class Spread:
    """Values of a histogram: how many lie at or below each bound, and not below the one before; the last has none."""

    counts: list[int]
    sum: float = 0.0

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    def up_to(self) -> Iterator[tuple[float, int]]:
        """Each bound, and how many values are not above it; the last bound is infinite."""
        total = 0
        for bound, count in zip((*SECONDS, float("inf")), self.counts, strict=True):
            total += count
            yield bound, total


Series = dict[tuple[str, ...], "float | Spread"]


class Board:
    """Listens, and keeps the sums. Many threads may tell it, and read it. After a fork the child begins at nothing."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            this = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: None if (board := this()) is None else board._begin())

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[Instrument, Series] = {}

    def __call__(self, instrument: Instrument, value: float, labels: tuple[str, ...]) -> None:
        with self._lock:
            series = self._series.setdefault(instrument, {})
            if labels not in series and len(series) >= _MOST_SERIES:
                labels = (_OTHER, *labels[1:])
            if instrument.kind == HISTOGRAM:
                spread = series.get(labels)
                if not isinstance(spread, Spread):
                    spread = series[labels] = Spread([0] * (len(SECONDS) + 1))
                spread.counts[bisect_left(SECONDS, value)] += 1
                spread.sum += value
            elif instrument.kind == GAUGE:
                series[labels] = value
            else:
                before = series.get(labels, 0)
                assert instrument.kind == COUNTER
                assert not isinstance(before, Spread)
                series[labels] = before + value

    def read(self) -> Iterator[tuple[Instrument, Series]]:
        """All families with what there is of each, as of one moment."""
        with self._lock:
            now = {
                instrument: {
                    labels: Spread(list(value.counts), value.sum) if isinstance(value, Spread) else value
                    for labels, value in series.items()
                }
                for instrument, series in self._series.items()
            }
        yield from ((instrument, now.get(instrument, {})) for instrument in FAMILIES)

    def plain(self) -> dict[str, list[dict[str, Any]]]:
        """The same as plain data, for programs."""
        return {
            instrument.name: [
                {**dict(zip(instrument.labels, labels, strict=True)), **_numbers(value)}
                for labels, value in series.items()
            ]
            for instrument, series in self.read()
        }


def _numbers(value: float | Spread) -> dict[str, Any]:
    return {"count": value.count, "sum": value.sum} if isinstance(value, Spread) else {"value": value}


__all__ = ["Board", "Series", "Spread"]
