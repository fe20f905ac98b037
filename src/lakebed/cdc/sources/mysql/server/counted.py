"""What is told of changes beside their rows: which transaction made them, when, and which of its changes they are.

Changes are counted within their transaction and table: others may not be followed, and are not looked into then.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.cdc.envelope import CHANGED_AT, LOG_POSITION, NUMBER, TRANSACTION, SourceName, cut_payload, moments
from lakebed.cdc.sources.mysql.log.events import Segment, Statement
from lakebed.cdc.sources.mysql.log.transactions import commit_times_us, transaction_ids
from lakebed.cdc.sources.mysql.values.gather import Array


class CountedChanges:
    """Counts on from call to call: a long transaction comes in pieces."""

    def __init__(self) -> None:
        self._last: dict[SourceName, tuple[str, int]] = {}

    def told(self, table: SourceName, ids: Segment, begins: Array, counts: Array) -> dict[str, pa.Array]:
        """Of rows of a table whose transactions begin at those events; `counts` says which are a change of their own,
        and not the second half of the one before."""
        if not len(begins):
            return _about([], np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
        is_first = np.ones(len(begins), bool)
        is_first[1:] = begins[1:] != begins[:-1]
        firsts, run = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        distinct = begins[firsts].tolist()
        names = transaction_ids(ids, distinct)
        total = np.cumsum(counts)
        before = (total - counts)[firsts]
        last, count = self._last.get(table, ("", 0))
        if names[0] == last:
            before[0] -= count
        numbers = total - before[run]
        self._last[table] = (names[-1], int(numbers[-1]))
        return _about(names, commit_times_us(ids, distinct), run, numbers)


def cut_of(said: Statement) -> bytes:
    """The payload that tells the same of a statement that empties a table."""
    at_us = said.time_s * 1_000_000 + said.micros
    times = pa.array([at_us // 1000], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))
    one = np.zeros(1, np.int64)
    return cut_payload(times, _about([said.transaction], np.array([at_us]), one, one + 1))


def _about(names: list[str], times_us: Array, which: Array, numbers: Array) -> dict[str, pa.Array]:
    places = pa.array(which)
    transactions = pa.array(names, pa.string()).take(places)
    return {
        CHANGED_AT: moments(times_us).take(places),
        TRANSACTION: transactions,
        LOG_POSITION: transactions,
        NUMBER: pa.array(numbers, pa.int64()),
    }


__all__ = ["CountedChanges", "cut_of"]
