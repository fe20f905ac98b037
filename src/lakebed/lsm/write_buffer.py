"""Collects rows of one bucket, numbers them in order of arrival, and hands them over as sorted runs, one row per key.

What does not fit into memory goes to local disk as sorted runs, which are merged with the rest at the end: a commit
leaves one run of files in a bucket, whatever its size. Nothing here knows how much memory there is, nor where the rows
go: whoever owns several buffers shares out the memory among them.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.lsm.delete_barrier import split_at_deletes
from lakebed.lsm.sorted_rows import SortedRows
from lakebed.lsm.spill import Run, Spill, SpilledRun
from lakebed.merge.base import Groups, MergeEngine, MergeOrder
from lakebed.records import dataclass
from lakebed.types import key_value, ordering
from lakebed.types.key_value import KIND_FIELD
from lakebed.types.row_kind import is_retract

# --- Batches that are copied together as they come, column by column, into memory that can grow -------------------
#
# What comes in may be a slice of something larger, or have columns that share one piece of memory; it would keep more
# alive than it shows. So rows are copied once, to where they are one batch without another copy. The memory comes
# from the system and goes back to it, since an allocator that keeps freed memory would hold the buffer twice.


_Bytes = npt.NDArray[np.uint8]

_COPY_FROM_BYTES = 1 << 20
"""Fewer rows than this are kept as they came: there may be many small buffers."""


class GrowingRows:
    """Rows in arrival order."""

    def __init__(self) -> None:
        self.row_count = 0
        self.size_bytes = 0
        self._schema: pa.Schema | None = None
        self._recent: list[pa.RecordBatch] = []
        self._recent_bytes = 0
        self._columns: list[_Column] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Appends rows."""
        self._schema = batch.schema
        if self._recent_bytes >= _COPY_FROM_BYTES:
            self._copy_recent()
        self._recent.append(batch)
        size_bytes = batch.nbytes
        self._recent_bytes += size_bytes
        self.size_bytes += size_bytes
        self.row_count += batch.num_rows

    def joined(self) -> pa.RecordBatch:
        """All rows as one batch. REQUIRES: there are some, and no more will be added while the batch is in use."""
        if not self._columns:
            return self._recent[0] if len(self._recent) == 1 else pa.concat_batches(self._recent)
        self._copy_recent()
        return pa.RecordBatch.from_arrays([column.whole() for column in self._columns], schema=self._schema)

    def _copy_recent(self) -> None:
        assert self._schema is not None
        if not self._columns:
            self._columns = [_column(field.type) for field in self._schema]
        for index, column in enumerate(self._columns):
            for batch in self._recent:
                column.add(batch.column(index))
        self._recent, self._recent_bytes = [], 0


class _Column(Protocol):
    def add(self, values: pa.Array) -> None:
        """Appends values."""

    def whole(self) -> pa.Array:
        """All values."""


def _column(arrow: pa.DataType) -> _Column:
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return _TextColumn(arrow)
    if pa.types.is_decimal128(arrow) or (pa.types.is_primitive(arrow) and not pa.types.is_boolean(arrow)):
        return _FixedWidthColumn(arrow)
    return _OtherColumn()


class _Arena:
    """Bytes that grow. Pages that were never written to take no memory."""

    def __init__(self) -> None:
        self.size = 0
        self._map = _new_memory(mmap.PAGESIZE)

    def append(self, data: _Bytes) -> None:
        needed = self.size + len(data)
        if needed > len(self._map):
            self._grow(max(needed, 2 * len(self._map)))
        self._map[self.size : needed] = data.data
        self.size = needed

    def _grow(self, capacity: int) -> None:
        try:
            self._map.resize(capacity)  # Linux moves pages without copying them
        except SystemError:
            larger = _new_memory(capacity)
            larger[: self.size] = memoryview(self._map)[: self.size]
            self._map = larger

    def whole(self) -> pa.Buffer:
        return pa.py_buffer(memoryview(self._map)[: self.size])


