"""Turns values into another type: by a cast, or because a column has that type.

What a column takes without a cast is what Spark's ANSI rules and Flink let through, and text for dates and times: any
number for a number as long as it fits (fractions are cut off), anything for text. A cast that can fail or depends on
settings is left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidData
from lakebed.sql.words.values import Items, Members, NotLiteral, Pairs, Scalar, Value
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    FLOATS,
    INTEGERS,
    NUMERICS,
    STRINGS,
    TIMESTAMPS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    TypeRoot,
)

_MOMENT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")
_EPOCH = dt.datetime(1970, 1, 1)
_DAY_NS = 86400 * 10**9
_BITS = {TypeRoot.TINYINT: 7, TypeRoot.SMALLINT: 15, TypeRoot.INT: 31, TypeRoot.BIGINT: 63}
_BYTES = frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY, TypeRoot.BLOB})
_EXACT = Context(prec=76)


def convert(value: Value, target: DataType, *, explicit: bool, place: str = "the value") -> Value:
    """The value in another type. `explicit`: by a cast; else because a column has the type.

    NotLiteral: Spark has to say what comes out. InvalidData: a column does not take it; `place` names the column.
    """
    if value is None:
        return None
    match target, value:
        case ArrayType(element), Items(values):
            return Items(tuple(convert(item, element, explicit=explicit, place=place) for item in values))
        case MapType(key, item), Pairs(keys, values):
            return Pairs(
                tuple(convert(part, key, explicit=explicit, place=place) for part in keys),
                tuple(convert(part, item, explicit=explicit, place=place) for part in values),
            )
        case RowType(fields), Members(values):
            if len(fields) != len(values):
                raise InvalidData(
                    f"{place} is a row of {len(values)} members, but the type has {len(fields)}",
                    hint=f"give a value for each of {target}",
                )
            parts = zip(values, fields, strict=True)
            return Members(tuple(convert(part, field.type, explicit=explicit, place=place) for part, field in parts))
        case AtomicType(), Scalar():
            return _scalar(value, target, explicit, place)
        case _:
            raise _refused(value, target, explicit, place)


def _scalar(value: Scalar, target: AtomicType, explicit: bool, place: str) -> Scalar:
    for sources, targets, is_implicit, change in _RULES:
        if value.root in sources and target.root in targets and (is_implicit or explicit):
            try:
                return Scalar(target.root, change(value, target))
            except (OverflowError, NotLiteral) as error:
                if explicit or (isinstance(error, NotLiteral) and target.root not in _SPELLED):
                    raise NotLiteral from None
                raise InvalidData(
                    f"{place}: {value.value} does not fit {target}", hint="write a value in the range of the type"
                ) from error
    raise _refused(value, target, explicit, place)


def _refused(value: Value, target: DataType, explicit: bool, place: str) -> Exception:
    if explicit:
        return NotLiteral()
    given = str(value.root) if isinstance(value, Scalar) else type(value).__name__
    shown = {"Items": "an array", "Pairs": "a map", "Members": "a row"}.get(given, given)
    return InvalidData(
        f"{place} is {shown}, which a column of type {target} does not take", hint="cast it, if it is meant"
    )


# --- numbers ---------------------------------------------------------------------------------------------------------
def _to_integer(value: Scalar, target: AtomicType) -> int:
    number = int(value.value)
    limit = 1 << _BITS[target.root]
    if not -limit <= number < limit:
        raise OverflowError
    return number


def _to_float(value: Scalar, target: AtomicType) -> float:
    return float(value.value)


def _to_decimal(value: Scalar, target: AtomicType) -> Decimal:
    given = value.value
    # A binary fraction means the digits that it is shown with.
    number = Decimal(repr(given)) if isinstance(given, float) else Decimal(given)
    try:
        rounded = number.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _EXACT)
    except InvalidOperation:
        raise OverflowError from None
    if abs(rounded) >= Decimal(10) ** (target.precision - target.scale):
        raise OverflowError
    return rounded


# --- text ------------------------------------------------------------------------------------------------------------
def _same(value: Scalar, target: AtomicType) -> Any:
    return value.value


def _to_text(value: Scalar, target: AtomicType) -> str:
    """The text of a value; text of fixed length is filled up with blanks."""
    if isinstance(value.value, bool):
        text = "true" if value.value else "false"
    else:
        text = f"{value.value:f}" if isinstance(value.value, Decimal) else str(value.value)
    return text.ljust(target.length) if target.root == TypeRoot.CHAR else text


def _bytes_to_text(value: Scalar, target: AtomicType) -> str:
    try:
        return _to_text(Scalar(TypeRoot.VARCHAR, value.value.decode()), target)
    except UnicodeDecodeError:
        raise NotLiteral from None


def _text_to_bytes(value: Scalar, target: AtomicType) -> bytes:
    return str(value.value).encode()


def _text_to_number(value: Scalar, target: AtomicType) -> Any:
    number = Scalar(TypeRoot.DECIMAL, _decimal_of(value.value))
    if target.root in INTEGERS and number.value != int(number.value):
        raise NotLiteral
    if target.root in FLOATS:
        return float(number.value)
    return _to_decimal(number, target) if target.root == TypeRoot.DECIMAL else _to_integer(number, target)


def _text_to_boolean(value: Scalar, target: AtomicType) -> bool:
    word = str(value.value).strip().lower()
    if word not in ("true", "false"):
        raise NotLiteral
    return word == "true"


# --- dates and times -------------------------------------------------------------------------------------------------
def _text_to_date(value: Scalar, target: AtomicType) -> dt.date:
    return _date_of(value.value)


def _text_to_time(value: Scalar, target: AtomicType) -> int:
    return time_of(value.value)


def _text_to_moment(value: Scalar, target: AtomicType) -> int:
    return _moment_of(value.value)


def _date_to_moment(value: Scalar, target: AtomicType) -> int:
    days: int = (value.value - _EPOCH.date()).days
    return days * _DAY_NS


def _moment_to_date(value: Scalar, target: AtomicType) -> dt.date:
    return _EPOCH.date() + dt.timedelta(days=value.value // _DAY_NS)


_SPELLED = NUMERICS | {TypeRoot.BOOLEAN}
"""Types whose values a text may spell; one that does not is refused at once."""
_Roots = frozenset[TypeRoot]
_RULES: list[tuple[_Roots, _Roots, bool, Callable[[Scalar, AtomicType], Any]]] = [
    (NUMERICS, INTEGERS, True, _to_integer),
    (NUMERICS, FLOATS, True, _to_float),
    (NUMERICS, frozenset({TypeRoot.DECIMAL}), True, _to_decimal),
    (frozenset({TypeRoot.BOOLEAN}), frozenset({TypeRoot.BOOLEAN}), True, _same),
    (STRINGS, STRINGS, True, _to_text),
    (INTEGERS | {TypeRoot.DECIMAL, TypeRoot.BOOLEAN, TypeRoot.DATE}, STRINGS, True, _to_text),
    (STRINGS, _BYTES, True, _text_to_bytes),
    (_BYTES, STRINGS, True, _bytes_to_text),
    (_BYTES, _BYTES, True, _same),
    (STRINGS, frozenset({TypeRoot.DATE}), True, _text_to_date),
    (STRINGS, frozenset({TypeRoot.TIME}), True, _text_to_time),
    (STRINGS, TIMESTAMPS, True, _text_to_moment),
    (frozenset({TypeRoot.DATE}), frozenset({TypeRoot.DATE}), True, _same),
    (frozenset({TypeRoot.TIME}), frozenset({TypeRoot.TIME}), True, _same),
    (TIMESTAMPS, TIMESTAMPS, True, _same),
    (frozenset({TypeRoot.DATE}), TIMESTAMPS, True, _date_to_moment),
    (TIMESTAMPS, frozenset({TypeRoot.DATE}), True, _moment_to_date),
    (STRINGS, NUMERICS, True, _text_to_number),
    (STRINGS, frozenset({TypeRoot.BOOLEAN}), True, _text_to_boolean),
]
"""From which types, to which, whether without a cast, and how."""


# --- reading text ----------------------------------------------------------------------------------------------------
def _moment_of(text: str) -> int:
    """Nanoseconds since 1970 of a date and time of day."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise NotLiteral
    year, month, day, hour, minute, second, fraction = found.groups()
    try:
        moment = dt.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        raise NotLiteral from None
    since = moment - _EPOCH
    return (since.days * 86400 + since.seconds) * 10**9 + int((fraction or "0").ljust(9, "0"))


