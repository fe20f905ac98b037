"""Points in time as text by a pattern of Java's, for whole columns: `yyyy-MM-dd HH:mm:ss.SSS`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidArgument

_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS: Final = tuple(calendar.month_name[1:])
_DAYS: Final = tuple(calendar.day_name)

Part = Callable[[pa.Array], pa.Array | str]
"""One part of the text, from nanosecond timestamps."""


@cache
def parts_of(pattern: str) -> tuple[Part, ...]:
    """What a pattern is made of; a letter that is not known is an error."""
    parts: list[Part] = []
    end = 0
    for found in _TOKEN.finditer(pattern):
        if found.start() != end:
            break
        end = found.end()
        token = found.group(0)
        if token.startswith("'"):
            text = "'" if token == "''" else found.group(1).replace("''", "'")
            parts.append(_literal(text))
        elif token[0].isalpha():
            parts.append(_letter(token, pattern))
        else:
            parts.append(_literal(token))
    if end != len(pattern) or not pattern:
        raise InvalidArgument(f"date pattern {pattern!r} is not understood", hint="write it like `yyyy-MM-dd HH:mm`")
    return tuple(parts)


def format_times(times: pa.Array, pattern: str) -> pa.Array:
    """The times as text; NULL stays NULL."""
    parts = [part(times) for part in parts_of(pattern)]
    texts = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    joined = pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]
    if isinstance(joined, pa.Scalar):
        joined = pa.array([joined.as_py()] * len(times), pa.string())
    return pc.if_else(pc.is_valid(times), joined, pa.scalar(None, pa.string()))


def _literal(text: str) -> Part:
    return lambda _: text


def _letter(token: str, pattern: str) -> Part:
    letter, width = token[0], len(token)
    if letter == "S":
        return lambda times: _fraction(times, width)
    if letter == "M" and width >= 3:
        names = [name[:3] if width == 3 else name for name in _MONTHS]
        return lambda times: pa.array(names).take(pc.subtract(pc.month(times), 1))
    if letter == "E":
        names = [name[:3] if width <= 3 else name for name in _DAYS]
        return lambda times: pa.array(names).take(pc.day_of_week(times))
    if letter == "a":
        return lambda times: pc.if_else(pc.less(pc.hour(times), 12), "AM", "PM")
    if letter in "yu" and width == 2:
        return lambda times: _padded(_remainder(pc.year(times), 100), 2)
    number = _NUMBERS.get(letter)
    if number is None:
        raise InvalidArgument(
            f"date pattern {pattern!r} has the letter `{letter}`",
            hint="use y, M, d, D, E, H, h, m, s, S and a, signs between them, and 'quoted text'",
        )
    return lambda times: _padded(number(times), width)


_NUMBERS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "y": pc.year,
    "u": pc.year,
    "M": pc.month,
    "d": pc.day,
    "D": pc.day_of_year,
    "H": pc.hour,
    "h": lambda times: pc.add(_remainder(pc.add(pc.hour(times), 11), 12), 1),
    "m": pc.minute,
    "s": pc.second,
}


def _remainder(values: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width, "0")


def _fraction(times: pa.Array, width: int) -> pa.Array:
    """The first digits behind the second."""
    nanos = pc.add(
        pc.add(
            pc.multiply(pc.millisecond(times).cast(pa.int64()), 1_000_000),
            pc.multiply(pc.microsecond(times).cast(pa.int64()), 1_000),
        ),
        pc.nanosecond(times).cast(pa.int64()),
    )
    digits = pc.utf8_lpad(nanos.cast(pa.string()), 9, "0")
    return pc.utf8_slice_codeunits(pc.utf8_rpad(digits, max(width, 9), "0"), 0, width)


__all__ = ["format_times", "parts_of"]
