"""Joins. Rows that changed on one side are joined with the other side, of which only rows with their keys are read."""

from __future__ import annotations

from dataclasses import replace

from lakebed.algebra.equalities import equalities
from lakebed.algebra.relations import Join, JoinKind, Relation
from lakebed.expressions.nodes import Expression
from lakebed.views.rules.program import Program, Restriction, narrowed_to, restricted
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Keys, Stored, Together, Version, weighted


def join_delta(program: Program, node: Join) -> Relation | None:
    """Of an inner join or of one that looks for partners of its left side."""
    if node.kind in (JoinKind.INNER, JoinKind.CROSS):
        return _inner(program, node)
    return _one_sided(program, node)


def _inner(program: Program, node: Join) -> Relation | None:
    """Changes of the left with the new right side, changes of the right with the old left side."""
    same = equalities(node)
    parts = []
    columns = (*node.columns, WEIGHT)
    left, right = program.delta(node.left), program.delta(node.right)
    if left is not None:
        others = _partners(program, node.right, Version.NEW, same.right, left, same.left)
        parts.append(program.keep(replace(node, columns=columns, left=left, right=others), "joined", (left.name,)))
    if right is not None:
        others = _partners(program, node.left, Version.OLD, same.left, right, same.right)
        # Among changes are rows as they were and as they are: which one matches, all of them are asked.
        found = replace(node, columns=columns, left=others, right=right, latest=None)
        parts.append(program.keep(found, "joined", (right.name,)))
    return Together(columns=columns, parts=tuple(parts)) if parts else None


def _partners(
    program: Program,
    node: Relation,
    version: Version,
    values: tuple[Expression, ...],
    rows: Stored,
    given: tuple[Expression, ...],
) -> Relation:
    """The rows of one side that may match given rows of the other."""
    return program.state_where(node, version, values, _keys(program, rows, given))


def _keys(program: Program, rows: Stored, given: tuple[Expression, ...]) -> Keys | None:
    return program.keys(rows, given) if given else None


def _one_sided(program: Program, node: Join) -> Relation | None:
    """LEFT, SEMI and ANTI: changes of the left side with the new right side; and rows of the old left side that match a
    change of the right side, with the new right side in place of the old one."""
    same = equalities(node)
    columns = (*node.columns, WEIGHT)
    parts: list[Relation] = []
    left, right = program.delta(node.left), program.delta(node.right)
    if left is not None:
        others = _partners(program, node.right, Version.NEW, same.right, left, same.left)
        parts.append(program.keep(replace(node, columns=columns, left=left, right=others), "joined", (left.name,)))
    if right is not None:
        rows = _partners(program, node.left, Version.OLD, same.left, right, same.right)
        half = replace(node, columns=node.left.columns, left=rows, right=right, kind=JoinKind.SEMI, latest=None)
        touched = program.keep(half, "touched", (right.name,))
        keys = _keys(program, touched, same.left)
        for version, weight in ((Version.NEW, 1), (Version.OLD, -1)):
            others = program.state_where(node.right, version, same.right, keys)
            found = weighted(replace(node, left=touched, right=others), weight)
            parts.append(program.keep(found, "joined", (touched.name,)))
    return Consolidated(columns=columns, input=Together(columns=columns, parts=tuple(parts))) if parts else None


def join_state(program: Program, node: Join, version: Version, restriction: Restriction | None) -> Relation:
    """Keys go down on one side, and what is found there restricts the other."""
    if restriction is None:
        return replace(node, left=program.state(node.left, version), right=program.state(node.right, version))
    same = equalities(node)
    left, is_left = narrowed_to(restriction, {each.id for each in node.left.columns})
    right, is_right = narrowed_to(restriction, {each.id for each in node.right.columns})
    if node.kind in (JoinKind.INNER, JoinKind.CROSS) and right is not None and (is_right or left is None):
        rows = program.keep(program.state(node.right, version, right), "side")
        others = _other_side(program, node.left, version, left, same.left, rows, same.right)
        found: Relation = replace(node, left=others, right=rows)
        return found if is_right else restricted(found, restriction)
    if left is not None:
        rows = program.keep(program.state(node.left, version, left), "side")
        others = _other_side(program, node.right, version, right, same.right, rows, same.left)
        found = replace(node, left=rows, right=others)
        return found if is_left else restricted(found, restriction)
    found = replace(node, left=program.state(node.left, version), right=program.state(node.right, version))
    return restricted(found, restriction)


def _other_side(
    program: Program,
    node: Relation,
    version: Version,
    own: Restriction | None,
    values: tuple[Expression, ...],
    rows: Stored,
    given: tuple[Expression, ...],
) -> Relation:
    """The rows of the second side that are asked for: by what the first says to be equal, else by its own keys."""
    return _partners(program, node, version, values, rows, given) if values else program.state(node, version, own)
