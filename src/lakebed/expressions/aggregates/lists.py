"""Aggregates that keep all values of their rows: as an array, or as one text.

The order of an array of a group, and of any set, is left open by Spark: any order is right. In a window with an order
the rows of an array stand in it.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.casts import coerced
from lakebed.expressions.nodes import Aggregation, Constant, Expression, NotProven


def listed(value: Expression) -> Aggregation:
    """COLLECT_LIST: nulls are left out; without any value it is empty."""
    return _values("list({distinct}{0}){over}", value)


def listed_once(value: Expression) -> Aggregation:
    """COLLECT_SET: each value once."""
    if kinds.is_nested(value.type) or kinds.is_fraction(value.type):
        # Zeros of two signs are two values in Spark's sets, one in DuckDB's.
        raise NotProven(f"`collect_set` of {kinds.spark_name(value.type)}")
    return _values("list(DISTINCT {0}){over}", value)


def _values(found: str, value: Expression) -> Aggregation:
    if value.type == kinds.NULL or pa.types.is_map(value.type):
        raise NotProven(f"an array of all {kinds.spark_name(value.type)}")
    kind = kinds.array_of(value.type)
    template = f"coalesce(list_filter({found}, lambda e_ : e_ IS NOT NULL), CAST([] AS {kinds.duckdb_name(kind)}))"
    return Aggregation(type=kind, nullable=False, template=template, arguments=(value,))


def joined(value: Expression, between: Expression | None = None) -> Aggregation:
    """LISTAGG: texts one behind the other; nulls are left out."""
    if value.type == kinds.BINARY or (between is not None and not isinstance(between, Constant)):
        raise NotProven("`listagg` of bytes, or with a separator that is not a constant")
    text = "" if between is None or between.value is None else str(between.value)
    separator = Constant(type=kinds.STRING, nullable=False, value=text, text="'" + text.replace("'", "''") + "'")
    template = "string_agg({distinct}{0}, {1}{order}){over}"
    return Aggregation(type=kinds.STRING, template=template, arguments=(coerced(value, kinds.STRING), separator))


AGGREGATES = {
    "collect_list": Aggregate(listed),
    "array_agg": Aggregate(listed),
    "collect_set": Aggregate(listed_once),
    "listagg": Aggregate(joined, 1, 2, takes_order=True, goes_over_windows=False),
    "string_agg": Aggregate(joined, 1, 2, takes_order=True, goes_over_windows=False),
}
