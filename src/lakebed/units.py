"""Sizes and durations as people write them in options (`128 mb`, `1 h`), and back.

The spellings are those that Paimon reads, because option texts are stored in the table for every engine to read:
a whole number, then a unit in any case; a bare number is bytes, or milliseconds. Fractions are refused for the same
reason. Everything inside lakebed counts in bytes and milliseconds; this file must stay the only place that converts.
"""

from __future__ import annotations

import re
from typing import Final

from lakebed.errors import InvalidOption

__all__ = [
    "DAY_MS",
    "GIB",
    "HOUR_MS",
    "KIB",
    "LONG_MAX",
    "MIB",
    "MINUTE_MS",
    "SECOND_MS",
    "TIB",
    "format_duration",
    "format_size",
    "parse_duration",
    "parse_size",
    "size_text",
]

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
TIB: Final = 1 << 40

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

LONG_MAX: Final = 2**63 - 1
"""The largest number other engines can hold; as a size it means without limit."""

_NANOS_PER_MS: Final = 1_000_000

_BYTES_PER_UNIT: Final = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), KIB),
    **dict.fromkeys(("m", "mb", "mebibytes"), MIB),
    **dict.fromkeys(("g", "gb", "gibibytes"), GIB),
    **dict.fromkeys(("t", "tb", "tebibytes"), TIB),
}

# Both code points that look like a micro sign are in use, and `us` is what keyboards offer.
_NANOS_PER_UNIT: Final = {
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("us", "µs", "μs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), _NANOS_PER_MS),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND_MS * _NANOS_PER_MS),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE_MS * _NANOS_PER_MS),
    **dict.fromkeys(("h", "hour", "hours"), HOUR_MS * _NANOS_PER_MS),
    **dict.fromkeys(("d", "day", "days"), DAY_MS * _NANOS_PER_MS),
}

_QUANTITY: Final = re.compile(r"([0-9]+)\s*(\D*)")


def parse_size(text: str) -> int:
    """Bytes of a size such as `128 mb`; units are powers of 1024."""
    hint = "write a whole number and a unit (b, kb, mb, gb, tb), such as `128 mb`"
    return _parse(text, "size", _BYTES_PER_UNIT, hint)


def parse_duration(text: str) -> int:
    """Milliseconds of a duration such as `1 h`; what is finer than a millisecond is cut off, as other engines do."""
    hint = "write a whole number and a unit (ms, s, min, h, d), such as `10 min`"
    return _parse(text, "duration", _NANOS_PER_UNIT, hint) // _NANOS_PER_MS


def format_size(size_bytes: int) -> str:
    """The shortest exact spelling of a size: 134217728 is `128 mb`."""
    for unit, factor in (("tb", TIB), ("gb", GIB), ("mb", MIB), ("kb", KIB)):
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} b"


def format_duration(duration_ms: int) -> str:
    """The shortest exact spelling of a duration: 3600000 is `1 h`."""
    for unit, factor in (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS)):
        if duration_ms and duration_ms % factor == 0:
            return f"{duration_ms // factor} {unit}"
    return f"{duration_ms} ms"


def _parse(text: str, what: str, factors: dict[str, int], hint: str) -> int:
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidOption(f"`{text}` is not a {what}", hint=hint)
    number, unit = match.groups()
    if unit not in factors:
        raise InvalidOption(f"`{text}` is not a {what}: there is no unit `{unit}`", hint=hint)
    # Twenty digits are more than 64 bits hold; checking first keeps Python's own limit on digits out of sight.
    if len(number) > 19 or int(number) * factors[unit] > _limit(what):
        raise InvalidOption(f"`{text}` is too large for a {what}", hint="stay below 2^63 bytes or milliseconds")
    return int(number) * factors[unit]


def _limit(what: str) -> int:
    return LONG_MAX if what == "size" else LONG_MAX * _NANOS_PER_MS


_SHOWN_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def size_text(size_bytes: float) -> str:
    """A number of bytes for people, in the unit that suits it."""
    size, unit = float(size_bytes), 0
    while size >= 1000 and unit + 1 < len(_SHOWN_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_SHOWN_UNITS[unit]}"
