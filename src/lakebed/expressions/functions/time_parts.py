"""Parts of days and moments, days made of parts, and moments cut to a unit."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced, null_of
from lakebed.expressions.functions.clocks import as_clock, as_date, as_moment, let, moment_of, moved
from lakebed.expressions.functions.function import Function
from lakebed.expressions.functions.patterns import constant_text
from lakebed.expressions.nodes import Expression, NotProven, call

_OF_DAYS = {
    "YEAR": "year({0})",
    "YEAROFWEEK": "isoyear({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "day({0})",
    "DAYOFWEEK": "(dayofweek({0}) + 1)",
    "DAYOFWEEK_ISO": "isodow({0})",
    "WEEKDAY": "(isodow({0}) - 1)",
    "DOY": "dayofyear({0})",
}
_OF_CLOCKS = {"HOUR": "hour({0})", "MINUTE": "minute({0})", "SECOND": "second({0})"}
_NAMES = {
    "YEAR": ("Y", "YEARS", "YR", "YRS"),
    "QUARTER": ("QTR",),
    "MONTH": ("MON", "MONS", "MONTHS"),
    "WEEK": ("W", "WEEKS"),
    "DAY": ("D", "DAYS"),
    "DAYOFWEEK": ("DOW",),
    "DAYOFWEEK_ISO": ("DOW_ISO",),
    "HOUR": ("H", "HOURS", "HR", "HRS"),
    "MINUTE": ("M", "MIN", "MINS", "MINUTES"),
    "SECOND": ("S", "SEC", "SECONDS", "SECS"),
}
_FIELDS = {other: name for name, others in _NAMES.items() for other in others}
_SECONDS = kinds.decimal(8, 6)
_UNITS = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month",
    "MON": "month", "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute",
    "SECOND": "second", "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip
_OF_DATES = ("year", "quarter", "month", "week")
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _of_day(field: str) -> Function:
    def build(value: Expression) -> Expression:
        return call(f"CAST({_OF_DAYS[field]} AS INTEGER)", as_date(value), type=kinds.INT)

    return Function(build, 1, 1)


def _of_clock(field: str) -> Function:
    def build(value: Expression) -> Expression:
        return call(f"CAST({_OF_CLOCKS[field]} AS INTEGER)", _clock_of(value), type=kinds.INT)

    return Function(build, 1, 1)


def _clock_of(value: Expression) -> Expression:
    return as_clock(value if value.type in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ) else as_moment(value))


def extract(field: Expression, value: Expression) -> Expression:
    """One part; seconds come with their fraction."""
    word = constant_text(field, "the field of EXTRACT").upper()
    word = _FIELDS.get(word, word)
    if value.type == kinds.DAY_TIME:
        return _of_span(word, value)
    if word in _OF_DAYS and word != "WEEKDAY":
        return _of_day(word).build(value)
    if word == "SECOND":
        template = "CAST(microsecond({0}) / CAST(1000000 AS DOUBLE) AS DECIMAL(8,6))"
        return call(template, _clock_of(value), type=_SECONDS)
    if word in _OF_CLOCKS:
        return _of_clock(word).build(value)
    raise NotProven(f"EXTRACT({word})")


def _of_span(word: str, value: Expression) -> Expression:
    second = 1_000_000
    parts: dict[str, tuple[str, pa.DataType]] = {
        "DAY": (f"CAST({{0}} // {86400 * second} AS INTEGER)", kinds.INT),
        "HOUR": (f"CAST({{0}} // {3600 * second} % 24 AS TINYINT)", kinds.TINYINT),
        "MINUTE": (f"CAST({{0}} // {60 * second} % 60 AS TINYINT)", kinds.TINYINT),
        "SECOND": (f"CAST(({{0}} % {60 * second}) / CAST({second} AS DOUBLE) AS DECIMAL(8,6))", _SECONDS),
    }
    if word not in parts:
        raise NotProven(f"EXTRACT({word}) of an interval")
    template, kind = parts[word]
    return call(template, value, type=kind)


def date_trunc(unit: Expression, value: Expression) -> Expression:
    """The start of the year, ..., the hour, by the clock."""
    word = _UNITS.get(constant_text(unit, "the unit of `date_trunc`").upper())
    if word is None:
        raise NotProven(f"`date_trunc` to {unit.spelled()}")
    moment = as_moment(value)
    if word == "microseconds":
        return moment
    if word in _OF_DATES:
        template = let(moment_of("l_v.c"), c=f"CAST(date_trunc('{word}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP)")
        return call(template, moment, type=kinds.TIMESTAMP)
    if word in ("second", "milliseconds"):
        size = 1_000_000 if word == "second" else 1000
        template = f"make_timestamptz(epoch_us({{0}}) - (epoch_us({{0}}) % {size} + {size}) % {size})"
        return call(template, moment, type=kinds.TIMESTAMP)
    return call(moved("{0}", f"date_trunc('{word}', CAST({{0}} AS TIMESTAMP))"), moment, type=kinds.TIMESTAMP)


def trunc(value: Expression, unit: Expression) -> Expression:
    """The first day of the year, quarter, month or week."""
    word = _UNITS.get(constant_text(unit, "the unit of `trunc`").upper())
    if word not in _OF_DATES:
        raise NotProven(f"`trunc` to {unit.spelled()}")
    return call(f"CAST(date_trunc('{word}', {{0}}) AS DATE)", as_date(value), type=kinds.DATE)


def last_day(value: Expression) -> Expression:
    """The last day of the month."""
    return call("last_day({0})", as_date(value), type=kinds.DATE)


def next_day(value: Expression, name: Expression) -> Expression:
    """The first day after it with a name."""
    word = constant_text(name, "the day of `next_day`").upper()
    found = [n for n, day in enumerate(_DAYS, 1) if word in (day, day[:3], day[:2])]
    if not found:
        raise NotProven(f"`next_day` of '{word}'")
    template = f"({{0}} + CAST(({found[0]} - isodow({{0}}) + 6) % 7 + 1 AS INTEGER))"
    return call(template, as_date(value), type=kinds.DATE, can_fail=True)


def make_date(year: Expression, month: Expression, day: Expression) -> Expression:
    """A day of its parts; there must be such a day."""
    given = [_whole(each) for each in (year, month, day)]
    return call("make_date({0}, {1}, {2})", *given, type=kinds.DATE, can_fail=True)


def _whole(value: Expression) -> Expression:
    if value.type in (kinds.TINYINT, kinds.SMALLINT, kinds.INT):
        return coerced(value, kinds.INT)
    if value.type == kinds.NULL:
        return null_of(kinds.INT)
    raise NotProven(f"a part of a day of {kinds.spark_name(value.type)}")


def _made(finish: Callable[[str], str], kind: pa.DataType) -> Function:
    def build(*parts: Expression) -> Expression:
        given = [*(_whole(each) for each in parts[:5]), _seconds(parts[5])]
        some_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(6))
        is_clock = "{3} BETWEEN 0 AND 23 AND {4} BETWEEN 0 AND 59 AND {5} BETWEEN 0 AND 60000000"
        clock = (
            f"(CASE WHEN {some_null} THEN NULL WHEN {is_clock} "
            "THEN make_timestamp({0}, {1}, {2}, 0, 0, 0) + to_seconds({3} * 3600 + {4} * 60) + to_microseconds({5}) "
            "ELSE error('there is no such time of day') END)"
        )
        return call(let(finish("l_v.c"), c=clock), *given, type=kind, can_fail=True)

    return Function(build, 6, 6)


def _seconds(value: Expression) -> Expression:
    """Microseconds of a number of seconds, which may have a fraction."""
    if kinds.is_decimal(value.type) and value.type.scale <= 6 and value.type.precision - value.type.scale <= 10:
        return call("CAST({0} * 1000000 AS BIGINT)", value, type=kinds.BIGINT)
    return call("(CAST({0} AS BIGINT) * 1000000)", _whole(value), type=kinds.BIGINT)


def _name(template: str) -> Function:
    def build(value: Expression) -> Expression:
        return call(template, as_date(value), type=kinds.STRING)

    return Function(build, 1, 1)


def _now(template: str, kind: pa.DataType) -> Function:
    def build() -> Expression:
        return call(template, type=kind, nullable=False)

    return Function(build, 0, 0)


_TODAY = _now("CAST(CAST(now() AS TIMESTAMP) AS DATE)", kinds.DATE)
_NOW = _now("now()", kinds.TIMESTAMP)

FUNCTIONS = {
    "year": _of_day("YEAR"),
    "quarter": _of_day("QUARTER"),
    "month": _of_day("MONTH"),
    "day": _of_day("DAY"),
    "dayofmonth": _of_day("DAY"),
    "dayofweek": _of_day("DAYOFWEEK"),
    "weekday": _of_day("WEEKDAY"),
    "dayofyear": _of_day("DOY"),
    "weekofyear": _of_day("WEEK"),
    "hour": _of_clock("HOUR"),
    "minute": _of_clock("MINUTE"),
    "second": _of_clock("SECOND"),
    "extract": Function(extract, 2, 2),
    "date_part": Function(extract, 2, 2),
    "datepart": Function(extract, 2, 2),
    "date_trunc": Function(date_trunc, 2, 2),
    "trunc": Function(trunc, 2, 2),
    "last_day": Function(last_day, 1, 1),
    "next_day": Function(next_day, 2, 2),
    "make_date": Function(make_date, 3, 3),
    "make_timestamp": _made(moment_of, kinds.TIMESTAMP),
    "make_timestamp_ltz": _made(moment_of, kinds.TIMESTAMP),
    "make_timestamp_ntz": _made(lambda clock: clock, kinds.TIMESTAMP_NTZ),
    "dayname": _name("strftime({0}, '%a')"),
    "monthname": _name("strftime({0}, '%b')"),
    "current_date": _TODAY,
    "curdate": _TODAY,
    "current_timestamp": _NOW,
    "now": _NOW,
    "localtimestamp": _now("CAST(now() AS TIMESTAMP)", kinds.TIMESTAMP_NTZ),
    "current_timezone": _now("current_setting('TimeZone')", kinds.STRING),
}
