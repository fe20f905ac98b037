"""Rows in arrival order together with the order that sorts them by key, handed over merged, a window at a time.

Rows stay where they are: sorting looks at keys only, and each window is gathered when it is asked for. So a buffer of
any size costs its own memory, a number or two for each row, and one window.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.base import ChoosingEngine, Groups, Indices, MergeEngine, MergeOrder
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.key_value import SEQUENCE_FIELD, VALUE_KIND, with_system_columns

# --- Takes rows of one batch by their places, window after window -------------------------------------------------
#
# Texts and bytes that all have one length (hashes, codes, ids) are gathered as blocks of bytes, in a third of the
# time.


class Gather:
    """The rows of one batch, ready to be taken."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._schema = rows.schema
        self._columns = [_blocks(column) or column for column in rows.columns]

    def take(self, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """These rows, in this order. REQUIRES: few enough that no column of theirs reaches 2 GiB."""
        indices = pa.array(places)
        taken = [column.take(indices) for column in self._columns]
        columns = [
            _unpacked(column, field.type) if column.type != field.type else column
            for column, field in zip(taken, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _blocks(column: pa.Array) -> pa.Array | None:
    """A column of texts of one length as fixed-size binary, without a copy; None for all others."""
    if column.null_count or not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return None
    _, ends, data = column.buffers()
    bounds = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(bounds[1] - bounds[0])
    if length <= 0 or np.any(np.diff(bounds) != length):
        return None
    start = int(bounds[0])
    return pa.Array.from_buffers(pa.binary(length), len(column), [None, data.slice(start, length * len(column))])


def _unpacked(blocks: pa.Array, arrow: pa.DataType) -> pa.Array:
    length = blocks.type.byte_width
    bounds = np.arange(0, length * len(blocks) + 1, length, dtype=np.int32)
    return pa.Array.from_buffers(arrow, len(blocks), [None, pa.py_buffer(bounds), blocks.buffers()[1]])


WINDOW_ROWS = 65536
_WINDOW_BYTES = 16 << 20


@dataclass(frozen=True)
class SortedRows:
    """`rows` have their kind in front, but no numbers: a row's place is its number.

    `positions` sorts them by key and age. `starts` has the place in `positions` where each key begins; None stands for
    keys that all differ.
    """

    rows: pa.RecordBatch
    order: MergeOrder
    positions: Indices
    starts: Indices | None

    @staticmethod
    def of(rows: pa.RecordBatch, order: MergeOrder) -> SortedRows:
        """Sorts rows."""
        if not order.sequence_fields:
            keys = ordering.key_codes([rows.column(name) for name in order.key])
            found = _sorted_integers(keys[0]) if len(keys) == 1 else None
            if found is not None:
                return SortedRows(rows, order, *found)
        groups = order.group(_deciding(rows, order))
        return SortedRows(rows, order, groups.order, groups.starts if len(groups) < rows.num_rows else None)

    @property
    def groups(self) -> Groups:
        """The rows of each key."""
        starts = np.arange(len(self.positions), dtype=np.int64) if self.starts is None else self.starts
        return Groups(self.positions, starts, np.append(starts[1:], len(self.positions)))

    def merged(self, engine: MergeEngine, first_number: int) -> Iterator[pa.RecordBatch]:
        """One row per key in key order, in key-value shape; numbers count from `first_number` in order of arrival."""
        if self.starts is None:
            chosen = self.positions  # a key's only row is passed on as it is, by every engine
        elif isinstance(engine, ChoosingEngine):
            chosen = engine.choose(_deciding(self.rows, self.order), self.groups)
        else:
            yield from self._folded(engine, first_number)
            return
        gather, step = Gather(self.rows), self._window_rows
        for start in range(0, len(chosen), step):
            yield _window(gather, chosen[start : start + step], first_number)

    def unmerged(self, first_number: int) -> Iterator[pa.RecordBatch]:
        """All rows by key and age, in the same shape."""
        gather, step = Gather(self.rows), self._window_rows
        for start in range(0, len(self.positions), step):
            yield _window(gather, self.positions[start : start + step], first_number)

    def _folded(self, engine: MergeEngine, first_number: int) -> Iterator[pa.RecordBatch]:
        groups, gather = self.groups, Gather(self.rows)
        # Each window ends with the last row of a key.
        cuts = np.searchsorted(groups.ends, np.arange(self._window_rows, len(groups.order), self._window_rows)) + 1
        bounds = np.unique(np.concatenate(([0], cuts, [len(groups)]))).tolist()
        for first, last in itertools.pairwise(bounds):
            start, end = int(groups.starts[first]), int(groups.ends[last - 1])
            window = _window(gather, groups.order[start:end], first_number)
            if end - start > last - first:
                places = np.arange(end - start, dtype=np.int64)
                within = Groups(places, groups.starts[first:last] - start, groups.ends[first:last] - start)
                window = engine.merge(window, within)
            yield window

    @property
    def _window_rows(self) -> int:
        row_bytes = max(1, self.rows.nbytes // self.rows.num_rows)
        return int(max(1, min(WINDOW_ROWS, _WINDOW_BYTES // row_bytes)))


def _window(gather: Gather, places: Indices, first_number: int) -> pa.RecordBatch:
    return gather.take(places).add_column(0, SEQUENCE_FIELD, pa.array(places + first_number))


def _sorted_integers(codes: ordering.Codes) -> tuple[Indices, Indices | None] | None:
    """`positions` and `starts` for keys that leave room for a row's place in one integer; None for others.

    Key and place sort together as plain integers, several times as fast as places by their keys, and need less memory.
    """
    low, place_bits = int(codes.min()), len(codes).bit_length()
    if (int(codes.max()) - low).bit_length() + place_bits > 63:
        return None
    packed = codes - low
    packed <<= place_bits
    packed |= np.arange(len(codes))
    packed.sort()
    starts = _starts(packed, 1 << place_bits)
    packed &= (1 << place_bits) - 1
    return packed, starts


def _starts(packed: npt.NDArray[np.int64], key_unit: int) -> Indices | None:
    differs = (packed[1:] ^ packed[:-1]) >= key_unit
    if np.all(differs):
        return None
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _deciding(rows: pa.RecordBatch, order: MergeOrder) -> pa.RecordBatch:
    """What sorting and choosing look at."""
    names = list(dict.fromkeys((*order.key, *order.sequence_fields)))
    numbers = pa.array(np.arange(rows.num_rows, dtype=np.int64))
    return with_system_columns(rows.select(names), numbers, rows.column(VALUE_KIND))
