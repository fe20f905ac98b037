"""MySQL's packed DECIMAL: groups of nine digits in four bytes each, greatest first, negative numbers inverted.

A number of up to 65 digits becomes a 128 bit or 256 bit integer of Arrow: groups are joined with numpy arithmetic on
32 bit limbs, all rows at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.sources.mysql.gather import Array, Bytes

_BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_GROUP: Final = 9


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a value."""
    return sum(_BYTES_OF_DIGITS[digits] for digits in _groups(precision, scale))


def _groups(precision: int, scale: int) -> list[int]:
    """How many digits each group has, in the order of the bytes."""
    whole = precision - scale
    first = [whole % _GROUP] if whole % _GROUP else []
    last = [scale % _GROUP] if scale % _GROUP else []
    return [*first, *[_GROUP] * (whole // _GROUP), *[_GROUP] * (scale // _GROUP), *last]


def read_decimals(data: Bytes, places: Array, valid: Array, precision: int, scale: int) -> pa.Array:
    """Arrow decimals of the column's precision and scale."""
    negative = (data.data[places] & 0x80) == 0
    limbs = np.zeros((len(places), 4 if precision <= 38 else 8), np.uint64)
    at = places
    for number, digits in enumerate(_groups(precision, scale)):
        size = _BYTES_OF_DIGITS[digits]
        value = data.big(at, size)
        if number == 0:
            value = value ^ np.uint64(1 << 8 * size - 1)  # the sign bit, inverted so that bytes sort as numbers do
        value = np.where(negative, value ^ np.uint64((1 << 8 * size) - 1), value)
        _times_plus(limbs, 10**digits, value)
        at = at + size
    _negate(limbs, negative)
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    content = pa.py_buffer(np.ascontiguousarray(limbs.astype("<u4")))
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(places), [validity, content])


def _times_plus(limbs: Array, factor: int, addend: Array) -> None:
    """limbs = limbs * factor + addend, in base 2**32; factor and addend are below 2**32."""
    carry = addend
    for i in range(limbs.shape[1]):
        total = limbs[:, i] * np.uint64(factor) + carry
        limbs[:, i] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


def _negate(limbs: Array, negative: Array) -> None:
    """Two's complement of the rows that are negative."""
    flip = negative.astype(np.uint64)
    carry = flip
    for i in range(limbs.shape[1]):
        total = (limbs[:, i] ^ (flip * np.uint64(0xFFFFFFFF))) + carry
        limbs[:, i] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


__all__ = ["decimal_size", "read_decimals"]
