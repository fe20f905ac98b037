"""One column as BinaryRow sees it: an 8-byte slot per row, and for some rows words in the variable part of the row.

Writing rows, nesting them and hashing keys all need the same view of a column, so the conversion from Arrow exists
once, here. It works on whole blocks of rows with numpy. It knows neither row headers (`binary_layout`) nor nested types
(`binary_nested`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import BINARIES, STRINGS, TIMESTAMPS, AtomicType, DataType, TypeRoot, is_root

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAX_INLINE_BYTES = 7
"""Text and bytes up to this length live in the slot itself."""
MAX_COMPACT_DECIMAL = 18
"""Decimals up to this precision are an int64 in the slot."""
MAX_COMPACT_TIMESTAMP = 3
"""Timestamps up to this precision are int64 milliseconds in the slot."""

_FEW_ROWS = 16
"""Below so many rows a numpy call costs more than a plain loop over the words of each row."""
_FULL_WORD = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_WIDTHS: dict[TypeRoot, type[np.unsignedinteger[Any]]] = {
    TypeRoot.BOOLEAN: np.uint8,
    TypeRoot.TINYINT: np.uint8,
    TypeRoot.SMALLINT: np.uint16,
    TypeRoot.INT: np.uint32,
    TypeRoot.DATE: np.uint32,
    TypeRoot.TIME: np.uint32,
    TypeRoot.FLOAT: np.uint32,
    TypeRoot.BIGINT: np.uint64,
    TypeRoot.DOUBLE: np.uint64,
}


def slot_dtype(data_type: DataType) -> np.dtype[Any]:
    """The unsigned integer that holds a value's slot in an array; rows widen it to 8 bytes with zeros."""
    return np.dtype(_WIDTHS.get(data_type.root, np.uint64) if isinstance(data_type, AtomicType) else np.uint64)


# --- variable parts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvenSpill:
    """Variable parts of the same number of words in every row: row i is `words[i]`."""

    words: Words

    @property
    def size_bytes(self) -> int:
        """Bytes that every row takes."""
        return 8 * int(self.words.shape[1])


class RaggedSpill:
    """Variable parts of differing length: row i is `lengths[i]` bytes from byte `starts[i]`, zero padded to words.

    Rows are visited longest first, so that the rows which still have a word at some depth are a prefix of the order
    and one numpy call treats them all. The last few long rows are left to `tails`.
    """

    __slots__ = ("_active", "_lengths", "_starts", "_words", "order", "size_bytes")

    def __init__(self, words: Words, starts: Ints, lengths: Ints) -> None:
        counts = (lengths + 7) >> 3
        longest = int(counts.max(initial=0))
        self.size_bytes: Ints = counts << 3
        self.order: Ints | slice = slice(None)
        if longest != int(counts.min(initial=longest)):
            # 16-bit keys are radix sorted; longer ones are rare enough for the slower sort.
            ranks = longest - counts
            self.order = np.argsort(ranks.astype(np.uint16) if longest < 1 << 16 else ranks, kind="stable")
        self._words, self._starts, self._lengths = words, starts[self.order], lengths[self.order]
        rows_up_to = np.cumsum(np.bincount(counts, minlength=longest + 1))
        self._active: list[int] = (len(counts) - rows_up_to[:longest]).tolist()

    def _dense_columns(self) -> int:
        return sum(1 for rows in self._active if rows >= _FEW_ROWS)

    def word_columns(self) -> Iterator[Words]:
        """The first, second, … word of all rows that have one; column k belongs to the first rows of `order`."""
        index = self._starts >> 3
        shift = ((self._starts & 7) << 3).astype(np.uint64)
        carry = self._words[index] if self._active else self._words[:0]
        for depth in range(self._dense_columns()):
            rows = self._active[depth]
            following = self._words[index[:rows] + (depth + 1)]
            # Two shifts, because a shift by the whole 64 bits is no shift at all on most processors.
            column = (carry[:rows] >> shift[:rows]) | ((following << (63 - shift[:rows])) << np.uint64(1))
            ending = self._active[depth + 1] if depth + 1 < len(self._active) else 0
            last_bytes = (self._lengths[ending:rows] - 8 * depth).astype(np.uint64)
            column[ending:] &= _FULL_WORD >> (64 - 8 * last_bytes)
            carry = following
            yield column

    def tails(self) -> Iterator[tuple[int, bytes]]:
        """What `word_columns` leaves out: position in `order` and the padded rest of that row."""
        done = 8 * self._dense_columns()
        rows = self._active[done >> 3] if done >> 3 < len(self._active) else 0
        data = self._words.view(np.uint8)
        for position in range(rows):
            start, length = int(self._starts[position]), int(self._lengths[position])
            rest = data[start + done : start + length].tobytes()
            yield position, rest + bytes(-length % 8)


