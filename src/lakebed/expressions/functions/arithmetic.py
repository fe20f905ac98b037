"""+, -, *, /, div, % and their like: the types that Spark brings both sides to, and where ANSI SQL has errors."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakebed.expressions import decimals, kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import Function
from lakebed.expressions.functions.time import minus_time, negative_interval, plus_time
from lakebed.expressions.nodes import Call, Constant, Expression, NotProven, call

_ZERO = "error('division by zero')"


def add(left: Expression, right: Expression) -> Expression:
    """+, also of days, moments and intervals."""
    found = plus_time(left, right)
    return _plain("+", left, right) if found is None else found


def subtract(left: Expression, right: Expression) -> Expression:
    """-, also of days, moments and intervals."""
    found = minus_time(left, right)
    return _plain("-", left, right) if found is None else found


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


def positive_modulo(left: Expression, right: Expression) -> Expression:
    """pmod: what remains, brought above zero by adding the right side once."""
    left, right, kind = numbers("pmod", left, right)
    if kinds.is_decimal(kind):
        remainder = decimals.arithmetic("%", left, right)
        again = decimals.arithmetic("%", decimals.arithmetic("+", remainder, right), right)
        if any(each.uses for part in (remainder, again) for each in part.walk() if isinstance(each, Call)):
            raise NotProven("`pmod` of decimals that wide")
        again = coerced(again, remainder.type)
        return call("(CASE WHEN {0} < 0 THEN {1} ELSE {0} END)", remainder, again, type=remainder.type)
    if kinds.is_fraction(kind):
        template = "(CASE WHEN {0} % {1} < 0 THEN ({0} % {1} + {1}) % {1} ELSE {0} % {1} END)"
        return _unless_zero(template, left, right, kind)
    lowest = -(2**63 if kind == kinds.BIGINT else 2**31)
    wide = "HUGEINT" if kind == kinds.BIGINT else "BIGINT"
    a, b = f"CAST({{0}} AS {wide})", f"CAST({{1}} AS {wide})"
    around = f"(({a} % {b} + {b} - 2 * ({lowest}::{wide})) % {b})"  # the sum went round below the least number
    template = (
        f"CAST((CASE WHEN {a} % {b} >= 0 THEN {a} % {b} WHEN {a} % {b} + {b} < {lowest} THEN {around}"
        f" ELSE ({a} % {b} + {b}) % {b} END) AS {kinds.duckdb_name(kind)})"
    )
    return call(template, left, right, type=kind, can_fail=True, last_first=True)


def negative(value: Expression) -> Expression:
    """The number with the other sign."""
    value = coerced(value, kinds.DOUBLE) if value.type == kinds.STRING else value
    kind = value.type
    if kind in (kinds.DAY_TIME, kinds.YEAR_MONTH):
        return negative_interval(value)
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


def _tried(sign: str) -> Callable[[Expression, Expression], Expression]:
    """try_add and its like: null where the operator fails, but not where an argument of it does."""

    def build(left: Expression, right: Expression) -> Expression:
        if kinds.STRING in (left.type, right.type):  # whose cast would be forgiven too
            raise NotProven(f"`{sign}` of text, tried")
        left, right, kind = numbers(sign, left, right)
        is_quotient = sign in ("/", "%")
        if is_quotient:
            right = call("nullif({0}, 0)", right, type=right.type, nullable=True)
        if kinds.is_decimal(kind):
            found = decimals.arithmetic(sign, left, right)
            if found.type.precision == 38 or any(isinstance(each, Call) and each.uses for each in found.walk()):
                raise NotProven(f"`{sign}` of decimals that wide, tried")
            return found
        if sign == "/":
            left, right = coerced(left, kinds.DOUBLE), coerced(right, kinds.DOUBLE)
            return call("({0} / {1})", left, right, type=kinds.DOUBLE, last_first=True)
        if sign == "%" and kinds.is_integral(kind):
            return modulo(left, right)
        if kinds.is_fraction(kind):
            return call(f"({{0}} {sign} {{1}})", left, right, type=kind, nullable=True, last_first=is_quotient)
        wide = f"(CAST({{0}} AS HUGEINT) {sign} CAST({{1}} AS HUGEINT))"
        can_fail = left.can_fail or right.can_fail
        template = f"TRY_CAST({wide} AS {kinds.duckdb_name(kind)})"
        return call(template, left, right, type=kind, can_fail=can_fail)

    return build


FUNCTIONS = {
    "+": Function(add, 2, 2),
    "-": Function(subtract, 2, 2),
    "*": Function(multiply, 2, 2),
    "/": Function(divide, 2, 2),
    "div": Function(quotient, 2, 2),
    "%": Function(modulo, 2, 2),
    "mod": Function(modulo, 2, 2),
    "pmod": Function(positive_modulo, 2, 2),
    "try_add": Function(_tried("+"), 2, 2),
    "try_subtract": Function(_tried("-"), 2, 2),
    "try_multiply": Function(_tried("*"), 2, 2),
    "try_divide": Function(_tried("/"), 2, 2),
    "try_mod": Function(_tried("%"), 2, 2),
    "negative": Function(negative, 1, 1),
    "positive": Function(positive, 1, 1),
}
