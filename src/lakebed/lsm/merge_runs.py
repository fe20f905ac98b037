"""Streaming merge of sorted runs in bounded memory.

Each run is a stream of batches in key order. A round looks at what is buffered of every run, takes the smallest of
their last keys as the cut, merges all rows up to the cut and keeps the rest. No key is ever split between two rounds,
and memory holds at most one window of each run, whatever the size of the bucket. Runs that are known to end with what
is buffered set no cut, so a few small runs are merged in one round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.lsm.sections import Section
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.merge.levels import counting, levels_of, without_level
from lakebed.merge.parts import merged_rows, visible_rows
from lakebed.types import ordering

_LITTLE_BYTES = 2 << 20
"""After a batch of up to this size it is worth to see whether another one comes."""


class _Cursor:
    """What is buffered of one run: the rest of one batch; if that was small, the next one as well."""

    def __init__(self, batches: Iterator[pa.RecordBatch], key: Sequence[str]) -> None:
        self._batches = batches
        self._key = key
        self._rows: pa.RecordBatch | None = None
        self._next: pa.RecordBatch | None = None
        self._has_ended = False

    def fill(self) -> bool:
        """Makes sure that rows are buffered; false when the run has ended."""
        while self._rows is None or self._rows.num_rows == 0:
            # Let go of the old batch before the next one is read.
            self._rows = None
            self._rows = self._following()
            if self._rows is None:
                return False
            if self._rows.nbytes <= _LITTLE_BYTES:
                self._next = self._following()
        return True

    @property
    def ends_here(self) -> bool:
        """Whether it is known that nothing comes after what is buffered."""
        return self._has_ended

    def _following(self) -> pa.RecordBatch | None:
        found, self._next = self._next, None
        if found is None and not self._has_ended:
            found = next(self._batches, None)
            self._has_ended = found is None
        return found

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

    def take_all(self) -> pa.RecordBatch:
        """Removes and returns everything that is buffered."""
        rows, self._rows = self._rows, None
        assert rows is not None
        return rows

    def _columns(self) -> list[pa.Array]:
        assert self._rows is not None
        return [self._rows.column(name) for name in self._key]


def merge_runs(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine
) -> Iterator[pa.RecordBatch]:
    """Merged rows in key order, one per key, in key-value shape.

    REQUIRES: every run yields batches in key-value shape with ascending, unique keys; runs come oldest first.
    """
    for parts in windows(runs, order):
        yield merged_rows(parts, order, engine)


def read_runs(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """What a reader sees of the merged rows: these columns, without retracts.

    Keys come window by window, but within a window in any order, which is much cheaper.

    REQUIRES: as `merge_runs`. Batches may lack `_SEQUENCE_NUMBER` if all rows of a run are newer than those before.
    """
    for parts in windows(runs, order):
        yield from visible_rows(parts, order, engine, columns)


def windows(runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder) -> Iterator[list[pa.RecordBatch]]:
    """All rows of some keys at a time, run by run; runs without any are left out."""
    cursors = [_Cursor(run, order.key) for run in runs]
    while cursors := [cursor for cursor in cursors if cursor.fill()]:
        last_keys = [cursor.last_key() for cursor in cursors if not cursor.ends_here]
        if last_keys:
            cut = min(last_keys)
            yield [part for part in (cursor.take_up_to(cut) for cursor in cursors) if part.num_rows]
        else:
            yield [cursor.take_all() for cursor in cursors]


def merge_levels(
    runs: Sequence[Iterator[pa.RecordBatch]], order: MergeOrder, engine: MergeEngine
) -> Iterator[pa.RecordBatch]:
    """As `merge_runs`, if rows above level 0 are complete: of several levels that hold a key the lowest counts.

    This is how tables are read whose compactions look up old rows, if their engine combines rows: it would count what
    two levels share twice. Engines that choose one row need not care. REQUIRES: rows come with their levels.
    """
    for parts in windows(runs, order):
        window = pa.concat_batches(parts)
        rows = without_level(window)
        yield engine.merge(rows, counting(levels_of(window), order.group(rows)))


def came_one_after_the_other(section: Section) -> bool:
    """Whether every row of a run has a larger sequence number than all rows of the runs before it."""
    last = -1
    for run in section.runs:
        if min(file.min_sequence_number for file in run.files) <= last:
            return False
        last = max(file.max_sequence_number for file in run.files)
    return True
