"""+, -, *, /, div, % and their like: the types that Spark brings both sides to, and where ANSI SQL has errors."""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import decimals, kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call

_ZERO = "error('division by zero')"


def add(left: Expression, right: Expression) -> Expression:
    """+."""
    return _plain("+", left, right)


def subtract(left: Expression, right: Expression) -> Expression:
    """-."""
    return _plain("-", left, right)


def multiply(left: Expression, right: Expression) -> Expression:
    """*."""
    return _plain("*", left, right)


def divide(left: Expression, right: Expression) -> Expression:
    """/: of decimals a decimal, of all else a DOUBLE."""
    left, right, kind = numbers("/", left, right)
    if kinds.is_decimal(kind):
        return decimals.arithmetic("/", left, right)
    left, right = coerced(left, kinds.DOUBLE), coerced(right, kinds.DOUBLE)
    return _unless_zero("({0} / {1})", left, right, kinds.DOUBLE)


def quotient(left: Expression, right: Expression) -> Expression:
    """div: the whole part of a quotient, as BIGINT."""
    left, right, kind = numbers("div", left, right)
    if kinds.is_decimal(kind):
        return decimals.arithmetic("div", left, right)
    if not kinds.is_integral(kind):
        raise NotProven("`div` of fractions")
    left, right = coerced(left, kinds.BIGINT), coerced(right, kinds.BIGINT)
    return call("({0} // {1})", left, right, type=kinds.BIGINT, can_fail=True, last_first=True)


def modulo(left: Expression, right: Expression) -> Expression:
    """%: what remains has the sign of the left side."""
    left, right, kind = numbers("%", left, right)
    if kinds.is_decimal(kind):
        return decimals.arithmetic("%", left, right)
    if kinds.is_fraction(kind):
        return _unless_zero("({0} % {1})", left, right, kind)
    # The least number modulo -1 is 0, where DuckDB has an overflow.
    template = "(CASE WHEN {1} = -1 THEN {0} - {0} ELSE {0} % {1} END)"
    return call(template, left, right, type=kind, can_fail=True, last_first=True)


def negative(value: Expression) -> Expression:
    """The number with the other sign."""
    value = coerced(value, kinds.DOUBLE) if value.type == kinds.STRING else value
    kind = value.type
    if not kinds.is_numeric(kind):
        raise NotProven(f"`-` of {kinds.spark_name(kind)}")
    can_fail = kinds.is_integral(kind)
    return call(f"CAST((-{{0}}) AS {kinds.duckdb_name(kind)})", value, type=kind, can_fail=can_fail)


def positive(value: Expression) -> Expression:
    """The number itself."""
    if not kinds.is_numeric(value.type):
        raise NotProven(f"`+` of {kinds.spark_name(value.type)}")
    return value


def numbers(sign: str, left: Expression, right: Expression) -> tuple[Expression, Expression, pa.DataType]:
    """Both sides as Spark brings them together, and their type; decimals keep types of their own."""
    for side in (left, right):
        if not (kinds.is_numeric(side.type) or side.type in (kinds.STRING, kinds.NULL)):
            raise NotProven(f"`{sign}` of {kinds.spark_name(side.type)}")
    kind = kinds.common_type(left.type, right.type)
    if kind is None or not kinds.is_numeric(kind):
        raise NotProven(f"`{sign}` of {kinds.spark_name(left.type)} and {kinds.spark_name(right.type)}")
    if kinds.is_decimal(kind):
        return _as_decimal(left, kind), _as_decimal(right, kind), kind
    return coerced(left, kind), coerced(right, kind), kind


def _as_decimal(value: Expression, other: pa.DataType) -> Expression:
    """A side as a decimal: a whole number in the query has only the digits it is written with."""
    if value.type == kinds.NULL:
        return coerced(value, other)
    if isinstance(value, Constant) and kinds.is_integral(value.type) and value.value is not None:
        return coerced(value, kinds.decimal(len(str(abs(value.value))), 0))
    return coerced(value, kinds.as_decimal(value.type))


def _plain(sign: str, left: Expression, right: Expression) -> Expression:
    left, right, kind = numbers(sign, left, right)
    if kinds.is_decimal(kind):
        return decimals.arithmetic(sign, left, right)
    return call(f"({{0}} {sign} {{1}})", left, right, type=kind, can_fail=kinds.is_integral(kind))


def _unless_zero(template: str, left: Expression, right: Expression, kind: pa.DataType) -> Expression:
    """Fractions: division by zero is an error, but not of a null."""
    guarded = f"(CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {_ZERO} ELSE {template} END)"
    if isinstance(right, Constant) and right.value:
        return call(template, left, right, type=kind, last_first=True)
    return call(guarded, left, right, type=kind, can_fail=True, last_first=True)


FUNCTIONS = {
    "+": Function(add, 2, 2),
    "-": Function(subtract, 2, 2),
    "*": Function(multiply, 2, 2),
    "/": Function(divide, 2, 2),
    "div": Function(quotient, 2, 2),
    "%": Function(modulo, 2, 2),
    "mod": Function(modulo, 2, 2),
    "negative": Function(negative, 1, 1),
    "positive": Function(positive, 1, 1),
}