def _date_of(text: str) -> dt.date:
    """A date."""
    found = _MOMENT.fullmatch(text.strip())
    try:
        if found is not None:
            return dt.date(*(int(part) for part in found.groups()[:3]))
    except ValueError:
        pass
    raise NotLiteral


def time_of(text: str) -> int:
    """Nanoseconds since midnight."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise NotLiteral
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise NotLiteral
    return (hour * 3600 + minute * 60 + second) * 10**9 + int((found.group(4) or "0").ljust(9, "0"))


def _decimal_of(text: str) -> Decimal:
    """A number."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise NotLiteral from None
    if not number.is_finite():
        raise NotLiteral
    return number


# --- Values of statements as Arrow columns of a table -------------------------------------------------------------


_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def column_of(field: DataField, values: Iterable[Value], zone: dt.tzinfo | None) -> pa.Array:
    """The values as a column of a table; `zone` is where clocks are read for columns with a zone (None: here)."""
    place = f"column `{field.name}`"
    cells = [_cell(convert(value, field.type, explicit=False, place=place), field.type, zone) for value in values]
    try:
        return pa.array(cells, to_arrow_type(field.type))
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise InvalidData(f"{place}: {error}", hint=f"write values of type {field.type}") from error


def _cell(value: Value, data_type: DataType, zone: dt.tzinfo | None) -> Any:
    """What Arrow builds a cell from."""
    if value is None:
        return None
    match data_type, value:
        case ArrayType(element), Items(values):
            return [_cell(item, element, zone) for item in values]
        case MapType(key, item), Pairs(keys, values):
            return [(_cell(k, key, zone), _cell(v, item, zone)) for k, v in zip(keys, values, strict=True)]
        case RowType(fields), Members(values):
            return {field.name: _cell(part, field.type, zone) for field, part in zip(fields, values, strict=True)}
        case AtomicType(root=root), Scalar(value=atom):
            return _atom(atom, data_type, zone) if root in TIMESTAMPS | {TypeRoot.TIME} else atom
    raise AssertionError(f"{value} was not converted to {data_type}")


def _atom(nanos: int, data_type: AtomicType, zone: dt.tzinfo | None) -> int:
    """A moment or time of day in the unit of its column, cut to it."""
    if data_type.root == TypeRoot.TIMESTAMP_LTZ:
        moment = (_EPOCH + dt.timedelta(microseconds=nanos // 1000)).replace(tzinfo=zone)
        shift = (moment.utcoffset() if zone else moment.astimezone().utcoffset()) or dt.timedelta()
        nanos -= int(shift / dt.timedelta(microseconds=1)) * 1000
    return nanos // _UNIT_NS[to_arrow_type(data_type).unit]
