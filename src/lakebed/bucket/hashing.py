"""Hashes of key columns: 32-bit Murmur3 over the BinaryRow of each row's key, without ever writing those rows down.

Which bucket a key belongs to is part of the table format, so the numbers must be the ones every other engine computes.
The words of a row are mixed column by column for a block of rows that fits the processor's cache; constants, such as
null bits that no row sets, are mixed once for all rows. What the hash is used for is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidArgument, InvalidSchema
from lakebed.types.binary_layout import Layout, Size, lay_out
from lakebed.types.binary_slots import EvenSpill, RaggedSpill, Slots, as_column, lower
from lakebed.types.logical import AtomicType, DataType, TypeRoot

Hashes = npt.NDArray[np.int32]
_Words32 = npt.NDArray[np.uint32]

BLOCK_ROWS = 1 << 15
"""Rows hashed at a time: three arrays of so many 32-bit words stay in the cache, and calls are few per row."""

_SEED = 42
_MASK = 0xFFFF_FFFF
_KEY_1, _KEY_2, _STEP = 0xCC9E_2D51, 0x1B87_3593, 0xE654_6B64
_FINAL_1, _FINAL_2 = 0x85EB_CA6B, 0xC2B2_AE35


def hash_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Hashes:
    """The hash of every row's key; `columns` are the key columns in their order."""
    prepared, atomic = key_columns(columns, types)
    hashes = np.empty(len(prepared[0]), np.uint32)
    mixer = _Mixer(min(BLOCK_ROWS, len(hashes)))
    for begin in range(0, len(hashes), BLOCK_ROWS):
        state = hashes[begin : begin + BLOCK_ROWS]
        block: list[Slots] = [
            lower(column.slice(begin, len(state)), data_type)
            for column, data_type in zip(prepared, atomic, strict=True)
        ]
        mixer.hash_block(lay_out(block), state)
    return hashes.view(np.int32)


def hash_row(row: bytes) -> int:
    """The hash of one row as the BinaryRow codec writes it, without arity in front."""
    state = _SEED
    for word in memoryview(row).cast("I"):
        state = _mix_number(state, word)
    state ^= len(row)
    for shift, factor in ((16, _FINAL_1), (13, _FINAL_2), (16, 1)):
        state = (state ^ state >> shift) * factor & _MASK
    return state - (1 << 32) if state >> 31 else state


def key_columns(columns: Sequence[pa.Array], types: Sequence[DataType]) -> tuple[list[pa.Array], list[AtomicType]]:
    """The columns in the Arrow form of their types, or an error that says why they can not be a key."""
    if not columns or len(columns) != len(types) or len({len(column) for column in columns}) != 1:
        raise InvalidArgument(
            f"{len(columns)} key columns of {sorted({len(column) for column in columns})} rows are given for "
            f"{len(types)} types",
            hint="give one type per column, at least one column, and columns of equal length",
        )
    atomic = [data_type for data_type in types if isinstance(data_type, AtomicType)]
    if len(atomic) != len(types) or any(data_type.root is TypeRoot.VARIANT for data_type in atomic):
        raise InvalidSchema(
            f"a key of ({', '.join(map(str, types))}) can not be hashed",
            hint="leave columns of type ARRAY, MAP, MULTISET, ROW and VARIANT out of the key",
        )
    return [as_column(column, data_type) for column, data_type in zip(columns, types, strict=True)], atomic


