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
    """What is buffered of one run."""

    def __init__(self, batches: Iterator[pa.RecordBatch], key: Sequence[str]) -> None:
        self._batches = batches
        self._key = key
        self._rows: pa.RecordBatch | None = None
        self._next = self._pull()
        self.refill()

    @property
    def is_done(self) -> bool:
        return self._rows is None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows what is buffered, so that it puts no limit on the cut."""
        return self._next is None

    def refill(self) -> None:
        if (self._rows is None or self._rows.num_rows == 0) and self._next is not None:
            self._rows = self._next
            self._next = self._pull()
        elif self._rows is not None and self._rows.num_rows == 0:
            self._rows = None

    def last_key(self) -> tuple[tuple[bool, object], ...]:
        columns = self._columns()
        return ordering.sort_key(columns, len(columns[0]) - 1)

    def take_up_to(self, cut: tuple[tuple[bool, object], ...] | None) -> pa.RecordBatch:
        """Removes and returns the rows with key <= cut (all of them without a cut)."""
        rows = self._rows
        assert rows is not None
        count = rows.num_rows if cut is None else ordering.count_not_above(self._columns(), cut)
        self._rows = rows.slice(count)
        self.refill()
        return rows.slice(0, count)

    def _columns(self) -> list[pa.Array]:
        assert self._rows is not None
        return [self._rows.column(name) for name in self._key]

    def _pull(self) -> pa.RecordBatch | None:
        for batch in self._batches:
            if batch.num_rows:
                return batch
        return None


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine
) -> Iterator[pa.RecordBatch]:
    """Merged rows in key order, one per key, in key-value shape.

    REQUIRES: every run yields batches in key-value shape with ascending, unique keys; runs come oldest first.
    """
    cursors = [cursor for cursor in (_Cursor(run, order.key) for run in runs) if not cursor.is_done]
    while cursors:
        limits = [cursor.last_key() for cursor in cursors if not cursor.is_last]
        cut = min(limits) if limits else None
        parts = [part for part in (cursor.take_up_to(cut) for cursor in cursors) if part.num_rows]
        cursors = [cursor for cursor in cursors if not cursor.is_done]
        if parts:
            window = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            yield engine.merge(window, order.group(window))
