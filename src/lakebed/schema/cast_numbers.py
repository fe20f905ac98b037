"""Conversions between booleans, integers, floating point and decimals, with the results Java gives.

Integers wrap when they do not fit. Floating point is cut towards zero and stops at the limits of INT or BIGINT, then
wraps into anything narrower; NaN becomes 0. Decimals are cut towards zero on the way to integers; on the way to a
decimal values round half up and become NULL when they do not fit. All of it works on whole columns. Which conversions
are allowed is decided in `casts`.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import AtomicType, TypeRoot

_COMPACT_PRECISION = 18
"""Up to this precision Java keeps a decimal in a long, and divides that as a double."""


def integer_to_integer(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Wider or wrapped."""
    return array.cast(to_arrow_type(target), safe=False)


def number_to_float(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Integers and floating point to the nearest floating point value; too large becomes infinite."""
    return array.cast(to_arrow_type(target), safe=False)


def boolean_to_number(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """1 for true, 0 for false."""
    ones = array.cast(pa.int8())
    if target.root is TypeRoot.DECIMAL:
        return integer_to_decimal(ones, source, target)
    return ones.cast(to_arrow_type(target))


def integer_to_boolean(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """True for anything but 0."""
    return pc.not_equal(array, pa.scalar(0, array.type))


def float_to_integer(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Cut towards zero, limited to INT or BIGINT, wrapped into narrower types."""
    wide = np.int64 if target.root is TypeRoot.BIGINT else np.int32
    limits = np.iinfo(wide)
    values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    # The upper limit of int64 is no double: compare with the next power of two instead.
    too_high, too_low = values >= float(limits.max) + 1.0, values < float(limits.min)
    inside = ~(too_high | too_low | np.isnan(values))
    whole = np.where(inside, values, 0.0).astype(wide)
    whole[too_high], whole[too_low] = limits.max, limits.min
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(whole, mask=nulls).cast(to_arrow_type(target), safe=False)


def integer_to_decimal(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The same number; NULL when it has too many digits."""
    return _fitted(array.cast(pa.decimal256(76, 0)), target)


def decimal_to_decimal(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Rounded half up; NULL when it has too many digits."""
    return _fitted(array.cast(pa.decimal256(76, source.scale)), target)


def float_to_decimal(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The decimal that the shortest text of the double spells, rounded half up; NULL when it has too many digits."""
    values = array.cast(pa.float64())
    magnitude = pc.abs(values)
    infinite = pc.invert(pc.fill_null(pc.is_finite(values), True))
    if pc.any(infinite).as_py():
        bad = values.filter(infinite)[0].as_py()
        raise InvalidData(f"{bad} has no {target} form", hint="change the column to DOUBLE or STRING instead")
    # Clear cases first, so that what remains has few digits: 17, none of them far behind the wanted scale.
    too_large = pc.greater(magnitude, 2 * 10.0 ** (target.precision - target.scale))
    vanishing = pc.less(magnitude, 10.0 ** -(target.scale + 1))
    plain = pc.if_else(pc.or_(too_large, vanishing), pa.scalar(0.0), values)
    exact = plain.cast(pa.string()).cast(pa.decimal256(76, target.scale + 18))
    return pc.if_else(too_large, pa.scalar(None, to_arrow_type(target)), _fitted(exact, target))


def decimal_to_integer(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Cut towards zero; beyond BIGINT the low bits remain, as in Java."""
    options = pc.CastOptions(pa.int64(), allow_decimal_truncate=True, allow_int_overflow=True)
    return array.cast(options=options).cast(to_arrow_type(target), safe=False)


def decimal_to_float(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The nearest floating point value, by the same division Java does for short decimals."""
    if source.precision > _COMPACT_PRECISION:
        doubles = array.cast(pa.string()).cast(pa.float64())
    else:
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        doubles = pa.array(_unscaled(array) / 10.0**source.scale, mask=nulls)
    return doubles.cast(to_arrow_type(target), safe=False)


def _unscaled(array: pa.Array) -> npt.NDArray[np.int64]:
    """The digits of decimals that fit 64 bits, which are the low half of Arrow's 128; anything where null."""
    if len(array) == 0:
        return np.empty(0, np.int64)
    halves = np.frombuffer(array.buffers()[1], "<i8")
    return halves[2 * array.offset : 2 * (array.offset + len(array)) : 2].astype(np.int64)


def _fitted(exact: pa.Array, target: AtomicType) -> pa.Array:
    """256-bit decimals rounded half up to the target's scale; NULL where its precision is too small."""
    if exact.type.scale > target.scale:
        exact = pc.round(exact, ndigits=target.scale, round_mode="half_towards_infinity")
    scaled = exact.cast(pa.decimal256(76, target.scale))
    limit = pa.scalar(Decimal(10) ** (target.precision - target.scale), scaled.type)
    fits = pc.less(pc.abs(scaled), limit)
    return pc.if_else(fits, scaled, pa.scalar(None, scaled.type)).cast(to_arrow_type(target))
