"""CAST, and the casts that Spark adds by itself where types differ."""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.nodes import Constant, Expression, NotProven, call


def cast(value: Expression, kind: pa.DataType, *, is_try: bool = False) -> Expression:
    """CAST, or TRY_CAST, which gives null where CAST fails."""
    if value.type == kind:
        return value
    if value.type == kinds.NULL:
        return null_of(kind)
    name = kinds.duckdb_name(kind)
    if kinds.is_integral(value.type) and kinds.is_numeric(kind):
        function = "TRY_CAST" if is_try else "CAST"
        return call(f"{function}({{0}} AS {name})", value, type=kind, can_fail=not is_try)
    raise NotProven(f"CAST of {kinds.spark_name(value.type)} to {kinds.spark_name(kind)}")


def coerced(value: Expression, kind: pa.DataType) -> Expression:
    """The value as Spark brings it to a type by itself; nothing is lost by it."""
    return value if value.type == kind else cast(value, kind)


def null_of(kind: pa.DataType) -> Constant:
    """NULL of a type."""
    return Constant(type=kind, nullable=True, value=None, text=f"CAST(NULL AS {kinds.duckdb_name(kind)})")