Spill = EvenSpill | RaggedSpill


@dataclass(frozen=True, slots=True)
class Slots:
    """A block of one column. `values` (one number if all rows agree) is zero at nulls; where a row spills, its high
    half waits for the offset."""

    values: npt.NDArray[Any] | int
    is_null: Mask | None = None
    spill: Spill | None = None


# --- from Arrow ------------------------------------------------------------------------------------------------------


def as_column(column: pa.Array | pa.ChunkedArray, data_type: DataType) -> pa.Array:
    """The column as one array of the type's Arrow form (text and bytes: any form with offsets)."""
    wanted = to_arrow_type(data_type)
    try:
        if is_root(data_type, STRINGS | BINARIES):
            # Chunks may hold more text together than 32-bit offsets reach.
            is_huge = isinstance(column, pa.ChunkedArray) and column.nbytes > np.iinfo(np.int32).max
            if is_huge or not _has_offsets(column.type):
                column = column.cast(pa.large_binary() if is_root(data_type, BINARIES) else pa.large_string())
        elif column.type != wanted:
            column = column.cast(wanted)
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    except pa.ArrowException as error:
        raise InvalidData(
            f"a column of Arrow type {column.type} can not be taken as {data_type}: {error}",
            hint=f"cast the column to {wanted} before",
        ) from error


def _has_offsets(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow) or types.is_binary(arrow) or types.is_large_string(arrow) or types.is_large_binary(arrow)
    )


def null_mask(array: pa.Array) -> Mask | None:
    """Which rows are null, or None when none is."""
    return np.asarray(array.is_null()) if array.null_count else None


def fixed_values(array: pa.Array, dtype: npt.DTypeLike, per_row: int = 1) -> npt.NDArray[Any]:
    """The array's value buffer as numpy sees it, without a copy; whatever stands at nulls stands here too."""
    dtype = np.dtype(dtype)
    if len(array) == 0:
        return np.zeros(0, dtype)
    start = array.offset * per_row * dtype.itemsize
    return np.frombuffer(array.buffers()[1], dtype, count=len(array) * per_row, offset=start)


