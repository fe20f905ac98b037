"""Slots back to Arrow: values of one atomic type from given places in a run of bytes.

Rows, arrays and nested rows differ only in where their slots, their null bits and their ends are, so the caller names
the places (`Places`) and this file reads them, all at once with numpy. Every offset and length is checked before it is
used: the bytes come from files.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import CorruptFile, Unsupported
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_slots import (
    MAX_COMPACT_DECIMAL,
    MAX_COMPACT_TIMESTAMP,
    MAX_INLINE_BYTES,
    Ints,
    Mask,
    Words,
    aligned_words,
    load_words,
    slot_dtype,
)
from lakebed.types.logical import BINARIES, STRINGS, TIMESTAMPS, AtomicType, DataType, TypeRoot

_LOW_HALF = np.uint64(0xFFFF_FFFF)
_NANOS_PER_MILLI = 1_000_000
_MILLIS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Source:
    """A run of bytes that can be read by bytes and, from any byte on, by words."""

    words: Words

    @staticmethod
    def of(data: npt.NDArray[np.uint8]) -> Source:
        """Source over a copy of the bytes."""
        return Source(aligned_words(data))

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The same memory by bytes, with some zeros behind the last."""
        return self.words.view(np.uint8)

    def int32(self, at: Ints) -> Ints:
        """Signed 32-bit numbers at byte positions."""
        return load_words(self.words, at).astype(np.uint32).view(np.int32).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the values of one field are: slots at `slot`, offsets counted from `base`, nothing at or past `end`."""

    what: str
    slot: Ints
    base: Ints
    end: Ints
    is_null: Mask

    def check(self, fits: Mask, complaint: str) -> None:
        """Raises for the first value that is not null and does not fit."""
        wrong = ~(fits | self.is_null)
        if wrong.any():
            refuse(f"{self.what}, value {int(np.argmax(wrong))}: {complaint}")


def refuse(complaint: str) -> NoReturn:
    """The error for bytes that can not be a row."""
    raise CorruptFile(
        f"BinaryRow is damaged: {complaint}",
        hint="restore the file that holds it, or check that it is read with the schema it was written with",
    )


def validity(is_null: Mask) -> pa.Buffer | None:
    """Arrow's bitmap for a null mask."""
    return pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None


def read_atomic(source: Source, places: Places, data_type: AtomicType) -> pa.Array:
    """Values of an atomic type other than VARIANT."""
    if data_type.root in STRINGS | BINARIES:
        return read_spans(source, *_byte_places(source, places), places, to_arrow_type(data_type))
    slots = load_words(source.words, places.slot)
    if data_type.root is TypeRoot.DECIMAL:
        values = _decimals(source, slots, places, data_type)
    elif data_type.root in TIMESTAMPS:
        values = _timestamps(source, slots, places, data_type)
    elif data_type.root is TypeRoot.BOOLEAN:
        return pa.array(slots.astype(np.uint8) != 0, pa.bool_(), mask=places.is_null)
    else:
        values = slots.astype(slot_dtype(data_type))
        if data_type.root is TypeRoot.TIME:
            places.check(values < _MILLIS_PER_DAY, "its time is outside of a day")
    return _array(to_arrow_type(data_type), values, places.is_null)


def _array(arrow: pa.DataType, values: npt.NDArray[Any], is_null: Mask) -> pa.Array:
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow, len(is_null), [validity(is_null), data])


# --- places of variable parts ----------------------------------------------------------------------------------------


def pointed_spans(source: Source, places: Places) -> tuple[Ints, Ints]:
    """Start and length of values that always stand in the variable part; empty at nulls."""
    slots = load_words(source.words, places.slot)
    return _checked_spans(slots, (slots & _LOW_HALF).view(np.int64), places)


def _checked_spans(slots: Words, lengths: Ints, places: Places) -> tuple[Ints, Ints]:
    starts = places.base + (slots >> np.uint64(32)).view(np.int64)
    places.check(starts + lengths <= places.end, "its bytes reach past the end of the row")
    return np.where(places.is_null, places.base, starts), np.where(places.is_null, 0, lengths)


def _byte_places(source: Source, places: Places) -> tuple[Ints, Ints]:
    slots = load_words(source.words, places.slot)
    is_inline = slots >> np.uint64(63) != 0
    inline_lengths = ((slots >> np.uint64(56)) & np.uint64(0x7F)).view(np.int64)
    places.check(~is_inline | (inline_lengths <= MAX_INLINE_BYTES), "more than 7 bytes are said to be in the slot")
    pointers = np.where(is_inline, 0, slots)
    starts, lengths = _checked_spans(pointers, (pointers & _LOW_HALF).view(np.int64), places)
    is_inline &= ~places.is_null
    return np.where(is_inline, places.slot, starts), np.where(is_inline, inline_lengths, lengths)


