"""`SELECT count(*), min(id), max(id)` of a table as metadata tell it: no file is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.algebra.relations import Group, Relation, Rows, Scan
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Aggregation, Column, Constant, Expression
from lakebed.records import dataclass
from lakebed.types.predicate_stats import ColumnStats


@dataclass(frozen=True)
class Totals:
    """How many rows a table shows, and what is known of its columns, file by file."""

    rows: int
    columns: Mapping[str, ColumnStats]


TotalsOf = Callable[[Scan, Sequence[str]], Totals | None]
"""What metadata tell of a table, all of those columns included; None if they do not."""


def with_known_totals(relation: Relation, totals_of: TotalsOf) -> Relation:
    """The query with constants in the place of groups that ask no more of a table than metadata tell."""
    if isinstance(relation, Group) and isinstance(relation.input, Scan) and not relation.keys and relation.sets is None:
        found = _constants(relation.aggregates, relation.input, totals_of)
        if found is not None:
            return Rows(columns=relation.columns, rows=(found,))
    changes: dict[str, Any] = {}
    for part in fields(relation):
        value = getattr(relation, part.name)
        if isinstance(value, Relation):
            changes[part.name] = with_known_totals(value, totals_of)
    return replace(relation, **changes) if changes else relation


def _constants(asked: Sequence[Expression], scan: Scan, totals_of: TotalsOf) -> tuple[Constant, ...] | None:
    names = {each.id: name for name, each in zip(scan.names, scan.columns, strict=True)}
    looked_at = [_looked_at(value, names) for value in asked]
    if not asked or None in looked_at:
        return None
    totals = totals_of(scan, sorted({name for name in looked_at if name}))
    if totals is None:
        return None
    return tuple(_constant(value, name or "", totals) for value, name in zip(asked, looked_at, strict=True))


def _looked_at(value: Expression, names: Mapping[str, str]) -> str | None:
    """The column of a count, least or greatest value; empty for a count of rows, and None for all else."""
    if not isinstance(value, Aggregation) or value.condition is not None or value.over or len(value.arguments) != 1:
        return None
    argument = value.arguments[0]
    word = value.template.partition("({distinct}{0})")[0]
    if word == "count" and not value.is_distinct and isinstance(argument, Constant) and argument.value is not None:
        return ""
    is_plain = word in ("min", "max") or (word == "count" and not value.is_distinct)
    return names[argument.id] if is_plain and isinstance(argument, Column) else None


def _constant(asked: Expression, name: str, totals: Totals) -> Constant:
    assert isinstance(asked, Aggregation)
    stats = totals.columns.get(name)
    if asked.template.startswith("count"):
        nulls = 0 if stats is None else pc.sum(stats.null_count).as_py() or 0
        return _spelled(asked, totals.rows - nulls)
    if stats is None:  # a table without files
        return _spelled(asked, None)
    extremes = pc.min_max(stats.min if asked.template.startswith("min") else stats.max)
    value = extremes["min" if asked.template.startswith("min") else "max"]
    return _spelled(asked, value.cast(pa.int32() if value.type == pa.date32() else value.type).as_py())


def _spelled(asked: Aggregation, value: int | None) -> Constant:
    """A value with the type of the aggregate; a day is its number."""
    kind = kinds.duckdb_name(asked.type)
    if value is None:
        text = f"CAST(NULL AS {kind})"
    elif pa.types.is_date(asked.type):
        text = f"CAST(DATE '1970-01-01' + CAST({value} AS INTEGER) AS {kind})"
    else:
        text = f"CAST({value} AS {kind})"
    return Constant(type=asked.type, nullable=asked.nullable, value=value, text=text)
