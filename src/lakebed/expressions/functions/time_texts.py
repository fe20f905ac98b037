"""Days and moments as texts in a pattern, as numbers since 1970, and in other zones."""

from __future__ import annotations

import re

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import cast, coerced
from lakebed.expressions.functions.clocks import as_clock, as_date, as_moment, let, micros, moment_of, zone_of
from lakebed.expressions.functions.function import Function
from lakebed.expressions.functions.patterns import constant_text
from lakebed.expressions.nodes import Constant, Expression, NotProven, call

_WRITTEN = {
    "yyyy": "%Y", "MM": "%m", "M": "%-m", "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "mm": "%M", "ss": "%S",
    "SSS": "%g", "SSSSSS": "%f", "E": "%a", "EEE": "%a", "EEEE": "%A", "MMM": "%b", "MMMM": "%B", "DDD": "%j",
    "yy": "%y", "hh": "%I", "a": "%p",
}  # fmt: skip
_READ = {
    "yyyy": ("%Y", r"\d{{4}}"), "MM": ("%m", r"\d{{2}}"), "dd": ("%d", r"\d{{2}}"), "HH": ("%H", r"\d{{2}}"),
    "mm": ("%M", r"\d{{2}}"), "ss": ("%S", r"\d{{2}}"), "SSS": ("%g", r"\d{{3}}"), "SSSSSS": ("%f", r"\d{{6}}"),
}  # fmt: skip
_DEFAULT = Constant(type=kinds.STRING, nullable=False, value="yyyy-MM-dd HH:mm:ss", text="")
_TOKEN = re.compile(r"(?P<letter>[A-Za-z])(?P=letter)*|'(?P<quoted>[A-Za-z]+)'|[-/:. ,_]")
_SECOND = 1_000_000


def _tokens(pattern: Expression) -> list[tuple[bool, str]]:
    """The letters of a pattern, and what stands between them: (whether it is letters, text)."""
    text = constant_text(pattern, "the pattern of a time")
    tokens = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotProven(f"the pattern '{text}' of a time")
        tokens.append((found["letter"] is not None, found["quoted"] or found.group()))
        at = found.end()
    return tokens


def _written(clock: str, pattern: Expression) -> str:
    parts = []
    for is_letters, value in _tokens(pattern):
        if is_letters and value not in _WRITTEN:
            raise NotProven(f"'{value}' in the pattern of a time")
        parts.append(_WRITTEN[value] if is_letters else value)
    # Spark writes years of more than four digits with a sign, and those before the first by their era.
    is_year = f"year({clock}) BETWEEN 1 AND 9999"
    shown = f"strftime({clock}, '{''.join(parts)}')"
    return (
        f"(CASE WHEN {clock} IS NULL THEN NULL WHEN {is_year} THEN {shown} ELSE error('a year beyond 1 to 9999') END)"
    )


def date_format(value: Expression, pattern: Expression) -> Expression:
    """A moment in a pattern."""
    template = let(_written("l_v.c", pattern), c="{0}")
    return call(template, as_clock(as_moment(value)), type=kinds.STRING, can_fail=True)


def from_unixtime(seconds: Expression, pattern: Expression = _DEFAULT) -> Expression:
    """Seconds since 1970 in a pattern."""
    if not kinds.is_integral(seconds.type):
        raise NotProven(f"`from_unixtime` of {kinds.spark_name(seconds.type)}")
    moment = call(f"make_timestamptz({{0}} * {_SECOND})", coerced(seconds, kinds.BIGINT), type=kinds.TIMESTAMP)
    return date_format(moment, pattern)


def _clock_read(text: Expression, pattern: Expression, *, is_try: bool) -> str:
    """The reading that a text stands for; texts of other years and of other widths are not guessed at."""
    tokens = _tokens(pattern)
    letters = [value for is_letters, value in tokens if is_letters]
    if any(value not in _READ for value in letters) or len(set(letters)) < len(letters):
        raise NotProven(f"the pattern {pattern.spelled()} of a time to read")
    order = [value[0] for value in letters]
    if order != list("yMdHmsS")[: len(order)] or len(order) < 3:
        raise NotProven(f"the pattern {pattern.spelled()} of a time to read", "it must be a day, and a time behind it")
    parts = "".join(_READ[value][0] if is_letters else value for is_letters, value in tokens)
    shape = "".join(_READ[value][1] if is_letters else re.escape(value) for is_letters, value in tokens)
    fits = f"regexp_full_match({{0}}, '{shape}') AND NOT starts_with({{0}}, '0000')"
    if text.type != kinds.STRING:
        raise NotProven(f"a time read from {kinds.spark_name(text.type)}")
    if is_try:
        # Spark reads other years as well: the year 0, and those with a sign or more digits.
        others = shape.replace(_READ["yyyy"][1], r"(0000|[+-]\d{{4,}}|\d{{5,}})")
        beyond = f"CASE WHEN regexp_full_match({{0}}, '{others}') THEN error('a year beyond 1 to 9999') END"
        return f"(CASE WHEN {fits} THEN try_strptime({{0}}, '{parts}') ELSE {beyond} END)"
    other = "CASE WHEN {0} IS NOT NULL THEN error('a text that is no time of the pattern') END"
    return f"(CASE WHEN {fits} THEN strptime({{0}}, '{parts}') ELSE {other} END)"


def to_date(value: Expression, pattern: Expression | None = None) -> Expression:
    """A day, read in a pattern."""
    if pattern is None or value.type != kinds.STRING:
        return as_date(value)
    clock = _clock_read(value, pattern, is_try=False)
    return call(f"CAST({clock} AS DATE)", value, type=kinds.DATE, can_fail=True)


