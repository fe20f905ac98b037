"""Sort order of keys, for every key type alike: columns become integer codes that numpy sorts.

Paimon orders nulls first, text and bytes by their unsigned bytes, floats as Java's `compare` does (-0.0 below 0.0, NaN
greatest). Arrow's own sort differs in the last point, so floats are mapped to integers of the same order; text becomes
dense ranks. `sort_value` gives one row's key in a form that Python compares the same way, for binary searches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]

_MOST_WORDS = 4
"""Texts longer than this many times eight bytes are ranked instead."""

_SLOTS_PER_ROW = 8
"""Up to this many slots are filled instead of sorting: beyond, looking through them costs more."""
_FILLED_SLOTS_PER_ROW = 32
"""The same where only slots that are filled are looked at. Each takes four bytes."""


def sort_codes(column: pa.Array, *, descending: bool = False) -> Codes:
    """int64 codes whose numeric order is the column's order; nulls come first in either direction.

    Codes of two columns compare only when both came from one call: concatenate first.
    """
    codes = _value_codes(column)
    if descending:
        codes = ~codes
    if column.null_count == 0:
        return codes
    valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if len(codes) and codes[valid].size and codes[valid].min() == np.iinfo(np.int64).min:
        # The smallest value would tie with null: dense ranks leave room below.
        codes = _dense(codes) + 1
    return np.where(valid, codes, np.iinfo(np.int64).min)


def _value_codes(column: pa.Array) -> Codes:
    arrow = column.type
    if pa.types.is_floating(arrow):
        floats = column.fill_null(0.0) if column.null_count else column
        return _float_codes(floats.to_numpy(zero_copy_only=False).astype(np.float64))
    if pa.types.is_boolean(arrow):
        return _integers(column.cast(pa.int8()))
    if pa.types.is_integer(arrow):
        return _integers(column)
    if pa.types.is_date32(arrow) or pa.types.is_time32(arrow):
        return _integers(column.view(pa.int32()))
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow) or pa.types.is_date64(arrow):
        return _integers(column.view(pa.int64()))
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(ranks.to_numpy(zero_copy_only=False)).astype(np.int64)


def _integers(column: pa.Array) -> Codes:
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _float_codes(values: npt.NDArray[np.float64]) -> Codes:
    # A float's bits, read as a signed integer, already order positive numbers; negative ones run backwards.
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _dense(codes: Codes) -> Codes:
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def key_codes(columns: Sequence[pa.Array]) -> list[Codes]:
    """Codes that order and tell apart rows by these columns together, in as few arrays as possible.

    Like all codes they compare within one call only.
    """
    return packed([codes for column in columns for codes in _word_codes(column) or [sort_codes(column)]])


def packed(columns: Sequence[Codes]) -> list[Codes]:
    """The same order in fewer columns: neighbours whose values span few enough bits share one integer.

    One sort of one integer is several times as fast as a sort by two.
    """
    result: list[Codes] = []
    room = 0
    for codes in columns:
        low, high = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
        bits = (high - low).bit_length()
        if bits == 0 and len(columns) > 1:
            continue  # the same everywhere: it orders nothing
        if result and bits <= room:
            result[-1] = (result[-1] << bits) | (codes - low)
            room -= bits
        elif bits <= 63:
            result.append(codes - low if bits < 63 else codes)
            room = 63 - bits
        else:
            result.append(codes)
            room = 0
    return result or [columns[0]]


def _word_codes(column: pa.Array) -> list[Codes] | None:
    """Texts of one length, eight bytes at a time; None for all other columns.

    Such texts are ordered as their bytes are, and their bytes as big-endian integers are: no text is compared.
    """
    arrow = column.type
    if column.null_count or not len(column) or not (pa.types.is_string(arrow) or pa.types.is_binary(arrow)):
        return None
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    length = int(offsets[1] - offsets[0])
    if not 0 < length <= _MOST_WORDS * 8 or np.any(np.diff(offsets) != length):
        return None
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    if length < 8:
        padded = np.zeros((len(column), 8), np.uint8)
        padded[:, :length] = data.reshape(len(column), length)
        data, length = padded.reshape(-1), 8
    # The last word may overlap the one before: it only counts where that one is the same.
    starts = [*range(0, length - 8, 8), length - 8]
    texts = data.view({"names": [f"at {i}" for i in starts], "formats": [">u8"] * len(starts), "offsets": starts})
    words = [texts[f"at {i}"].astype(np.uint64) for i in starts]
    for word in words:
        word ^= np.uint64(1 << 63)
    return [word.view(np.int64) for word in words]


def argsort(columns: Sequence[Codes]) -> npt.NDArray[np.int64]:
    """Stable order by the first column, then the second, … Runs that are sorted already cost little."""
    if len(columns) == 1:
        return np.argsort(columns[0], kind="stable")
    return np.lexsort(tuple(reversed(columns)))


class Slots:
    """A slot for every number that occurs among codes, and for those in between.

    Where most numbers of a range occur, filling slots takes a fraction of the time of a sort.
    """

    def __init__(self, codes: Codes) -> None:
        self._low = int(codes.min()) if len(codes) else 0
        self._count = int(codes.max()) - self._low + 1 if len(codes) else 0
        self._codes = codes

    @property
    def are_few(self) -> bool:
        """Whether looking through the slots is cheaper than sorting."""
        return self._count <= _SLOTS_PER_ROW * len(self._codes)

    @property
    def are_worth_filling(self) -> bool:
        """Whether filling them, and looking at those that are filled, is cheaper than sorting."""
        return self._count <= _FILLED_SLOTS_PER_ROW * len(self._codes)

    def last_places(self) -> npt.NDArray[np.int64]:
        """The last place of every code, in ascending order of codes."""
        slots = np.full(self._count, -1, dtype=np.int32)
        # Where several places write to one slot, the one that comes last stays.
        slots[self._places] = np.arange(len(self._codes), dtype=np.int32)
        return slots[slots >= 0].astype(np.int64)

    def are_last(self) -> npt.NDArray[np.bool_]:
        """Which places are the last ones of their codes. Only slots that a place has filled are looked at."""
        places = np.arange(len(self._codes), dtype=np.int32)
        slots = np.empty(self._count, dtype=np.int32)
        slots[self._places] = places
        is_last: npt.NDArray[np.bool_] = slots[self._places] == places
        return is_last

    def shared_with(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """All places whose code is also that of a chosen place."""
        slots = np.zeros(self._count, dtype=np.bool_)
        slots[self._places[chosen]] = True
        return np.flatnonzero(slots[self._places])

    @cached_property
    def _places(self) -> npt.NDArray[np.int64]:
        return self._codes - self._low if self._low else self._codes


def changes(columns: Sequence[Codes]) -> npt.NDArray[np.bool_]:
    """For columns in sorted order: true at every row that differs from the one before it, and at row 0."""
    count = len(columns[0])
    starts = np.zeros(count, dtype=np.bool_)
    if count:
        starts[0] = True
    for codes in columns:
        starts[1:] |= codes[1:] != codes[:-1]
    return starts


def sort_value(column: pa.Array, row: int) -> tuple[bool, object]:
    """One value in a form that Python orders as `sort_codes` does: (is not null, value)."""
    scalar = column[row]
    if not scalar.is_valid:
        return (False, 0)
    arrow = column.type
    if pa.types.is_floating(arrow):
        return (True, int(_float_codes(np.array([scalar.as_py()], dtype=np.float64))[0]))
    if pa.types.is_temporal(arrow):
        return (True, scalar.value)
    value = scalar.as_py()
    # UTF-8 keeps the order of code points, which is the order Python compares text by.
    return (True, value)


def sort_key(columns: Sequence[pa.Array], row: int) -> tuple[tuple[bool, object], ...]:
    """The key of one row, comparable with the keys of other rows of the same columns."""
    return tuple(sort_value(column, row) for column in columns)


def count_not_above(columns: Sequence[pa.Array], cut: tuple[tuple[bool, object], ...]) -> int:
    """How many leading rows of sorted columns have a key <= cut (binary search)."""
    return _count_while(len(columns[0]), lambda row: sort_key(columns, row) <= cut)


def count_below(columns: Sequence[pa.Array], cut: tuple[tuple[bool, object], ...]) -> int:
    """How many leading rows of sorted columns have a key < cut (binary search)."""
    return _count_while(len(columns[0]), lambda row: sort_key(columns, row) < cut)


def _count_while(count: int, is_leading: Callable[[int], bool]) -> int:
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if is_leading(middle):
            low = middle + 1
        else:
            high = middle
    return low
