"""The `hive` bucket function: Hive's own hash, for tables whose buckets must line up with those of Hive tables.

Columns are combined as a polynomial in 31; a text is itself a polynomial in 31 over its signed bytes, a decimal is what
Java computes for the number without trailing zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.functions import BucketFunction, Buckets, remainder_in_place
from lakebed.bucket.hashing import BLOCK_ROWS, key_columns
from lakebed.errors import InvalidOption
from lakebed.types.binary_slots import MAX_COMPACT_DECIMAL, byte_spans, fixed_values, lower, null_mask
from lakebed.types.logical import BINARIES, FLOATS, STRINGS, TIMESTAMPS, AtomicType, DataType, TypeRoot, is_nested

_Hash = npt.NDArray[np.uint32]

_UNKNOWN = TIMESTAMPS | {TypeRoot.VARIANT, TypeRoot.BLOB}
_FACTOR = 31
_INVERSE = pow(_FACTOR, -1, 1 << 32)
_NAN_BITS = {4: 0x7FC0_0000, 8: 0x7FF8_0000_0000_0000}


class HiveFunction(BucketFunction):
    """Works on everything Hive's hash knows: no timestamps, nothing nested."""

    name = "hive"

    def check(self, types: Sequence[DataType]) -> None:
        """Raises InvalidOption for keys that the hash does not know."""
        for data_type in types:
            if is_nested(data_type) or (isinstance(data_type, AtomicType) and data_type.root in _UNKNOWN):
                raise InvalidOption(
                    f"`bucket-function.type` = hive does not work on a {data_type} column",
                    hint="leave the column out of `bucket-key`, or use the default function",
                )
        if not types:
            raise InvalidOption("`bucket-key` names no column", hint="name at least one column")

    def assign(self, columns: Sequence[pa.Array], types: Sequence[DataType], num_buckets: int) -> Buckets:
        """The hash without its sign bit, modulo the number of buckets."""
        prepared, atomic = key_columns(columns, types)
        hashes = np.zeros(len(prepared[0]), np.uint32)
        for begin in range(0, len(hashes), BLOCK_ROWS):
            block = hashes[begin : begin + BLOCK_ROWS]
            for column, data_type in zip(prepared, atomic, strict=True):
                block *= np.uint32(_FACTOR)
                block += _column_hash(column.slice(begin, len(block)), data_type)
            block &= np.uint32(0x7FFF_FFFF)
            remainder_in_place(block, num_buckets)
        return hashes.view(np.int32)


def _column_hash(array: pa.Array, data_type: AtomicType) -> _Hash:
    """The hash of each value; null is 0."""
    if data_type.root in STRINGS | BINARIES:
        hashes = _bytes_hash(array)
    elif data_type.root is TypeRoot.DECIMAL:
        hashes = _decimal_hash(array, data_type)
    else:
        hashes = _number_hash(array, data_type)
    is_null = null_mask(array)
    if is_null is not None:
        hashes[is_null] = 0
    return hashes


def _number_hash(array: pa.Array, data_type: AtomicType) -> _Hash:
    values = np.asarray(lower(array, data_type).values)
    if data_type.root in FLOATS:
        numbers = values.view(f"f{values.itemsize}")
        values = np.where(np.isnan(numbers), values.dtype.type(_NAN_BITS[values.itemsize]), values)
        values[numbers == 0] = 0
    if values.itemsize == 8:
        halves = values.view(np.uint32).reshape(-1, 2)
        return halves[:, 0] ^ halves[:, 1]
    return values.view(f"i{values.itemsize}").astype(np.int32).view(np.uint32)


def _bytes_hash(array: pa.Array) -> _Hash:
    """All polynomials at once: 31 has an inverse modulo 2^32, so that a value's sum is a difference of running sums in
    falling powers of 31, brought to its place by one multiplication."""
    data, borders = byte_spans(array)
    powers = np.full(len(data) + 1, _FACTOR, np.uint32)
    falling = np.full(len(data) + 1, _INVERSE, np.uint32)
    powers[0] = falling[0] = 1
    np.multiply.accumulate(powers, out=powers)
    np.multiply.accumulate(falling, out=falling)
    running = np.zeros(len(data) + 1, np.uint32)
    np.cumsum(data.view(np.int8).astype(np.int32).view(np.uint32) * falling[1:], dtype=np.uint32, out=running[1:])
    return (running[borders[1:]] - running[borders[:-1]]) * powers[borders[1:]]


def _decimal_hash(array: pa.Array, data_type: AtomicType) -> _Hash:
    limbs = fixed_values(array, np.int64, per_row=2).reshape(-1, 2)
    if data_type.precision <= MAX_COMPACT_DECIMAL:
        return _compact_decimal_hash(limbs[:, 0], data_type.scale)
    distinct, rows = np.unique(limbs, axis=0, return_inverse=True)
    hashes = [
        _wide_decimal_hash((high << 64) | (low & 0xFFFF_FFFF_FFFF_FFFF), data_type.scale)
        for low, high in distinct.tolist()
    ]
    return np.array(hashes, np.uint32)[rows]


def _compact_decimal_hash(numbers: npt.NDArray[np.int64], scale: int) -> _Hash:
    """Java's BigDecimal.hashCode of unscaled numbers, once their trailing zeros are gone."""
    scales = np.full(len(numbers), scale, np.int32)
    for _ in range(scale):
        tenths = numbers // 10
        has_zero = tenths * 10 == numbers
        if not has_zero.any():
            break
        numbers = np.where(has_zero, tenths, numbers)
        scales -= has_zero
    magnitudes = np.abs(numbers).view(np.uint32).reshape(-1, 2)
    hashes = magnitudes[:, 1] * np.uint32(_FACTOR) + magnitudes[:, 0]
    hashes = np.where(numbers < 0, -hashes, hashes)
    return hashes * np.uint32(_FACTOR) + scales.view(np.uint32)


def _wide_decimal_hash(number: int, scale: int) -> int:
    """The same for one number of up to 128 bits."""
    while scale and number % 10 == 0:
        number, scale = number // 10, scale - 1
    polynomial, magnitude = 0, abs(number)
    for shift in (96, 64, 32, 0):
        polynomial = polynomial * _FACTOR + (magnitude >> shift & 0xFFFF_FFFF)
    return ((-polynomial if number < 0 else polynomial) * _FACTOR + scale) & 0xFFFF_FFFF