def _new_memory(capacity: int) -> mmap.mmap:
    return mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class _Validity:
    """Which values are not null: nothing as long as none is null, then a byte for each."""

    def __init__(self) -> None:
        self._count = 0
        self._flags: _Arena | None = None

    def add(self, values: pa.Array) -> None:
        if values.null_count and self._flags is None:
            self._flags = _Arena()
            self._flags.append(np.ones(self._count, np.uint8))
        if self._flags is not None:
            self._flags.append(np.asarray(values.is_valid()).view(np.uint8))
        self._count += len(values)

    def whole(self) -> pa.Buffer | None:
        if self._flags is None:
            return None
        return pa.py_buffer(np.packbits(np.frombuffer(self._flags.whole(), np.uint8), bitorder="little"))


class _FixedWidthColumn:
    """Numbers, days, times, decimals."""

    def __init__(self, arrow: pa.DataType) -> None:
        self._arrow = arrow
        self._width = arrow.bit_width // 8
        self._count = 0
        self._validity = _Validity()
        self._values = _Arena()

    def add(self, values: pa.Array) -> None:
        self._validity.add(values)
        start, end = values.offset * self._width, (values.offset + len(values)) * self._width
        self._values.append(np.frombuffer(values.buffers()[1], np.uint8)[start:end])
        self._count += len(values)

    def whole(self) -> pa.Array:
        return pa.Array.from_buffers(self._arrow, self._count, [self._validity.whole(), self._values.whole()])


class _TextColumn:
    """Text and bytes: where each value ends, and all of them behind each other."""

    def __init__(self, arrow: pa.DataType) -> None:
        self._arrow = arrow
        self._count = 0
        self._validity = _Validity()
        self._ends = _Arena()
        self._ends.append(np.zeros(4, np.uint8))
        self._values = _Arena()

    def add(self, values: pa.Array) -> None:
        self._validity.add(values)
        _, ends, data = values.buffers()
        bounds = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        self._ends.append((bounds[1:] + np.int32(self._values.size - first)).view(np.uint8))
        if last > first:
            self._values.append(np.frombuffer(data, np.uint8)[first:last])
        self._count += len(values)

    def whole(self) -> pa.Array:
        buffers = [self._validity.whole(), self._ends.whole(), self._values.whole()]
        return pa.Array.from_buffers(self._arrow, self._count, buffers)


class _OtherColumn:
    """Everything else, left to Arrow."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []

    def add(self, values: pa.Array) -> None:
        self._parts.append(values)

    def whole(self) -> pa.Array:
        self._parts = [pa.concat_arrays(self._parts)]
        return self._parts[0]


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


# --- The order of arrival, corrected: among rows of one key with equal sequence values, retracts come first ----------


@dataclass(frozen=True, slots=True)
class RetractsFirst(MergeOrder):
    """By key, user sequence, retract before add, then arrival. REQUIRES: there are sequence fields.

    Sources that send an update as a delete and an insert do not always keep the two in order. This is for writing only:
    one row per key is left in the files, so readers, of other engines too, see the outcome without knowing of the rule.
    """

    @staticmethod
    def among_equals_of(order: MergeOrder) -> RetractsFirst:
        """The same order otherwise."""
        return RetractsFirst(order.key, order.sequence_fields, order.descending)

    def group(self, rows: pa.RecordBatch) -> Groups:
        """See `MergeOrder.group`."""
        keys = ordering.key_codes([rows.column(name) for name in self.key])
        user = [ordering.sort_codes(rows.column(name), descending=self.descending) for name in self.sequence_fields]
        adds = (~is_retract(key_value.kinds(rows))).astype(np.int64)
        order = ordering.argsort([*keys, *user, adds, key_value.sequence_numbers(rows)])
        starts = np.flatnonzero(ordering.changes([codes[order] for codes in keys]))
        return Groups(order, starts, np.append(starts, rows.num_rows)[1:])
