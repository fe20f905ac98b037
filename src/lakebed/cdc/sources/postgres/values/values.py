"""Texts of a PostgreSQL as values of the lake's types, whole columns at once.

The copy and the stream spell values alike, so there is one way in. Arrow reads the usual spelling. What it refuses is
looked at again: years of more than four digits and before Christ are read here; `infinity`, `NaN` in a decimal,
`24:00:00` and arrays of arrays are values that the lake's type does not have, and go by the policy: an error that
names column, value and key, or null. TIME holds milliseconds: finer digits are cut off, as in Paimon.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.postgres.values.forms import ROUNDED, UNBOUNDED, Form
from lakebed.errors import InvalidData
from lakebed.records import dataclass
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import AtomicType, TypeRoot

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Place:
    """Which column is being read, for errors, and what becomes of values that its type does not have."""

    table: str
    column: str
    keeps_null: bool
    """The policy `null`. Never for a column of the key."""
    key_of: Callable[[int], str]
    """The key of a row, as errors show it."""
    found: Callable[[Mask, InvalidData], None] | None = None
    """Told which values do not fit, and what would be said of the first, where their rows are put aside."""

    def without(self, text: pa.Array, misfits: pa.Array, hint: str) -> pa.Array:
        """The texts with null for those that do not fit; an error if the policy is to fail."""
        first = pc.index(misfits, True).as_py()
        if first < 0:
            return text
        if self.keeps_null:
            return pc.if_else(misfits, pa.scalar(None, text.type), text)
        error = self._error(text, first, hint)
        if self.found is None:
            raise error
        self.found(pc.fill_null(misfits, False).to_numpy(zero_copy_only=False), error)
        return pc.if_else(misfits, pa.scalar(None, text.type), text)

    def _error(self, text: pa.Array, first: int, hint: str) -> InvalidData:
        return InvalidData(
            f"column `{self.column}` of table `{self.table}` has the value {text[first].as_py()!r} "
            f"in the row with key {self.key_of(first)}, which its type in the lake does not have",
            hint=f'{hint}, or set values_that_do_not_fit="null" to have nulls in their place',
        )


def parse_values(text: pa.Array, form: Form, place: Place) -> pa.Array:
    """A column of texts as a column of the form's type. Nulls stay nulls."""
    return _PARSERS[form.spelling](text, form, place)


