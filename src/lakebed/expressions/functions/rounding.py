"""round, bround, ceil, floor, rint.

Spark rounds a fraction by the digits that it is written with, not by its binary value: 0.15 to one digit is 0.2.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import Function
from lakebed.expressions.nodes import ArrowFunction, Constant, Expression, NotProven, call

_UP, _EVEN = "round", "round_even"
_MODES = {_UP: decimal.ROUND_HALF_UP, _EVEN: decimal.ROUND_HALF_EVEN}
_MOST_PLACES = 18


def round_up(value: Expression, places: Expression | None = None) -> Expression:
    """round: halves away from zero."""
    return _rounded(_UP, value, places)


def round_even(value: Expression, places: Expression | None = None) -> Expression:
    """bround: halves to the even neighbour."""
    return _rounded(_EVEN, value, places)


def rint(value: Expression) -> Expression:
    """The nearest whole number, as DOUBLE."""
    return call("round_even({0}, 0)", coerced(value, kinds.DOUBLE), type=kinds.DOUBLE)


def _rounded(mode: str, value: Expression, places: Expression | None) -> Expression:
    digits = _constant(places)
    if value.type == kinds.STRING:
        value = coerced(value, kinds.DOUBLE)
    kind = value.type
    if kinds.is_integral(kind):
        if digits >= 0:
            return value
        template = f"CAST({mode}(CAST({{0}} AS DECIMAL(20,0)), {digits}) AS {kinds.duckdb_name(kind)})"
        return call(template, value, type=kind, can_fail=True)
    if kinds.is_decimal(kind):
        held = _decimal_of(kind, digits)
        inner = "{0}" if digits >= kind.scale else f"{mode}({{0}}, {digits})"
        return call(f"CAST({inner} AS {kinds.duckdb_name(held)})", value, type=held, can_fail=held.precision == 38)
    if kinds.is_fraction(kind):
        return _fraction(mode, value, digits)
    raise NotProven(f"`{mode}` of {kinds.spark_name(kind)}")


def _fraction(mode: str, value: Expression, digits: int) -> Expression:
    """A zero has no sign when it was rounded."""
    name = kinds.duckdb_name(value.type)
    wide = "CAST({0} AS DOUBLE)"
    if digits == 0:
        return call(f"CAST(({mode}({wide}, 0) + 0) AS {name})", value, type=value.type)
    if mode == _UP and digits > 0:
        near = f"CAST(CAST(CAST({wide} AS VARCHAR) AS DECIMAL(38,{digits})) AS VARCHAR)"
        template = f"(CASE WHEN abs({{0}}) < 1e16 THEN CAST({near} AS {name}) ELSE {{0}} END)"
        return call(template, value, type=value.type)
    function = _by_digits(mode, digits)
    template = f"(CASE WHEN isfinite({{0}}) THEN CAST({function.name}({wide}) AS {name}) ELSE {{0}} END)"
    return call(template, value, type=value.type, uses=(function,))


def _by_digits(mode: str, digits: int) -> ArrowFunction:
    unit = Decimal(1).scaleb(-digits)
    context = decimal.Context(prec=700, rounding=_MODES[mode])

    def compute(values: Any) -> pa.Array:
        given = values.to_pylist()
        found = [
            None if each is None else str(Decimal(repr(each)).quantize(unit, context=context) + 0) for each in given
        ]
        return pa.array(found, pa.string())

    sign = "m" if digits < 0 else "p"
    return ArrowFunction(name=f"lakebed_{mode}_{sign}{abs(digits)}", compute=compute, types=("DOUBLE", "VARCHAR"))


def _to_whole(name: str) -> Callable[..., Expression]:
    def build(value: Expression, places: Expression | None = None) -> Expression:
        kind = value.type
        if places is not None:
            return _to_places(name, value, _constant(places))
        if kinds.is_integral(kind):
            return coerced(value, kinds.BIGINT)
        if kinds.is_decimal(kind):
            held = kind if kind.scale == 0 else kinds.decimal(kind.precision - kind.scale + 1, 0)
            return call(f"CAST({name}({{0}}) AS {kinds.duckdb_name(held)})", value, type=held)
        template = f"(CASE WHEN isnan({{0}}) THEN 0 ELSE CAST({name}({{0}}) AS BIGINT) END)"
        return call(template, coerced(value, kinds.DOUBLE), type=kinds.BIGINT, can_fail=True)

    return build


def _to_places(name: str, value: Expression, digits: int) -> Expression:
    kind = value.type
    if not kinds.is_decimal(kind) or not 0 <= digits < kind.scale or kind.precision + digits > 37:
        raise NotProven(f"`{name}` of {kinds.spark_name(kind)} to {digits} places")
    held = _decimal_of(kind, digits)
    up = f"CAST({10**digits} AS DECIMAL({digits + 1},0))"
    one = f"CAST('{Decimal(1).scaleb(-digits):f}' AS DECIMAL({digits + 1},{digits}))"
    wide = f"CAST({{0}} AS DECIMAL(38,{kind.scale}))"
    whole = f"CAST({name}({wide} * {up}) AS DECIMAL({38 - digits - 1},0))"
    return call(f"CAST(({whole} * {one}) AS {kinds.duckdb_name(held)})", value, type=held)


def _decimal_of(kind: pa.DataType, digits: int) -> pa.DataType:
    """The type of a rounded decimal: one digit more in front, for 9.9 becomes 10."""
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return kinds.decimal(min(38, max(whole, 1 - digits)), 0)
    scale = min(kind.scale, digits)
    return kinds.decimal(min(38, whole + scale), scale)


def _constant(places: Expression | None) -> int:
    if places is None:
        return 0
    if not isinstance(places, Constant) or places.type != kinds.INT or places.value is None:
        raise NotProven("rounding to a number of places that is no constant")
    if abs(places.value) > _MOST_PLACES:
        raise NotProven(f"rounding to {places.value} places")
    return int(places.value)


FUNCTIONS = {
    "round": Function(round_up, 1, 2),
    "bround": Function(round_even, 1, 2),
    "rint": Function(rint, 1, 1),
    "ceil": Function(_to_whole("ceil"), 1, 2),
    "ceiling": Function(_to_whole("ceil"), 1, 2),
    "floor": Function(_to_whole("floor"), 1, 2),
}
