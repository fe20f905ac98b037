"""Arithmetic of days and moments: intervals, what is added, and what lies between two."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from decimal import Decimal

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced, constant_day, null_of
from lakebed.expressions.functions.clocks import as_clock, as_date, as_moment, let, micros, moment_of, moved
from lakebed.expressions.functions.function import Function
from lakebed.expressions.functions.patterns import constant_text
from lakebed.expressions.nodes import Constant, Expression, NotProven, call
from lakebed.records import dataclass

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MICROS = {
    "WEEK": 7 * _DAY,
    "DAY": _DAY,
    "HOUR": 3600 * _SECOND,
    "MINUTE": 60 * _SECOND,
    "SECOND": _SECOND,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_SMALL = (kinds.TINYINT, kinds.SMALLINT, kinds.INT)


@dataclass(frozen=True, slots=True)
class Days:
    """The value of an interval that counts whole days and is written so: added to a DATE it gives a DATE."""

    count: int


# --- intervals -------------------------------------------------------------------------------------------------------


def interval(number: Expression, unit: Expression) -> Constant:
    """INTERVAL 3 MONTHS, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 02:03:04' DAY TO SECOND."""
    text = constant_text(number, "an interval").strip()
    word = constant_text(unit, "the unit of an interval").upper()
    if " TO " in word:
        return _span(text, word)
    word = word.removesuffix("S")
    if re.fullmatch(r"[+-]?\d{1,9}", text) and word in ("YEAR", "MONTH"):
        return _months(int(text) * _MONTHS[word])
    if re.fullmatch(r"[+-]?\d{1,9}", text) and word in _MICROS:
        return _micros(int(text) * _MICROS[word], is_days=word in ("WEEK", "DAY"))
    if re.fullmatch(r"[+-]?\d{1,9}\.\d{1,6}", text) and word == "SECOND":
        return _micros(int(Decimal(text) * _SECOND))
    raise NotProven(f"INTERVAL '{text}' {word}")


def _span(text: str, word: str) -> Constant:
    found = re.fullmatch(r"([+-]?)(\d{1,4})-(\d{1,2})", text)
    if word == "YEAR TO MONTH" and found and int(found[3]) < 12:
        months = int(found[2]) * 12 + int(found[3])
        return _months(-months if found[1] == "-" else months)
    found = re.fullmatch(r"([+-]?)(\d{1,6}) (\d{1,2}):(\d\d):(\d\d)(\.\d{1,6})?", text)
    if word == "DAY TO SECOND" and found and int(found[3]) < 24 and int(found[4]) < 60 and int(found[5]) < 60:
        seconds = ((int(found[2]) * 24 + int(found[3])) * 60 + int(found[4])) * 60 + int(found[5])
        value = seconds * _SECOND + int(Decimal(found[6] or "0") * _SECOND)
        return _micros(-value if found[1] == "-" else value)
    raise NotProven(f"INTERVAL '{text}' {word}")


def _months(count: int) -> Constant:
    return Constant(type=kinds.YEAR_MONTH, nullable=False, value=count, text=f"CAST({count} AS INTEGER)")


