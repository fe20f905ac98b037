"""Bitmap indexes: for each value of a column the rows that have it.

    byte version · int32 rows · int32 distinct values · byte whether there are nulls · int32 place of their bitmap
    version 1   then for each value: value · int32 place · and the bitmaps
    version 2   int32 bytes of the bitmap of nulls (with its place, if there are any)
                int32 blocks · for each: first value · int32 place among the blocks · int32 bytes of all blocks
                blocks: int32 values · for each: value · int32 place · int32 bytes (-1: not known) · and the bitmaps

Values of version 2 are sorted. Numbers are big endian, texts come with an int32 length. Places count from the first
bitmap; a negative place p stands for the single row -1 - p.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakebed.datafiles.index.distinct import INT, NULL, DistinctColumn, ValueReader, comparable, encoded
from lakebed.datafiles.index.values import is_indexable
from lakebed.errors import InvalidOption
from lakebed.types.logical import BINARIES, DataType, is_root
from lakebed.units import parse_size

SETTINGS = ("version", "index-block-size")

_DEFAULT_BLOCK = "16kb"
_TWO = struct.Struct(">ii")
_FRONT = struct.Struct(">bii?")


def supports(data_type: DataType) -> bool:
    """Whether columns of this type can have such an index."""
    return is_indexable(data_type) and not is_root(data_type, BINARIES)


class BitmapBuilder:
    """Takes the values of a column and gives the index."""

    def __init__(self, data_type: DataType, settings: Mapping[str, str]) -> None:
        self._version = _version(settings)
        self._block_bytes = _block_bytes(settings)
        self._column = DistinctColumn(data_type)

    def add(self, column: pa.Array) -> None:
        """Values of the next rows."""
        self._column.add(column)

    def finish(self) -> bytes:
        """The index."""
        distinct = self._column.finish()
        codes = distinct.codes
        by_code = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[by_code], np.arange(NULL, len(distinct.values)), side="right")
        rows_of = np.split(by_code, ends[:-1]) if len(ends) > 1 else [by_code]
        nulls = rows_of[0]
        body = _Body()
        null_place = body.add(nulls) if len(nulls) else (0, 0)
        entries = [(value, *body.add(rows)) for value, rows in zip(distinct.values, rows_of[1:], strict=True)]
        front = _FRONT.pack(self._version, len(codes), len(entries), bool(len(nulls)))
        if self._version == 1:
            head = [INT.pack(null_place[0])] if len(nulls) else []
            head += [value + INT.pack(place) for value, place, _ in entries]
        else:
            head = [_TWO.pack(*null_place)] if len(nulls) else []
            head += _blocks(entries, self._block_bytes)
        return b"".join([front, *head, *body.parts])


class _Body:
    """Bitmaps one after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size_bytes = 0

    def add(self, rows: npt.NDArray[np.int64]) -> tuple[int, int]:
        """Place and bytes of the bitmap of these rows."""
        if len(rows) == 1:
            return -1 - int(rows[0]), -1
        part = BitMap(rows.astype(np.uint32)).serialize()
        place = self._size_bytes
        self.parts.append(part)
        self._size_bytes += len(part)
        return place, len(part)


def _blocks(entries: Sequence[tuple[bytes, int, int]], limit_bytes: int) -> list[bytes]:
    """The table of blocks and the blocks."""
    blocks: list[tuple[bytes, list[bytes]]] = []
    room = 0
    for value, place, size_bytes in entries:
        entry = value + _TWO.pack(place, size_bytes)
        if not blocks or len(entry) > room:
            blocks.append((value, []))
            room = limit_bytes - INT.size
        blocks[-1][1].append(entry)
        room -= len(entry)
    table, stored, at = [INT.pack(len(blocks))], [], 0
    for value, members in blocks:
        data = INT.pack(len(members)) + b"".join(members)
        table.append(value + INT.pack(at))
        stored.append(data)
        at += len(data)
    return [*table, INT.pack(at), *stored]


def may_contain(payload: bytes, values: pa.Array, data_type: DataType) -> npt.NDArray[np.bool_]:
    """Which of the values, none of them null, the file holds."""
    version, _, count, has_null = _FRONT.unpack_from(payload)
    if version not in (1, 2):
        raise ValueError(f"version {version} of a bitmap index is not known")
    reader = ValueReader(payload, data_type, _FRONT.size + ((4 if version == 1 else 8) if has_null else 0))
    sought = encoded(values, data_type)
    if version == 1:
        known = {value for value, _ in reader.pairs(count)}
        return np.array([value in known for value in sought], np.bool_)
    return np.array(_in_blocks(reader, sought), np.bool_)


def has_nulls(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds a null."""
    return bool(_FRONT.unpack_from(payload)[3])


def has_values(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds anything but nulls."""
    return bool(_FRONT.unpack_from(payload)[2])


def _in_blocks(reader: ValueReader, sought: Sequence[bytes]) -> list[bool]:
    """Looks each value up in the block it would be in."""
    table = list(reader.pairs(reader.number()))
    reader.number()  # bytes of all blocks
    start = reader.at
    firsts = [comparable(value, reader.type) for value, _ in table]
    found = []
    for value in sought:
        block = bisect_right(firsts, comparable(value, reader.type)) - 1
        if block < 0:
            found.append(False)
            continue
        reader.at = start + table[block][1]
        found.append(value in _members(reader))
    return found


def _members(reader: ValueReader) -> set[bytes]:
    members = set()
    for _ in range(reader.number()):
        members.add(reader.value())
        reader.at += _TWO.size
    return members


def check_settings(settings: Mapping[str, str]) -> None:
    """Raises on values that make no index."""
    _version(settings)
    _block_bytes(settings)


def _version(settings: Mapping[str, str]) -> int:
    text = settings.get("version", "2").strip()
    if text not in ("1", "2"):
        raise InvalidOption(f"`version` of a bitmap index is `{text}`", hint="give `1` or `2`")
    return int(text)


def _block_bytes(settings: Mapping[str, str]) -> int:
    return parse_size(settings.get("index-block-size", _DEFAULT_BLOCK))
