"""Columns of slots put together to rows: null bits, fixed part, offsets into the variable part, bytes.

`lay_out` says which words a row consists of, `assemble` writes them out; hashing stops after the first step. Nothing
here looks at types.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.records import dataclass
from lakebed.types.binary_slots import EvenSpill, Ints, Slots, Spill

Bytes = npt.NDArray[np.uint8]
Size = int | Ints
"""Bytes per row: one number where all rows agree."""

ARITY_PREFIX_BYTES = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """The words of a block of rows in their order: `null_words`, `slots` (narrow ones zero extended), `spills`.

    A word that is the same in all rows is one number.
    """

    null_words: list[npt.NDArray[Any] | int]
    slots: list[npt.NDArray[Any] | int]
    spills: list[tuple[Size, Spill]]
    size_bytes: Size


def null_bits_size(arity: int) -> int:
    """Bytes of the row kind and the null bits of a row with that many fields."""
    return (arity + 8 + 63) // 64 * 8


def lay_out(columns: Sequence[Slots]) -> Layout:
    """Rows of these columns; each spill comes with the offset of its bytes from the start of the row."""
    cursor: Size = null_bits_size(len(columns)) + 8 * len(columns)
    slots, spills = [], []
    for column in columns:
        values = column.values
        if column.spill is not None:
            values = with_offsets(values, column.spill, cursor)
            spills.append((cursor, column.spill))
            cursor = cursor + column.spill.size_bytes
        slots.append(values)
    return Layout(_null_words(columns), slots, spills, cursor)


def with_offsets(values: npt.NDArray[Any] | int, spill: Spill, offsets: Size) -> npt.NDArray[Any] | int:
    """Slot values with the offset of the spilled bytes in their high half."""
    high = offsets << 32 if isinstance(offsets, int) else (offsets << 32).view(np.uint64)
    if isinstance(spill, EvenSpill):
        return values | high
    return np.where(spill.size_bytes > 0, values | high, values)


def _null_words(columns: Sequence[Slots]) -> list[npt.NDArray[Any] | int]:
    words: list[npt.NDArray[Any] | int] = [0] * (null_bits_size(len(columns)) // 8)
    for position, column in enumerate(columns):
        if column.is_null is not None:
            word, bit = divmod(position + 8, 64)
            words[word] = (column.is_null.astype(np.uint64) << np.uint64(bit)) | words[word]
    return words


def assemble(layout: Layout, rows: int, prefix: bytes = b"") -> tuple[Bytes, Ints]:
    """Bytes of all rows, each behind `prefix` (a multiple of 4 bytes), and their n + 1 borders."""
    borders = np.zeros(rows + 1, np.int64)
    np.cumsum(np.broadcast_to(np.int64(len(prefix)) + layout.size_bytes, rows), out=borders[1:])
    out = np.zeros(int(borders[-1]), np.uint8)
    if prefix:
        put(out, borders[:-1], np.full(rows, int.from_bytes(prefix, sys.byteorder), np.uint32))
    starts = borders[:-1] + len(prefix)
    for position, word in enumerate([*layout.null_words, *layout.slots]):
        put(out, starts + 8 * position, np.full(rows, word, np.uint64) if isinstance(word, int) else word)
    for offset, spill in layout.spills:
        put_spill(out, starts + offset, spill)
    return out, borders


def put(out: Bytes, at: Ints, values: npt.NDArray[Any]) -> None:
    """Writes unsigned integers at byte positions, which are multiples of their size or of 4."""
    if values.itemsize < 8:
        out.view(values.dtype)[at // values.itemsize] = values
        return
    halves = np.ascontiguousarray(values).view(np.uint32).reshape(-1, 2)
    target, index = out.view(np.uint32), at >> 2
    target[index] = halves[:, 0]
    target[index + 1] = halves[:, 1]


def put_spill(out: Bytes, at: Ints, spill: Spill) -> None:
    """Writes every row's variable part at its byte position."""
    if isinstance(spill, EvenSpill):
        for depth in range(spill.words.shape[1]):
            put(out, at + 8 * depth, spill.words[:, depth])
        return
    ordered, depth = at[spill.order], 0
    for depth, column in enumerate(spill.word_columns(), start=1):
        put(out, ordered[: len(column)] + 8 * (depth - 1), column)
    for position, rest in spill.tails():
        start = int(ordered[position]) + 8 * depth
        out[start : start + len(rest)] = np.frombuffer(rest, np.uint8)


def to_binary(data: Bytes, borders: Ints) -> pa.Array:
    """A bytes array over data and borders; with 64-bit offsets only when 32 bits do not reach."""
    is_large = int(borders[-1]) > np.iinfo(np.int32).max
    offsets = borders if is_large else borders.astype(np.int32)
    arrow = pa.large_binary() if is_large else pa.binary()
    return pa.Array.from_buffers(arrow, len(borders) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
