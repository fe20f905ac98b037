"""Numbers and byte strings taken out of a buffer at many places at once.

All decoding of the binary log and of query results rests on these few functions: a place is an index into the buffer,
and every function takes an array of places. Buffers end with `PADDING` bytes that belong to nobody, so that eight
bytes can be read at any place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]

PADDING: Final = 16
_INLINE: Final = 12  # Arrow's views hold so many bytes in themselves


class Bytes:
    """A padded buffer, seen as numbers that begin at every byte."""

    __slots__ = ("data", "size", "words")

    def __init__(self, data: Array) -> None:
        self.data = data
        self.size = len(data) - PADDING
        self.words: Array = np.ndarray(shape=(len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))

    @classmethod
    def of(cls, content: bytes) -> Bytes:
        """A padded copy."""
        return cls(np.frombuffer(content + bytes(PADDING), np.uint8))

    def little(self, places: Array, size: int) -> Array:
        """Unsigned numbers of `size` bytes, least byte first."""
        words = self.words[places]
        return words if size == 8 else words & np.uint64((1 << 8 * size) - 1)

    def big(self, places: Array, size: int) -> Array:
        """Unsigned numbers of `size` bytes, greatest byte first."""
        words = self.words[places].byteswap()
        return words if size == 8 else words >> np.uint64(64 - 8 * size)

    def signed(self, places: Array, size: int) -> Array:
        """Numbers of `size` bytes in two's complement, least byte first."""
        spare = 64 - 8 * size
        return (self.words[places] << np.uint64(spare)).view(np.int64) >> spare

    def block(self, places: Array, size: int) -> Array:
        """A matrix: at each place, the next `size` bytes."""
        return self.data[places[:, None] + np.arange(size)]

    def binary(self, places: Array, lengths: Array, valid: Array | None = None) -> pa.Array:
        """Arrow's byte strings: at each place as many bytes as its length says, null where not valid.

        Views into the buffer are laid out with numpy and Arrow copies them together: no byte passes through Python.
        """
        count = len(places)
        if count == 0:
            return pa.array([], pa.binary())
        if valid is not None:
            lengths = np.where(valid, lengths, 0)
            places = np.where(valid, places, 0)
        views = np.zeros((count, 4), np.int32)
        views[:, 0] = lengths
        views[:, 3] = places
        short = np.flatnonzero(lengths <= _INLINE)
        views[:, 1] = self.words[places].astype(np.int32)  # the prefix: the first four bytes
        if len(short):
            inline = self.data[np.minimum(places[short][:, None] + np.arange(_INLINE), len(self.data) - 1)]
            inline[np.arange(_INLINE) >= lengths[short][:, None]] = 0
            views[short, 1:] = inline.view("<i4")
        validity = None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        buffers = [validity, pa.py_buffer(views), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary_view(), count, buffers).cast(pa.binary())


def with_nulls(values: Array, valid: Array | None, kind: pa.DataType | None = None) -> pa.Array:
    """An Arrow array of numbers, null where not valid."""
    return pa.array(values, type=kind, mask=None if valid is None else ~valid)


def choose(names: Sequence[str], which: Array, valid: Array | None) -> pa.Array:
    """Texts by their number."""
    indices = with_nulls(np.minimum(which, max(len(names) - 1, 0)).astype(np.int32), valid)
    return pc.take(pa.array(names, pa.string()), indices)


def by_distinct(values: pa.Array, convert: Any, kind: pa.DataType) -> pa.Array:
    """A conversion that only exists for single values, done once for each distinct one."""
    encoded = pc.dictionary_encode(values)
    converted = pa.array([convert(value) for value in encoded.dictionary.to_pylist()], kind)
    return pc.take(converted, encoded.indices)


__all__ = ["PADDING", "Array", "Bytes", "by_distinct", "choose", "with_nulls"]
