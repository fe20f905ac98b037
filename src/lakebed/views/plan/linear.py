"""Groupings at the end of a query whose values add up: counts, and sums and means of whole numbers and decimals.

Beside the values the table keeps what they are made of: how many rows a group has, how many of them count, and their
sum. A change is added to that, and no other row of the group is looked at. Fractions do not add up: 0.1 + 0.2 - 0.2 is
not 0.1, and what was infinite once stays so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from lakebed.algebra.relations import Group, Project, Relation
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Call, Column, Expression
from lakebed.records import dataclass

_COUNT, _END = "count({distinct}", "){over}"
_SUM, _COUNTED = "sum({distinct}{0}){over}", "count({distinct}{0}){over}"


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of a group: how it is computed from rows, and how its change is from changes of rows."""

    of_rows: Aggregation
    of_changes: Aggregation


@dataclass(frozen=True, slots=True)
class Linear:
    """A grouping whose values add up. `states` is it with what is kept, `rows` the place of how many rows there are."""

    states: Group
    changes: tuple[Aggregation, ...]
    """How the change of each part is computed from a delta of the input."""


def linear(node: Relation, new: Callable[[pa.DataType, bool], Column]) -> tuple[Relation, Linear | None]:
    """The query with a grouping of parts where it ends with one whose values add up; as it is if it does not."""
    if isinstance(node, Project):
        below, found = linear(node.input, new)
        return (replace(node, input=below), found) if found is not None else (node, None)
    if not isinstance(node, Group) or node.sets is not None:
        return node, None
    parts = [_rows()]
    finished: list[Expression] = []
    keys = tuple(new(each.type, value.nullable) for each, value in zip(node.columns, node.keys, strict=False))
    columns = [new(kinds.BIGINT, False)]
    for value in node.aggregates:
        made = _parts_of(value)
        if made is None:
            return node, None
        own = [new(part.of_rows.type, False) for part in made]
        parts += made
        columns += own
        finished.append(_finished(value, own))
    states = Group(
        columns=(*keys, *columns), input=node.input, keys=node.keys, aggregates=tuple(each.of_rows for each in parts)
    )
    shown = Project(columns=node.columns, input=states, values=(*keys, *finished))
    return shown, Linear(states, tuple(each.of_changes for each in parts))


def _rows() -> Part:
    made = Aggregation(type=kinds.BIGINT, nullable=False, template="CAST(count(*){over} AS BIGINT)")
    return Part(made, replace(made, template="CAST(coalesce(sum(w){over}, 0) AS BIGINT)"))


def _parts_of(value: Expression) -> list[Part] | None:
    """How many values there are, and their sum; None if they do not add up."""
    if not isinstance(value, Aggregation) or value.is_distinct or value.order or value.over:
        return None
    if value.template.startswith(_COUNT) and value.template.endswith(_END):
        return [_counted(value, value.template[len(_COUNT) : -len(_END)])]
    if _SUM not in value.template or len(value.arguments) != 1:
        return None
    rest = value.template.replace(_SUM, "").replace(_COUNTED, "")
    kind = value.arguments[0].type
    if "sum(" in rest or "count(" in rest or "avg(" in rest or not _adds_up(kind):
        return None
    return [_counted(value, "{0}"), _summed(value, kind)]


def _adds_up(kind: pa.DataType) -> bool:
    """A sum of more than 38 digits is an error in both engines: then everything is computed, and says so."""
    return kinds.is_integral(kind) or kinds.is_decimal(kind)


def _counted(value: Aggregation, text: str) -> Part:
    made = replace(value, type=kinds.BIGINT, nullable=False, template=f"CAST(count({text}){{over}} AS BIGINT)")
    changed = f"CAST(coalesce(sum(CASE WHEN ({text}) IS NOT NULL THEN w END){{over}}, 0) AS BIGINT)"
    return Part(made, replace(made, template=changed))


def _summed(value: Aggregation, kind: pa.DataType) -> Part:
    scale = kind.scale if kinds.is_decimal(kind) else 0
    total = kinds.decimal(38, scale)
    name = kinds.duckdb_name(total)
    times = "{0} * CAST(w AS DECIMAL(9,0))" if kinds.is_decimal(kind) else "CAST({0} AS HUGEINT) * w"
    made = replace(value, type=total, nullable=False, template=f"CAST(coalesce(sum({{0}}){{over}}, 0) AS {name})")
    return Part(made, replace(made, template=f"CAST(coalesce(sum({times}){{over}}, 0) AS {name})"))


def _finished(value: Expression, parts: list[Column]) -> Expression:
    """The value of the aggregate from its parts."""
    assert isinstance(value, Aggregation)
    if len(parts) == 1:
        return parts[0]
    known = "(CASE WHEN {1} > 0 THEN {0} END)"
    template = value.template.replace(_SUM, known).replace(_COUNTED, "nullif({1}, 0)")
    number, total = parts
    return Call(
        type=value.type,
        nullable=True,
        can_fail=value.can_fail,
        template=template,
        arguments=(total, number),
    )
