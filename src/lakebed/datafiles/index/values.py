"""Values of a column as indexes keep them: numbers of a fixed width, or bytes.

Dates, times and timestamps become whole numbers (milliseconds up to precision 3, microseconds above), floats their
bits, with one pattern for all NaNs. What is equal to a reader but differs here (-0.0 and 0.0) must be looked up twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.types.logical import BINARIES, FLOATS, STRINGS, AtomicType, DataType, TypeRoot, is_root

Numbers = npt.NDArray[Any]

_TIMESTAMPS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_WIDTHS: dict[TypeRoot, type[np.generic]] = {
    TypeRoot.BOOLEAN: np.int8,
    TypeRoot.TINYINT: np.int8,
    TypeRoot.SMALLINT: np.int16,
    TypeRoot.INT: np.int32,
    TypeRoot.BIGINT: np.int64,
    TypeRoot.DATE: np.int32,
    TypeRoot.TIME: np.int32,
    TypeRoot.TIMESTAMP: np.int64,
    TypeRoot.TIMESTAMP_LTZ: np.int64,
    TypeRoot.FLOAT: np.int32,
    TypeRoot.DOUBLE: np.int64,
}


def is_indexable(data_type: DataType) -> bool:
    """Whether indexes can hold values of this type at all."""
    return isinstance(data_type, AtomicType) and (data_type.root in _WIDTHS or is_bytes(data_type))


def is_bytes(data_type: DataType) -> bool:
    """Whether values become bytes."""
    return is_root(data_type, STRINGS) or is_root(data_type, BINARIES)


def width_of(data_type: DataType) -> np.dtype[Any]:
    """The number type of values that become numbers, without byte order."""
    assert isinstance(data_type, AtomicType)
    return np.dtype(_WIDTHS[data_type.root])


def as_bytes(column: pa.Array) -> pa.Array:
    """Texts as bytes. REQUIRES: `is_bytes`."""
    return column.cast(pa.large_binary())


def as_numbers(column: pa.Array, data_type: DataType) -> Numbers:
    """Values without nulls as numbers. REQUIRES: no nulls, and a type that does not become bytes."""
    assert isinstance(data_type, AtomicType)
    width = width_of(data_type)
    if data_type.root in FLOATS:
        values = np.asarray(column)
        return np.where(np.isnan(values), np.asarray(np.nan, values.dtype), values).view(width)
    if data_type.root in _TIMESTAMPS:
        return _instants(column, data_type.precision)
    if data_type.root in (TypeRoot.DATE, TypeRoot.TIME):
        column = column.cast(pa.int32())
    return np.asarray(column).astype(width)


def sort_order(numbers: Numbers, data_type: DataType) -> npt.NDArray[np.int64]:
    """Numbers that sort as the values do: floats by sign and size, -0.0 first, NaN last."""
    wide = numbers.astype(np.int64)
    if not is_root(data_type, FLOATS):
        return wide
    return np.where(wide < 0, ~(wide & np.iinfo(numbers.dtype).max), wide)


def _instants(column: pa.Array, precision: int) -> Numbers:
    per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
    wanted = 1000 if precision <= 3 else 10**6
    has = per_second[column.type.unit]
    numbers = np.asarray(pc.cast(column, pa.int64()))
    return numbers * (wanted // has) if has <= wanted else np.floor_divide(numbers, has // wanted)
