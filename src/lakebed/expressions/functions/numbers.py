"""Functions of numbers.

exp, ln, sin, cbrt and their like are left out: Java's and C's libraries differ in the last digit for some values. So is
power, but for squares, which both have exactly.
"""

from __future__ import annotations

import math

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call


def absolute(value: Expression) -> Expression:
    """The number without its sign; the least whole number has none."""
    value = coerced(value, kinds.DOUBLE) if value.type == kinds.STRING else value
    if not kinds.is_numeric(value.type):
        raise NotProven(f"`abs` of {kinds.spark_name(value.type)}")
    return call("abs({0})", value, type=value.type, can_fail=kinds.is_integral(value.type))


def sign(value: Expression) -> Expression:
    """-1.0, 0.0 or 1.0; a zero keeps its sign, and NaN is NaN."""
    template = "(CASE WHEN isnan({0}) OR {0} = 0 THEN {0} ELSE CAST(sign({0}) AS DOUBLE) END)"
    return call(template, coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def root(value: Expression) -> Expression:
    """sqrt: NaN of what is below zero."""
    return call("sqrt({0})", coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def power(value: Expression, exponent: Expression) -> Expression:
    """Squares."""
    if not isinstance(exponent, Constant) or exponent.value != 2:
        raise NotProven("`power`", "only squares are known to be the same in both engines")
    return call("({0} * {0})", coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def degrees(value: Expression) -> Expression:
    """Degrees of radians."""
    return call("degrees({0})", coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def radians(value: Expression) -> Expression:
    """Radians of degrees."""
    return call("radians({0})", coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def pi() -> Expression:
    """3.14..."""
    return _double(math.pi)


def e() -> Expression:
    """2.71..."""
    return _double(math.e)


def _double(value: float) -> Constant:
    return Constant(type=kinds.DOUBLE, nullable=False, value=value, text=f"CAST('{value!r}' AS DOUBLE)")


def factorial(value: Expression) -> Expression:
    """Null below 0, and above 20, where it does not fit."""
    template = "(CASE WHEN {0} BETWEEN 0 AND 20 THEN CAST(factorial({0}) AS BIGINT) END)"
    return call(template, coerced(value, kinds.INT), type=kinds.BIGINT, nullable=True)


def width_bucket(value: Expression, first: Expression, last: Expression, count: Expression) -> Expression:
    """In which of equally wide buckets a value lies; 0 is before the first. Bounds may go down."""
    value, first, last = (coerced(each, kinds.DOUBLE) for each in (value, first, last))
    count = coerced(count, kinds.BIGINT)
    up = "CASE WHEN {0} < {1} THEN 0 WHEN {0} >= {2} THEN {3} + 1"
    up += " ELSE CAST(trunc(CAST({3} AS DOUBLE) * ({0} - {1}) / ({2} - {1})) AS BIGINT) + 1 END"
    down = "CASE WHEN {0} > {1} THEN 0 WHEN {0} <= {2} THEN {3} + 1"
    down += " ELSE CAST(trunc(CAST({3} AS DOUBLE) * ({1} - {0}) / ({1} - {2})) AS BIGINT) + 1 END"
    valid = (
        "{3} > 0 AND {3} < 9223372036854775807 AND {1} <> {2} AND NOT isnan({0}) AND isfinite({1}) AND isfinite({2})"
    )
    template = f"(CASE WHEN {valid} THEN (CASE WHEN {{1}} < {{2}} THEN {up} ELSE {down} END) END)"
    return call(template, value, first, last, count, type=kinds.BIGINT, nullable=True)


def bits_text(value: Expression) -> Expression:
    """bin: the bits of a number."""
    return call("bin({0})", coerced(value, kinds.BIGINT), type=kinds.STRING)


def hex_text(value: Expression) -> Expression:
    """hex: of a number, a text or bytes."""
    if kinds.is_integral(value.type):
        value = coerced(value, kinds.BIGINT)
    elif value.type not in (kinds.STRING, kinds.BINARY):
        raise NotProven(f"`hex` of {kinds.spark_name(value.type)}")
    return call("hex({0})", value, type=kinds.STRING)


FUNCTIONS = {
    "abs": Function(absolute, 1, 1),
    "sign": Function(sign, 1, 1),
    "signum": Function(sign, 1, 1),
    "sqrt": Function(root, 1, 1),
    "power": Function(power, 2, 2),
    "pow": Function(power, 2, 2),
    "degrees": Function(degrees, 1, 1),
    "radians": Function(radians, 1, 1),
    "pi": Function(pi, 0, 0),
    "e": Function(e, 0, 0),
    "factorial": Function(factorial, 1, 1),
    "width_bucket": Function(width_bucket, 4, 4),
    "bin": Function(bits_text, 1, 1),
    "hex": Function(hex_text, 1, 1),
}