def read_spans(source: Source, starts: Ints, lengths: Ints, places: Places, arrow: pa.DataType) -> pa.Array:
    """Text or bytes of the given spans.

    Sorted spans and the gaps between them are consecutive values over the same data, which is how Arrow keeps bytes
    anyway: taking every other one copies just the spans.
    """
    count = len(starts)
    if count == 0:
        return pa.array([], arrow)
    rank = np.arange(count)
    if bool((starts[1:] < starts[:-1]).any()):
        order = np.lexsort((lengths, starts))
        rank[order] = np.arange(count)
        starts, lengths = starts[order], lengths[order]
    borders = np.column_stack([starts, starts + lengths]).reshape(-1)
    if bool((borders[1:] < borders[:-1]).any()):
        refuse(f"{places.what}: the bytes of two values overlap")
    data = pa.py_buffer(source.words)
    spans = pa.Array.from_buffers(pa.large_binary(), 2 * count - 1, [None, pa.py_buffer(borders), data])
    try:
        return spans.take(pa.array(2 * rank, mask=places.is_null)).cast(arrow)
    except pa.ArrowInvalid as error:
        refuse(f"{places.what}: {error}")


# --- wide values -----------------------------------------------------------------------------------------------------


def _decimals(source: Source, slots: Words, places: Places, data_type: AtomicType) -> npt.NDArray[Any]:
    """128-bit unscaled numbers, low half first."""
    if data_type.precision <= MAX_COMPACT_DECIMAL:
        low = slots.view(np.int64)
        limit = 10**data_type.precision
        places.check((low < limit) & (low > -limit), f"its number has more than {data_type.precision} digits")
        return np.column_stack([low, low >> 63])
    starts, lengths = _checked_spans(slots, (slots & _LOW_HALF).view(np.int64), places)
    places.check((lengths >= 1) & (lengths <= 16), "a decimal has no bytes or more than 16")
    data = source.bytes
    is_negative = (data[starts] >= 0x80) & ~places.is_null
    little_endian = np.where(is_negative, np.uint8(0xFF), np.uint8(0))[:, None].repeat(16, axis=1)
    for position in range(16):
        has_byte = lengths > position
        little_endian[has_byte, position] = data[(starts + lengths - 1 - position)[has_byte]]
    numbers = little_endian.view(np.int64)
    places.check(_below(numbers, data_type.precision), f"its number has more than {data_type.precision} digits")
    return numbers


def _below(numbers: npt.NDArray[np.int64], precision: int) -> Mask:
    """Which 128-bit numbers have at most that many digits."""
    low, high = numbers[:, 0].view(np.uint64), numbers[:, 1]
    limit_high, limit_low = divmod(10**precision, 1 << 64)
    floor_high, floor_low = divmod(-(10**precision), 1 << 64)
    is_below = (high < limit_high) | ((high == limit_high) & (low < np.uint64(limit_low)))
    is_above = (high > floor_high) | ((high == floor_high) & (low > np.uint64(floor_low)))
    fits: Mask = is_below & is_above
    return fits


def _timestamps(source: Source, slots: Words, places: Places, data_type: AtomicType) -> Ints:
    """Ticks of the type's Arrow unit."""
    if data_type.precision <= MAX_COMPACT_TIMESTAMP:
        millis = slots.view(np.int64)
        return millis // 1000 if data_type.precision == 0 else millis
    nanos = (slots & _LOW_HALF).view(np.int64)
    places.check(nanos < _NANOS_PER_MILLI, "the nanoseconds are more than a millisecond")
    starts, _ = _checked_spans(slots, np.full(len(slots), 8), places)
    millis = np.where(places.is_null, 0, load_words(source.words, starts).view(np.int64))
    per_milli, nanos_per_tick = (1000, 1000) if data_type.precision <= 6 else (_NANOS_PER_MILLI, 1)
    ticks = millis * per_milli + nanos // nanos_per_tick
    is_outside = (millis < -(2**63) // per_milli) | (millis > (2**63 - 1) // per_milli) | ((ticks < 0) != (millis < 0))
    if bool((is_outside & ~places.is_null).any()):
        raise Unsupported(
            f"{places.what}: a {data_type} lies outside of what Arrow's 64-bit timestamps hold",
            hint="read the column as a coarser timestamp, such as TIMESTAMP(3)",
        )
    return ticks


def describe(position: int, data_type: DataType) -> str:
    """How errors call a field."""
    return f"field {position} ({data_type})"
