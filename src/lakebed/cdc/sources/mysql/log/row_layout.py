"""Where the values of rows lie in a stretch of the binary log.

A row's values follow one another without marks, so a row must be walked to find the next. Instead of walking row by
row, all events of a table are walked in step: the first rows of all events at once, then the second rows, and so on,
each step with numpy over all events. A stretch of the log has many events and each few rows, so there are few steps.

With `binlog_row_value_options=PARTIAL_JSON`, which any session may set, new rows of some updates have differences to
the JSON value of the old row in the place of values: they are found here like others, and marked.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from lakebed.cdc.sources.mysql.log.events import HEADER, IS_DELETE, IS_SECOND_VERSION, IS_UPDATE, Kind, Segment
from lakebed.cdc.sources.mysql.log.table_map import Code, TableMap
from lakebed.cdc.sources.mysql.values.gather import Array, Bytes
from lakebed.cdc.sources.mysql.values.moments import decimal_size
from lakebed.errors import CorruptFile, InvalidOption, Unsupported
from lakebed.records import dataclass
from lakebed.types.row_kind import RowKind

_SIZES: Final = {
    Code.TINY: 1,
    Code.SHORT: 2,
    Code.INT24: 3,
    Code.LONG: 4,
    Code.LONGLONG: 8,
    Code.FLOAT: 4,
    Code.DOUBLE: 8,
    Code.YEAR: 1,
    Code.DATE: 3,
    Code.NEWDATE: 3,
    Code.TIME: 3,
    Code.DATETIME: 8,
    Code.TIMESTAMP: 4,
}

_PARTIAL_JSON: Final = 1


def fixed_size(code: Code, meta: int) -> int | None:
    """Bytes of a value, if all values of the column have as many."""
    match code:
        case Code.TIMESTAMP2:
            return 4 + (meta + 1) // 2
        case Code.DATETIME2:
            return 5 + (meta + 1) // 2
        case Code.TIME2:
            return 3 + (meta + 1) // 2
        case Code.NEWDECIMAL:
            return decimal_size(meta >> 8, meta & 0xFF)
        case Code.BIT:
            return (meta >> 8) + (1 if meta & 0xFF else 0)
        case Code.ENUM | Code.SET:
            return meta
        case _:
            return _SIZES.get(code)


def _length_size(code: Code, meta: int) -> int:
    """Bytes of the length that stands before a value of varying size."""
    if code in (Code.BLOB, Code.JSON, Code.GEOMETRY):
        return meta
    return 1 if meta < 256 else 2


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Rows of one table in the order of the log: one entry in each array per row, one array in each list per column.

    Where a column is in `partial`, its values there are differences to the value of the row before.
    """

    kinds: Array
    times_s: Array
    events: Array
    """Which of the events each row is of, by their number among those that were asked for."""
    places: list[Array]
    lengths: list[Array | None]
    valid: list[Array]
    partial: dict[int, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kinds)


def find_rows(segment: Segment, events: Array, table: TableMap) -> RowPlaces:
    """The rows of some row events of a segment, all of one table."""
    begins = _row_begins(segment, events, table)
    ends = segment.ends[events]
    steps: list[tuple[Array, _Step]] = []
    active = np.flatnonzero(begins < ends)
    at = begins[active]
    layout = _Layout(table)
    has_partial = segment.kinds[events] == Kind.PARTIAL_UPDATE_ROWS
    while len(active):
        try:
            # Rows before and after an update take turns.
            step = layout.walk(segment.bytes, at, has_partial[active] & (len(steps) % 2 == 1))
        except IndexError as error:
            raise _too_long(table) from error
        if (step.ends > ends[active]).any():
            raise _too_long(table)
        steps.append((active, step))
        going_on = step.ends < ends[active]
        active, at = active[going_on], step.ends[going_on]
    return _in_order(segment, events, steps, layout)


