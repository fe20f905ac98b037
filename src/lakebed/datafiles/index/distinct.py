"""The distinct values of a column in their order, and which of them each row has: what bitmap indexes are made of.

Values are bytes as indexes store them: numbers big endian, texts after an int32 length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.datafiles.index.values import as_bytes, as_numbers, is_bytes, sort_order, width_of
from lakebed.records import dataclass
from lakebed.types.logical import DataType

NULL = -1
"""The code of a row without a value."""

INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Distinct:
    """`values` ascend; a row's code is the place of its value among them."""

    values: list[bytes]
    codes: npt.NDArray[np.int64]


class DistinctColumn:
    """Takes a column batch by batch."""

    def __init__(self, data_type: DataType) -> None:
        self._type = data_type
        self._parts: list[pa.DictionaryArray] = []

    def add(self, column: pa.Array) -> None:
        """Values of the next rows."""
        # Encoded at once: a column with few values takes little memory until the end.
        self._parts.append((as_bytes(column) if is_bytes(self._type) else column).dictionary_encode())

    def finish(self) -> Distinct:
        """All values, and the code of each row."""
        rows = pa.chunked_array(self._parts).unify_dictionaries().combine_chunks()
        rows = rows.chunk(0) if isinstance(rows, pa.ChunkedArray) else rows
        values, ranks = _ranked(rows.dictionary, self._type)
        indices = np.asarray(pc.fill_null(rows.indices, len(ranks)).cast(pa.int64()))
        return Distinct(values, np.append(ranks, NULL)[indices])


def _ranked(values: pa.Array, data_type: DataType) -> tuple[list[bytes], npt.NDArray[np.int64]]:
    """The values as they are stored, ascending, and the place among them of each value given.

    Values that are the same once stored, such as moments within a microsecond, share one place.
    """
    if is_bytes(data_type):
        order = np.asarray(pc.sort_indices(values)).astype(np.int64)
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return encoded(values.take(pa.array(order)), data_type), ranks
    numbers = as_numbers(values, data_type)
    _, firsts, ranks = np.unique(sort_order(numbers, data_type), return_index=True, return_inverse=True)
    return _stored(numbers[firsts]), ranks.astype(np.int64)


def encoded(values: pa.Array, data_type: DataType) -> list[bytes]:
    """Values without nulls as they are stored, in their order."""
    if is_bytes(data_type):
        return [INT.pack(len(value)) + value for value in as_bytes(values).to_pylist()]
    return _stored(as_numbers(values, data_type))


def _stored(numbers: npt.NDArray[np.generic]) -> list[bytes]:
    width = numbers.dtype.itemsize
    data = numbers.astype(numbers.dtype.newbyteorder(">")).tobytes()
    return [data[i : i + width] for i in range(0, len(data), width)]


def comparable(value: bytes, data_type: DataType) -> bytes | int:
    """Something that compares as the stored values do."""
    if is_bytes(data_type):
        return value[INT.size :]
    return int(sort_order(np.frombuffer(value, width_of(data_type).newbyteorder(">")), data_type)[0])


class ValueReader:
    """Reads values and numbers, one after the other."""

    def __init__(self, data: bytes, data_type: DataType, at: int = 0) -> None:
        self.data = data
        self.type = data_type
        self.at = at

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """The next int32."""
        (found,) = INT.unpack_from(self.data, self.at)
        self.at += INT.size
        return int(found)

    def value(self) -> bytes:
        """The next value, as it is stored."""
        if is_bytes(self.type):
            width = INT.size + int(INT.unpack_from(self.data, self.at)[0])
        else:
            width = width_of(self.type).itemsize
        found = self.data[self.at : self.at + width]
        if len(found) < width:
            raise ValueError("a value is cut off")
        self.at += width
        return found

    def pairs(self, count: int) -> Iterator[tuple[bytes, int]]:
        """Values, each with a number behind it."""
        for _ in range(count):
            yield self.value(), self.number()
