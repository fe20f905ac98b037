"""The text that stands for a partition value in a directory name, exactly as Paimon's Java writers spell it.

Files are found by rebuilding this text from the partition's real value, so a spelling of our own would lose them. There
are two spellings: the *legacy* one is what each value's Java object prints, and the default; the other is SQL's cast to
text. Escaping, and the name for missing values, are in `paths`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidArgument, Unsupported
from lakebed.types.logical import BINARIES, FLOATS, INTEGERS, STRINGS, AtomicType, DataType, TypeRoot

_NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_DAY = 86_400 * _NANOS_PER_SECOND
_UNIT_NANOS = {"s": _NANOS_PER_SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}


def partition_text(data_type: DataType, value: pa.Scalar, *, legacy: bool = True) -> str:
    """The text of one value that is not null, not yet escaped."""
    if not isinstance(data_type, AtomicType):
        raise InvalidArgument(f"{data_type} can not be a partition type", hint="partition by atomic columns only")
    match data_type.root:
        case TypeRoot.BOOLEAN:
            return "true" if value.as_py() else "false"
        case root if root in INTEGERS:
            return str(value.as_py())
        case root if root in FLOATS:
            return java_float_text(np.float32(value.as_py()) if root is TypeRoot.FLOAT else np.float64(value.as_py()))
        case TypeRoot.DECIMAL:
            return format(value.as_py(), "f")
        case root if root in STRINGS:
            return str(value.as_py())
        case TypeRoot.DATE:
            days = value.cast(pa.int32()).as_py()
            return str(days) if legacy else _date_text(days)
        case TypeRoot.TIME:
            millis = value.cast(pa.time32("ms")).cast(pa.int32()).as_py()
            return str(millis) if legacy else _time_text(millis, data_type.precision)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            return _timestamp(data_type, value, legacy)
        case root if root in BINARIES and not legacy:
            return bytes(value.as_py()).decode("utf-8", errors="replace")
    raise Unsupported(
        f"a partition column of type {data_type} has no directory name that other writers would find again",
        hint="partition by another column, for example a STRING that spells the same value",
    )


def java_float_text(value: np.float32 | np.float64) -> str:
    """A float as Java prints it: `1.0`, `0.1`, `1.0E10`, `1.0E-5`, `NaN`, `-Infinity`."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if np.signbit(value) else "0.0"
    text = np.format_float_scientific(np.abs(value), unique=True, trim="-")
    if "." not in text:
        # Java never shortens to one digit when a second digit comes closer: the smallest double is 4.9E-324.
        text = f"{abs(float(value)):.1e}"
    mantissa, _, exponent_text = text.partition("e")
    exponent = int(exponent_text)
    digits = mantissa.replace(".", "").rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"


def _timestamp(data_type: AtomicType, value: pa.Scalar, legacy: bool) -> str:
    nanos = value.cast(pa.int64()).as_py() * _UNIT_NANOS[value.type.unit]
    if not legacy and data_type.root is TypeRoot.TIMESTAMP_LTZ:
        nanos += _local_offset_seconds(nanos // _NANOS_PER_SECOND) * _NANOS_PER_SECOND
    days, of_day = divmod(nanos, _NANOS_PER_DAY)
    seconds, fraction = divmod(of_day, _NANOS_PER_SECOND)
    if legacy:
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
        if seconds % 60 or fraction:
            clock += f":{seconds % 60:02}"
        return f"{_date_text(days)}T{clock}{_thousandths(fraction)}"
    digits = f"{fraction:09}".rstrip("0").ljust(data_type.precision, "0")
    return f"{_date_text(days)} {_clock_text(seconds)}" + (f".{digits}" if digits else "")


def _thousandths(nanos: int) -> str:
    """A fraction of a second in the fewest groups of three digits."""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}" if digits else ""


def _time_text(millis: int, precision: int) -> str:
    text = _clock_text(millis // 1000)
    if precision == 0:
        return text
    digits = f"{millis % 1000:03}"[:precision].rstrip("0") or "0"
    return f"{text}.{digits}"


def _clock_text(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _date_text(days: int) -> str:
    """ISO date; unlike Python's dates, of any year: five digits take a sign, as in Java."""
    day = np.datetime64(days, "D")
    month = day.astype("datetime64[M]")
    year = int(day.astype("datetime64[Y]").astype(np.int64)) + 1970
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    month_of_year = int(month.astype(np.int64)) % 12 + 1
    return f"{sign}{abs(year):04}-{month_of_year:02}-{int((day - month).astype(np.int64)) + 1:02}"


def _local_offset_seconds(epoch_seconds: int) -> int:
    """How far local time is ahead of UTC at an instant."""
    try:
        instant = datetime.fromtimestamp(epoch_seconds, UTC)
    except (OverflowError, ValueError, OSError):
        # Outside Python's calendar: time zones of such years are anybody's guess, today's offset is as good as any.
        instant = datetime.now(UTC)
    return (instant.astimezone().utcoffset() or timedelta()) // timedelta(seconds=1)
