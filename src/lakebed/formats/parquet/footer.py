"""Lets columns of a Parquet file change their physical type between INT96 and 12 bytes of fixed length.

On disk both are the same bytes; only the footer tells them apart. pyarrow writes INT96 for all timestamps of a file or
for none, and reads it with limits (see `int96`), so it is shown bytes and the footer is edited: after writing,
and before reading. Nothing else of a footer is understood here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

Edit = tuple[int, int, bytes]
"""Start, end, and what stands there instead."""

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4

# Thrift's compact protocol, as far as footers need it. Numbers are in zigzag form: twice their value.
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 12
_INT96, _FIXED_LEN_BYTE_ARRAY = bytes([2 * 3]), bytes([2 * 7])
_LENGTH_12 = bytes([0x15, 2 * 12])
"""The field `type_length`: its number is one higher than that of the field before, an integer, 12."""
_ONE_FIELD = 0x10
"""Fields are numbered by their distance from the one before; this is a distance of one in a field's first byte."""


def int96_shown_as_bytes(footer: pq.FileMetaData) -> pq.FileMetaData:
    """The footer of a file with 12 bytes of fixed length in the place of every INT96."""
    sink = pa.BufferOutputStream()
    footer.write_metadata_file(sink)
    content = sink.getvalue().to_pybytes()
    leaves = [i for i in range(footer.num_columns) if footer.schema.column(i).physical_type == "INT96"]
    return pq.read_metadata(pa.BufferReader(_MAGIC + _edited(content, leaves, _schema_to_bytes, _FIXED_LEN_BYTE_ARRAY)))


def footer_of_tail(tail: bytes) -> pq.FileMetaData:
    """The footer in the last part of a file."""
    return pq.read_metadata(pa.BufferReader(_MAGIC + tail))


def bytes_declared_int96(end_of_file: bytes, leaves: Collection[int]) -> bytes:
    """The last part of a file, footer included, with INT96 for the given leaf columns of 12 bytes."""
    start = len(end_of_file) - tail_bytes(end_of_file)
    return end_of_file[:start] + _edited(end_of_file, leaves, _schema_to_int96, _INT96)


def tail_bytes(content: bytes) -> int:
    """Size of footer, its length and the magic bytes, by the last bytes of a file."""
    at = len(content) - len(_MAGIC) - _LENGTH_BYTES
    return int.from_bytes(content[at : at + _LENGTH_BYTES], "little") + len(content) - at


def _edited(
    content: bytes, leaves: Collection[int], edit_schema: Callable[[_Cursor], Iterator[Edit]], kind: bytes
) -> bytes:
    """The edited footer of a file that ends like this, with its length and the magic bytes."""
    footer = content[-tail_bytes(content) : -len(_MAGIC) - _LENGTH_BYTES]
    parts, done = [], 0
    for start, end, replacement in _edits(_Cursor(footer), leaves, edit_schema, kind):
        parts += [footer[done:start], replacement]
        done = end
    edited = b"".join([*parts, footer[done:]])
    return edited + len(edited).to_bytes(_LENGTH_BYTES, "little") + _MAGIC


def _edits(
    cursor: _Cursor, leaves: Collection[int], edit_schema: Callable[[_Cursor], Iterator[Edit]], kind: bytes
) -> Iterator[Edit]:
    """Through a footer: schema elements (2), then row groups (4) of chunks (1) with metadata (3)."""
    for field, field_kind in cursor.fields():
        if field == 2:
            yield from _schema_edits(cursor, leaves, edit_schema)
        elif field == 4:
            for _ in range(cursor.open_list()[0]):
                for inner, inner_kind in cursor.fields():
                    if inner == 1:
                        yield from _chunk_edits(cursor, leaves, kind)
                    else:
                        cursor.skip(inner_kind)
        else:
            cursor.skip(field_kind)


def _schema_edits(
    cursor: _Cursor, leaves: Collection[int], edit: Callable[[_Cursor], Iterator[Edit]]
) -> Iterator[Edit]:
    """Elements with a type (1) are leaves, in the order of the chunks."""
    leaf = 0
    for _ in range(cursor.open_list()[0]):
        for field, kind in cursor.fields():
            if field != 1:
                cursor.skip(kind)
                continue
            if leaf in leaves:
                yield from edit(cursor)
            else:
                cursor.skip(kind)
            leaf += 1


def _schema_to_bytes(cursor: _Cursor) -> Iterator[Edit]:
    yield cursor.at, cursor.at + 1, _FIXED_LEN_BYTE_ARRAY + _LENGTH_12
    cursor.at += 1
    yield cursor.at, cursor.at + 1, bytes([cursor.peek() - _ONE_FIELD])


def _schema_to_int96(cursor: _Cursor) -> Iterator[Edit]:
    yield cursor.at, cursor.at + 1 + len(_LENGTH_12), _INT96
    cursor.at += 1 + len(_LENGTH_12)
    yield cursor.at, cursor.at + 1, bytes([cursor.peek() + _ONE_FIELD])


def _chunk_edits(cursor: _Cursor, leaves: Collection[int], kind: bytes) -> Iterator[Edit]:
    for leaf in range(cursor.open_list()[0]):
        for field, field_kind in cursor.fields():
            if field != 3:
                cursor.skip(field_kind)
                continue
            for inner, inner_kind in cursor.fields():
                if inner == 1 and leaf in leaves:
                    yield cursor.at, cursor.at + 1, kind
                cursor.skip(inner_kind)


class _Cursor:
    """A place in a Thrift message."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self.at = 0

    def peek(self) -> int:
        """The byte at the place."""
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
            self.at += in_list  # a field's first byte says the value already
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
