"""`SELECT count(*)` of a table as metadata tell it: no file is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from lakebed.algebra.relations import Group, Relation, Rows, Scan
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Constant, Expression

CountOf = Callable[[Scan], int | None]
"""How many rows a table shows, if that is known."""


def with_known_counts(relation: Relation, count_of: CountOf) -> Relation:
    """The query with numbers in the place of groups that do nothing but count all rows of a table."""
    if isinstance(relation, Group) and isinstance(relation.input, Scan) and _only_counts(relation):
        count = count_of(relation.input)
        if count is not None:
            value = Constant(type=kinds.BIGINT, nullable=False, value=count, text=f"CAST({count} AS BIGINT)")
            return Rows(columns=relation.columns, rows=((value,) * len(relation.aggregates),))
    changes: dict[str, Any] = {}
    for part in fields(relation):
        value = getattr(relation, part.name)
        if isinstance(value, Relation):
            changes[part.name] = with_known_counts(value, count_of)
    return replace(relation, **changes) if changes else relation


def _only_counts(group: Group) -> bool:
    return not group.keys and group.sets is None and bool(group.aggregates) and all(map(_counts_rows, group.aggregates))


def _counts_rows(value: Expression) -> bool:
    """Whether it is `count(*)`, or of another constant: see `aggregates.totals.count`."""
    return (
        isinstance(value, Aggregation)
        and value.template.startswith("count({distinct}{0})")
        and all(isinstance(each, Constant) and each.value is not None for each in value.arguments)
        and not value.is_distinct
        and value.condition is None
        and not value.over
    )
