"""Where a constant lies among the values of a column, exactly.

A literal seldom has the type of its column: 1000 against TINYINT, 1.5 against INT, a day against a timestamp, 0.1
against FLOAT. Casting it would round or overflow, and then select wrong rows. Instead the literal is placed: it is
either one of the column type's values, or lies between two neighbours, or beyond either end. Every comparison can then
be said with a value of the column's own type, which is what statistics, partitions and readers need.

This module knows types and numbers; what to compare, and what to tell the user, is decided in `predicate_parse`.
"""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Exactly:
    """The literal is this value of the column's type."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Above:
    """The literal lies strictly above this value and below the type's next one; None: below all values."""

    value: pa.Scalar | None


@dataclass(frozen=True, slots=True)
class Nowhere:
    """The literal is NaN: it has no place in any order, and equals nothing."""


class Misfit(Exception):
    """The literal can not be compared with the column's type; the text says why. Never leaves `types/`."""


def place(literal: pa.Scalar, column_type: pa.DataType) -> Exactly | Above | Nowhere:
    """Where a non-null literal lies among the values of the column's type."""
    if isinstance(literal, pa.DictionaryScalar):
        literal = literal.value
    if at.is_boolean(column_type) and at.is_boolean(literal.type):
        return Exactly(literal)
    if _is_text(column_type) or _is_bytes(column_type):
        return Exactly(_text_or_bytes(literal, column_type))
    if at.is_floating(column_type):
        return _place_float(_float_or_fraction(literal), column_type)
    if at.is_integer(column_type) or at.is_decimal(column_type):
        return _place_step(_number(literal, as_written=at.is_decimal(column_type)), column_type)
    if at.is_date(column_type) or at.is_timestamp(column_type) or at.is_time(column_type):
        return _place_step(Fraction(_nanoseconds(literal, column_type)), column_type)
    raise Misfit(f"{column_type} has no order that {literal.type} belongs to")


# --- text and bytes --------------------------------------------------------------------------------------------------


def _is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        at.is_binary(kind) or at.is_large_binary(kind) or at.is_binary_view(kind) or at.is_fixed_size_binary(kind)
    )


def _text_or_bytes(literal: pa.Scalar, column_type: pa.DataType) -> pa.Scalar:
    """UTF-8 text orders as its bytes do, so either kind stands for the other wherever it can be converted."""
    if not (_is_text(literal.type) or _is_bytes(literal.type)):
        raise Misfit(f"{literal.type} is neither text nor bytes")
    value = literal.as_py()
    try:
        if _is_text(column_type) and isinstance(value, bytes):
            value = value.decode()
        elif _is_bytes(column_type) and isinstance(value, str):
            value = value.encode()
        return pa.scalar(value, column_type)
    except (UnicodeDecodeError, pa.ArrowException) as error:
        raise Misfit(str(error)) from error


# --- numbers ---------------------------------------------------------------------------------------------------------


def _number(literal: pa.Scalar, *, as_written: bool) -> Fraction | float:
    """The literal's value; inf and nan stay floats. `as_written`: 0.1 is one tenth, not the nearest binary fraction."""
    if at.is_integer(literal.type) or at.is_decimal(literal.type):
        return Fraction(literal.as_py())
    if at.is_floating(literal.type):
        value = float(literal.as_py())
        if not math.isfinite(value):
            return value
        return Fraction(Decimal(repr(value))) if as_written else Fraction(value)
    raise Misfit(f"{literal.type} is not a number")


def _float_or_fraction(literal: pa.Scalar) -> Fraction | float:
    """As `_number`, but a decimal means the nearest double, as in SQL: 0.1 finds the DOUBLE 0.1."""
    number = _number(literal, as_written=False)
    if not at.is_decimal(literal.type):
        return number
    return Fraction(float(number))


def _place_float(number: Fraction | float, column_type: pa.DataType) -> Exactly | Above | Nowhere:
    kind = np.dtype(column_type.to_pandas_dtype())
    if isinstance(number, float):
        return Nowhere() if math.isnan(number) else Exactly(pa.scalar(number, column_type))
    with np.errstate(over="ignore"):
        near = kind.type(float(number))
    if not np.isinf(near) and Fraction(float(near)) == number:
        return Exactly(pa.scalar(near, column_type))
    if float(near) > number:
        near = np.nextafter(near, kind.type(-np.inf))
    return Above(pa.scalar(near, column_type))


