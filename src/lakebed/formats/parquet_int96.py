"""INT96 timestamps of Parquet files, read from their raw bytes.

An INT96 is a day and the nanoseconds of that day. Java stores instants before 1970 with negative nanoseconds, which
pyarrow takes for enormous positive ones: they come out 584 years late, and nothing tells them from instants of that
time. So pyarrow is shown a footer that calls these columns what their bytes are, 12 bytes of fixed length, and the
arithmetic happens here. Writing such columns is left to pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import Unsupported

_RAW = pa.binary(12)
_ITEM = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2440588
_NANOS_PER_DAY = 86_400_000_000_000

# Thrift's compact protocol, as far as footers need it.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INT96, _FIXED_LEN_BYTE_ARRAY = 6, 14
"""Physical types 3 and 7 in zigzag form."""
_LENGTH_12 = bytes([0x15, 24])
"""Field number one higher, an integer, 12 in zigzag form."""


def int96_columns(file: pq.ParquetFile) -> set[str]:
    """Top-level columns that are, or contain, INT96."""
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    return {leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"}


def raw_footer(footer: pq.FileMetaData) -> pq.FileMetaData:
    """The same footer with 12 bytes of fixed length in the place of every INT96."""
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    content = sink.getvalue().to_pybytes()
    size = int.from_bytes(content[-8:-4], "little")
    patched = _patched(content[-8 - size : -8])
    file = b"".join((b"PAR1", patched, len(patched).to_bytes(4, "little"), b"PAR1"))
    return pq.read_metadata(pa.BufferReader(file))


def _patched(footer: bytes) -> bytes:
    parts, done = [], 0
    for start, end, replacement in _edits(_Cursor(footer)):
        parts += [footer[done:start], replacement]
        done = end
    return b"".join([*parts, footer[done:]])


def _edits(cursor: _Cursor) -> Iterator[tuple[int, int, bytes]]:
    """Places to change: FileMetaData holds the schema (2) and row groups (4) of chunks (1) with metadata (3)."""
    for field, kind in cursor.fields():
        if field == 2:
            for _ in range(cursor.open_list()[0]):
                yield from _schema_edits(cursor)
        elif field == 4:
            for _ in range(cursor.open_list()[0]):
                yield from _row_group_edits(cursor)
        else:
            cursor.skip(kind)


def _schema_edits(cursor: _Cursor) -> Iterator[tuple[int, int, bytes]]:
    for field, kind in cursor.fields():
        if field == 1 and cursor.peek() == _INT96:
            yield cursor.at, cursor.at + 1, bytes([_FIXED_LEN_BYTE_ARRAY]) + _LENGTH_12
            cursor.skip(kind)
            # Fields are numbered by their distance, and the length now stands in between.
            yield cursor.at, cursor.at + 1, bytes([cursor.peek() - 0x10])
        else:
            cursor.skip(kind)


def _row_group_edits(cursor: _Cursor) -> Iterator[tuple[int, int, bytes]]:
    for field, kind in cursor.fields():
        if field != 1:
            cursor.skip(kind)
            continue
        for _ in range(cursor.open_list()[0]):
            for chunk_field, chunk_kind in cursor.fields():
                if chunk_field != 3:
                    cursor.skip(chunk_kind)
                    continue
                for inner_field, inner_kind in cursor.fields():
                    if inner_field == 1 and cursor.peek() == _INT96:
                        yield cursor.at, cursor.at + 1, bytes([_FIXED_LEN_BYTE_ARRAY])
                    cursor.skip(inner_kind)


class _Cursor:
    """A place in a Thrift message."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self.at = 0

    def peek(self) -> int:
        return self._message[self.at]

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a struct; whoever asks moves past the value before asking again."""
        number = 0
        while (header := self._byte()) != _STOP:
            number = number + (header >> 4) if header >> 4 else self._varint() >> 1
            yield number, header & 0x0F

    def open_list(self) -> tuple[int, int]:
        """Length of a list and kind of its elements, which follow."""
        header = self._byte()
        return (header >> 4 if header < 0xF0 else self._varint()), header & 0x0F

    def skip(self, kind: int, *, in_list: bool = False) -> None:
        """Moves past a value."""
        if kind in (_TRUE, _FALSE):
            self.at += in_list  # a field's header says the value already
        elif kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind in (_LIST, _SET):
            length, element = self.open_list()
            for _ in range(length):
                self.skip(element, in_list=True)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        else:
            self._varint()

    def _byte(self) -> int:
        self.at += 1
        return self._message[self.at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def decoded(array: pa.Array, wanted: pa.DataType, column: str, path: str) -> pa.Array:
    """The array with timestamps for raw INT96, fine enough for `wanted`; other types stay."""
    if array.type == _RAW:
        unit = "ns" if pa.types.is_timestamp(wanted) and wanted.unit == "ns" else "us"
        return _timestamps(array, unit, column, path)
    if pa.types.is_struct(array.type):
        types = {child.name: child.type for child in wanted} if pa.types.is_struct(wanted) else {}
        members = [
            decoded(array.field(i), types.get(child.name, pa.null()), column, path)
            for i, child in enumerate(array.type)
        ]
        return pa.StructArray.from_arrays(members, names=[child.name for child in array.type], mask=array.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(wanted):
        keys = decoded(array.keys, wanted.key_type, column, path)
        items = decoded(array.items, wanted.item_type, column, path)
        arrow = pa.map_(keys.type, items.type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[arrow.key_field, arrow.item_field])
        return _with_child(array, arrow, entries)
    if pa.types.is_list(array.type) and pa.types.is_list(wanted):
        values = decoded(array.values, wanted.value_type, column, path)
        return _with_child(array, pa.list_(values.type), values)
    return array


def _with_child(array: pa.Array, arrow: pa.DataType, child: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(arrow, len(array), array.buffers()[:2], offset=array.offset, children=[child])


def _timestamps(array: pa.Array, unit: str, column: str, path: str) -> pa.Array:
    divisor = 1 if unit == "ns" else 1000
    items = np.frombuffer(array.buffers()[1] or b"", _ITEM)[array.offset : array.offset + len(array)]
    # Negative nanoseconds, or those of a whole day and more, move the day.
    extra_days, nanos = np.divmod(items["nanos"], _NANOS_PER_DAY)
    days = items["day"].astype(np.int64) - _EPOCH_DAY + extra_days
    is_null = array.is_null().to_numpy(zero_copy_only=False)
    low, high = _day_range(_NANOS_PER_DAY // divisor)
    outside = ~is_null & ((days < low) | (days > high))
    values = np.where(is_null | outside, 0, days) * (_NANOS_PER_DAY // divisor) + nanos // divisor
    # On the last day the clock decides; the sum wraps around then.
    outside |= ~is_null & (((days == high) & (values < 0)) | ((days == low) & (values > 0)))
    if outside.any():
        raise Unsupported(
            f"column `{column}` of data file `{path}` has a timestamp that timestamp[{unit}] can not hold",
            hint="only the years 1677 to 2262 can be read with nanoseconds; declare precision 6 for others",
        )
    return pa.array(values, pa.timestamp(unit), mask=is_null)


def _day_range(units_per_day: int) -> tuple[int, int]:
    """First and last day of which at least a part fits into 64 bits."""
    return (-(2**63)) // units_per_day, (2**63 - 1) // units_per_day
