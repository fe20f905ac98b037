"""When a partition is from, by the texts of its values: the default forms, or a pattern of Java's DateTimeFormatter.

Options and calls are shared with other engines, so patterns are theirs: `yyyy-MM-dd HH:mm`. What does not fit the
pattern has no time, and what has no time does not expire.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Mapping
from functools import lru_cache

from lakebed.errors import InvalidArgument

_DEFAULT = re.compile(r"(\d{1,10})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9}))?)?")
_LETTERS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def partition_time(values: Mapping[str, str | None], pattern: str | None, formatter: str | None) -> dt.datetime | None:
    """The moment that the values of a partition name; None when they name none.

    `values` are in partition order. Without a pattern (`$dt $hour:00:00`) the first of them is the moment's text.
    """
    if pattern is None:
        text = next(iter(values.values()))
    else:
        text = _filled(values, pattern)
    if text is None:
        return None
    return _default_time(text) if formatter is None else _formatted_time(text, formatter)


def _filled(values: Mapping[str, str | None], pattern: str) -> str | None:
    """The pattern with `$column` replaced, longer names first; None when a value that it takes is null."""
    names = sorted(values, key=len, reverse=True)
    found = re.split("(" + "|".join(re.escape(f"${name}") for name in names) + ")", pattern)
    parts = [values[part[1:]] if part[:1] == "$" and part[1:] in values else part for part in found]
    return None if any(part is None for part in parts) else "".join(filter(None, parts))


def _default_time(text: str) -> dt.datetime | None:
    """`yyyy-MM-dd` or `yyyy-MM-dd HH:mm:ss`, where the 32nd of a month is the first of the next."""
    match = _DEFAULT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    years, month = divmod(month - 1, 12)
    try:
        first = dt.datetime(year + years, month + 1, 1)
        return first + dt.timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
    except (ValueError, OverflowError):
        return None


def _formatted_time(text: str, formatter: str) -> dt.datetime | None:
    match = _compiled(formatter).fullmatch(text)
    if match is None:
        return None
    parts = {name: int(value) for name, value in match.groupdict().items() if value is not None}
    if not {"year", "month", "day"} <= set(parts):
        return None
    year, month, day = parts["year"], parts["month"], parts["day"]
    hour, minute, second = parts.get("hour", 0), parts.get("minute", 0), parts.get("second", 0)
    is_midnight = hour == 24 and minute == second == 0
    if not (1 <= month <= 12 and 1 <= day <= 31 and (hour < 24 or is_midnight) and minute < 60 and second < 60):
        return None
    try:
        # As Java does: the 31st of a shorter month is its last day.
        last_day = calendar.monthrange(year, month)[1]
        date = dt.datetime(year, month, min(day, last_day))
        return date + dt.timedelta(hours=hour, minutes=minute, seconds=second)
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        return None


@lru_cache(maxsize=64)
def _compiled(formatter: str) -> re.Pattern[str]:
    """A regular expression for a pattern of Java's; only numbers and fixed texts, which is what partitions hold."""
    parts: list[str] = []
    seen: set[str] = set()
    position = 0
    while position < len(formatter):
        token = _TOKEN.match(formatter, position)
        if token is None:
            raise _unknown(formatter, formatter[position])
        position = token.end()
        quoted, letter = token.group(1), token.group(2)
        if quoted is not None:
            parts.append(re.escape(quoted.replace("''", "'") or "'"))
        elif letter is None:
            parts.append(re.escape(token.group()))
        elif letter == "S":
            parts.append(rf"\d{{{len(token.group())}}}")  # fractions of a second make no difference here
        elif letter in _LETTERS and _LETTERS[letter] not in seen and len(token.group()) != 3:
            seen.add(_LETTERS[letter])
            parts.append(_digits(_LETTERS[letter], len(token.group())))
        else:
            raise _unknown(formatter, token.group())
    return re.compile("".join(parts), re.ASCII)


def _digits(name: str, width: int) -> str:
    if name == "year":
        if width == 2:
            raise _unknown("yy", "yy")
        return rf"(?P<year>\d{{{width},}})" if width == 1 else rf"(?P<year>\d{{{width}}})"
    return rf"(?P<{name}>\d{{1,2}})" if width == 1 else rf"(?P<{name}>\d{{{width}}})"


def check_formatter(formatter: str) -> None:
    """Raises on a pattern that is not understood."""
    _compiled(formatter)


def _unknown(formatter: str, part: str) -> InvalidArgument:
    return InvalidArgument(
        f"`{part}` in the time format `{formatter}` is not understood",
        hint="use yyyy, MM, dd, HH, mm, ss, signs between them, and 'quoted text'",
    )