def _place_step(number: Fraction | float, column_type: pa.DataType) -> Exactly | Above | Nowhere:
    """For types whose values are the multiples of a step between two ends."""
    step, lowest, highest = _steps(column_type)
    if isinstance(number, float):
        if math.isnan(number):
            return Nowhere()
        return Above(None if number < 0 else _step_value(highest, column_type))
    steps = number / step
    if steps < lowest:
        return Above(None)
    if steps > highest or steps.denominator != 1:
        return Above(_step_value(min(math.floor(steps), highest), column_type))
    return Exactly(_step_value(steps.numerator, column_type))


_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY_NS = 86_400 * 10**9


def _steps(kind: pa.DataType) -> tuple[Fraction, int, int]:
    """Size of one step (a number, or nanoseconds) and the first and last step that the type can hold."""
    if at.is_decimal(kind):
        return Fraction(10) ** -kind.scale, -(10**kind.precision) + 1, 10**kind.precision - 1
    if at.is_unsigned_integer(kind):
        return Fraction(1), 0, 2**kind.bit_width - 1
    if at.is_integer(kind):
        step = 1
    elif at.is_date(kind):
        step = _DAY_NS if at.is_date32(kind) else 10**6
    else:
        step = _UNIT_NS[kind.unit]
    return Fraction(step), -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def _step_value(steps: int, kind: pa.DataType) -> pa.Scalar:
    if at.is_decimal(kind):
        # From digits: Decimal arithmetic would round to 28 of them.
        return pa.scalar(Decimal((int(steps < 0), tuple(map(int, str(abs(steps)))), -kind.scale)), kind)
    if at.is_integer(kind):
        return pa.scalar(steps, kind)
    return pa.scalar(steps, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


# --- times -----------------------------------------------------------------------------------------------------------

_CLOCK = r"(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:\.(?P<f>\d{1,9}))?)?"
_TIME = re.compile(_CLOCK + r"\Z")
_MOMENT = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?:[ T]" + _CLOCK + r"(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?)?\Z")


def _nanoseconds(literal: pa.Scalar, column_type: pa.DataType) -> int:
    """Nanoseconds since midnight for times, since 1970 for the rest. Instants and wall-clock times do not mix."""
    if _is_text(literal.type):
        return _parsed_nanoseconds(literal.as_py(), column_type)
    of_day, instant = bool(at.is_time(column_type)), _is_instant(column_type)
    if of_day and at.is_time(literal.type):
        return int(literal.value) * _UNIT_NS[literal.type.unit]
    if not of_day and at.is_timestamp(literal.type):
        if _is_instant(literal.type) != instant:
            raise Misfit(_zone_advice(instant))
        return int(literal.value) * _UNIT_NS[literal.type.unit]
    if not of_day and at.is_date(literal.type):
        if instant:
            raise Misfit(_zone_advice(instant))
        return int(literal.value) * (_DAY_NS if at.is_date32(literal.type) else 10**6)
    raise Misfit(f"{literal.type} is not a {'time of day' if of_day else 'date or timestamp'}")


def _is_instant(kind: pa.DataType) -> bool:
    return bool(at.is_timestamp(kind)) and kind.tz is not None


def _zone_advice(instant: bool) -> str:
    if instant:
        return "the column holds instants, so the value needs a time zone"
    return "the column holds wall-clock times, so the value must have no time zone"


def _parsed_nanoseconds(text: str, column_type: pa.DataType) -> int:
    found = (_TIME if at.is_time(column_type) else _MOMENT).match(text)
    if found is None:
        form = "12:34:56.789" if at.is_time(column_type) else "2020-12-31 or 2020-12-31 12:34:56.789"
        raise Misfit(f"text must look like {form}")
    parts = found.groupdict()
    seconds = int(parts["h"] or 0) * 3600 + int(parts["m"] or 0) * 60 + int(parts["s"] or 0)
    if not at.is_time(column_type):
        if (parts["zone"] is not None) != _is_instant(column_type):
            raise Misfit(_zone_advice(_is_instant(column_type)))
        try:
            seconds += (date.fromisoformat(parts["day"]) - date(1970, 1, 1)).days * 86_400
        except ValueError as error:
            raise Misfit(str(error)) from error
        seconds -= _offset_seconds(parts["zone"])
    return seconds * 10**9 + int((parts["f"] or "").ljust(9, "0"))


def _offset_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[0] == "-" else seconds
