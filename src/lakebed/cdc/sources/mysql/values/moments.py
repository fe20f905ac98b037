"""Dates and times of MySQL, which may be no real dates: `0000-00-00`, `2024-02-00`, a TIME of 838 hours.

Values are held as calendar numbers in arrays until it is known what they are to become: a date of the lake has no
zeros, a text keeps them. Both ways into this form (the binary log, texts of a query) are here, and both ways out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.sources.mysql.values.gather import Array, Bytes, with_nulls
from lakebed.errors import InvalidData
from lakebed.records import dataclass

_OFFSET: Final = re.compile(r"([-+])(\d\d):(\d\d)")
_DAY_US: Final = 86_400_000_000
_DAYS_IN_MONTH: Final = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0, 0, 0])


@dataclass(frozen=True, slots=True)
class Dates:
    """Calendar days with a time of day. Entries that are not valid may hold anything."""

    years: Array
    months: Array
    days: Array
    micros: Array
    valid: Array

    def real(self) -> Array:
        """Which of the valid ones are days of the calendar."""
        fits = (self.months > 0) & (self.days > 0) & (self.days <= _DAYS_IN_MONTH[self.months & 15])
        leap = (self.years % 4 == 0) & ((self.years % 100 != 0) | (self.years % 400 == 0))
        real: Array = fits & ((self.months != 2) | (self.days < 29) | leap)
        return real

    def epoch_days(self) -> Array:
        """Days since 1970-01-01, of real days."""
        months = (self.years - 1970) * 12 + np.maximum(self.months, 1) - 1
        return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + self.days - 1


def read_dates(data: Bytes, places: Array, valid: Array) -> Dates:
    """DATE: three bytes with year, month and day."""
    packed = data.little(places, 3).astype(np.int64)
    return Dates(packed >> 9, packed >> 5 & 15, packed & 31, np.zeros_like(packed), valid)


def read_datetimes(data: Bytes, places: Array, valid: Array, digits: int) -> Dates:
    """DATETIME(n): five bytes, greatest first, and the fraction."""
    packed = data.big(places, 5).astype(np.int64) - 0x8000000000
    months = packed >> 22
    seconds = (packed >> 12 & 31) * 3600 + (packed >> 6 & 63) * 60 + (packed & 63)
    micros = seconds * 1_000_000 + _fractions(data, places + 5, digits)
    return Dates(months // 13, months % 13, packed >> 17 & 31, micros, valid)


def read_old_datetimes(data: Bytes, places: Array, valid: Array) -> Dates:
    """DATETIME of tables from before MySQL 5.6: the number YYYYMMDDhhmmss."""
    packed = data.little(places, 8).astype(np.int64)
    day, clock = packed // 1_000_000, packed % 1_000_000
    seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    return Dates(day // 10_000, day // 100 % 100, day % 100, seconds * 1_000_000, valid)


def read_timestamps(data: Bytes, places: Array, valid: Array, digits: int, zone: str) -> Dates:
    """TIMESTAMP(n): seconds of UTC, greatest byte first, and the fraction; shown as the clock of a time zone."""
    return _of_epoch(data.big(places, 4).astype(np.int64), _fractions(data, places + 4, digits), valid, zone)


def read_old_timestamps(data: Bytes, places: Array, valid: Array, zone: str) -> Dates:
    """TIMESTAMP of tables from before MySQL 5.6: seconds of UTC, least byte first."""
    seconds = data.little(places, 4).astype(np.int64)
    return _of_epoch(seconds, np.zeros_like(seconds), valid, zone)


def _of_epoch(seconds: Array, micros: Array, valid: Array, zone: str) -> Dates:
    zero = (seconds == 0) & (micros == 0)  # the server's way to write 0000-00-00 00:00:00
    total = seconds * 1_000_000 + micros
    local = _clock_of(total, zone)
    days = local // _DAY_US
    calendar = days.astype("datetime64[D]")
    months = calendar.astype("datetime64[M]")
    month_numbers = months.astype(np.int64)
    years, in_year = np.divmod(month_numbers, 12)
    day = (calendar - months.astype("datetime64[D]")).astype(np.int64) + 1
    return Dates(
        np.where(zero, 0, years + 1970),
        np.where(zero, 0, in_year + 1),
        np.where(zero, 0, day),
        np.where(zero, 0, local - days * _DAY_US),
        valid,
    )


def moment_text(epoch_s: int, micros: int, digits: int, zone: str) -> str | None:
    """A moment as the clock of a time zone shows it, with so many digits of the second; None for unknown zones."""
    offset = _OFFSET.fullmatch(zone)
    if offset is not None:
        shift = (int(offset[2]) * 60 + int(offset[3])) * (-60 if offset[1] == "-" else 60)
        epoch_s, zone = epoch_s + shift, "UTC"
    try:
        shown = _of_epoch(np.array([epoch_s]), np.array([micros]), np.array([True]), zone)
    except pa.ArrowException:
        return None
    text: str = date_texts(shown, digits)[0].as_py()
    return text


def in_zone(dates: Dates, zone: str) -> Dates:
    """What the clock of a time zone shows at these times of UTC."""
    if zone == "UTC":
        return dates
    real = dates.valid & dates.real()
    total = np.where(real, dates.epoch_days() * _DAY_US + dates.micros, 0)
    return _of_epoch(*np.divmod(total, 1_000_000), dates.valid, zone)


def _clock_of(micros: Array, zone: str) -> Array:
    if zone == "UTC":
        return micros
    local = pc.local_timestamp(pa.array(micros).cast(pa.timestamp("us", tz=zone)))
    return np.asarray(local.cast(pa.int64()))


def _fractions(data: Bytes, places: Array, digits: int) -> Array:
    size = (digits + 1) // 2
    if size == 0:
        return np.zeros(len(places), np.int64)
    fractions: Array = data.big(places, size).astype(np.int64) * 10 ** (6 - 2 * size)
    return fractions


def read_times(data: Bytes, places: Array, digits: int) -> Array:
    """TIME(n): signed microseconds. Negative values are those of positive ones, subtracted from zero as a whole."""
    size = (digits + 1) // 2
    packed = data.big(places, 3 + size).astype(np.int64) - (1 << 8 * (3 + size) - 1)
    size_of_fraction = np.abs(packed)
    clock, fraction = size_of_fraction >> 8 * size, size_of_fraction & ((1 << 8 * size) - 1)
    seconds = (clock >> 12 & 1023) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    micros: Array = np.sign(packed) * (seconds * 1_000_000 + fraction * 10 ** (6 - 2 * size))
    return micros


def read_old_times(data: Bytes, places: Array) -> Array:
    """TIME of tables from before MySQL 5.6: the number hhmmss."""
    packed = data.signed(places, 3)
    clock = np.abs(packed)
    seconds: Array = np.sign(packed) * (clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100)
    return seconds * 1_000_000


def dates_of_texts(data: Bytes, places: Array, lengths: Array, valid: Array) -> Dates:
    """`YYYY-MM-DD[ hh:mm:ss[.ffffff]]`, as a query spells it."""
    places = np.where(valid, places, 0)
    lengths = np.where(valid, lengths, 0)
    number = _digits(data, places)
    micros = np.zeros(len(places), np.int64)
    if (lengths > 10).any():
        micros = ((number(11, 2) * 60 + number(14, 2)) * 60 + number(17, 2)) * 1_000_000
        micros = np.where(lengths > 10, micros, 0)
    micros = micros + _fraction_of_text(data, places + 20, lengths - 20)
    return Dates(number(0, 4), number(5, 2), number(8, 2), micros, valid)


def times_of_texts(data: Bytes, places: Array, lengths: Array, valid: Array) -> Array:
    """`[-]hh:mm:ss[.ffffff]` with two or three digits of hours, as signed microseconds."""
    places = np.where(valid, places, 0)
    lengths = np.where(valid, lengths, 0)
    negative = data.data[places] == ord("-")
    places, lengths = places + negative, lengths - negative
    long = data.data[places + 2] != ord(":")
    number = _digits(data, places)
    hours = np.where(long, number(0, 3), number(0, 2))
    rest = places + 3 + long
    number = _digits(data, rest)
    micros = ((hours * 60 + number(0, 2)) * 60 + number(3, 2)) * 1_000_000
    micros = micros + _fraction_of_text(data, rest + 6, lengths - (rest + 6 - places))
    return np.where(negative, -micros, micros)


def _digits(data: Bytes, places: Array) -> Callable[[int, int], Array]:
    def number(offset: int, count: int) -> Array:
        total = np.zeros(len(places), np.int64)
        for i in range(count):
            total = total * 10 + (data.data[np.minimum(places + offset + i, data.size)].astype(np.int64) - ord("0"))
        return total

    return number


def _fraction_of_text(data: Bytes, places: Array, counts: Array) -> Array:
    total = np.zeros(len(places), np.int64)
    for i in range(max(0, int(counts.max(initial=0)))):
        digit = data.data[np.minimum(places + i, data.size)].astype(np.int64) - ord("0")
        total = total + np.where(i < counts, digit * 10 ** (5 - i), 0)
    return total


def to_days(dates: Dates, column: str, nullable: bool) -> pa.Array:
    """DATE. What is no day of the calendar becomes NULL, or an error where there may be none."""
    valid = _drop_unreal(dates, column, nullable)
    return with_nulls(np.where(valid, dates.epoch_days(), 0).astype(np.int32), valid).cast(pa.date32())


def to_timestamps(dates: Dates, column: str, nullable: bool, kind: pa.DataType) -> pa.Array:
    """TIMESTAMP(n)."""
    valid = _drop_unreal(dates, column, nullable)
    micros = np.where(valid, dates.epoch_days() * _DAY_US + dates.micros, 0)
    unit = {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]
    return with_nulls(micros // unit, valid).cast(kind)


def _drop_unreal(dates: Dates, column: str, nullable: bool) -> Array:
    real = dates.real()
    unreal = dates.valid & ~real
    if unreal.any() and not nullable:
        example = date_texts(dates, 0).filter(pa.array(unreal))[0].as_py()
        raise InvalidData(
            f"column `{column}` is NOT NULL and holds `{example}`, which is no day of the calendar",
            hint="correct the value in the source, or use the type mapping `to-nullable` (it becomes NULL) or "
            "`to-string` (it stays as it is)",
        )
    return dates.valid & real


def to_times(micros: Array, valid: Array, column: str) -> pa.Array:
    """TIME: the lake has times of one day, in milliseconds."""
    outside = valid & ((micros < 0) | (micros >= _DAY_US))
    if outside.any():
        example = time_texts(micros, valid, 0).filter(pa.array(outside))[0].as_py()
        raise InvalidData(
            f"column `{column}` holds the time `{example}`, and a TIME of the lake lies within one day",
            hint="use the type mapping `to-string`, or leave the table out",
        )
    return with_nulls((np.where(valid, micros, 0) // 1000).astype(np.int32), valid).cast(pa.time32("ms"))


def date_texts(dates: Dates, digits: int | None) -> pa.Array:
    """The server's own spelling: of dates alone without `digits`, else with the time of day and so many digits."""
    parts = [_padded(dates.years, 4), "-", _padded(dates.months, 2), "-", _padded(dates.days, 2)]
    if digits is not None:
        parts += [" ", *_clock_parts(dates.micros, 2, digits)]
    return _null_unless(dates.valid, _joined(parts))


