"""CAST, and the casts that Spark adds by itself where types differ.

Rules are those of ANSI mode: what does not fit is an error, for TRY_CAST null. What is missing here is not proven:
texts of a moment, unless they stand in the query in a plain form; bytes as text (bytes that are no UTF-8 stay as they
are in Spark); nested values as text; intervals.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from typing import Any

import pyarrow as pa

from lakebed.expressions import fraction_text, kinds
from lakebed.expressions.nodes import ArrowFunction, Constant, Expression, NotProven, call
from lakebed.records import dataclass

_BLANK = r"[\x00-\x20\x7F]*"
_WHOLE = rf"'^{_BLANK}([+-]?[0-9]+){_BLANK}$'"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SPACE = r"[\x00-\x20]*"
"""What is trimmed from text of decimals and fractions; from that of other types, one sign more."""
_DECIMAL = rf"'^{_SPACE}({_NUMBER}){_SPACE}$'"
_FRACTION = rf"'^{_SPACE}({_NUMBER}|[+-]?(?i:inf(?:inity)?)|(?i:nan))(?:[dDfF])?{_SPACE}$'"
_DAY = rf"'^{_BLANK}([+-]?[0-9]{{{{4,7}}}}(?:-[0-9]{{{{1,2}}}}(?:-[0-9]{{{{1,2}}}}(?:[ T](?s:.*))?)?)?){_BLANK}$'"
_CONSTANT_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?P<part>\.\d{1,6})?)?)?"
)
_MOST_PLACES = 18
_TO_FLOAT = (
    "(CASE WHEN isnan({0}) OR isinf({0}) OR abs({0}) <= 3.4028234663852886e38 THEN CAST({0} AS FLOAT)"
    " WHEN abs({0}) < 3.4028235677973366e38 THEN CAST(sign({0}) * 3.4028234663852886e38 AS FLOAT)"
    " ELSE CAST(sign({0}) AS FLOAT) * CAST('inf' AS FLOAT) END)"
)
"""DOUBLE as FLOAT: what is too large is infinite, where DuckDB has an error."""
_SECONDS = "((epoch_us({0}) + 1000000000000000000) // 1000000 - 1000000000000)"
"""Whole seconds of a moment, rounded down before 1970 too."""
_A_DAY_ON = "(CAST(({0} - INTERVAL 1 DAY) AS TIMESTAMPTZ) + INTERVAL 24 HOURS)"
_TO_MOMENT = f"(CASE WHEN CAST({_A_DAY_ON} AS TIMESTAMP) = {{0}} THEN {_A_DAY_ON} ELSE CAST({{0}} AS TIMESTAMPTZ) END)"
"""A clock reading as a moment. Of two, when clocks go back, Spark takes the first: that with the offset of the day
before; DuckDB takes the second."""


def _ascii_digits(values: Any) -> pa.Array:
    digits = {code: str(unicodedata.decimal(chr(code))) for code in range(0x80, 0x10000) if chr(code).isdecimal()}
    return pa.array([None if each is None else each.translate(digits) for each in values.to_pylist()], pa.string())


_DIGITS = ArrowFunction(name="lakebed_ascii_digits", compute=_ascii_digits, types=("VARCHAR", "VARCHAR"))


_ODD_FRACTION = re.compile(
    r"[\x00-\x20]*(?:([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[dDfF]?|[+-]NaN)[\x00-\x20]*"
)


def _odd_fractions(values: Any) -> pa.Array:
    """What Java reads as a fraction beside the usual: hexadecimal digits, and NaN with a sign."""
    found = [None if each is None else _ODD_FRACTION.fullmatch(each) for each in values.to_pylist()]
    return pa.array(["" if each is None else _from_hex(each[1] or "nan") for each in found], pa.string())


def _from_hex(text: str) -> str:
    try:
        return repr(float.fromhex(text))
    except OverflowError:
        return "-inf" if text.startswith("-") else "inf"


_PLAIN_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

_ODD = ArrowFunction(name="lakebed_odd_fractions", compute=_odd_fractions, types=("VARCHAR", "VARCHAR"))


@dataclass(frozen=True, slots=True)
class _Spelling:
    """`template` has `CAST!` for the cast that TRY_CAST forgives."""

    template: str
    can_fail: bool = False
    uses: tuple[ArrowFunction, ...] = ()

    def of(self, inner: str) -> str:
        """The template with another value in it."""
        return self.template.replace("{0}", inner)


def cast(value: Expression, kind: pa.DataType, *, is_try: bool = False) -> Expression:
    """CAST, or TRY_CAST, which gives null where CAST fails."""
    if value.type == kind:
        return value
    if value.type == kinds.NULL:
        return null_of(kind)
    if isinstance(value, Constant) and value.type == kinds.STRING and kind in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ):
        return _constant_moment(value, kind)
    if isinstance(value, Constant) and value.type == kinds.STRING and kind == kinds.DATE and not is_try:
        known = _plain_day(str(value.value))
        if known is not None:
            return constant_day(known)
    found = _spelled(value.type, kind)
    if found is None or (is_try and found.can_fail and kinds.is_nested(kind)):
        raise NotProven(f"CAST of {kinds.spark_name(value.type)} to {kinds.spark_name(kind)}")
    template = found.template.replace("CAST!", "TRY_CAST" if is_try else "CAST")
    can_fail = found.can_fail and not is_try and not _is_known_to_fit(value, kind)
    nullable = True if is_try else None
    return call(template, value, type=kind, nullable=nullable, can_fail=can_fail, uses=found.uses)


def coerced(value: Expression, kind: pa.DataType) -> Expression:
    """The value as Spark brings it to a type by itself; nothing is lost by it."""
    return value if value.type == kind else cast(value, kind)


def constant_day(day: dt.date) -> Constant:
    """A day that is known: what is computed from it can be known, too, and a scan can be told of it."""
    return Constant(type=kinds.DATE, nullable=False, value=day, text=f"CAST('{day.isoformat()}' AS DATE)")


def _plain_day(text: str) -> dt.date | None:
    """The day that a text spells in the plain form, if there is such a day."""
    if _PLAIN_DAY.fullmatch(text) is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _is_known_to_fit(value: Expression, kind: pa.DataType) -> bool:
    """Whether it is a whole number for which such a type has room: any of a shorter type, or one of the query."""
    if kinds.is_integral(value.type) and kinds.is_integral(kind):
        return bool(kind.bit_width >= value.type.bit_width)
    if not isinstance(value, Constant) or not kinds.is_integral(value.type) or not kinds.is_decimal(kind):
        return False
    limit: int = 10 ** int(kind.precision - kind.scale)
    return abs(int(value.value)) < limit


def null_of(kind: pa.DataType) -> Constant:
    """NULL of a type."""
    return Constant(type=kind, nullable=True, value=None, text=f"CAST(NULL AS {kinds.duckdb_name(kind)})")


def _spelled(source: pa.DataType, kind: pa.DataType) -> _Spelling | None:
    name = kinds.duckdb_name(kind)
    if source == kind:
        return _Spelling("{0}")
    if source == kinds.NULL:
        return _Spelling(f"CAST({{0}} AS {name})")
    if kinds.is_nested(source) or kinds.is_nested(kind):
        return _nested(source, kind)
    if kind == kinds.BOOLEAN:
        return _to_boolean(source)
    if kind == kinds.STRING:
        return _to_text(source)
    if kinds.is_numeric(kind):
        return _to_number(source, kind, name)
    if (source, kind) == (kinds.STRING, kinds.BINARY):
        return _Spelling("encode({0})")
    return _to_moment(source, kind)


def _to_number(source: pa.DataType, kind: pa.DataType, name: str) -> _Spelling | None:
    plain = f"CAST!({{0}} AS {name})"
    if source == kinds.BOOLEAN:
        return _Spelling(f"CAST!(CAST({{0}} AS INTEGER) AS {name})", kinds.is_decimal(kind))
    if source == kinds.STRING:
        pattern = _WHOLE if kinds.is_integral(kind) else _DECIMAL if kinds.is_decimal(kind) else _FRACTION
        if kinds.is_decimal(kind):  # of which Spark takes digits of any script
            inner = f"(CASE WHEN regexp_matches({{0}}, '[^\\x00-\\x7F]') THEN {_DIGITS.name}({{0}}) ELSE {{0}} END)"
            text = _part_of(inner, pattern)
            wide = f"abs(TRY_CAST({text} AS DOUBLE)) >= 1e{38 - kind.scale} THEN '' ELSE {text} END)"
            text = f"(CASE WHEN {wide}" if kind.precision == 38 else text
            return _Spelling(_digits_as(text, kind), can_fail=True, uses=(_DIGITS,))
        if kinds.is_fraction(kind):
            plain = _part_of("{0}", pattern)
            odd = f"(CASE WHEN regexp_matches({{0}}, '0[xX]|[+-]NaN') THEN {_ODD.name}({{0}}) ELSE {plain} END)"
            return _Spelling(f"CAST!({odd} AS {name})", can_fail=True, uses=(_ODD,))
        return _Spelling(f"CAST!({_part_of('{0}', pattern)} AS {name})", can_fail=True)
    if source == kinds.TIMESTAMP:
        if kinds.is_integral(kind):
            return _Spelling(f"CAST!({_SECONDS} AS {name})", kind != kinds.BIGINT)
        if kind == kinds.DOUBLE:
            return _Spelling("(epoch_us({0}) / CAST(1000000 AS DOUBLE))")
        return None
    if not kinds.is_numeric(source):
        return None
    if kinds.is_integral(kind):
        if kinds.is_integral(source):
            return _Spelling(plain, can_fail=True)
        if kinds.is_fraction(source) and kind == kinds.BIGINT:
            # 2^63 is one too large, and still let through by Spark, which compares it as a fraction.
            last = "CASE WHEN {0} = 9223372036854775808 THEN 9223372036854775807"
            return _Spelling(f"({last} ELSE CAST!(trunc({{0}}) AS {name}) END)", can_fail=True)
        return _Spelling(f"CAST!(trunc({{0}}) AS {name})", can_fail=True)
    if kinds.is_decimal(kind):
        if kinds.is_fraction(source):  # by the digits that the fraction is written with, FLOAT as DOUBLE
            digits = f"abs({{0}}) < 1e{kind.precision - kind.scale} THEN CAST(CAST({{0}} AS DOUBLE) AS VARCHAR)"
            return _Spelling(_digits_as(f"(CASE WHEN {digits} WHEN isfinite({{0}}) THEN '' END)", kind), can_fail=True)
        held = kinds.as_decimal(source)
        return _Spelling(plain, kind.precision - kind.scale < held.precision - held.scale + (kind.scale < held.scale))
    if kinds.is_decimal(source) and not (kind == kinds.DOUBLE and source.precision <= 15):
        return _Spelling(f"CAST(CAST({{0}} AS VARCHAR) AS {name})")  # read from text, it is the nearest fraction
    return _Spelling(_TO_FLOAT if (source, kind) == (kinds.DOUBLE, kinds.FLOAT) else plain)


_QUOTED = "'\"' || {0} || '\"'"
"""A text that spells no value of any type; whoever reads the error sees what it was."""


def _part_of(text: str, pattern: str) -> str:
    """The part of a text that spells a number, without blanks; the text in quotes if there is none."""
    return f"coalesce(nullif(regexp_extract({text}, {pattern}, 1), ''), {_QUOTED})"


def _digits_as(text: str, kind: pa.DataType) -> str:
    """Text as a decimal. DuckDB does not look whether one with an exponent fits; from a wider decimal it does."""
    if kind.scale > _MOST_PLACES:
        raise NotProven(f"CAST to {kinds.spark_name(kind)}")
    return f"CAST!(CAST!({text} AS DECIMAL(38,{kind.scale})) AS {kinds.duckdb_name(kind)})"


def _to_boolean(source: pa.DataType) -> _Spelling | None:
    if kinds.is_numeric(source):
        return _Spelling("({0} <> 0)")
    if source == kinds.STRING:
        words = {"true": ("t", "true", "y", "yes", "1"), "false": ("f", "false", "n", "no", "0")}
        found = " ".join(f"WHEN '{word}' THEN '{value}'" for value, all_ in words.items() for word in all_)
        bare = rf"lower(regexp_replace({{0}}, '^{_BLANK}|{_BLANK}$', '', 'g'))"
        return _Spelling(f"CAST!((CASE {bare} {found} ELSE {_QUOTED} END) AS BOOLEAN)", can_fail=True)
    return None


def _to_text(source: pa.DataType) -> _Spelling | None:
    if source == kinds.TIMESTAMP:
        return _Spelling("CAST(CAST({0} AS TIMESTAMP) AS VARCHAR)")
    if kinds.is_fraction(source):
        template, function = fraction_text.template(source)
        return _Spelling(template, uses=(function,))
    if kinds.is_numeric(source) or source in (kinds.BOOLEAN, kinds.DATE, kinds.TIMESTAMP_NTZ):
        return _Spelling("CAST({0} AS VARCHAR)")
    return None


def _to_moment(source: pa.DataType, kind: pa.DataType) -> _Spelling | None:
    clock = "CAST({0} AS TIMESTAMP)"
    match source, kind:
        case (kinds.STRING, kinds.DATE):
            first = f"regexp_extract({{0}}, {_DAY}, 1) || '-01-01'"
            day = f"coalesce(nullif(regexp_extract({first}, '-?[0-9]+-[0-9]+-[0-9]+'), ''), {_QUOTED})"
            return _Spelling(f"CAST!({day} AS DATE)", can_fail=True)
        case (kinds.DATE, kinds.TIMESTAMP_NTZ) | (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ):
            return _Spelling(clock)
        case (kinds.TIMESTAMP, kinds.DATE) | (kinds.TIMESTAMP_NTZ, kinds.DATE):
            return _Spelling(f"CAST({clock} AS DATE)")
        case (kinds.DATE, kinds.TIMESTAMP):
            return _Spelling(_TO_MOMENT.replace("{0}", clock))
        case (kinds.TIMESTAMP_NTZ, kinds.TIMESTAMP):
            return _Spelling(_TO_MOMENT)
        case (_, kinds.TIMESTAMP) if source in (kinds.TINYINT, kinds.SMALLINT, kinds.INT):
            return _Spelling("make_timestamptz(CAST({0} AS BIGINT) * 1000000)")
    return None


def _constant_moment(value: Constant, kind: pa.DataType) -> Expression:
    """A text in the query as a moment, in the plain form of day and time."""
    found = _CONSTANT_MOMENT.fullmatch(str(value.value).strip(" "))
    if found is None:
        raise NotProven(f"'{value.value}' as {kinds.spark_name(kind)}")
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    year, month, day = (int(part) for part in found["day"].split("-"))
    text = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{found['part'] or ''}"
    clock = Constant(type=kinds.TIMESTAMP_NTZ, nullable=False, value=text, text=f"CAST('{text}' AS TIMESTAMP)")
    return cast(clock, kind)


def _nested(source: pa.DataType, kind: pa.DataType) -> _Spelling | None:
    """Element by element; members of structs by their place."""
    depth = kinds.duckdb_name(source).count("[]")
    if pa.types.is_list(source) and pa.types.is_list(kind):
        element = _spelled(source.value_type, kind.value_type)
        if element is None:
            return None
        template = f"list_transform({{0}}, lambda e{depth}: {element.of(f'e{depth}')})"
        return _Spelling(template, element.can_fail, element.uses)
    if pa.types.is_map(source) and pa.types.is_map(kind):
        key, item = _spelled(source.key_type, kind.key_type), _spelled(source.item_type, kind.item_type)
        if key is None or item is None or key.can_fail or source.key_type != kind.key_type:
            return None  # two keys may become one
        values = f"list_transform(map_values({{0}}), lambda e{depth}: {item.of(f'e{depth}')})"
        template = f"(CASE WHEN {{0}} IS NULL THEN NULL ELSE map(map_keys({{0}}), {values}) END)"
        return _Spelling(template, item.can_fail, item.uses)
    if pa.types.is_struct(source) and pa.types.is_struct(kind) and source.num_fields == kind.num_fields:
        members = [_spelled(a.type, b.type) for a, b in zip(source, kind, strict=True)]
        if any(member is None for member in members):
            return None
        known = [member for member in members if member is not None]
        parts = ", ".join(
            f"{_in_template(kinds.quoted(b.name))} := {member.of(_member(a.name))}"
            for a, b, member in zip(source, kind, known, strict=True)
        )
        template = f"(CASE WHEN {{0}} IS NULL THEN NULL ELSE struct_pack({parts}) END)"
        return _Spelling(template, any(each.can_fail for each in known), tuple(u for each in known for u in each.uses))
    return None


def _member(name: str) -> str:
    return "struct_extract({0}, '" + _in_template(name.replace("'", "''")) + "')"


def _in_template(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