def _too_long(table: TableMap) -> CorruptFile:
    return CorruptFile(
        f"rows of {table.table} in the binary log are longer than their event",
        hint="this is a fault of the reader; report it",
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step found: rows that lie at the same place within their events."""

    places: list[Array]
    lengths: list[Array | None]
    valid: Array
    ends: Array
    partial: Array | None
    """A row for each JSON column, if any row has differences in the place of values."""


class _Layout:
    """How the rows of a table are walked."""

    def __init__(self, table: TableMap) -> None:
        self.bitmap_bytes = (len(table.codes) + 7) // 8
        pairs = list(zip(table.codes, table.metas, strict=True))
        self.fixed = [fixed_size(code, meta) for code, meta in pairs]
        self.prefix = [_length_size(code, meta) for code, meta in pairs]
        self.json = [i for i, code in enumerate(table.codes) if code is Code.JSON]

    def walk(self, data: Bytes, starts: Array, may_be_partial: Array) -> _Step:
        """The values of the rows that start at these places, and where the rows end."""
        partial = None
        if may_be_partial.any():
            starts, partial = self._options(data, starts, may_be_partial)
        bits = np.unpackbits(data.block(starts, self.bitmap_bytes), axis=1, bitorder="little")
        valid: Array = np.ascontiguousarray(bits[:, : len(self.fixed)].T == 0)
        complete: Array = np.logical_and.reduce(valid, axis=1)
        at = starts + self.bitmap_bytes
        places: list[Array] = []
        lengths: list[Array | None] = []
        for i, size in enumerate(self.fixed):
            if size is not None:
                places.append(at)
                lengths.append(None)
                at = at + size if complete[i] else at + size * valid[i]
                continue
            prefix = self.prefix[i]
            length = data.little(at, prefix).astype(np.int64)
            step = length + prefix
            if not complete[i]:
                length, step = length * valid[i], step * valid[i]
            places.append(at + prefix)
            lengths.append(length)
            at = at + step
            # A length that can not be right would send the next read out of the buffer; the end gives it away.
            at = np.minimum(at, data.size + 1)
        return _Step(places, lengths, valid, at, partial)

    def _options(self, data: Bytes, starts: Array, rows: Array) -> tuple[Array, Array]:
        """Passes over what stands before some rows: whether they have differences, and in which JSON columns."""
        options = np.where(rows, data.little(starts, 1), 0)
        if (options > _PARTIAL_JSON).any():
            raise Unsupported(
                f"the binary log has updates with options (number {int(options.max())}) that are not known",
                hint="SET GLOBAL binlog_row_value_options = '', let clients connect anew, and start again with a new "
                "checkpoint",
            )
        size = (len(self.json) + 7) // 8
        marked = options == _PARTIAL_JSON
        bits = np.unpackbits(data.block(starts + 1, size), axis=1, bitorder="little")[:, : len(self.json)]
        return starts + rows + marked * size, (bits.astype(bool) & marked[:, None]).T


def _row_begins(segment: Segment, events: Array, table: TableMap) -> Array:
    """Where the first row of each event begins; refuses events that do not carry all columns."""
    count = len(table.codes)
    kinds = segment.kinds[events]
    at = segment.starts[events] + HEADER + 8
    at = at + np.where(IS_SECOND_VERSION[kinds], segment.bytes.little(at, 2).astype(np.int64), 0)
    at = at + (1 if count < 251 else 3)
    bitmap = (count + 7) // 8
    full = np.packbits(np.ones(count, np.uint8), bitorder="little")
    images = np.where(IS_UPDATE[kinds], 2, 1)
    for image in (0, 1):
        some = np.flatnonzero(images > image)
        # Bits beyond the last column belong to nobody: MySQL sets them, MariaDB does not.
        if len(some) and not (segment.bytes.block(at[some] + image * bitmap, bitmap) & full == full).all():
            raise InvalidOption(
                f"changes of {table.table} in the binary log do not carry all columns",
                hint="SET GLOBAL binlog_row_image = 'FULL'; changes that were written before can not be followed: "
                "start again with a new checkpoint",
            )
    begins: Array = at + images * bitmap
    return begins


def _in_order(segment: Segment, events: Array, steps: list[tuple[Array, _Step]], layout: _Layout) -> RowPlaces:
    count = len(layout.fixed)
    if not steps:
        return RowPlaces(np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(0, np.int64), [], [], [])
    owner = np.concatenate([active for active, _ in steps])
    number = np.repeat(np.arange(len(steps)), [len(active) for active, _ in steps])
    order = np.argsort(owner, kind="stable") if len(steps) > 1 else slice(None)
    owner, number = owner[order], number[order]

    def column(arrays: list[Array]) -> Array:
        return (arrays[0] if len(arrays) == 1 else np.concatenate(arrays))[order]

    kinds = segment.kinds[events][owner]
    update = IS_UPDATE[kinds]
    rows = np.full(len(owner), RowKind.INSERT, np.int8)
    rows[IS_DELETE[kinds]] = RowKind.DELETE
    rows[update & (number % 2 == 0)] = RowKind.UPDATE_BEFORE
    rows[update & (number % 2 == 1)] = RowKind.UPDATE_AFTER
    places = [column([step.places[i] for _, step in steps]) for i in range(count)]
    lengths = [
        None
        if steps[0][1].lengths[i] is None
        else column([part for _, step in steps if (part := step.lengths[i]) is not None])
        for i in range(count)
    ]
    valid = [column([step.valid[i] for _, step in steps]) for i in range(count)]
    partial: dict[int, Array] = {}
    if any(step.partial is not None for _, step in steps):
        for nth, i in enumerate(layout.json):
            partial[i] = column(
                [np.zeros(len(active), bool) if step.partial is None else step.partial[nth] for active, step in steps]
            )
    times_s = segment.times[events][owner].astype(np.int64)
    return RowPlaces(rows, times_s, owner, places, lengths, valid, partial)


__all__ = ["RowPlaces", "find_rows", "fixed_size"]
