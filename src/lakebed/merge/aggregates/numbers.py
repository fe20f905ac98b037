"""The integers behind columns of exact numbers, as numpy computes with them.

A decimal is an integer of 128 bits that counts units of its last digit. Arithmetic on it runs on its two 64-bit words
where that is enough, and on Python integers where it is not; both stay inside numpy, without a loop here. Nothing in
this module knows keys or rows: that is the business of the functions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.types.logical import DataField

Words = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""Integers of 128 bits: the upper half, which has the sign, and the lower half."""
Integers = npt.NDArray[np.object_]
"""Integers of any size."""

_WORD = 1 << 64


def limits(arrow: pa.DataType) -> tuple[int, int]:
    """Smallest and largest integer that a column of integers or decimals holds; decimals in units of the last digit."""
    if pa.types.is_decimal(arrow):
        return 1 - 10**arrow.precision, 10**arrow.precision - 1
    half = 1 << (arrow.bit_width - 1)
    return -half, half - 1


def does_not_fit(function: str, field: DataField) -> InvalidData:
    """The error for a result that the column has no room for."""
    return InvalidData(
        f"column `{field.name}`: the {function} of a key's values does not fit into {field.type}",
        hint="give the column a wider type, or correct the rows",
    )


def words(column: pa.Array) -> Words:
    """The words of decimals. REQUIRES: no nulls."""
    halves = np.frombuffer(column.buffers()[1], np.int64, count=2 * len(column), offset=16 * column.offset)
    return halves[1::2], halves[::2].view(np.uint64)


def from_words(both: Words, arrow: pa.DataType) -> pa.Array:
    """Decimals of these words. REQUIRES: they are within the limits of the type."""
    upper, lower = both
    pairs = np.empty((len(upper), 2), dtype=np.int64)
    pairs[:, 1] = upper
    pairs[:, 0] = lower.view(np.int64)
    return pa.Array.from_buffers(arrow, len(upper), [None, pa.py_buffer(pairs)])


def are_within(both: Words, low: int, high: int) -> bool:
    """Whether all integers are at least `low` and at most `high`."""
    upper, lower = both
    low_upper, low_lower = low >> 64, np.uint64(low % _WORD)
    high_upper, high_lower = high >> 64, np.uint64(high % _WORD)
    is_below = (upper < low_upper) | ((upper == low_upper) & (lower < low_lower))
    is_above = (upper > high_upper) | ((upper == high_upper) & (lower > high_lower))
    return not np.any(is_below | is_above)


def integers(column: pa.Array) -> Integers:
    """Integers, or decimals in units of their last digit, without bounds to compute within. REQUIRES: no nulls."""
    if not pa.types.is_decimal(column.type):
        return np.asarray(column).astype(object)
    upper, lower = words(column)
    if np.array_equal(upper, lower.view(np.int64) >> 63):
        return lower.view(np.int64).astype(object)
    unbounded: Integers = upper.astype(object) * _WORD + lower.astype(object)
    return unbounded


def from_integers(values: Integers, arrow: pa.DataType) -> pa.Array:
    """The column of these integers. REQUIRES: they are within the limits of the type."""
    if not pa.types.is_decimal(arrow):
        return pa.array(values.astype(arrow.to_pandas_dtype()))
    return from_words(((values >> 64).astype(np.int64), (values % _WORD).astype(np.uint64)), arrow)
