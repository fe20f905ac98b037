"""Streaming merge of sorted runs in bounded memory.

Each run is a stream of batches in key order. A round looks at what is buffered of every run, takes the smallest of
their last keys as the cut, merges all rows up to the cut and keeps the rest. No key is ever split between two rounds,
and memory holds at most one window of each run, whatever the size of the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.merge.base import ChoosingEngine, MergeEngine, MergeOrder
from lakebed.types import ordering
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND


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
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine, *, in_key_order: bool = True
) -> Iterator[pa.RecordBatch]:
    """Merged rows, one per key, in key-value shape.

    With `in_key_order=False` keys still come window by window, but within a window in any order, which may be cheaper.

    REQUIRES: every run yields batches in key-value shape with ascending, unique keys; runs come oldest first.
    """
    cursors = [_Cursor(run, order.key) for run in runs]
    while cursors := [cursor for cursor in cursors if cursor.fill()]:
        cut = min(cursor.last_key() for cursor in cursors)
        parts = [part for part in (cursor.take_up_to(cut) for cursor in cursors) if part.num_rows]
        if isinstance(engine, ChoosingEngine) and not in_key_order:
            yield from _survivors(parts, order, engine)
        else:
            window = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            yield engine.merge(window, order.group(window))


def _survivors(parts: Sequence[pa.RecordBatch], order: MergeOrder, engine: ChoosingEngine) -> Iterator[pa.RecordBatch]:
    """The rows that win their key, run by run: only the columns that decide are brought together."""
    if len(parts) == 1:
        yield parts[0]  # keys of one run are unique
        return
    deciding = [SEQUENCE_NUMBER, VALUE_KIND, *dict.fromkeys((*order.key, *order.sequence_fields))]
    window = pa.concat_batches([part.select(deciding) for part in parts])
    survives = np.zeros(window.num_rows, dtype=np.bool_)
    survives[engine.choose(window, order.group(window))] = True
    start = 0
    for part in parts:
        mask = survives[start : start + part.num_rows]
        start += part.num_rows
        if mask.all():
            yield part
        elif mask.any():
            yield part.filter(pa.array(mask))
