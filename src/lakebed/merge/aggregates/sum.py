"""The sum of a key's values.

Integers and decimals are exact: a sum that its column has no room for is an error, never a wrapped or cut number. Only
the result counts: it does not matter whether the sum left the range on the way. Floats are added in order of arrival,
in the precision of their column, so merging in several steps gives the same bits as merging at once.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.aggregates import numbers
from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.segments import Segments
from lakebed.types.logical import NUMERICS, DataType, is_root

_LIMB_BITS = 32
_LIMB = (1 << _LIMB_BITS) - 1


class Sum(Aggregate):
    """Adds values and subtracts those taken back; nulls count nothing."""

    name = "sum"
    takes = "numbers: TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL"
    can_retract = True

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return is_root(data_type, NUMERICS)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        if pa.types.is_floating(column.type):
            sums = _sum_of_floats(column, segments)
        elif pa.types.is_decimal(column.type):
            sums = self._sum_of_decimals(column, segments)
        else:
            sums = self._sum_of_integers(column, segments)
        return segments.null_without_value(sums, column)

    def _sum_of_integers(self, column: pa.Array, segments: Segments) -> pa.Array:
        filled = column.fill_null(0) if column.null_count else column
        values = np.asarray(filled).astype(np.int64, copy=False)[segments.order]
        low, high = numbers.limits(column.type)
        if _stays_in_64_bits(values, segments):
            sums = _totals(values, segments)
            if np.any((sums < low) | (sums > high)):
                raise numbers.does_not_fit(self.name, self.field)
        else:
            wide = _wide_totals((values >> 63, values.view(np.uint64)), segments)
            if wide is None or not numbers.are_within(wide, low, high):
                raise numbers.does_not_fit(self.name, self.field)
            sums = wide[1].view(np.int64)
        return pa.array(sums.astype(column.type.to_pandas_dtype(), copy=False))

    def _sum_of_decimals(self, column: pa.Array, segments: Segments) -> pa.Array:
        filled = column.fill_null(pa.scalar(Decimal(0), column.type)) if column.null_count else column
        upper, lower = numbers.words(filled)
        upper, lower = upper[segments.order], lower[segments.order]
        values = lower.view(np.int64)
        sums: numbers.Words | None
        if np.array_equal(upper, values >> 63) and _stays_in_64_bits(values, segments):
            totals = _totals(values, segments)
            sums = (totals >> 63, totals.view(np.uint64))
        else:
            sums = _wide_totals((upper, lower), segments)
        if sums is None or not numbers.are_within(sums, *numbers.limits(column.type)):
            raise numbers.does_not_fit(self.name, self.field)
        return numbers.from_words(sums, column.type)


def _sum_of_floats(column: pa.Array, segments: Segments) -> pa.Array:
    values = _signed(np.asarray(column.fill_null(0.0) if column.null_count else column)[segments.order], segments)
    # -0.0 is the number that changes nothing when added: 0.0 would turn -0.0 into 0.0.
    if column.null_count:
        values[~segments.valid(column)] = -0.0
    totals = np.full(len(segments), -0.0, dtype=values.dtype)
    with np.errstate(all="ignore"):
        # Unlike `reduceat`, this adds strictly in order.
        np.add.at(totals, segments.segment_of, values)
    return pa.array(totals)


def _signed(values: npt.NDArray[Any], segments: Segments) -> npt.NDArray[Any]:
    return np.where(segments.retracts, -values, values) if segments.has_retracts else values


def _totals(values: npt.NDArray[np.int64], segments: Segments) -> npt.NDArray[np.int64]:
    totals = np.zeros(len(segments), dtype=np.int64)
    # Faster than `reduceat` for the short segments that merges have.
    np.add.at(totals, segments.segment_of, _signed(values, segments))
    return totals


def _stays_in_64_bits(values: npt.NDArray[np.int64], segments: Segments) -> bool:
    farthest = max(-int(values.min()), int(values.max()))
    return farthest * int(segments.sizes.max()) < 1 << 63


def _wide_totals(values: numbers.Words, segments: Segments) -> numbers.Words | None:
    """Sums of 128-bit integers, or None if one needs more bits.

    Limbs of 32 bits are summed in 64 bits each, which two billion rows can not overflow; the carries come after.
    """
    upper, lower = values[0], values[1].view(np.int64)
    limbs = [lower & _LIMB, (lower >> _LIMB_BITS) & _LIMB, upper & _LIMB, upper >> _LIMB_BITS]
    sums = [_totals(limb, segments) for limb in limbs]
    for low, high in pairwise(sums):
        high += low >> _LIMB_BITS
        low &= _LIMB
    top = sums[3]
    if np.any((top < -(1 << 31)) | (top >= 1 << 31)):
        return None
    return (top << _LIMB_BITS) | sums[2], ((sums[1] << _LIMB_BITS) | sums[0]).view(np.uint64)
