"""Single values as text: how Java spells floating point numbers, and which dates, times and decimals it reads.

One value in, one value out; `cast_text` applies these to the distinct values of a column. Text that can not be read
raises ValueError, which `cast_text` turns into an error that names it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import SupportsFloat

import numpy as np

_DIGITS = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?)?")
_TIME = re.compile(
    r"\s*([0-9]{1,4})\s*(?::\s*([0-9]{1,4})\s*(?::\s*([0-9]{1,4})\s*(?:\.([0-9]*)\s*)?)?)?"
    r"(?:([+-])\s*([0-9]{1,4})\s*(?::\s*([0-9]{1,4})\s*)?)?"
)
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?: (?P<h>[0-9]{1,2}):(?P<m>[0-9]{1,2}):(?P<s>[0-9]{1,2})(?:\.(?P<f>[0-9]{0,9}))?"
    r"|T(?P<th>[0-9]{1,2}):(?P<tm>[0-9]{1,2})(?::(?P<ts>[0-9]{1,2})(?:\.(?P<tf>[0-9]{0,9}))?)?)?"
)
_MILLIS_PER_DAY = 86_400_000
_NANOS = 10**9


def java_float_text(shortest: str, exact: Callable[[str], SupportsFloat] = float) -> str:
    """Java's text of a floating point value, given its shortest digits in any notation: `1.0`, `1.0E10`, `NaN`.

    `exact` reads the digits as a value of the type. Java before 19 sometimes prints one digit more than needed; later
    versions and this function do not.
    """
    if shortest in ("nan", "-nan"):
        return "NaN"
    if shortest in ("inf", "-inf"):
        return shortest.replace("inf", "Infinity")
    number = Decimal(shortest)
    if number and len(number.normalize().as_tuple().digits) == 1:
        # Java writes two digits at least, and takes the nearest two: the smallest double is 4.9E-324.
        number = Decimal(f"{float(exact(shortest)):.1e}")
    negative, digit_tuple, exponent = number.as_tuple()
    sign = "-" if negative else ""
    digits = "".join(map(str, digit_tuple))
    point = len(digits) + int(exponent)  # digits in front of the decimal point; negative: zeros behind it
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0.0"
    if not -2 <= point <= 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def parse_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    """The decimal rounded half up to the scale; None when it has more digits than the precision."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    value = Decimal(text)
    if value.adjusted() > precision:
        return None
    context = Context(prec=len(text) + 80, rounding=ROUND_HALF_UP)
    rounded = value.quantize(Decimal(1).scaleb(-scale), context=context)
    return rounded if abs(rounded) < Decimal(10) ** (precision - scale) else None


def parse_date_days(text: str) -> int:
    """Days since 1970-01-01. A time behind the date is ignored; digits alone are a count of days."""
    if _DIGITS.fullmatch(text):
        return _within(int(text), 31)
    blank = text.find(" ")
    match = _DATE.fullmatch(text[:blank] if blank > 0 else text)
    if match is None:
        raise ValueError(text)
    year, month, day = (int(part or 1) for part in match.groups())
    if year > 9999 or not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        raise ValueError(text)
    return _days(year, month, day)


def parse_time_millis(text: str) -> int:
    """Milliseconds of the day. An offset is applied; digits alone are a count of milliseconds."""
    if _DIGITS.fullmatch(text):
        millis = int(text)
    else:
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(text)
        hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
        minutes = int(hour) * 60 + int(minute or 0)
        offset = int(offset_hour or 0) * 60 + int(offset_minute or 0)
        minutes += offset if sign == "+" else -offset
        millis = (minutes * 60 + int(second or 0)) * 1000 + _fraction_millis(fraction or "")
    if not 0 <= millis < _MILLIS_PER_DAY:
        raise ValueError(text)
    return millis


def parse_timestamp(text: str, precision: int, unit_digits: int, allow_count: bool) -> int:
    """Ticks of 10**-unit_digits seconds since the epoch, cut to the precision. A day past a month's end is its last."""
    if allow_count and _DIGITS.fullmatch(text):
        nanos = int(text) * 10 ** (9 - precision)
    else:
        match = _TIMESTAMP.fullmatch(text)
        if match is None:
            raise ValueError(text)
        year, month, day = (int(match[number]) for number in (1, 2, 3))
        hour, minute, second = (int(match[name] or match["t" + name] or 0) for name in "hms")
        fraction = (match["f"] or match["tf"] or "")[:precision]
        if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
            raise ValueError(text)
        days = _days(year, month, min(day, _days_in(year, month)))
        nanos = (((days * 24 + hour) * 60 + minute) * 60 + second) * _NANOS + int(fraction.ljust(9, "0"))
    return _within(nanos // 10 ** (9 - unit_digits), 63)


def _fraction_millis(digits: str) -> int:
    """The first three digits, rounded up when the fourth is 5 or more."""
    rounded_up = len(digits) > 3 and digits[3] >= "5"
    return int(digits[:3].ljust(3, "0")) + rounded_up


def _days_in(year: int, month: int) -> int:
    return monthrange(year or 4, month)[1]  # year 0 is a leap year that the calendar module does not know


def _days(year: int, month: int, day: int) -> int:
    return int(np.datetime64(f"{year:04}-{month:02}-{day:02}", "D").astype(np.int64))


def _within(value: int, bits: int) -> int:
    if not -(1 << bits) <= value < 1 << bits:
        raise ValueError(value)
    return value
