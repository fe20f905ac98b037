"""Bits of whole numbers. Shifts go round as Java's: by the last bits of the count, and what is pushed out is lost."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced
from lakebed.expressions.functions.function import Function
from lakebed.expressions.nodes import Constant, Expression, NotProven, call


def _of_two(sign: str, template: str) -> Callable[[Expression, Expression], Expression]:
    def build(left: Expression, right: Expression) -> Expression:
        _check(sign, left, right)
        kind = kinds.common_type_of([left.type, right.type], f"`{sign}`")
        return call(template, coerced(left, kind), coerced(right, kind), type=kind)

    return build


def _check(sign: str, *values: Expression) -> None:
    for value in values:
        if not kinds.is_integral(value.type):
            raise NotProven(f"`{sign}` of {kinds.spark_name(value.type)}")


def inverted(value: Expression) -> Expression:
    """~."""
    _check("~", value)
    return call("(~{0})", value, type=value.type)


def _shift(sign: str) -> Callable[[Expression, Expression], Expression]:
    def build(value: Expression, count: Expression) -> Expression:
        _check(sign, value, count)
        if count.type == kinds.BIGINT:
            raise NotProven(f"`{sign}` by BIGINT")
        kind = kinds.BIGINT if value.type == kinds.BIGINT else kinds.INT
        width = 64 if kind == kinds.BIGINT else 32
        value, count = coerced(value, kind), coerced(count, kinds.INT)
        places = f"({{1}} & {width - 1})"
        if sign == ">>":
            return call(f"({{0}} >> CAST({places} AS {kinds.duckdb_name(kind)}))", value, count, type=kind)
        wide, places = "CAST({0} AS HUGEINT)", f"CAST({places} AS HUGEINT)"
        full, half = f"CAST({1 << width} AS HUGEINT)", f"CAST({1 << (width - 1)} AS HUGEINT)"
        if sign == "<<":
            kept = f"((CAST(1 AS HUGEINT) << ({width} - {places})) - 1)"
            moved = f"(({wide} & {kept}) << {places})"
        else:
            moved = f"(({wide} & ({full} - 1)) >> {places})"
        signed = f"((({moved} + {half}) % {full}) - {half})"
        return call(f"CAST({signed} AS {kinds.duckdb_name(kind)})", value, count, type=kind)

    return build


def bit_count(value: Expression) -> Expression:
    """Bits that are set in the number as a BIGINT."""
    if value.type == kinds.BOOLEAN:
        return coerced(value, kinds.INT)
    _check("bit_count", value)
    return call("CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)", value, type=kinds.INT)


def bit(value: Expression, place: Expression) -> Expression:
    """One bit, 0 or 1."""
    _check("getbit", value, place)
    widths = dict(zip(kinds.INTEGRALS, (8, 16, 32, 64), strict=True))
    if not isinstance(place, Constant) or place.value is None or not 0 <= place.value < widths[value.type]:
        raise NotProven("`getbit` of a place that is no constant in range")
    return call(f"CAST((({{0}} >> {place.value}) & 1) AS TINYINT)", value, type=kinds.TINYINT)


FUNCTIONS = {
    "&": Function(_of_two("&", "({0} & {1})"), 2, 2),
    "|": Function(_of_two("|", "({0} | {1})"), 2, 2),
    "^": Function(_of_two("^", "xor({0}, {1})"), 2, 2),
    "~": Function(inverted, 1, 1),
    "<<": Function(_shift("<<"), 2, 2),
    ">>": Function(_shift(">>"), 2, 2),
    "shiftleft": Function(_shift("<<"), 2, 2),
    "shiftright": Function(_shift(">>"), 2, 2),
    "shiftrightunsigned": Function(_shift(">>>"), 2, 2),
    "bit_count": Function(bit_count, 1, 1),
    "getbit": Function(bit, 2, 2),
    "bit_get": Function(bit, 2, 2),
}