def _micros(count: int, *, is_days: bool = False) -> Constant:
    value = Days(count // _DAY) if is_days else count
    return Constant(type=kinds.DAY_TIME, nullable=False, value=value, text=f"CAST({count} AS BIGINT)")


def negative_interval(value: Expression) -> Expression:
    """The interval in the other direction."""
    if isinstance(value, Constant) and isinstance(value.value, Days):
        return _micros(-value.value.count * _DAY, is_days=True)
    return call("(-{0})", value, type=value.type, can_fail=True)


# --- plus and minus --------------------------------------------------------------------------------------------------


def plus_time(left: Expression, right: Expression) -> Expression | None:
    """`+` if one side is a day, a moment or an interval; None if it is not."""
    moments = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
    intervals = (kinds.DAY_TIME, kinds.YEAR_MONTH)
    if left.type in intervals and left.type == right.type:
        return call("({0} + {1})", left, right, type=left.type, can_fail=True)
    if right.type in moments and left.type not in moments:
        left, right = right, left
    if left.type == kinds.DATE and right.type in _SMALL:
        return date_add(left, right)
    if left.type in moments and right.type in intervals:
        return _add_months(left, right) if right.type == kinds.YEAR_MONTH else _add_micros(left, right)
    if {left.type, right.type} & {*moments, *intervals}:
        raise NotProven(f"{kinds.spark_name(left.type)} + {kinds.spark_name(right.type)}")
    return None


def minus_time(left: Expression, right: Expression) -> Expression | None:
    """`-` if one side is a day, a moment or an interval; None if it is not."""
    moments = (kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
    intervals = (kinds.DAY_TIME, kinds.YEAR_MONTH)
    if left.type in intervals and left.type == right.type:
        return call("({0} - {1})", left, right, type=left.type, can_fail=True)
    if left.type == kinds.DATE and right.type in _SMALL:
        return date_sub(left, right)
    if left.type in moments and right.type in intervals:
        return plus_time(left, negative_interval(right))
    if left.type == right.type == kinds.DATE:
        return call(f"(CAST({{0}} - {{1}} AS BIGINT) * {_DAY})", left, right, type=kinds.DAY_TIME, can_fail=True)
    if left.type in moments and right.type in moments:
        # Clocks are compared, not moments: a day on which clocks change has 24 hours, too.
        if kinds.TIMESTAMP in (left.type, right.type):
            left, right = (as_moment(each) if each.type == kinds.DATE else each for each in (left, right))
        return call("({0} - {1})", micros(as_clock(left)), micros(as_clock(right)), type=kinds.DAY_TIME, can_fail=True)
    if {left.type, right.type} & {*moments, *intervals}:
        raise NotProven(f"{kinds.spark_name(left.type)} - {kinds.spark_name(right.type)}")
    return None


def _months_later(day: dt.date, months: int) -> dt.date | None:
    """The same day of another month, or its last; None if that is no year that both engines have."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return dt.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _days_later(day: dt.date, days: int) -> dt.date | None:
    try:
        return day + dt.timedelta(days)
    except OverflowError:
        return None


def _known_day(value: Expression) -> dt.date | None:
    return value.value if isinstance(value, Constant) and isinstance(value.value, dt.date) else None


def _add_months(value: Expression, months: Expression) -> Expression:
    day = _known_day(value)
    if day is not None and isinstance(months, Constant) and isinstance(months.value, int):
        later = _months_later(day, months.value)
        if later is not None:
            return constant_day(later)
    if value.type == kinds.DATE:
        return call("CAST({0} + to_months({1}) AS DATE)", value, months, type=kinds.DATE, can_fail=True)
    if value.type == kinds.TIMESTAMP_NTZ:
        return call("({0} + to_months({1}))", value, months, type=kinds.TIMESTAMP_NTZ, can_fail=True)
    template = moved("{0}", "CAST({0} AS TIMESTAMP) + to_months({1})")
    return call(template, as_moment(value), months, type=kinds.TIMESTAMP, can_fail=True)


def _add_micros(value: Expression, span: Expression) -> Expression:
    """Whole days move the clock, the rest goes by."""
    if value.type == kinds.DATE:
        if not isinstance(span, Constant):
            raise NotProven("DATE and an interval that is no constant")
        if isinstance(span.value, Days):
            known_day = _known_day(value)
            later = None if known_day is None else _days_later(known_day, span.value.count)
            if later is not None:
                return constant_day(later)
            return call(f"({{0}} + {span.value.count})", value, type=kinds.DATE, can_fail=True)
        value = as_moment(value)
    known = span.value if isinstance(span, Constant) else None
    if value.type == kinds.TIMESTAMP_NTZ or (isinstance(known, int) and abs(known) < _DAY):
        return _add_elapsed(value, span)
    day = moved("{0}", f"CAST({{0}} AS TIMESTAMP) + to_days(CAST({{1}} // {_DAY} AS INTEGER))")
    return call(f"({day} + to_microseconds({{1}} % {_DAY}))", value, span, type=kinds.TIMESTAMP, can_fail=True)


def _add_elapsed(value: Expression, span: Expression) -> Expression:
    return call("({0} + to_microseconds({1}))", value, span, type=value.type, can_fail=True)


def _count(value: Expression, what: str) -> Expression:
    if value.type in _SMALL:
        return coerced(value, kinds.INT)
    if value.type == kinds.NULL:
        return null_of(kinds.INT)
    raise NotProven(f"`{what}` of {kinds.spark_name(value.type)}")


def date_add(*given: Expression) -> Expression:
    """Days later; with a unit in front it is `timestampadd`."""
    if len(given) == 3:
        return timestampadd(*given)
    day, days = given
    return call("({0} + {1})", as_date(day), _count(days, "date_add"), type=kinds.DATE, can_fail=True)


def date_sub(day: Expression, days: Expression) -> Expression:
    """Days earlier."""
    return call("({0} - {1})", as_date(day), _count(days, "date_sub"), type=kinds.DATE, can_fail=True)


def add_months(day: Expression, months: Expression) -> Expression:
    """Months later, on the same day or the last of the month."""
    return _add_months(as_date(day), _count(months, "add_months"))


def timestampadd(unit: Expression, count: Expression, value: Expression) -> Expression:
    """Some units later."""
    word = _unit(unit)
    value = value if value.type == kinds.TIMESTAMP_NTZ else as_moment(value)
    given = _count(count, "timestampadd")
    # Nothing is multiplied where there is nothing to add it to: it could fail there.
    size = _MONTHS.get(word) or _MICROS[word]
    product = f"(CASE WHEN {{1}} IS NOT NULL THEN CAST({{0}} AS BIGINT) * {size} END)"
    if word in _MONTHS:
        return _add_months(value, call(f"CAST({product} AS INTEGER)", given, value, type=kinds.YEAR_MONTH))
    span = call(product, given, value, type=kinds.DAY_TIME, can_fail=True)
    return _add_micros(value, span) if size >= _DAY else _add_elapsed(value, span)


def _unit(unit: Expression) -> str:
    word = constant_text(unit, "a unit of time").upper()
    word = "DAY" if word == "DAYOFYEAR" else word
    if word not in _MONTHS and word not in _MICROS:
        raise NotProven(f"the unit {word}")
    return word


# --- between two -----------------------------------------------------------------------------------------------------


def datediff(*given: Expression) -> Expression:
    """Days from the second to the first; with a unit in front it is `timestampdiff`."""
    if len(given) == 3:
        return timestampdiff(*given)
    end, start = given
    return call("CAST({0} - {1} AS INTEGER)", as_date(end), as_date(start), type=kinds.INT)


def timestampdiff(unit: Expression, start: Expression, end: Expression) -> Expression:
    """Whole units from one to the other, by the clock."""
    word = _unit(unit)
    start, end = as_clock(as_moment(start)), as_clock(as_moment(end))
    if word in _MICROS:
        template = f"(({{1}} - {{0}}) // {_MICROS[word]})"
        return call(template, micros(start), micros(end), type=kinds.BIGINT, can_fail=True)
    borrowed = (
        "l_v.e - CASE WHEN l_v.e > l_v.s AND CAST({1} AS TIME) < CAST({0} AS TIME) THEN 1 "
        "WHEN l_v.e < l_v.s AND CAST({1} AS TIME) > CAST({0} AS TIME) THEN -1 ELSE 0 END"
    )
    last = let(borrowed, s="CAST({0} AS DATE)", e="CAST({1} AS DATE)")

    def packed(day: str) -> str:
        return f"((year({day}) * 12 + month({day})) * 32 + day({day}))"

    months = let(f"(({packed('l_v.e')} - {packed('l_v.s')}) // 32)", s="CAST({0} AS DATE)", e=last)
    return call(f"CAST({months} // {_MONTHS[word]} AS BIGINT)", start, end, type=kinds.BIGINT)


def months_between(end: Expression, start: Expression, rounded: Expression | None = None) -> Expression:
    """Months as a number; a month has 31 days where days do not match."""
    if rounded is None:
        is_rounded = True
    elif isinstance(rounded, Constant) and isinstance(rounded.value, bool):
        is_rounded = rounded.value
    else:
        raise NotProven("`months_between` with a third argument that is no constant")
    months = "((year(l_v.a) - year(l_v.b)) * 12 + month(l_v.a) - month(l_v.b))"
    is_even = (
        "day(l_v.a) = day(l_v.b) OR (last_day(l_v.a) = CAST(l_v.a AS DATE) AND last_day(l_v.b) = CAST(l_v.b AS DATE))"
    )
    seconds = "((day(l_v.a) - day(l_v.b)) * 86400 + l_v.p - l_v.q)"
    exact = f"({months} + {seconds} / CAST(2678400 AS DOUBLE))"
    whole = f"(floor({exact} * 1e8 + 0.5) / 1e8)" if is_rounded else exact

    def elapsed(place: str) -> str:
        """Seconds since midnight, as they went by."""
        midnight = moment_of(f"date_trunc('day', CAST({place} AS TIMESTAMP))")
        return f"((epoch_us({place}) - epoch_us({midnight})) // {_SECOND})"

    template = let(
        f"CASE WHEN {is_even} THEN CAST({months} AS DOUBLE) ELSE {whole} END",
        a="CAST({0} AS TIMESTAMP)",
        b="CAST({1} AS TIMESTAMP)",
        p=elapsed("{0}"),
        q=elapsed("{1}"),
    )
    return call(template, as_moment(end), as_moment(start), type=kinds.DOUBLE)


FUNCTIONS = {
    "interval": Function(interval, 2, 2),
    "date_add": Function(date_add, 2, 3),
    "dateadd": Function(date_add, 2, 3),
    "date_sub": Function(date_sub, 2, 2),
    "add_months": Function(add_months, 2, 2),
    "timestampadd": Function(timestampadd, 3, 3),
    "datediff": Function(datediff, 2, 3),
    "date_diff": Function(datediff, 2, 3),
    "timestampdiff": Function(timestampdiff, 3, 3),
    "months_between": Function(months_between, 2, 3),
}
