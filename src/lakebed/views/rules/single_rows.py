"""Operators that look at one row at a time: filters, projections, arrays as rows. What they do to rows they do to
changes of rows."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.relations import Filter, Project, Relation, Unnest
from lakebed.expressions.nodes import Column
from lakebed.views.rules.program import Program, Restriction, narrowed_to, restricted
from lakebed.views.rules.weighted import WEIGHT, Version


def filter_delta(program: Program, node: Filter) -> Relation | None:
    """The changes that meet the conditions."""
    given = program.rows(node.input)
    return None if given is None else replace(node, columns=(*node.columns, WEIGHT), input=given)


def filter_state(program: Program, node: Filter, version: Version, restriction: Restriction | None) -> Relation:
    """Columns are those of the input, so keys go down."""
    return replace(node, input=program.state(node.input, version, restriction))


def project_delta(program: Program, node: Project) -> Relation | None:
    """The columns of the changes, computed."""
    given = program.rows(node.input)
    if given is None:
        return None
    return replace(node, columns=(*node.columns, WEIGHT), values=(*node.values, WEIGHT), input=given)


def project_state(program: Program, node: Project, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down as far as columns are handed on as they are."""
    if restriction is None:
        return replace(node, input=program.state(node.input, version))
    below = {each.id: value for each, value in zip(node.columns, node.values, strict=True)}
    plain = {name for name, value in below.items() if isinstance(value, Column)}
    pushed, is_all = narrowed_to(restriction, plain)
    if pushed is not None:
        columns = tuple(value for each in pushed.columns if isinstance(value := below[each.id], Column))
        pushed = Restriction(columns, pushed.keys)
    found = replace(node, input=program.state(node.input, version, pushed))
    return found if is_all else restricted(found, restriction)


def unnest_delta(program: Program, node: Unnest) -> Relation | None:
    """The elements of the changes."""
    given = program.rows(node.input)
    return None if given is None else replace(node, columns=(*node.columns, WEIGHT), input=given)


def unnest_state(program: Program, node: Unnest, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down unless they are elements."""
    pushed, is_all = narrowed_to(restriction, {each.id for each in node.input.columns})
    found = replace(node, input=program.state(node.input, version, pushed))
    return found if is_all else restricted(found, restriction)
