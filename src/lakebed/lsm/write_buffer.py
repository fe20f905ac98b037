"""Collects rows of one bucket, numbers them in order of arrival, and hands them over as sorted runs, one row per key.

What does not fit into memory goes to local disk as sorted runs, which are merged with the rest at the end: a commit
leaves one run of files in a bucket, whatever its size. Nothing here knows how much memory there is, nor where the rows
go: whoever owns several buffers shares out the memory among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lakebed.lsm.delete_barrier import split_at_deletes
from lakebed.lsm.growing_rows import GrowingRows
from lakebed.lsm.sorted_rows import SortedRows
from lakebed.lsm.spill import Run, Spill, SpilledRun
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.types.key_value import KIND_FIELD


class WriteBuffer:
    """Rows of one bucket that are not in a file of the table yet.

    `deletes_are_barriers` is for engines that forget what was before a -D row: see `delete_barrier`. `record` is told
    every row as it came, by key and age, each time the memory is emptied.
    """

    def __init__(
        self,
        order: MergeOrder,
        engine: MergeEngine,
        next_sequence_number: int,
        *,
        deletes_are_barriers: bool = False,
        record: Callable[[Run], None] | None = None,
    ) -> None:
        self._order = order
        self._engine = engine
        self._deletes_are_barriers = deletes_are_barriers
        self._record = record
        self._next_sequence_number = next_sequence_number
        self._memory = GrowingRows()
        self._spilled: list[SpilledRun] = []

    @property
    def size_bytes(self) -> int:
        """Memory that the rows take; those on disk take none."""
        return self._memory.size_bytes

    @property
    def may_spill(self) -> bool:
        """Whether rows may go to disk: a run there has one row per key, so it can not hold both sides of a barrier."""
        return not self._deletes_are_barriers

    def add(self, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Takes rows in arrival order, with their kinds."""
        schema = pa.schema([KIND_FIELD, *rows.schema])
        self._memory.add(pa.RecordBatch.from_arrays([kinds, *rows.columns], schema=schema))

    def spill(self, spill: Spill) -> None:
        """Moves the rows in memory to disk. They stay in memory if that fails."""
        assert self.may_spill
        if not self._memory.row_count:
            return
        rows = self._sorted()
        (run,) = self._runs_of(rows)
        self._spilled.append(spill.write(run))
        self._forget_memory(rows)

    def runs(self, spill: Spill | None = None) -> Iterator[Run]:
        """Sorted runs with all rows, oldest first; nearly always one. The buffer is empty once all were read."""
        rows = self._sorted()
        in_memory = self._runs_of(rows)
        if self._spilled:
            assert spill is not None
            yield spill.merge(self._spilled, in_memory, self._order, self._engine)
            self._spilled = []
        else:
            yield from in_memory
        self._forget_memory(rows)

    def _sorted(self) -> SortedRows | None:
        return SortedRows.of(self._memory.joined(), self._order) if self._memory.row_count else None

    def _runs_of(self, rows: SortedRows | None) -> list[Run]:
        if rows is None:
            return []
        if self._deletes_are_barriers:
            return split_at_deletes(rows, self._engine, self._next_sequence_number)
        return [rows.merged(self._engine, self._next_sequence_number)]

    def _forget_memory(self, rows: SortedRows | None) -> None:
        # Recorded when they are safe elsewhere: rows whose spilling failed come here a second time.
        if self._record is not None and rows is not None:
            self._record(rows.unmerged(self._next_sequence_number))
        self._next_sequence_number += self._memory.row_count
        self._memory = GrowingRows()
