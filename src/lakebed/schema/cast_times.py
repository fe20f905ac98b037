"""Conversions between dates, times, timestamps and epoch seconds, with the results Java gives.

Java uses the zone of its process between TIMESTAMP and TIMESTAMP WITH LOCAL TIME ZONE; here that zone is always UTC, so
a table reads the same on every machine. Reducing precision cuts digits off. Works on whole columns of 64-bit counts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.types.arrow import timestamp_unit, to_arrow_type
from lakebed.types.logical import AtomicType

Counts = npt.NDArray[np.int64]

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Ticks of an Arrow time unit in a second."""

_SECONDS_PER_DAY = 86_400


def seconds_to_timestamp(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Whole seconds since the epoch."""
    return _timestamps(array, _rescaled(_counts(array), 1, _ticks(target), target), target)


def timestamp_to_seconds(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Seconds since the epoch, cut towards zero; INT wraps."""
    ticks = _ticks(source)
    counts = _counts(array)
    if ticks > 1:
        counts = _towards_zero(_rescaled(counts, ticks, 1_000, target), 1_000) // 1_000
    return _rebuilt(array, counts, pa.int64()).cast(to_arrow_type(target), safe=False)


def timestamp_to_timestamp(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The same point in UTC with the target's digits."""
    counts, ticks = _counts(array), _ticks(source)
    if source.precision > target.precision:
        counts = counts - counts % max(1, ticks // 10 ** max(target.precision, 3))
        if target.precision < 3:  # Java cuts milliseconds towards zero, finer digits downwards
            counts = _towards_zero(counts, ticks // 10**target.precision)
    return _timestamps(array, _rescaled(counts, ticks, _ticks(target), target), target)


def timestamp_to_date(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The day in UTC."""
    days = _counts(array) // (_SECONDS_PER_DAY * _ticks(source))
    return _rebuilt(array, days, pa.int32()).cast(pa.date32())


def timestamp_to_time(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """The time of day in UTC, in milliseconds."""
    ticks = _ticks(source)
    of_day = _counts(array) % (_SECONDS_PER_DAY * ticks)
    return _rebuilt(array, _rescaled(of_day, ticks, 1_000, target), pa.int32()).cast(pa.time32("ms"))


def date_to_timestamp(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """Midnight of the day."""
    seconds = _counts(array.cast(pa.int32())) * _SECONDS_PER_DAY
    return _timestamps(array, _rescaled(seconds, 1, _ticks(target), target), target)


def time_to_timestamp(array: pa.Array, source: AtomicType, target: AtomicType) -> pa.Array:
    """That time on the first day of the epoch."""
    counts = _rescaled(_counts(array.cast(pa.int32())), 1_000, _ticks(target), target)
    step = _ticks(target) // 10**target.precision
    return _timestamps(array, counts - counts % step, target)


def _ticks(data_type: AtomicType) -> int:
    return _PER_SECOND[timestamp_unit(data_type.precision)]


def _counts(array: pa.Array) -> Counts:
    counts: Counts = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return counts


def _rebuilt(array: pa.Array, counts: Counts, arrow: pa.DataType) -> pa.Array:
    """An Arrow array of the counts that is null where `array` is."""
    return pa.array(counts, arrow, mask=array.is_null().to_numpy(zero_copy_only=False))


def _timestamps(array: pa.Array, counts: Counts, target: AtomicType) -> pa.Array:
    return _rebuilt(array, counts, pa.int64()).cast(to_arrow_type(target))


def _towards_zero(counts: Counts, step: int) -> Counts:
    cut: Counts = counts - np.fmod(counts, step)
    return cut


def _rescaled(counts: Counts, ticks: int, new_ticks: int, target: AtomicType) -> Counts:
    """Counts in other ticks per second; coarser ones are cut downwards."""
    if new_ticks <= ticks:
        return counts // (ticks // new_ticks)
    factor = new_ticks // ticks
    limit = np.iinfo(np.int64).max // factor
    beyond = np.abs(counts) > limit
    if beyond.any():
        raise InvalidData(
            f"time {counts[beyond][0]} (in 1/{ticks} s since 1970) does not fit {target}",
            hint="change the column to a type of lower precision; nanoseconds reach from 1677 to 2262 only",
        )
    return counts * factor