def time_texts(micros: Array, valid: Array, digits: int) -> pa.Array:
    """The server's own spelling of a TIME."""
    sign = pc.if_else(pa.array(micros < 0), "-", "")
    return _null_unless(valid, _joined([sign, *_clock_parts(np.abs(micros), 2, digits)]))


def _clock_parts(micros: Array, width: int, digits: int) -> list[pa.Array | str]:
    seconds = micros // 1_000_000
    parts = [_padded(seconds // 3600, width), ":", _padded(seconds // 60 % 60, 2), ":", _padded(seconds % 60, 2)]
    return [*parts, ".", _padded(micros % 1_000_000 // 10 ** (6 - digits), digits)] if digits else parts


def _padded(numbers: Array, width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(np.maximum(numbers, 0)).cast(pa.string()), width, "0")


def _joined(parts: list[pa.Array | str]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _null_unless(valid: Array, texts: pa.Array) -> pa.Array:
    return texts if valid.all() else pc.if_else(pa.array(valid), texts, pa.scalar(None, pa.string()))


# --- MySQL's packed DECIMAL: groups of nine digits in four bytes each, greatest first, negative numbers inverted --
#
# A number of up to 65 digits becomes a 128 bit or 256 bit integer of Arrow: groups are joined with numpy arithmetic
# on 32 bit limbs, all rows at once.


_BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_GROUP: Final = 9


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a value."""
    return sum(_BYTES_OF_DIGITS[digits] for digits in _groups(precision, scale))


def _groups(precision: int, scale: int) -> list[int]:
    """How many digits each group has, in the order of the bytes."""
    whole = precision - scale
    first = [whole % _GROUP] if whole % _GROUP else []
    last = [scale % _GROUP] if scale % _GROUP else []
    return [*first, *[_GROUP] * (whole // _GROUP), *[_GROUP] * (scale // _GROUP), *last]


def read_decimals(data: Bytes, places: Array, valid: Array, precision: int, scale: int) -> pa.Array:
    """Arrow decimals of the column's precision and scale."""
    negative = (data.data[places] & 0x80) == 0
    limbs = np.zeros((len(places), 4 if precision <= 38 else 8), np.uint64)
    at = places
    for number, digits in enumerate(_groups(precision, scale)):
        size = _BYTES_OF_DIGITS[digits]
        value = data.big(at, size)
        if number == 0:
            value = value ^ np.uint64(1 << 8 * size - 1)  # the sign bit, inverted so that bytes sort as numbers do
        value = np.where(negative, value ^ np.uint64((1 << 8 * size) - 1), value)
        _times_plus(limbs, 10**digits, value)
        at = at + size
    _negate(limbs, negative)
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    content = pa.py_buffer(np.ascontiguousarray(limbs.astype("<u4")))
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(places), [validity, content])


def _times_plus(limbs: Array, factor: int, addend: Array) -> None:
    """limbs = limbs * factor + addend, in base 2**32; factor and addend are below 2**32."""
    carry = addend
    for i in range(limbs.shape[1]):
        total = limbs[:, i] * np.uint64(factor) + carry
        limbs[:, i] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


def _negate(limbs: Array, negative: Array) -> None:
    """Two's complement of the rows that are negative."""
    flip = negative.astype(np.uint64)
    carry = flip
    for i in range(limbs.shape[1]):
        total = (limbs[:, i] ^ (flip * np.uint64(0xFFFFFFFF))) + carry
        limbs[:, i] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


__all__ = [
    "Dates",
    "date_texts",
    "dates_of_texts",
    "decimal_size",
    "in_zone",
    "moment_text",
    "read_dates",
    "read_datetimes",
    "read_decimals",
    "read_old_datetimes",
    "read_old_times",
    "read_old_timestamps",
    "read_times",
    "read_timestamps",
    "time_texts",
    "times_of_texts",
    "to_days",
    "to_times",
    "to_timestamps",
]
