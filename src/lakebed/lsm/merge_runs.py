"""Streaming merge of sorted runs in bounded memory.

Each run is a stream of batches in key order. A round looks at what is buffered of every run, takes the smallest of
their last keys as the cut, merges all rows up to the cut and keeps the rest. No key is ever split between two rounds,
and memory holds at most one window of each run, whatever the size of the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.types import ordering


class _Cursor:
    """What is buffered of one run: the rest of one batch."""

    def __init__(self, batches: Iterator[pa.RecordBatch], key: Sequence[str]) -> None:
        self._batches = batches
        self._key = key
        self._rows: pa.RecordBatch | None = None

    def fill(self) -> bool:
        """Makes sure that rows are buffered; false when the run has ended."""
        while self._rows is None or self._rows.num_rows == 0:
            # Let go of the old batch before the next one is read.
            self._rows = None
            self._rows = next(self._batches, None)
            if self._rows is None:
                return False
        return True

    def last_key(self) -> tuple[tuple[bool, object], ...]:
        columns = self._columns()
        return ordering.sort_key(columns, len(columns[0]) - 1)

    def take_up_to(self, cut: tuple[tuple[bool, object], ...]) -> pa.RecordBatch:
        """Removes and returns the rows with key <= cut."""
        rows = self._rows
        assert rows is not None
        count = ordering.count_not_above(self._columns(), cut)
        self._rows = rows.slice(count)
        return rows.slice(0, count)

    def _columns(self) -> list[pa.Array]:
        assert self._rows is not None
        return [self._rows.column(name) for name in self._key]


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine
) -> Iterator[pa.RecordBatch]:
    """Merged rows in key order, one per key, in key-value shape.

    REQUIRES: every run yields batches in key-value shape with ascending, unique keys; runs come oldest first.
    """
    cursors = [_Cursor(run, order.key) for run in runs]
    while cursors := [cursor for cursor in cursors if cursor.fill()]:
        cut = min(cursor.last_key() for cursor in cursors)
        yield _merged([cursor.take_up_to(cut) for cursor in cursors], order, engine)


def _merged(parts: Sequence[pa.RecordBatch], order: MergeOrder, engine: MergeEngine) -> pa.RecordBatch:
    filled = [part for part in parts if part.num_rows]
    window = filled[0] if len(filled) == 1 else pa.concat_batches(filled)
    return engine.merge(window, order.group(window))
