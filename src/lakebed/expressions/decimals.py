"""Arithmetic of decimals as Spark has it: exact, then rounded half up to a type of at most 38 digits, or an error.

DuckDB computes in 128 bits, which is enough for all but the widest types. Of those, values that are too large for it
are computed in Python's exact decimals; all others go through DuckDB.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import ArrowFunction, Expression, call

_EXACT = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP)
_QUOTIENT_DIGITS = Decimal(1).scaleb(-39)
"""Spark divides to 39 digits behind the point before it rounds to those of the type."""
_WORDS = {"+": "plus", "-": "minus", "*": "times", "/": "divided", "%": "modulo", "div": "quotient"}


def arithmetic(sign: str, left: Expression, right: Expression) -> Expression:
    """`left sign right` of two decimals; `div` gives BIGINT."""
    a, b = left.type, right.type
    kind = _result_type(sign, a, b)
    native, guard = _native(sign, a, b, kind)
    last_first = sign in ("/", "%", "div")
    if guard is None:
        can_fail = last_first or kind.precision == 38
        return call(native, left, right, type=kind, can_fail=can_fail, last_first=last_first)
    exact = _function(sign, a, b, kind)
    # A CASE and no TRY: what is common to several expressions DuckDB computes outside of TRY, where it fails.
    template = f"(CASE WHEN {guard} THEN {native} ELSE {exact.name}({{0}}, {{1}}) END)"
    return call(template, left, right, type=kind, can_fail=True, uses=(exact,), last_first=last_first)


def _result_type(sign: str, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type of a result by Spark's rules."""
    scale = max(a.scale, b.scale)
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    match sign:
        case "+" | "-":
            return kinds.bounded_decimal(max(whole_a, whole_b) + scale + 1, scale)
        case "*":
            return kinds.bounded_decimal(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            digits = max(6, a.scale + b.precision + 1)
            return kinds.bounded_decimal(whole_a + b.scale + digits, digits)
        case "%":
            return kinds.bounded_decimal(min(whole_a, whole_b) + scale, scale)
        case _:
            return kinds.BIGINT


def _native(sign: str, a: pa.DataType, b: pa.DataType, kind: pa.DataType) -> tuple[str, str | None]:
    """DuckDB's spelling, and for which values it holds; None: for all."""
    name = kinds.duckdb_name(kind)
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale) + scale
    common = f"DECIMAL({min(38, digits)},{scale})"
    match sign:
        case "+" | "-":
            template = f"CAST((CAST({{0}} AS {common}) {sign} CAST({{1}} AS {common})) AS {name})"
            return template, None if digits < 38 else _smaller(37 - scale, 37 - scale)
        case "*":
            if a.scale + b.scale > 38:
                return f"CAST(NULL AS {name})", "FALSE"
            if a.precision + b.precision > 38:
                return f"CAST((CAST({{0}} AS DECIMAL(38,{a.scale})) * {{1}}) AS {name})", _fitting_product(a, b)
            in_64_bits = max(a.precision, b.precision) < 19  # DuckDB's product of such is of 18 digits, or an error
            left = f"CAST({{0}} AS DECIMAL(19,{a.scale}))" if in_64_bits and a.precision + b.precision > 18 else "{0}"
            return f"CAST(({left} * {{1}}) AS {name})", None
        case "/":
            up = kind.scale + b.scale  # (a * 10^up) / (b * 10^b.scale) is the quotient times 10^kind.scale
            top, bottom = _whole("{0}", a, up), _whole("{1}", b, b.scale)
            rounded = f"((2 * {top} + CAST(sign({{0}}) * sign({{1}}) AS HUGEINT) * {bottom}) // (2 * {bottom}))"
            one = f"CAST('{Decimal(1).scaleb(-kind.scale):f}' AS DECIMAL(38,{kind.scale}))"
            certain = max(a.precision + up, b.precision + b.scale) < 38
            guard = _smaller(37 - up - a.scale, 37 - 2 * b.scale)
            return f"CAST((CAST({rounded} AS DECIMAL(38,0)) * {one}) AS {name})", None if certain else guard
        case "%":
            template = f"CAST((CAST({{0}} AS {common}) % CAST({{1}} AS {common})) AS {name})"
            return template, None if digits <= 38 else _smaller(37 - scale, 37 - scale)
        case _:
            quotient = f"({_whole('{0}', a, scale)} // {_whole('{1}', b, scale)})"
            certain = max(a.precision, b.precision) + scale < 38
            guard = _smaller(37 - a.scale - scale, 37 - b.scale - scale)
            return f"CAST({quotient} AS BIGINT)", None if certain else guard


_LARGE = 15
"""Digits before the point of values that hardly anybody has."""


def _fitting_product(a: pa.DataType, b: pa.DataType) -> str:
    """Whether a product has fewer than 38 digits. It mostly has by the type of one side and the value of the other."""
    whole = 37 - a.scale - b.scale
    for place, kind, other in (("{0}", a, b), ("{1}", b, a)):
        digits = whole - (other.precision - other.scale)
        if digits >= _LARGE:
            bound = f"CAST('{{}}1e{digits}' AS {kinds.duckdb_name(kind)})"
            return f"({place} BETWEEN {bound.format('-')} AND {bound.format('')})"
    return f"(abs(CAST({{0}} AS DOUBLE) * CAST({{1}} AS DOUBLE)) < 1e{whole})"


def _smaller(left: int, right: int) -> str:
    """Whether both sides are smaller than powers of ten."""
    return f"(abs(CAST({{0}} AS DOUBLE)) < 1e{left} AND abs(CAST({{1}} AS DOUBLE)) < 1e{right})"


def _whole(place: str, kind: pa.DataType, digits: int) -> str:
    """A decimal times ten to the power of `digits`, as a whole number."""
    if digits == 0:
        return f"CAST({place} AS HUGEINT)"
    wide = f"CAST({place} AS DECIMAL(38,{kind.scale}))"
    return f"CAST(({wide} * CAST('{10**digits}' AS DECIMAL(38,0))) AS HUGEINT)"


def _function(sign: str, a: pa.DataType, b: pa.DataType, kind: pa.DataType) -> ArrowFunction:
    compute = _COMPUTED[sign]
    shape = f"{a.precision}_{a.scale}_{b.precision}_{b.scale}"

    def exact(left: Any, right: Any) -> pa.Array:
        with decimal.localcontext(_EXACT):
            pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
            found = [None if x is None or y is None else compute(x, y) for x, y in pairs]
            if kind == kinds.BIGINT:
                return pa.array(found, kind)
            unit = Decimal(1).scaleb(-kind.scale)
            return pa.array([None if x is None else x.quantize(unit) for x in found], kind)

    types = tuple(kinds.duckdb_name(each) for each in (a, b, kind))
    return ArrowFunction(name=f"lakebed_decimal_{_WORDS[sign]}_{shape}", compute=exact, types=types)


_COMPUTED: dict[str, Callable[[Decimal, Decimal], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: (x / y).quantize(_QUOTIENT_DIGITS),
    "%": lambda x, y: x % y,
    "div": lambda x, y: int(x // y),
}