def byte_spans(array: pa.Array) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Data of a text or bytes array and the n + 1 borders of its values in it, the first border being 0."""
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, borders, data = array.buffers()
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.dtype(np.int64 if is_large else np.int32)
    offsets = np.frombuffer(borders, dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return np.zeros(0, np.uint8), np.zeros(len(offsets), np.int64)
    return np.frombuffer(data, np.uint8, count=last - first, offset=first), offsets.astype(np.int64) - first


def aligned_words(data: npt.NDArray[np.uint8]) -> Words:
    """A copy of the bytes as words, with room to read a whole word from any of them."""
    words = np.zeros((len(data) >> 3) + 3, np.uint64)
    words.view(np.uint8)[: len(data)] = data
    return words


def load_words(words: Words, at: Ints) -> Words:
    """Eight bytes from each byte position, however they lie; `words` comes from `aligned_words`."""
    index = at >> 3
    shift = ((at & 7) << 3).astype(np.uint64)
    loaded: Words = (words[index] >> shift) | ((words[index + 1] << (63 - shift)) << np.uint64(1))
    return loaded


def lower(array: pa.Array, data_type: AtomicType, *, reserve_nulls: bool = True) -> Slots:
    """Slots of an array that `as_column` returned. `reserve_nulls` gives nulls of wide decimals and timestamps their
    variable space, which keys, partitions and bucket keys do, and nested rows and arrays do not."""
    is_null = null_mask(array)
    if data_type.root in STRINGS | BINARIES:
        return _lower_bytes(array, is_null)
    if data_type.root is TypeRoot.DECIMAL:
        limbs = fixed_values(array, np.uint64, per_row=2).reshape(-1, 2)
        if data_type.precision <= MAX_COMPACT_DECIMAL:
            return Slots(_zero_at(np.ascontiguousarray(limbs[:, 0]), is_null), is_null)
        return _lower_wide(*_minimal_bytes(limbs[:, 0], limbs[:, 1]), is_null, reserve_nulls)
    if data_type.root in TIMESTAMPS:
        return _lower_timestamp(array, data_type, is_null, reserve_nulls)
    if data_type.root is TypeRoot.BOOLEAN:
        array = array.cast(pa.uint8())
    return Slots(_zero_at(fixed_values(array, slot_dtype(data_type)), is_null), is_null)


def _zero_at(values: npt.NDArray[Any], is_null: Mask | None) -> npt.NDArray[Any]:
    if is_null is None:
        return values
    values = values.copy()
    values[is_null] = 0
    return values


def _lower_bytes(array: pa.Array, is_null: Mask | None) -> Slots:
    data, borders = byte_spans(array)
    starts, lengths = borders[:-1], np.diff(borders)
    if is_null is not None:
        lengths[is_null] = 0
    longest = int(lengths.max(initial=0))
    shortest = int(lengths.min(initial=longest))
    if shortest == longest and longest > MAX_INLINE_BYTES:
        return Slots(longest, None, EvenSpill(_even_words(data, len(lengths), longest)))
    words = aligned_words(data)
    values = lengths.view(np.uint64)
    if shortest <= MAX_INLINE_BYTES:
        values = np.where(lengths <= MAX_INLINE_BYTES, _inline(words, starts, values), values)
    spill = None
    if longest > MAX_INLINE_BYTES:
        spill = RaggedSpill(words, starts, np.where(lengths > MAX_INLINE_BYTES, lengths, 0))
    return Slots(_zero_at(values, is_null), is_null, spill)


def _even_words(data: npt.NDArray[np.uint8], rows: int, length: int) -> Words:
    """Values of one length as words; a copy only where they need padding."""
    if length % 8 == 0:
        return data.view(np.uint64).reshape(rows, -1)
    padded = np.zeros((rows, (length + 7) & -8), np.uint8)
    padded[:, :length] = data.reshape(rows, length)
    return padded.view(np.uint64)


def _inline(words: Words, starts: Ints, lengths: Words) -> Words:
    """Slots of values that fit: the bytes, and their number with the top bit set in the last byte."""
    keep = (np.uint64(1) << (8 * np.minimum(lengths, MAX_INLINE_BYTES))) - np.uint64(1)
    inline: Words = (load_words(words, starts) & keep) | ((lengths | np.uint64(0x80)) << np.uint64(56))
    return inline


def _lower_timestamp(array: pa.Array, data_type: AtomicType, is_null: Mask | None, reserve_nulls: bool) -> Slots:
    ticks = fixed_values(array, np.int64)
    if data_type.precision <= MAX_COMPACT_TIMESTAMP:
        if array.type.unit == "s":
            ticks = _seconds_to_millis(array)
        return Slots(_zero_at(ticks.view(np.uint64), is_null), is_null)
    per_milli, nanos_per_tick = (1000, 1000) if array.type.unit == "us" else (1_000_000, 1)
    millis = ticks // per_milli
    nanos = (ticks - millis * per_milli) * nanos_per_tick
    return _lower_wide(nanos.view(np.uint64), millis.view(np.uint64).reshape(-1, 1), is_null, reserve_nulls)


def _seconds_to_millis(array: pa.Array) -> Ints:
    try:
        return fixed_values(pc.cast(array, pa.timestamp("ms", array.type.tz)), np.int64)
    except pa.ArrowInvalid as error:
        raise InvalidData(
            f"a timestamp is too large to be counted in milliseconds: {error}",
            hint="use timestamps within 292 million years of 1970",
        ) from error


def _lower_wide(values: Words, words: Words, is_null: Mask | None, reserve_nulls: bool) -> Slots:
    """Slots whose value stands in a variable part of fixed size."""
    if is_null is None:
        return Slots(values, None, EvenSpill(words))
    values, words = _zero_at(values, is_null), _zero_at(words, is_null)
    if reserve_nulls:
        return Slots(values, is_null, EvenSpill(words))
    size = 8 * words.shape[1]
    flat = aligned_words(words.reshape(-1).view(np.uint8))
    return Slots(values, is_null, RaggedSpill(flat, size * np.arange(len(words)), np.where(is_null, 0, size)))


def _minimal_bytes(low: Words, high: Words) -> tuple[Words, Words]:
    """Length of the shortest big-endian two's complement of 128-bit numbers, and those bytes padded to 16."""
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    low_bits, high_bits = low ^ sign, high ^ sign
    sizes = np.ones(len(low), np.uint64)
    for size in range(1, 9):
        sizes += (high_bits > 0) | (low_bits >= np.uint64(1 << (8 * size - 1)))
    for size in range(1, 8):
        sizes += high_bits >= np.uint64(1 << (8 * size - 1))
    # The number is moved to the top of the 128 bits: big-endian bytes then start at the first byte of the space.
    shift = 128 - 8 * sizes
    is_far = shift >= 64
    near = np.where(is_far, 0, shift)
    spilled_over = (low >> np.uint64(1)) >> (63 - near)
    top = np.where(is_far, low << np.where(is_far, shift - 64, 0), (high << near) | spilled_over)
    bottom = np.where(is_far, 0, low << near)
    return sizes, np.column_stack([top.byteswap(), bottom.byteswap()])