def _text(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return text


def _bool(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return pc.equal(text, "t")


def _bit(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return pc.equal(text, "1")


def _plain(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return text.cast(to_arrow_type(form.type))


def _numeric(text: pa.Array, form: Form, place: Place) -> pa.Array:
    target = to_arrow_type(form.type)
    try:
        if _may_overflow(text, target):
            raise pa.ArrowInvalid("perhaps")
        return text.cast(target)
    except pa.ArrowInvalid:
        before = max(target.precision - target.scale, 1)
        fitting = rf"^-?(0|\d{{1,{before}}})(\.\d{{0,{target.scale}}}0*)?$"
        misfits = pc.invert(pc.match_substring_regex(text, fitting))
        hint = "ALTER the column to a numeric(p, s) that holds all its values (p up to 38)"
        if form.spelling == UNBOUNDED:
            hint += ', or set unbounded_numeric="string" or "round"'
        text = place.without(text, misfits, hint)
        # Zeros behind the scale lose nothing, but Arrow refuses them.
        return pc.replace_substring_regex(text, rf"(\.\d{{{target.scale}}})0+$", r"\1").cast(target)


def _may_overflow(text: pa.Array, target: pa.DataType) -> bool:
    """Whether Arrow may make another number of a text: what does not fit into 128 bits it cuts off, without a word."""
    longest = pc.max(pc.binary_length(text)).as_py() or 0
    return bool(longest > _MAX_DIGITS - target.scale)


def _rounded(text: pa.Array, form: Form, place: Place) -> pa.Array:
    """Digits behind the scale are rounded as PostgreSQL does it; those in front of the point must fit."""
    target = to_arrow_type(form.type)
    try:
        if _may_overflow(text, target):
            raise pa.ArrowInvalid("perhaps")
        return text.cast(target)
    except pa.ArrowInvalid:
        fitting = rf"^-?\d{{1,{target.precision - target.scale}}}(\.\d*)?$"
        misfits = pc.invert(pc.match_substring_regex(text, fitting))
        text = place.without(text, misfits, 'set unbounded_numeric="string"')
        short = pc.replace_substring_regex(text, r"(\.\d{37})\d+$", r"\1")  # what is further behind decides nothing
        wide = pc.round(short.cast(pa.decimal256(76, 38)), target.scale, "half_towards_infinity")
        largest = 10 ** (target.precision - target.scale)
        is_over = pc.greater_equal(pc.abs(wide), pa.scalar(Decimal(largest), pa.decimal256(76, 38)))
        place.without(text, is_over, 'set unbounded_numeric="string"')
        return pc.if_else(is_over, pa.scalar(None, wide.type), wide).cast(target)


_MAX_DIGITS: Final = 38
_DAY: Final = r"^\d{4}-\d\d-\d\d"
_USUAL: Final = {
    "date": _DAY + "$",
    "timestamp": _DAY + r" \d\d:\d\d:\d\d(\.\d+)?(\+00)?$",
}
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _date(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return _moments(text, pa.date32(), 0, "date", place)


def _timestamp(text: pa.Array, form: Form, place: Place) -> pa.Array:
    target = to_arrow_type(form.type)
    return _moments(text, target, _PER_SECOND[target.unit], "timestamp", place)


def _moments(text: pa.Array, target: pa.DataType, per_second: int, spelling: str, place: Place) -> pa.Array:
    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        unusual = pc.invert(pc.match_substring_regex(text, _USUAL[spelling]))
    rows = np.flatnonzero(pc.fill_null(unusual, False).to_numpy(zero_copy_only=False))
    numbers = [_unusual_moment(text[int(row)].as_py(), per_second) for row in rows]
    misfits = np.zeros(len(text), bool)
    misfits[rows] = [number is None for number in numbers]
    text = place.without(text, pa.array(misfits), "UPDATE it to a date of the calendar")
    usual = pc.if_else(unusual, pa.scalar(None, pa.string()), text).cast(target)
    width = pa.int32() if pa.types.is_date32(target) else pa.int64()
    found = np.zeros(len(text), width.to_pandas_dtype())
    found[rows] = [number or 0 for number in numbers]
    is_read = np.zeros(len(text), bool)
    is_read[rows] = [number is not None for number in numbers]
    return pc.if_else(pa.array(is_read), pa.array(found).cast(target), usual)


_UNUSUAL = re.compile(r"(\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:\+00)?)?( BC)?")


def _unusual_moment(text: str, per_second: int) -> int | None:
    """The number of a date (`per_second` is 0) or a time that Arrow does not read; None if no number stands for it."""
    match = _UNUSUAL.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(match.group(group)) for group in (1, 2, 3))
    days = _days(1 - year if match.group(8) else year, month, day)
    if not per_second:
        return days if -(1 << 31) <= days < 1 << 31 else None
    hour, minute, second = (int(match.group(group) or 0) for group in (4, 5, 6))
    fraction = int((match.group(7) or "0").ljust(9, "0")[:9])
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
    number = seconds * per_second + fraction * per_second // 10**9
    return number if -(1 << 63) <= number < 1 << 63 else None


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar, extended to all years; March begins the year of leap days."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _time(text: pa.Array, form: Form, place: Place) -> pa.Array:
    text = place.without(text, pc.starts_with(text, "24:"), "UPDATE it to 00:00:00")
    moments = pc.binary_join_element_wise("1970-01-01", text, " ").cast(pa.timestamp("us")).cast(pa.int64())
    return pc.divide(moments, 1000).cast(pa.int32()).cast(pa.time32("ms"))


def _bytea(text: pa.Array, form: Form, place: Place) -> pa.Array:
    return hex_strings(text)


def _bits(text: pa.Array, form: Form, place: Place) -> pa.Array:
    assert isinstance(form.type, AtomicType)
    return bit_strings(text, form.type.length if form.type.root is TypeRoot.BINARY else None)


def _array(text: pa.Array, form: Form, place: Place) -> pa.Array:
    assert form.element is not None
    misfits = pc.match_substring_regex(text, r"^(\[[^={]*\]=)?\{\{")
    hint = (
        "arrays of the lake have one dimension: leave the table out with `excluding`, or set type_mapping=['to-string']"
    )
    text = place.without(text, misfits, hint)
    offsets, elements = split_arrays(text)
    rows = np.searchsorted(offsets, np.arange(len(elements)), side="right") - 1
    inner = replace(place, key_of=lambda element: place.key_of(int(rows[element])))
    if place.found is not None:
        tell = place.found

        def found(misfits: Mask, error: InvalidData) -> None:
            of_row = np.zeros(len(text), bool)
            of_row[rows[misfits]] = True
            tell(of_row, error)

        inner = replace(inner, found=found)
    values = parse_values(elements, form.element, inner)
    mask = None if text.null_count == 0 else pc.is_null(text)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, to_arrow_type(form.type), mask=mask)


_PARSERS: Final[dict[str, Callable[[pa.Array, Form, Place], pa.Array]]] = {
    "text": _text,
    "bool": _bool,
    "bit": _bit,
    "bits": _bits,
    "integer": _plain,
    "float": _plain,
    "numeric": _numeric,
    UNBOUNDED: _numeric,
    ROUNDED: _rounded,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "bytea": _bytea,
    "array": _array,
}


# --- Texts that hold several things, taken apart byte by byte in numpy: arrays, hexadecimal bytes, strings of bits
#
# All of a column's texts lie behind one another in one buffer; what a byte means (a quote, a comma between elements,
# a backslash that protects) is computed for all bytes at once.


Numbers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def flat(text: pa.Array, instead_of_null: str) -> tuple[Numbers, Bytes]:
    """Where each text begins (and the last ends), and the bytes of them all."""
    filled = pc.fill_null(text, instead_of_null)
    offsets = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(filled) + 1]
    offsets = offsets.astype(np.int64)
    content = filled.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def split_arrays(text: pa.Array) -> tuple[Numbers, pa.Array]:
    """Elements of arrays such as `{1,NULL,"a \\"b\\""}`: where those of each array begin, and all of them as texts.

    Bounds in front (`[0:1]={…}`) are left out. Of arrays in arrays nothing is understood: the caller sorts them out.
    """
    if pc.any(pc.starts_with(text, "[")).as_py():
        text = pc.replace_substring_regex(text, r"^\[[^=]*=", "")
    borders, data = flat(text, "{}")
    is_backslash = data == ord("\\")
    is_escape = np.zeros(len(data), bool)
    if is_backslash.any():
        places = np.arange(len(data))
        run = places - np.maximum.accumulate(np.where(is_backslash, -1, places))
        is_escape = is_backslash & (run % 2 == 1)  # of several in a row, every second is itself protected
    is_escaped = np.zeros(len(data), bool)
    is_escaped[1:] = is_escape[:-1]
    is_quote = (data == ord('"')) & ~is_escaped
    is_plain = ~is_quote & (np.cumsum(is_quote) % 2 == 0)
    is_open, is_close, is_comma = (is_plain & (data == ord(mark)) for mark in "{},")
    is_empty = np.diff(borders) == 2
    is_open[borders[:-1][is_empty]] = False  # `{}` has no element, `{x}` has one
    is_edge = is_open | is_comma
    begins = np.flatnonzero(is_edge) + 1
    is_kept = ~(is_quote | is_escape | is_edge | is_close)
    is_kept[borders[:-1][is_empty]] = False
    new_places = np.concatenate([[0], np.cumsum(is_kept)])
    offsets = np.append(new_places[begins], new_places[-1]).astype(np.int32)
    content = np.ascontiguousarray(data[is_kept])
    elements = pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(content))
    is_null = pc.and_(pc.equal(elements, "NULL"), pa.array(data[begins] != ord('"')))
    elements = pc.if_else(is_null, pa.scalar(None, pa.string()), elements)
    counts = np.concatenate([[0], np.cumsum(is_edge)])
    return counts[borders], elements


_DIGITS = np.zeros(256, np.uint8)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _place


def hex_strings(text: pa.Array) -> pa.Array:
    """Bytes from texts such as `\\x6869`."""
    borders, data = flat(text, "\\x")
    # Two characters stand in front, two for each byte: every text begins at an even place.
    digits = _DIGITS[data]
    pairs: Bytes = np.bitwise_or(np.left_shift(digits[0::2], 4), digits[1::2]).astype(np.uint8)
    is_content = np.ones(len(pairs), bool)
    is_content[borders[:-1] // 2] = False
    offsets = borders // 2 - np.arange(len(borders))
    return _binary(offsets, pairs[is_content], text)


def bit_strings(text: pa.Array, width_bytes: int | None) -> pa.Array:
    """Bytes from texts such as `0101`: the number that they write, most significant byte first."""
    borders, data = flat(text, "")
    lengths = np.diff(borders)
    widths = (lengths + 7) // 8 if width_bytes is None else np.full(len(lengths), width_bytes)
    offsets = np.concatenate([[0], np.cumsum(widths)])
    bits = np.zeros(8 * int(offsets[-1]), np.uint8)
    shift = 8 * offsets[1:] - borders[1:]  # texts end where their bytes end
    bits[np.arange(len(data)) + np.repeat(shift, lengths)] = data == ord("1")
    return _binary(offsets, np.packbits(bits), text)


def _binary(offsets: Numbers, data: Bytes, text: pa.Array) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    values = pa.Array.from_buffers(pa.binary(), len(text), buffers)
    return values if text.null_count == 0 else pc.if_else(pc.is_valid(text), values, pa.scalar(None, pa.binary()))


__all__ = ["Place", "bit_strings", "flat", "hex_strings", "parse_values", "split_arrays"]