class _Mixer:
    """Murmur3 over the word columns of a block; owns the scratch memory, so one instance serves one thread."""

    def __init__(self, capacity: int) -> None:
        self._key = np.empty(capacity, np.uint32)
        self._scratch = np.empty(capacity, np.uint32)

    def hash_block(self, layout: Layout, state: _Words32) -> None:
        """Fills `state` with the hash of every row."""
        words = [*layout.null_words, *layout.slots]
        constants = [word for word in takewhile(lambda word: isinstance(word, int), words) if isinstance(word, int)]
        state.fill(_hash_start(constants))
        for word in words[len(constants) :]:
            if isinstance(word, int):
                self._mix_constant(state, word)
            else:
                self._mix_word(state, word)
        for _, spill in layout.spills:
            if isinstance(spill, EvenSpill):
                self._mix_matrix(state, spill.words.view(np.uint32))
            else:
                self._mix_ragged(state, spill)
        self._finish(state, layout.size_bytes)

    def _mix_word(self, state: _Words32, word: npt.NDArray[Any]) -> None:
        """One 8-byte word of every row: two steps, low half first. Narrow columns have zero in the high half."""
        if word.itemsize == 8:
            self._mix_matrix(state, word.view(np.uint32).reshape(-1, 2))
        else:
            self._mix(state, word)
            self._turn(state, self._scratch[: len(state)])

    def _mix_constant(self, state: _Words32, word: int) -> None:
        for half in (word & _MASK, word >> 32):
            np.bitwise_xor(state, np.uint32(_key(half)), out=state)
            self._turn(state, self._scratch[: len(state)])

    def _mix_matrix(self, state: _Words32, words: _Words32) -> None:
        for column in range(words.shape[1]):
            self._mix(state, words[:, column])

    def _mix_ragged(self, state: _Words32, spill: RaggedSpill) -> None:
        """Variable parts of differing length: longest first, so that the rows still concerned are a prefix."""
        ordered = state[spill.order]
        for column in spill.word_columns():
            self._mix_word(ordered[: len(column)], column)
        for position, rest in spill.tails():
            number = int(ordered[position])
            for word in memoryview(rest).cast("I"):
                number = _mix_number(number, word)
            ordered[position] = number
        state[spill.order] = ordered

    def _mix(self, state: _Words32, words: npt.NDArray[Any]) -> None:
        key, scratch = self._key[: len(state)], self._scratch[: len(state)]
        np.multiply(words, np.uint32(_KEY_1), out=key)
        _rotate(key, 15, scratch)
        np.multiply(key, np.uint32(_KEY_2), out=key)
        np.bitwise_xor(state, key, out=state)
        self._turn(state, scratch)

    @staticmethod
    def _turn(state: _Words32, scratch: _Words32) -> None:
        """What a step does to the state once the word is in it; for a zero word that is all of the step."""
        _rotate(state, 13, scratch)
        np.multiply(state, np.uint32(5), out=state)
        np.add(state, np.uint32(_STEP), out=state)

    def _finish(self, state: _Words32, size_bytes: Size) -> None:
        scratch = self._scratch[: len(state)]
        np.bitwise_xor(state, np.asarray(size_bytes).astype(np.uint32), out=state)
        for shift, factor in ((16, _FINAL_1), (13, _FINAL_2), (16, 1)):
            np.right_shift(state, np.uint32(shift), out=scratch)
            np.bitwise_xor(state, scratch, out=state)
            if factor != 1:
                np.multiply(state, np.uint32(factor), out=state)


def _rotate(values: _Words32, bits: int, scratch: _Words32) -> None:
    """Rotates left in place."""
    np.left_shift(values, np.uint32(bits), out=scratch)
    np.right_shift(values, np.uint32(32 - bits), out=values)
    np.bitwise_or(values, scratch, out=values)


def _hash_start(words: Sequence[int]) -> int:
    """The state after words that are the same in all rows."""
    state = _SEED
    for word in words:
        state = _mix_number(_mix_number(state, word & _MASK), word >> 32)
    return state


def _key(word: int) -> int:
    key = word * _KEY_1 & _MASK
    return (key << 15 | key >> 17) * _KEY_2 & _MASK


def _mix_number(state: int, word: int) -> int:
    """One step for one row."""
    state ^= _key(word)
    return ((state << 13 | state >> 19) * 5 + _STEP) & _MASK
