"""Aggregates that give one of the values of their rows: min, max, max_by, first, mode."""

from __future__ import annotations

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.aggregates.aggregate import Aggregate
from lakebed.expressions.nodes import Aggregation, Constant, Expression, NotProven
from lakebed.expressions.orders import order_key


def least(value: Expression) -> Aggregation:
    """MIN."""
    return _extreme("min", value)


def greatest(value: Expression) -> Aggregation:
    """MAX."""
    return _extreme("max", value)


def least_by(value: Expression, rank: Expression) -> Aggregation:
    """MIN_BY: the value of the row where another is least; rows where that one is null do not count."""
    return _extreme_by("arg_min_null", value, rank)


def greatest_by(value: Expression, rank: Expression) -> Aggregation:
    """MAX_BY: the value of the row where another is greatest; rows where that one is null do not count."""
    return _extreme_by("arg_max_null", value, rank)


def _extreme(name: str, value: Expression) -> Aggregation:
    if kinds.is_nested(value.type):
        return _extreme_by(f"arg_{name}_null", value, value)
    if value.type in (kinds.NULL, kinds.YEAR_MONTH):
        raise NotProven(f"`{name}` of {kinds.spark_name(value.type)}")
    return Aggregation(type=value.type, template=f"{name}({{distinct}}{{0}}){{over}}", arguments=(value,))


def _extreme_by(name: str, value: Expression, rank: Expression) -> Aggregation:
    if rank.type == kinds.NULL:
        raise NotProven(f"`{name}` of {kinds.spark_name(rank.type)}")
    template = f"{name}({{0}}, {{1}}){{over}}"
    return Aggregation(type=value.type, template=template, arguments=(value, order_key(rank)))


def first(value: Expression, ignores_nulls: Expression | None = None) -> Aggregation:
    """FIRST of a group: of any row, since a group has no order."""
    return _one_of("any_value" if _is_true(ignores_nulls) else "first", value)


def last(value: Expression, ignores_nulls: Expression | None = None) -> Aggregation:
    """LAST of a group: of any row, since a group has no order."""
    return _one_of("any_value" if _is_true(ignores_nulls) else "last", value)


def some_not_null(value: Expression) -> Aggregation:
    """FIRST and LAST with IGNORE NULLS, of a group."""
    return _one_of("any_value", value)


def _one_of(name: str, value: Expression) -> Aggregation:
    return Aggregation(type=value.type, template=f"{name}({{0}}){{over}}", arguments=(value,))


def _is_true(ignores_nulls: Expression | None) -> bool:
    if ignores_nulls is None:
        return False
    if not isinstance(ignores_nulls, Constant) or ignores_nulls.type != kinds.BOOLEAN:
        raise NotProven("whether nulls are left out, if that is not a constant")
    return ignores_nulls.value is True


def mode(value: Expression) -> Aggregation:
    """MODE: the value of most rows; any one of those that are equally many."""
    if kinds.is_fraction(value.type) or pa.types.is_nested(value.type):
        raise NotProven(f"`mode` of {kinds.spark_name(value.type)}")
    return Aggregation(type=value.type, template="mode({0}){over}", arguments=(value,))


AGGREGATES = {
    "min": Aggregate(least),
    "max": Aggregate(greatest),
    "min_by": Aggregate(least_by, 2, 2, takes_distinct=False),
    "max_by": Aggregate(greatest_by, 2, 2, takes_distinct=False),
    "mode": Aggregate(mode, takes_distinct=False),
    **{
        name: Aggregate(build, 1, 2, takes_distinct=False, goes_over_windows=False)
        for name, build in {
            "first": first,
            "first_value": first,
            "any_value": first,
            "last": last,
            "last_value": last,
        }.items()
    },
    **{
        f"{name} ignore nulls": Aggregate(some_not_null, takes_distinct=False, goes_over_windows=False)
        for name in ("first", "first_value", "any_value", "last", "last_value")
    },
}