def _to_moment(*, is_try: bool) -> Function:
    def build(value: Expression, pattern: Expression | None = None) -> Expression:
        if not is_try and (pattern is None or value.type != kinds.STRING):
            return as_moment(value)
        if pattern is None:
            raise NotProven("a text tried as TIMESTAMP without a pattern")
        clock = _clock_read(value, pattern, is_try=is_try)
        template = let(moment_of("l_v.c"), c=clock)
        return call(template, value, type=kinds.TIMESTAMP, nullable=True, can_fail=True)

    return Function(build, 1, 2)


def to_timestamp_ntz(value: Expression, pattern: Expression | None = None) -> Expression:
    """A reading of a clock, read in a pattern."""
    if pattern is None or value.type != kinds.STRING:
        return as_clock(value)
    return call(_clock_read(value, pattern, is_try=False), value, type=kinds.TIMESTAMP_NTZ, can_fail=True)


# --- numbers since 1970 ----------------------------------------------------------------------------------------------


def unix_timestamp(value: Expression, pattern: Expression = _DEFAULT) -> Expression:
    """Seconds since 1970, of a reading as if it were one of UTC; the fraction is cut off, also before 1970."""
    moment = value if value.type == kinds.TIMESTAMP_NTZ else _to_moment(is_try=False).build(value, pattern)
    return call(f"({{0}} // {_SECOND})", micros(moment), type=kinds.BIGINT)


def _floored(moment: Expression, size: int) -> Expression:
    template = f"(({{0}} - ({{0}} % {size} + {size}) % {size}) // {size})"
    return call(template, micros(moment), type=kinds.BIGINT)


def _since(size: int) -> Function:
    def build(value: Expression) -> Expression:
        moment = as_moment(value)
        return micros(moment) if size == 1 else _floored(moment, size)

    return Function(build, 1, 1)


def _moment_since(size: int) -> Function:
    def build(value: Expression) -> Expression:
        if not kinds.is_integral(value.type):
            raise NotProven(f"a moment of {kinds.spark_name(value.type)}")
        template = f"make_timestamptz({{0}} * {size})"
        return call(template, coerced(value, kinds.BIGINT), type=kinds.TIMESTAMP, can_fail=True)

    return Function(build, 1, 1)


def unix_date(value: Expression) -> Expression:
    """Days since 1970."""
    return call("CAST({0} - DATE '1970-01-01' AS INTEGER)", as_date(value), type=kinds.INT)


def date_from_unix_date(value: Expression) -> Expression:
    """The day so many days since 1970."""
    if value.type not in (kinds.TINYINT, kinds.SMALLINT, kinds.INT):
        raise NotProven(f"a day of {kinds.spark_name(value.type)}")
    return call("(DATE '1970-01-01' + {0})", coerced(value, kinds.INT), type=kinds.DATE, can_fail=True)


# --- zones -----------------------------------------------------------------------------------------------------------


def from_utc_timestamp(value: Expression, zone: Expression) -> Expression:
    """The moment at which a clock in UTC shows what one in the zone shows now."""
    return _rezoned(as_moment(value), "UTC", zone_of(zone), kinds.TIMESTAMP)


def to_utc_timestamp(value: Expression, zone: Expression) -> Expression:
    """The moment at which a clock in the zone shows what one in UTC shows now."""
    return _rezoned(as_moment(value), zone_of(zone), "UTC", kinds.TIMESTAMP)


def _rezoned(moment: Expression, read: str, shown: str, kind: pa.DataType) -> Expression:
    return call(let(moment_of("l_v.c", read), c=f"timezone('{shown}', {{0}})"), moment, type=kind)


def convert_timezone(*given: Expression) -> Expression:
    """What a clock of another zone shows when one of the first zone, or the session's, shows a reading."""
    *zones, value = given
    source = zone_of(zones[0]) if len(zones) == 2 else None
    moment = let(moment_of("l_v.c", source), c="{0}")
    return call(f"timezone('{zone_of(zones[-1])}', {moment})", as_clock(value), type=kinds.TIMESTAMP_NTZ)


def date(value: Expression) -> Expression:
    """CAST to DATE."""
    return cast(value, kinds.DATE)


def timestamp(value: Expression) -> Expression:
    """CAST to TIMESTAMP."""
    return cast(value, kinds.TIMESTAMP)


FUNCTIONS = {
    "date": Function(date, 1, 1),
    "timestamp": Function(timestamp, 1, 1),
    "date_format": Function(date_format, 2, 2),
    "from_unixtime": Function(from_unixtime, 1, 2),
    "to_date": Function(to_date, 1, 2),
    "to_timestamp": _to_moment(is_try=False),
    "to_timestamp_ltz": _to_moment(is_try=False),
    "try_to_timestamp": _to_moment(is_try=True),
    "to_timestamp_ntz": Function(to_timestamp_ntz, 1, 2),
    "unix_timestamp": Function(unix_timestamp, 1, 2),
    "to_unix_timestamp": Function(unix_timestamp, 1, 2),
    "unix_seconds": _since(_SECOND),
    "unix_millis": _since(1000),
    "unix_micros": _since(1),
    "timestamp_seconds": _moment_since(_SECOND),
    "timestamp_millis": _moment_since(1000),
    "timestamp_micros": _moment_since(1),
    "unix_date": Function(unix_date, 1, 1),
    "date_from_unix_date": Function(date_from_unix_date, 1, 1),
    "from_utc_timestamp": Function(from_utc_timestamp, 2, 2),
    "to_utc_timestamp": Function(to_utc_timestamp, 2, 2),
    "convert_timezone": Function(convert_timezone, 2, 3),
}
