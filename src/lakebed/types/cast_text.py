"""Conversions to and from text and bytes, with the texts Java writes and reads.

Whole columns at a time wherever Arrow can do it. Texts that Arrow spells differently (floating point, long decimals)
or can not read (dates, times, decimals with rounding) are converted once per *distinct* value. Text that can not be
read is an error that shows the text: a column of a table must not turn into NULLs unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData
from lakebed.types import text_values as tv
from lakebed.types.arrow import timestamp_unit, to_arrow_type
from lakebed.types.logical import MAX_LENGTH, AtomicType, TypeRoot

_TRUE = ["t", "true", "y", "yes", "1"]
_FALSE = ["f", "false", "n", "no", "0"]
_INTEGER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]*)$"
_FLOAT = r"^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$"
_ISO_DATE = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
ZONED = r"(Z|[+-]\d{2}:\d{2})$"
"""How the text of a moment ends that says its zone: `2024-01-02 03:04:05.6Z`, `2024-01-02T03:04:05+01:00`."""
_ISO_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?$"
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


# --- lengths ---------------------------------------------------------------------------------------------------------


def fit_text(array: pa.Array, target: AtomicType) -> pa.Array:
    """Texts cut to the target's length in characters; CHAR is filled up with blanks."""
    if target.length == MAX_LENGTH:
        return array
    if pc.any(pc.greater(pc.utf8_length(array), target.length)).as_py():
        array = pc.utf8_slice_codeunits(array, 0, target.length)
    return pc.utf8_rpad(array, target.length, " ") if target.root is TypeRoot.CHAR else array


def _fit_bytes(array: pa.Array, target: AtomicType) -> pa.Array:
    """Bytes cut to the target's length; BINARY is filled up with zeros."""
    if target.length == MAX_LENGTH:
        return array
    if pc.any(pc.greater(pc.binary_length(array), target.length)).as_py():
        array = pc.binary_slice(array, 0, target.length)
    if target.root is not TypeRoot.BINARY:
        return array
    missing = pc.subtract(target.length, pc.binary_length(array))
    zeros = pc.binary_repeat(pa.scalar(b"\0", pa.binary()), missing)
    return pc.binary_join_element_wise(array, zeros, pa.scalar(b"", pa.binary()))


# --- to text ---------------------------------------------------------------------------------------------------------


def text_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Cut or filled up."""
    return fit_text(array, target)


def plain_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Booleans, integers and dates: Arrow and Java spell them alike."""
    return fit_text(array.cast(pa.string()), target)


def float_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The shortest digits that identify the value, in Java's form."""
    texts = array.cast(pa.string())
    # Within this range Arrow and Java write the same digits, but for Java's `.0` behind whole numbers.
    magnitude = pc.abs(array)
    rare = pc.invert(pc.and_(pc.greater_equal(magnitude, 1e-3), pc.less(magnitude, 1e7))).fill_null(False)
    whole = pc.binary_join_element_wise(texts, ".0", "")
    spelled = pc.if_else(pc.match_substring(texts, "."), texts, whole)
    if pc.any(rare).as_py():
        exact = float if source.root is TypeRoot.DOUBLE else np.float32
        others = _by_distinct(texts.filter(rare), lambda text: tv.java_float_text(text, exact), pa.string())
        spelled = pc.replace_with_mask(spelled, rare, others)
    return fit_text(spelled, target)


def decimal_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """All digits of the scale, never an exponent."""
    texts = array.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        texts = _by_distinct(texts, lambda text: format(Decimal(text), "f"), pa.string())
    return fit_text(texts, target)


def time_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """`01:02:03`, followed for a precision above 0 by at least one digit and no idle zeros."""
    texts = array.cast(pa.string())
    digits = min(source.precision, 3)
    texts = pc.utf8_slice_codeunits(texts, 0, 9 + digits if digits else 8)
    return fit_text(pc.replace_substring_regex(texts, r"(\.[0-9])([0-9]*[1-9])?0*$", r"\1\2"), target)


