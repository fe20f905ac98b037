"""Bit-slice indexes: numbers of a column bit by bit, those below zero apart, by their size.

    byte 1 · int32 rows · byte whether there are numbers from zero on · these · byte whether there are others · these

    numbers  byte 1 · int64 smallest (always 0) · int64 largest · rows that have one · int32 slices · for each bit of a
             number the rows with it

All numbers are big endian; sets of rows are roaring bitmaps, one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakebed.datafiles.index.values import as_numbers, is_bytes, is_indexable
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.logical import FLOATS, DataType, TypeRoot, is_root
from lakebed.types.predicate import Op

SETTINGS = ()

_FRONT = struct.Struct(">bi")
_BOUNDS = struct.Struct(">bqq")
_INT = struct.Struct(">i")
_LEAST = np.iinfo(np.int64).min


def supports(data_type: DataType) -> bool:
    """Whether columns of this type can have such an index."""
    is_number = is_indexable(data_type) and not is_bytes(data_type)
    return is_number and not is_root(data_type, FLOATS | {TypeRoot.BOOLEAN})


class BsiBuilder:
    """Takes the values of a column and gives the index."""

    def __init__(self, data_type: DataType, settings: Mapping[str, str]) -> None:
        self._type = data_type
        self._rows = 0
        self._places: list[npt.NDArray[np.int64]] = []
        self._numbers: list[npt.NDArray[np.int64]] = []

    def add(self, column: pa.Array) -> None:
        """Values of the next rows."""
        numbers = as_numbers(column.drop_null(), self._type).astype(np.int64)
        if np.any(numbers == _LEAST):
            raise InvalidData(
                f"{_LEAST} has no size that a bit-slice index can hold",
                hint="leave the column out of `file-index.bsi.columns`, or use `range-bitmap`",
            )
        self._places.append(np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)) + self._rows)
        self._numbers.append(numbers)
        self._rows += len(column)

    def finish(self) -> bytes:
        """The index."""
        places, numbers = np.concatenate(self._places), np.concatenate(self._numbers)
        parts = [_FRONT.pack(1, self._rows)]
        for chosen in (numbers >= 0, numbers < 0):
            has_some = bool(np.any(chosen))
            parts.append(struct.pack(">?", has_some))
            if has_some:
                parts.append(_packed(places[chosen], np.abs(numbers[chosen])))
        return b"".join(parts)


def _packed(places: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> bytes:
    largest = int(sizes.max())
    slices = [places[(sizes >> bit) & 1 == 1] for bit in range(largest.bit_length())]
    return b"".join(
        [
            _BOUNDS.pack(1, 0, largest),
            _bitmap(places),
            _INT.pack(len(slices)),
            *(_bitmap(rows) for rows in slices),
        ]
    )


def _bitmap(rows: npt.NDArray[np.int64]) -> bytes:
    data: bytes = BitMap(rows.astype(np.uint32)).serialize()
    return data


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Numbers of one sign."""

    largest: int
    known: BitMap
    slices: list[BitMap]

    def holds(self, size: int) -> bool:
        """Whether a row has this size."""
        if size > self.largest:
            return False
        rows = self.known
        for bit, having in enumerate(self.slices):
            rows = rows & having if size >> bit & 1 else rows - having
        return bool(rows)


def _read(payload: bytes) -> tuple[int, _Sizes | None, _Sizes | None]:
    """How many rows there are, the numbers from zero on, and the others."""
    version, rows = _FRONT.unpack_from(payload)
    if version != 1:
        raise ValueError(f"version {version} of a bit-slice index is not known")
    at, found = _FRONT.size, []
    for _ in range(2):
        has_some, at = payload[at], at + 1
        sizes = None
        if has_some:
            sizes, at = _sizes(payload, at)
        found.append(sizes)
    return rows, found[0], found[1]


def _sizes(payload: bytes, at: int) -> tuple[_Sizes, int]:
    _, _, largest = _BOUNDS.unpack_from(payload, at)
    known, at = _next_bitmap(payload, at + _BOUNDS.size)
    (count,), at = _INT.unpack_from(payload, at), at + _INT.size
    slices = []
    for _ in range(count):
        rows, at = _next_bitmap(payload, at)
        slices.append(rows)
    return _Sizes(largest, known, slices), at


def _next_bitmap(payload: bytes, at: int) -> tuple[BitMap, int]:
    bitmap = BitMap.deserialize(payload[at:])
    return bitmap, at + len(bitmap.serialize())


def may_contain(payload: bytes, values: pa.Array, data_type: DataType) -> npt.NDArray[np.bool_]:
    """Which of the values, none of them null, the file holds."""
    _, positive, negative = _read(payload)
    found = []
    for number in as_numbers(values, data_type).astype(np.int64).tolist():
        sizes = positive if number >= 0 else negative
        found.append(sizes is not None and sizes.holds(abs(number)))
    return np.array(found, np.bool_)


def may_compare(payload: bytes, op: Op, literal: pa.Scalar, data_type: DataType) -> bool:
    """Whether the file may hold a value that is less, or greater, than this one."""
    _, positive, negative = _read(payload)
    if positive is None and negative is None:
        return False
    low = -negative.largest if negative is not None else 0
    high = positive.largest if positive is not None else -1
    value = int(as_numbers(pa.array([literal], literal.type), data_type)[0])
    return {Op.LT: low < value, Op.LE: low <= value, Op.GT: high > value, Op.GE: high >= value}.get(op, True)


def has_nulls(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds a null."""
    rows, *both = _read(payload)
    return sum(len(sizes.known) for sizes in both if sizes is not None) < rows


def has_values(payload: bytes, data_type: DataType) -> bool:
    """Whether the file holds anything but nulls."""
    return any(sizes is not None for sizes in _read(payload)[1:])


def check_settings(settings: Mapping[str, str]) -> None:
    """There are none."""
