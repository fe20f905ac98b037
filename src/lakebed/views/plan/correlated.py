"""Queries that look at columns of the query around them: what they ask of those, taken out of them."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.relations import Distinct, Filter, Group, Limit, Project, Relation, Subquery, Window
from lakebed.expressions.nodes import Column, Expression
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class Correlated:
    """A query that looks at nothing outside, and the conditions between its columns and those of the query around."""

    relation: Relation
    conditions: tuple[Expression, ...]


def _outer_columns(relation: Relation) -> set[str]:
    """Columns that a query looks at and does not have."""
    made = {each.id for part in relation.walk() for each in part.columns}
    asked = {
        each.id
        for part in relation.walk()
        for expression in part.expressions
        for each in expression.walk()
        if isinstance(each, Column)
    }
    return asked - made


def uncorrelated(relation: Relation, *, needs_columns: bool) -> Correlated | None:
    """The query without conditions about the outside, which stand beside it; None if it can not be taken apart so.

    `needs_columns`: its own columns are looked at; otherwise only whether there are rows.
    """
    outer = _outer_columns(relation)
    if not outer:
        return Correlated(relation, ())
    match relation:
        case Filter():
            below = uncorrelated(relation.input, needs_columns=True)
            if below is None:
                return None
            inside, outside = [], list(below.conditions)
            for condition in relation.conditions:
                names = {each.id for each in condition.walk() if isinstance(each, Column)}
                if any(
                    isinstance(each, Subquery) and _outer_columns(each.relation) & outer for each in condition.walk()
                ):
                    return None
                if names & outer:
                    outside.append(condition)
                else:
                    inside.append(condition)
            found = below.relation
            if inside:
                found = Filter(columns=found.columns, input=found, conditions=tuple(inside))
            return Correlated(found, tuple(outside))
        case Project():
            below = uncorrelated(relation.input, needs_columns=True)
            if below is None:
                return None
            if not needs_columns:
                return below
            if any(isinstance(e, Column) and e.id in outer for value in relation.values for e in value.walk()):
                return None
            if any(isinstance(e, Subquery) for value in relation.values for e in value.walk()):
                return None
            needed = {e.id for c in below.conditions for e in c.walk() if isinstance(e, Column)} - outer
            known = {each.id for each in relation.columns}
            more = tuple(each for each in below.relation.columns if each.id in needed and each.id not in known)
            widened = replace(
                relation,
                columns=(*relation.columns, *more),
                values=(*relation.values, *more),
                input=below.relation,
            )
            return Correlated(widened, below.conditions)
        case Distinct():
            # Whether there is a row does not depend on how often.
            return uncorrelated(relation.input, needs_columns=needs_columns)
        case Group() | Window() | Limit():
            return None
    return None
