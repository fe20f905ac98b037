"""CAST, and the casts that Spark adds by itself where types differ.

Rules are those of ANSI mode: what does not fit is an error, for TRY_CAST null. What is missing here is not proven:
texts of a moment with a zone, bytes as text (bytes that are no UTF-8 stay as they are in Spark), intervals.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Constant, Expression, NotProven, call

_BLANK = r"[\x00-\x20\x7F]*"
_WHOLE_TEXT = rf"'^{_BLANK}([+-]?[0-9]+){_BLANK}$'"

_TO_FLOAT = (
    "(CASE WHEN isnan({0}) OR isinf({0}) OR abs({0}) <= 3.4028234663852886e38 THEN CAST({0} AS FLOAT)"
    " WHEN abs({0}) < 3.4028235677973366e38 THEN CAST(sign({0}) * 3.4028234663852886e38 AS FLOAT)"
    " ELSE CAST(sign({0}) AS FLOAT) * CAST('inf' AS FLOAT) END)"
)
"""DOUBLE as FLOAT: what is too large is infinite, where DuckDB has an error."""


def cast(value: Expression, kind: pa.DataType, *, is_try: bool = False) -> Expression:
    """CAST, or TRY_CAST, which gives null where CAST fails."""
    if value.type == kind:
        return value
    if value.type == kinds.NULL:
        return null_of(kind)
    found = _spelled(value.type, kind)
    if found is None:
        raise NotProven(f"CAST of {kinds.spark_name(value.type)} to {kinds.spark_name(kind)}")
    template, can_fail = found
    template = template.replace("CAST!", "TRY_CAST" if is_try else "CAST")
    return call(template, value, type=kind, nullable=True if is_try else None, can_fail=can_fail and not is_try)


def coerced(value: Expression, kind: pa.DataType) -> Expression:
    """The value as Spark brings it to a type by itself; nothing is lost by it."""
    return value if value.type == kind else cast(value, kind)


def null_of(kind: pa.DataType) -> Constant:
    """NULL of a type."""
    return Constant(type=kind, nullable=True, value=None, text=f"CAST(NULL AS {kinds.duckdb_name(kind)})")


def _spelled(source: pa.DataType, kind: pa.DataType) -> tuple[str, bool] | None:
    """The template, in which `CAST!` is the cast that TRY_CAST forgives, and whether it can fail."""
    name = kinds.duckdb_name(kind)
    plain = f"CAST!({{0}} AS {name})"
    if kind == kinds.BOOLEAN:
        return _to_boolean(source)
    if source == kinds.BOOLEAN:
        if kind == kinds.STRING or kinds.is_numeric(kind):
            inner = "{0}" if kind == kinds.STRING else "CAST({0} AS INTEGER)"
            return f"CAST!({inner} AS {name})", kinds.is_decimal(kind)
        return None
    if kinds.is_integral(source) and kinds.is_numeric(kind):
        return plain, not kinds.is_fraction(kind)
    if kinds.is_numeric(source) and kinds.is_integral(kind):
        return f"CAST!(trunc({{0}}) AS {name})", True
    if kinds.is_decimal(source) and kinds.is_decimal(kind):
        return plain, kind.precision - kind.scale <= source.precision - source.scale
    if kinds.is_decimal(source) and kinds.is_fraction(kind):
        if kind == kinds.DOUBLE and source.precision <= 15:
            return plain, False
        return f"CAST(CAST({{0}} AS VARCHAR) AS {name})", False  # read from text, it is the nearest fraction
    if (source, kind) == (kinds.DOUBLE, kinds.FLOAT):
        return _TO_FLOAT, False
    if kinds.is_fraction(source) and kinds.is_fraction(kind):
        return plain, False
    if kind == kinds.STRING and (kinds.is_integral(source) or kinds.is_decimal(source) or source == kinds.DATE):
        return plain, False
    if source == kinds.STRING and kinds.is_integral(kind):
        return f"CAST!(regexp_extract({{0}}, {_WHOLE_TEXT}, 1) AS {name})", True
    if (source, kind) == (kinds.STRING, kinds.BINARY):
        return "encode({0})", False
    return None


def _to_boolean(source: pa.DataType) -> tuple[str, bool] | None:
    if kinds.is_numeric(source):
        return "({0} <> 0)", False
    if source == kinds.STRING:
        words = {"true": ("t", "true", "y", "yes", "1"), "false": ("f", "false", "n", "no", "0")}
        found = " ".join(f"WHEN '{word}' THEN '{value}'" for value, all_ in words.items() for word in all_)
        bare = rf"lower(regexp_replace({{0}}, '^{_BLANK}|{_BLANK}$', '', 'g'))"
        return f"CAST!((CASE {bare} {found} WHEN NULL THEN NULL ELSE 'x' || {{0}} END) AS BOOLEAN)", True
    return None
