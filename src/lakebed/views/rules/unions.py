"""UNION ALL: the changes of both sides. What else puts relations together is written with it and with groupings."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.relations import Project, Relation, SetOperation
from lakebed.views.rules.program import Program, Restriction
from lakebed.views.rules.weighted import WEIGHT, Together, Version


def union_delta(program: Program, node: SetOperation) -> Relation | None:
    """The changes of both sides, under the columns of the union."""
    parts = []
    for side in node.inputs:
        given = program.rows(side)
        if given is not None:
            columns = (*node.columns, WEIGHT)
            parts.append(Project(columns=columns, input=given, values=(*side.columns, WEIGHT)))
    return Together(columns=(*node.columns, WEIGHT), parts=tuple(parts)) if parts else None


def union_state(program: Program, node: SetOperation, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down on both sides."""
    sides = []
    for side in node.inputs:
        pushed = None
        if restriction is not None:
            places = {each.id: n for n, each in enumerate(node.columns)}
            columns = tuple(side.columns[places[each.id]] for each in restriction.columns)
            pushed = Restriction(columns, restriction.keys)
        found = program.state(side, version, pushed)
        sides.append(Project(columns=side.columns, input=found, values=side.columns))
    return replace(node, left=sides[0], right=sides[1])