def timestamp_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """`2024-01-02 03:04:05` with at least as many digits as the type's precision."""
    texts = pc.utf8_rtrim(array.cast(pa.string()), "Z")
    idle = _UNIT_DIGITS[timestamp_unit(source.precision)] - source.precision
    return fit_text(pc.replace_substring_regex(texts, f"0{{1,{idle}}}$", "") if idle else texts, target)


def bytes_to_text(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Bytes taken as UTF-8; what is not UTF-8 becomes the replacement character."""
    try:
        texts = array.cast(pa.string())
    except pa.ArrowInvalid:
        texts = _by_distinct(array, lambda value: value.decode("utf-8", "replace"), pa.string())
    return fit_text(texts, target)


# --- from text -------------------------------------------------------------------------------------------------------


def text_to_boolean(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """t, true, y, yes, 1 and f, false, n, no, 0 in any case."""
    lower = pc.utf8_lower(array)
    is_true = pc.is_in(lower, value_set=pa.array(_TRUE))
    _require(array, pc.or_(is_true, pc.is_in(lower, value_set=pa.array(_FALSE))), target)
    return pc.if_else(array.is_valid(), is_true, pa.scalar(None, pa.bool_()))


def text_to_integer(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Decimal digits with an optional sign; a fraction is cut off; too large is an error."""
    _require(array, pc.match_substring_regex(array, _INTEGER), target)
    whole = pc.replace_substring_regex(array, r"^\+|\..*$", "")
    whole = pc.replace_substring_regex(whole, "^(-?)0*([1-9][0-9]*)?$", r"\1\2")
    whole = pc.replace_substring_regex(whole, "^-?$", "0")
    _require(array, _is_int64(whole), target)
    numbers = whole.cast(pa.int64())
    narrow = numbers.cast(to_arrow_type(target), safe=False)
    _require(array, pc.equal(narrow.cast(pa.int64()), numbers), target)
    return narrow


def _is_int64(texts: pa.Array) -> pa.Array:
    """Which integers without idle zeros are within 64 bits; those of 19 digits compare as text."""
    digits = pc.utf8_ltrim(texts, "-")
    negative = pc.starts_with(texts, "-")
    limit = pc.if_else(negative, "9223372036854775808", "9223372036854775807")
    length = pc.utf8_length(digits)
    return pc.or_(pc.less(length, 19), pc.and_(pc.equal(length, 19), pc.less_equal(digits, limit)))


def text_to_float(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """What Java's parser takes, except hexadecimal forms."""
    trimmed = pc.ascii_trim_whitespace(array)
    _require(array, pc.match_substring_regex(trimmed, _FLOAT), target)
    return pc.replace_substring_regex(trimmed, r"^\+|[fFdD]$", "").cast(to_arrow_type(target))


def text_to_decimal(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Rounded half up; NULL when it has too many digits."""
    fits = f"^[+-]?[0-9]{{1,{max(target.precision - target.scale, 1)}}}(\\.[0-9]{{0,{target.scale}}})?$"
    if target.precision > target.scale and (quick := _read_by_arrow(array, fits, target)) is not None:
        return quick
    return _parsed(array, lambda text: tv.parse_decimal(text, target.precision, target.scale), target)


def text_to_date(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """`2024-05-14`, also `2024-5`, also with a time behind it; digits alone are days since 1970."""
    quick = _read_by_arrow(array, _ISO_DATE, target)
    return _parsed(array, tv.parse_date_days, target, pa.int32()) if quick is None else quick


def text_to_time(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """`01:02:03.004`, seconds and minutes optional; digits alone are milliseconds."""
    return _parsed(array, tv.parse_time_millis, target, pa.int32())


def text_to_timestamp(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """`2024-01-02 03:04:05.123`, also with `T`, also a date alone; digits alone are a count in the type's precision."""
    if (quick := _read_by_arrow(array, _ISO_TIMESTAMP, target)) is not None:
        return quick
    digits = _UNIT_DIGITS[timestamp_unit(target.precision)]
    allow_count = target.root is TypeRoot.TIMESTAMP
    return _parsed(
        array, lambda text: tv.parse_timestamp(text, target.precision, digits, allow_count), target, pa.int64()
    )


def in_utc(texts: pa.Array) -> pa.Array:
    """Times with an offset, without it: the same moment in UTC."""
    texts = pc.replace_substring_regex(texts, r"^(\d+-\d+-\d+)T", r"\1 ")
    if pc.all(pc.fill_null(pc.ends_with(texts, "Z"), True)).as_py():
        return pc.utf8_rtrim(texts, "Z")
    moments = pc.strptime(
        pc.replace_substring_regex(texts, r"\.\d+", ""), format="%Y-%m-%d %H:%M:%S%z", unit="us", error_is_null=True
    )
    fraction = pc.replace_substring_regex(texts, r"^[^.]*$", "")
    fraction = pc.replace_substring_regex(fraction, r"^.*(\.\d+).*$", r"\1")
    return pc.binary_join_element_wise(pc.strftime(moments.cast(pa.timestamp("s")), "%Y-%m-%d %H:%M:%S"), fraction, "")


def text_to_bytes(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """UTF-8, cut or filled up."""
    return _fit_bytes(array.cast(pa.binary()), target)


def bytes_to_bytes(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Cut or filled up."""
    return _fit_bytes(array, target)


# --- the machinery ---------------------------------------------------------------------------------------------------


def _by_distinct(array: pa.Array, convert: Callable[[Any], Any], arrow: pa.DataType) -> pa.Array:
    """`convert` on each distinct value, spread over the column; nulls stay null."""
    encoded = array.dictionary_encode()
    return pa.array([convert(value) for value in encoded.dictionary.to_pylist()], arrow).take(encoded.indices)


def _parsed(
    array: pa.Array,
    parse: Callable[[str], Any],
    target: AtomicType,
    counts: pa.DataType | None = None,
) -> pa.Array:
    """Texts parsed once per distinct value; `counts` is the integer type the parser's numbers are stored in first."""
    arrow = to_arrow_type(target)

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise unreadable(text, target) from error

    return _by_distinct(array, convert, counts or arrow).cast(arrow)


def _read_by_arrow(array: pa.Array, pattern: str, target: AtomicType) -> pa.Array | None:
    """Arrow's own reading of a column of canonical texts, which agrees with Java's; None when a text is not one."""
    if not pc.all(pc.match_substring_regex(array, pattern)).as_py():
        return None
    arrow = to_arrow_type(target)
    if pa.types.is_timestamp(arrow):
        beyond = r"\.[0-9]*$" if target.precision == 0 else f"(\\.[0-9]{{{target.precision}}})[0-9]*$"
        array = pc.replace_substring_regex(array, beyond, "" if target.precision == 0 else r"\1")
        arrow = pa.timestamp(arrow.unit)
    try:
        # A zone is put on afterwards: the texts have none and mean UTC.
        return array.cast(arrow).cast(to_arrow_type(target))
    except pa.ArrowInvalid:  # such as February 30, which the slow way decides about
        return None


def _require(array: pa.Array, valid: pa.Array, target: AtomicType) -> None:
    """Raise for the first text that is not valid; nulls are."""
    wrong = pc.and_(array.is_valid(), pc.invert(pc.fill_null(valid, False)))
    if pc.any(wrong).as_py():
        raise unreadable(array.filter(wrong)[0].as_py(), target)


def unreadable(text: str, target: AtomicType) -> InvalidData:
    """The error for a text that does not spell a value of the type."""
    shown = text if len(text) <= 80 else text[:77] + "..."
    return InvalidData(
        f"text {shown!r} can not be read as {target}",
        hint="correct the rows, or change the column to a type that holds such values",
    )
