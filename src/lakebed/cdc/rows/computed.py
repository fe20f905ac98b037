"""Columns that the sync adds to a table, computed from columns of the source: `dt=date_format(created, yyyy-MM-dd)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import Description
from lakebed.cdc.rows.dates import format_times, parts_of
from lakebed.clock import SystemClock
from lakebed.errors import InvalidArgument, InvalidData, did_you_mean
from lakebed.records import dataclass
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

_FORM: Final = re.compile(r"\s*([^=\s][^=]*?)\s*=\s*([A-Za-z_]+)\s*\((.*)\)\s*", re.DOTALL)
_HINT: Final = "write it like `dt=date_format(created_at, yyyy-MM-dd)`"


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """One column: its name, its function, the source's column that it works on, and the arguments after it."""

    name: str
    function: str
    column: str | None
    arguments: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The column that a text such as `y=year(created_at)` describes."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise InvalidArgument(f"computed column {text!r} is not understood", hint=_HINT)
        name, function_name, inside = found.group(1), found.group(2).lower(), found.group(3).strip()
        function = FUNCTIONS.get(function_name)
        if function is None:
            raise InvalidArgument(
                f"computed column `{name}`: there is no function `{function_name}`",
                hint=did_you_mean(function_name, FUNCTIONS),
            )
        given = _split(inside)
        column = given.pop(0) if function.takes_column and given else None
        if (function.takes_column and not column) or not function.fewest <= len(given) <= function.most:
            raise InvalidArgument(
                f"computed column `{name}`: {function_name}({inside}) has the wrong number of arguments", hint=_HINT
            )
        try:
            function.check(given)
        except InvalidArgument as error:
            raise InvalidArgument(f"computed column `{name}`: {error.message}", hint=error.hint) from error
        return cls(name, function_name, column, tuple(given))

    def type_in(self, description: Description, *, lower_case: bool = False) -> DataType | None:
        """The column's type over a source table; None if that lacks the argument and the type depends on it."""
        name = self._found(description.names, lower_case)
        column = description.column(name) if name is not None else None
        if column is None and self.function == "truncate":
            return None
        return self._function.result(column.type if column is not None else None, self.arguments)

    def is_missing_in(self, description: Description, *, lower_case: bool = False) -> bool:
        """Whether the source table lacks the column that this one is computed from."""
        return self.column is not None and self._found(description.names, lower_case) is None

    def evaluate(
        self,
        columns: Mapping[str, pa.Array],
        types: Mapping[str, DataType],
        count: int,
        wanted: DataType,
        *,
        lower_case: bool = False,
    ) -> pa.Array:
        """Values for some rows of the source. Without the argument's column they are NULL."""
        if self.column is None:
            return self._function.evaluate(Argument(pa.nulls(count), STRING), self.arguments)
        name = self._found(types, lower_case)
        if name is None:
            return pa.nulls(count, to_arrow_type(wanted))
        try:
            return self._function.evaluate(Argument(columns[name], types[name]), self.arguments)
        except (InvalidData, InvalidArgument) as error:
            raise InvalidData(f"computed column `{self.name}`: {error.message}", hint=error.hint) from error
        except pa.ArrowException as error:
            raise InvalidData(
                f"computed column `{self.name}`: {error}", hint=f"look at the values of column `{name}` in the source"
            ) from error

    def argument_in(self, names: tuple[str, ...], *, lower_case: bool = False) -> str | None:
        """The source's column that this one is computed from, if there is one."""
        return self._found(names, lower_case)

    @property
    def _function(self) -> Function:
        return FUNCTIONS[self.function]

    def _found(self, names: Mapping[str, object] | tuple[str, ...], lower_case: bool) -> str | None:
        if self.column in names:
            return self.column
        if not lower_case or self.column is None:
            return None
        return next((name for name in names if name.lower() == self.column.lower()), None)


def _split(inside: str) -> list[str]:
    """Arguments between commas; those inside parentheses (as in `DECIMAL(10, 2)`) or quotes are no separators."""
    parts, depth, quoted, start = [], 0, "", 0
    for place, sign in enumerate(inside):
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'`" and not inside[start:place].strip():
            quoted = sign
        elif sign in "(<":
            depth += 1
        elif sign in ")>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(inside[start:place])
            start = place + 1
    if not inside:
        return []
    return [_unquoted(part.strip()) for part in (*parts, inside[start:])]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`" else text


# --- Functions of computed columns, on whole columns: parts of times, formats, cut texts and numbers, constants ---


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
        return extract(_times_of(argument, arguments[0] if arguments else "0")).cast(pa.int32())

    return Function(lambda *_: INT, evaluate, most=1, check=_check_precision)


def _check_precision(arguments: Sequence[str]) -> None:
    if arguments and arguments[-1] not in _EPOCH_UNITS:
        raise InvalidArgument(
            f"{arguments[-1]!r} is no precision of a count of time", hint="use 0, 3, 6 or 9: seconds to nanoseconds"
        )


def _times_of(argument: Argument, precision: str) -> pa.Array:
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
    return format_times(_times_of(argument, arguments[1] if len(arguments) > 1 else "0"), arguments[0])


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


__all__ = ["FUNCTIONS", "Argument", "ComputedColumn", "Function"]
