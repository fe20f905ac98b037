"""Orders in which rows that are close in several columns lie close together: z-order and Hilbert curve.

A column's values become small numbers that are ordered as the values are, and spread evenly by a sample of them, so
that every column counts as much as the others. The bits of all numbers, taken in turns from the highest on, are the
place of a row on the z-curve. On the Hilbert curve the bits are turned first, so that neighbours on the curve are
neighbours in space. All of it works on whole arrays, and gives the same for a row in whatever batch it comes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.types import ordering

Numbers = npt.NDArray[np.uint64]

BITS = 16
"""Bits of a column: more stretches of one column than there are files are of no use."""

_WORD_BITS = 63
_ONE = np.uint64(1)
_TEXT_BYTES = 8
_LEAST = np.iinfo(np.int64).min


def value_codes(column: pa.Array, text_bytes: int = _TEXT_BYTES) -> ordering.Codes:
    """Integers in the order of the values, the same in every batch; null is least. Texts count by their first bytes."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        codes = _first_bytes(column, min(text_bytes, _TEXT_BYTES))
    elif pa.types.is_decimal(column.type):
        codes = ordering.sort_codes(column.cast(pa.float64()).fill_null(0.0))
    else:
        # Codes of numbers and times are their values; null would make them ranks.
        codes = ordering.sort_codes(_without_nulls(column))
    codes = np.maximum(codes, _LEAST + 1)
    if column.null_count:
        codes[~pc.is_valid(column).to_numpy(zero_copy_only=False)] = _LEAST
    return codes


@dataclass(frozen=True)
class Spread:
    """Where the values of a column lie, by a sample: numbers of a column so spread are about equally frequent."""

    bounds: ordering.Codes

    @staticmethod
    def of(sample: ordering.Codes) -> Spread:
        """Learns from codes of some of the values."""
        distinct = np.unique(sample)
        steps = min(len(distinct), 1 << BITS)
        places = np.linspace(0, len(distinct) - 1, steps).astype(np.int64) if steps else np.empty(0, np.int64)
        return Spread(distinct[places])

    def numbers(self, codes: ordering.Codes) -> Numbers:
        """Numbers below 2**BITS in the order of the codes."""
        places = np.searchsorted(self.bounds, codes, side="right").astype(np.float64)
        scaled: Numbers = (places * (((1 << BITS) - 1) / max(1, len(self.bounds)))).astype(np.uint64)
        return scaled


def z_words(columns: Sequence[Numbers]) -> list[Numbers]:
    """Places on the z-curve, as words to be compared one after the other."""
    words: list[Numbers] = []
    used = _WORD_BITS
    for bit in range(BITS - 1, -1, -1):
        for numbers in columns:
            if used == _WORD_BITS:
                words.append(np.zeros(len(numbers), dtype=np.uint64))
                used = 0
            words[-1] <<= _ONE
            words[-1] |= (numbers >> np.uint64(bit)) & _ONE
            used += 1
    return words


def hilbert_words(columns: Sequence[Numbers]) -> list[Numbers]:
    """Places on the Hilbert curve, as words to be compared one after the other."""
    axes = [numbers.copy() for numbers in columns]
    # From the highest bit down, undo the swaps and flips that the curve makes at each scale (after Skilling, 2004).
    for shift in range(BITS - 1, 0, -1):
        bit = _ONE << np.uint64(shift)
        below = bit - _ONE
        for place, axis in enumerate(axes):
            is_set = (axis & bit) != 0
            swapped = np.where(is_set, np.uint64(0), (axes[0] ^ axis) & below)
            axes[0] ^= np.where(is_set, below, swapped)
            if place:
                axis ^= swapped
    for before, axis in itertools.pairwise(axes):
        axis ^= before
    turned = np.zeros_like(axes[0])
    for shift in range(BITS - 1, 0, -1):
        bit = _ONE << np.uint64(shift)
        turned ^= np.where((axes[-1] & bit) != 0, bit - _ONE, np.uint64(0))
    for axis in axes:
        axis ^= turned
    return z_words(axes)


def _without_nulls(column: pa.Array) -> pa.Array:
    if not column.null_count:
        return column
    is_short = pa.types.is_date32(column.type) or pa.types.is_time32(column.type)
    return column.fill_null(pa.scalar(0, pa.int32() if is_short else pa.int64()).cast(column.type))


def _first_bytes(column: pa.Array, count: int) -> ordering.Codes:
    """The first bytes as one number, shifted so that signed numbers compare as the bytes do."""
    padded = pc.binary_join_element_wise(column.cast(pa.binary()).fill_null(b""), b"\0" * count, b"")
    data = pc.binary_slice(padded, 0, count).cast(pa.binary(count))
    words = np.zeros((len(column), _TEXT_BYTES), dtype=np.uint8)
    if len(column):
        start = data.offset * count
        found = np.frombuffer(data.buffers()[1], dtype=np.uint8)[start : start + len(column) * count]
        words[:, :count] = found.reshape(len(column), count)
    numbers = words.view(">u8").reshape(-1).astype(np.uint64)
    return (numbers ^ (_ONE << np.uint64(63))).view(np.int64)


__all__ = ["BITS", "Numbers", "Spread", "hilbert_words", "value_codes", "z_words"]
