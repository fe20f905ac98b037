"""count, sum, avg, min, max."""

from __future__ import annotations

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.functions.function import MANY
from lakebed.expressions.nodes import Aggregation, Expression, NotProven


def count(*values: Expression) -> Aggregation:
    """Rows in which no value is null; `count(*)` is count of a constant."""
    places = [f"{{{n}}}" for n in range(len(values))]
    if len(values) == 1:
        template = f"count({{distinct}}{places[0]}){{over}}"
    else:
        # Rows with a null among the values do not count: a value of none of them stands for those.
        isnt_null = " AND ".join(f"{place} IS NOT NULL" for place in places)
        template = f"count({{distinct}}CASE WHEN {isnt_null} THEN row({', '.join(places)}) END){{over}}"
    return Aggregation(type=kinds.BIGINT, nullable=False, template=template, arguments=values)


def total(value: Expression) -> Aggregation:
    """SUM: whole numbers give BIGINT, decimals ten digits more, the rest DOUBLE."""
    if kinds.is_integral(value.type):
        kind = kinds.BIGINT
    elif kinds.is_decimal(value.type):
        kind = kinds.decimal(min(38, value.type.precision + 10), value.type.scale)
    elif kinds.is_fraction(value.type):
        kind = kinds.DOUBLE
    else:
        raise NotProven(f"`sum` of {kinds.spark_name(value.type)}")
    inner = "CAST({0} AS DOUBLE)" if value.type == kinds.FLOAT else "{0}"
    template = f"CAST(sum({{distinct}}{inner}){{over}} AS {kinds.duckdb_name(kind)})"
    return Aggregation(type=kind, template=template, arguments=(value,), can_fail=True)


def least(value: Expression) -> Aggregation:
    """MIN."""
    return _extreme("min", value)


def greatest(value: Expression) -> Aggregation:
    """MAX."""
    return _extreme("max", value)


def _extreme(name: str, value: Expression) -> Aggregation:
    if kinds.is_nested(value.type):
        raise NotProven(f"`{name}` of {kinds.spark_name(value.type)}")
    return Aggregation(type=value.type, template=f"{name}({{distinct}}{{0}}){{over}}", arguments=(value,))


AGGREGATES = {
    "count": Aggregate(count, 1, MANY),
    "sum": Aggregate(total),
    "min": Aggregate(least),
    "max": Aggregate(greatest),
}
