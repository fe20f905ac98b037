"""Functions of computed columns, on whole columns: parts of times, formats, cut texts and numbers, constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.java_dates import format_times, parts_of
from lakebed.clock import SystemClock
from lakebed.errors import InvalidArgument
from lakebed.schema.casts import cast_array, is_castable
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import (
    INT,
    INTEGERS,
    STRING,
    STRINGS,
    AtomicType,
    DataType,
    TypeRoot,
    is_root,
    parse_type,
    timestamp,
    timestamp_ltz,
)

_EPOCH_UNITS: Final = {"0": "s", "3": "ms", "6": "us", "9": "ns"}
_TIMES: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ, TypeRoot.DATE})
_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java's `trim` takes away."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The column that a function works on: its values and its type."""

    values: pa.Array
    type: DataType


Evaluate = Callable[[Argument, Sequence[str]], pa.Array]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: what its result is, how many arguments may follow the column, and how it is computed."""

    result: Callable[[DataType | None, Sequence[str]], DataType]
    evaluate: Evaluate
    fewest: int = 0
    most: int = 0
    takes_column: bool = True
    check: Callable[[Sequence[str]], None] = lambda _: None


def _part(extract: Callable[[pa.Array], pa.Array]) -> Function:
    def evaluate(argument: Argument, arguments: Sequence[str]) -> pa.Array:
        return extract(times_of(argument, arguments[0] if arguments else "0")).cast(pa.int32())

    return Function(lambda *_: INT, evaluate, most=1, check=_check_precision)


def _check_precision(arguments: Sequence[str]) -> None:
    if arguments and arguments[-1] not in _EPOCH_UNITS:
        raise InvalidArgument(
            f"{arguments[-1]!r} is no precision of a count of time", hint="use 0, 3, 6 or 9: seconds to nanoseconds"
        )


def times_of(argument: Argument, precision: str) -> pa.Array:
    """Nanosecond timestamps of a column of times, of counts since the epoch, or of texts; in UTC."""
    values, kind = argument.values, argument.type
    if is_root(kind, INTEGERS):
        times = values.cast(pa.int64()).cast(pa.timestamp(_EPOCH_UNITS[precision]))
    elif is_root(kind, STRINGS):
        times = cast_array(values, STRING, timestamp(9))
    elif is_root(kind, _TIMES):
        times = values.cast(pa.timestamp("us")) if is_root(kind, TypeRoot.DATE) else values
    else:
        raise InvalidArgument(f"a column of type {kind} holds no time", hint="use a date, timestamp, number or text")
    # Naive, so that no time zone data are needed to take it apart.
    return times.cast(pa.timestamp(times.type.unit)).cast(pa.timestamp("ns"))


def _date_format(argument: Argument, arguments: Sequence[str]) -> pa.Array:
    return format_times(times_of(argument, arguments[1] if len(arguments) > 1 else "0"), arguments[0])


def _check_date_format(arguments: Sequence[str]) -> None:
    parts_of(arguments[0])
    _check_precision(arguments[1:])


def _texts(argument: Argument) -> pa.Array:
    return argument.values if is_root(argument.type, STRINGS) else cast_array(argument.values, argument.type, STRING)


def _substring(argument: Argument, arguments: Sequence[str]) -> pa.Array:
    end = int(arguments[1]) if len(arguments) > 1 else None
    return pc.utf8_slice_codeunits(_texts(argument), int(arguments[0]), end)


def _check_numbers(arguments: Sequence[str]) -> None:
    for text in arguments:
        if not text.isdigit():
            raise InvalidArgument(f"{text!r} is no whole number from 0", hint="write it like `substring(name, 0, 5)`")


def _check_width(arguments: Sequence[str]) -> None:
    _check_numbers(arguments)
    if int(arguments[0]) == 0:
        raise InvalidArgument("a width of 0 cuts off everything", hint="use a width from 1")


def _truncate(argument: Argument, arguments: Sequence[str]) -> pa.Array:
    width, kind, values = int(arguments[0]), argument.type, argument.values
    if is_root(kind, STRINGS):
        return pc.utf8_slice_codeunits(values, 0, width)
    if is_root(kind, INTEGERS):
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _with_nulls(numbers - np.mod(numbers, width), values, values.type)
    return _truncated_decimals(values, width)


def _truncated_decimals(values: pa.Array, width: int) -> pa.Array:
    """The width counts units of the last digit."""
    if values.type.precision <= 18:
        words = np.frombuffer(values.cast(pa.decimal128(38, values.type.scale)).buffers()[1], np.int64)
        numbers = words[2 * values.offset :][: 2 * len(values) : 2]
        cut = (numbers - np.mod(numbers, width)).astype(np.int64)
        whole = np.empty(2 * len(cut), np.int64)
        whole[0::2], whole[1::2] = cut, np.where(cut < 0, -1, 0)
        bits = pc.is_valid(values)
        raw = pa.Array.from_buffers(values.type, len(cut), [None, pa.py_buffer(whole.tobytes())])
        return pc.if_else(bits, raw, pa.scalar(None, values.type))
    # More digits than a machine word has.
    step = Decimal(width).scaleb(-values.type.scale)
    with localcontext(prec=60):
        exact = [None if number is None else number - ((number % step) + step) % step for number in values.to_pylist()]
    return pa.array(exact, values.type)


def _with_nulls(numbers: Any, like: pa.Array, arrow: pa.DataType) -> pa.Array:
    return pa.array(numbers, mask=~pc.is_valid(like).to_numpy(zero_copy_only=False)).cast(arrow)


def _truncate_result(kind: DataType | None, _: Sequence[str]) -> DataType:
    if kind is None or not is_root(kind, STRINGS | INTEGERS | {TypeRoot.DECIMAL}):
        raise InvalidArgument(f"a column of type {kind} can not be truncated", hint="use text, whole numbers, decimals")
    return kind


def _constant(argument: Argument, arguments: Sequence[str]) -> pa.Array:
    kind = _cast_result(None, arguments)
    value = cast_array(pa.array([arguments[0]], pa.string()), STRING, kind)[0]
    return pa.array([value.as_py()], to_arrow_type(kind)).take(pa.array(np.zeros(len(argument.values), np.int64)))


def _cast_result(_: DataType | None, arguments: Sequence[str]) -> DataType:
    kind = parse_type(arguments[1]) if len(arguments) > 1 else STRING
    if not isinstance(kind, AtomicType) or not is_castable(STRING, kind, explicit=True):
        raise InvalidArgument(f"a constant can not be of type {kind}", hint="use a type without parts")
    return kind


def _now(argument: Argument, arguments: Sequence[str]) -> pa.Array:
    now_ms = np.full(len(argument.values), SystemClock().now_ms(), np.int64)
    return pa.array(now_ms).cast(pa.timestamp("ms", tz="UTC"))


def _text(change: Callable[[pa.Array], pa.Array]) -> Function:
    return Function(lambda *_: STRING, lambda argument, _: change(_texts(argument)))


FUNCTIONS: Final[dict[str, Function]] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "date_format": Function(lambda *_: STRING, _date_format, 1, 2, check=_check_date_format),
    "substring": Function(lambda *_: STRING, _substring, 1, 2, check=_check_numbers),
    "truncate": Function(_truncate_result, _truncate, 1, 1, check=_check_width),
    "upper": _text(pc.utf8_upper),
    "lower": _text(pc.utf8_lower),
    "trim": _text(lambda texts: pc.utf8_trim(texts, _BLANKS)),
    "cast": Function(_cast_result, _constant, 1, 2, takes_column=False),
    "now": Function(lambda *_: timestamp_ltz(3), _now, takes_column=False),
}
"""Functions by name."""

__all__ = ["FUNCTIONS", "Argument", "Function", "times_of"]
