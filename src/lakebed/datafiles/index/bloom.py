"""Bloom filters: whether a file can hold a value. Nulls are not in it.

    int32 number of hash functions (big endian) · bits, the first in the lowest place of the first byte

Texts and bytes are hashed with 64-bit xxHash, numbers with Thomas Wang's mixing of a 64-bit integer. The two halves of
the hash make as many places as there are hash functions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.datafiles.index.values import as_bytes, as_numbers, is_bytes, is_indexable
from lakebed.datafiles.index.xxhash64 import xxhash64
from lakebed.errors import InvalidOption
from lakebed.types.logical import AtomicType, DataType, TypeRoot

SETTINGS = ("items", "fpp")

_DEFAULT_ITEMS = 1_000_000
_DEFAULT_FPP = 0.1
_INT = struct.Struct(">i")


def supports(data_type: DataType) -> bool:
    """Whether columns of this type can have such an index."""
    is_boolean = isinstance(data_type, AtomicType) and data_type.root is TypeRoot.BOOLEAN
    return is_indexable(data_type) and not is_boolean


class BloomBuilder:
    """Takes the values of a column and gives the filter."""

    def __init__(self, data_type: DataType, settings: Mapping[str, str]) -> None:
        items, chance = _items(settings), _chance(settings)
        self._type = data_type
        bits = int(-items * math.log(chance) / math.log(2) ** 2)
        self._bits = np.zeros(bits + 8 - bits % 8, np.bool_)
        self._functions = max(1, math.floor(len(self._bits) / items * math.log(2) + 0.5))

    def add(self, column: pa.Array) -> None:
        """Values of the next rows."""
        hashes = _hashes_of(column.drop_null(), self._type)
        for places in _places(hashes, self._functions, len(self._bits)):
            self._bits[places] = True

    def finish(self) -> bytes:
        """The index."""
        return _INT.pack(self._functions) + np.packbits(self._bits, bitorder="little").tobytes()


def may_contain(payload: bytes, values: pa.Array, data_type: DataType) -> npt.NDArray[np.bool_]:
    """Which of the values, none of them null, the file may hold."""
    (functions,) = _INT.unpack_from(payload)
    bits = np.frombuffer(payload, np.uint8, offset=_INT.size)
    found = np.ones(len(values), np.bool_)
    for places in _places(_hashes_of(values, data_type), functions, len(bits) * 8):
        found &= (bits[places >> 3] >> (places & 7) & 1).astype(np.bool_)
    return found


def _hashes_of(values: pa.Array, data_type: DataType) -> npt.NDArray[np.int64]:
    """The hash of each value; there are no nulls among them."""
    if is_bytes(data_type):
        return xxhash64(as_bytes(values)).view(np.int64)
    key: npt.NDArray[np.int64] = as_numbers(values, data_type).astype(np.int64)
    # Shifts to the right keep the sign, as in Java.
    key = ~key + (key << 21)
    key ^= key >> 24
    key = key + (key << 3) + (key << 8)
    key ^= key >> 14
    key = key + (key << 2) + (key << 4)
    key ^= key >> 28
    return key + (key << 31)


def _places(hashes: npt.NDArray[np.int64], functions: int, bits: int) -> list[npt.NDArray[np.int32]]:
    low, high = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    combined = (low + np.int32(number) * high for number in range(1, functions + 1))
    return [np.where(place < 0, ~place, place) % bits for place in combined]


def check_settings(settings: Mapping[str, str]) -> None:
    """Raises on values that make no filter."""
    _items(settings)
    _chance(settings)


def _items(settings: Mapping[str, str]) -> int:
    text = settings.get("items", str(_DEFAULT_ITEMS))
    if not text.strip().isdecimal() or not 1 <= int(text) <= 100_000_000:
        raise InvalidOption(f"`items` of a Bloom filter is `{text}`", hint="give a whole number from 1 to 100000000")
    return int(text)


def _chance(settings: Mapping[str, str]) -> float:
    text = settings.get("fpp", str(_DEFAULT_FPP))
    try:
        chance = float(text)
    except ValueError:
        chance = 0.0
    if not 0.0 < chance < 1.0:
        raise InvalidOption(f"`fpp` of a Bloom filter is `{text}`", hint="give a part between 0 and 1, such as `0.1`")
    return chance
