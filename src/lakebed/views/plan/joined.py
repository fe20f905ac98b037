"""Inner joins in an order in which each table is found by what is known already.

`FROM a, b, c WHERE a.x = c.x AND c.y = b.y` says no more than which rows come together. Followed as it stands, a change
of `a` would meet all rows of `b`. So the joins are taken apart and put together again: conditions go to where all their
columns are, and a table comes as soon as something says what its rows equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.algebra.equalities import columns_in, conjuncts, equalities
from lakebed.algebra.relations import Filter, Join, JoinKind, Project, Relation, Subquery
from lakebed.expressions.functions import FUNCTIONS
from lakebed.expressions.nodes import Call, Expression

_OR = "({0} OR {1})"


def is_inner(node: Relation) -> bool:
    """Whether a relation is a join that can be taken apart: what it asks can be asked at any time."""
    if not isinstance(node, Join) or node.kind not in (JoinKind.INNER, JoinKind.CROSS) or node.is_lateral:
        return False
    if node.latest is not None:  # which is known of its two sides alone
        return False
    return node.condition is None or may_move(node.condition)


def may_move(condition: Expression) -> bool:
    """Whether it does not matter when a condition is asked: it never fails, or with whatever row."""
    if any(isinstance(each, Subquery) for each in condition.walk()):
        return False
    return not any(each.can_fail and columns_in(each) for each in condition.walk())


def joined(node: Relation, conditions: Sequence[Expression], plain: Callable[[Relation], Relation]) -> Relation:
    """An inner join of tables that meets conditions; `plain` is done to what is joined."""
    leaves: list[Relation] = []
    pool: list[Expression] = []
    _take_apart(node, leaves, pool, plain)
    for condition in conditions:
        pool += [part for each in conjuncts(condition) for part in (each, *_common(each))]
    pool = list({each.spelled(): each for each in pool}.values())
    owned = [{each.id for each in leaf.columns} for leaf in leaves]
    rest: list[Expression] = []
    alone: list[list[Expression]] = [[] for _ in leaves]
    for condition in pool:
        place = next((n for n, own in enumerate(owned) if columns_in(condition) <= own), None)
        (rest if place is None else alone[place]).append(condition)
    sides = [_filtered(leaf, asked) for leaf, asked in zip(leaves, alone, strict=True)]
    found = _put_together(sides, rest)
    if [each.id for each in found.columns] == [each.id for each in node.columns]:
        return found
    return Project(columns=node.columns, input=found, values=node.columns)


def _take_apart(
    node: Relation, leaves: list[Relation], pool: list[Expression], plain: Callable[[Relation], Relation]
) -> None:
    if not is_inner(node):
        leaves.append(plain(node))
        return
    assert isinstance(node, Join)
    for side in node.inputs:
        _take_apart(side, leaves, pool, plain)
    pool += conjuncts(node.condition)


def _common(condition: Expression) -> list[Expression]:
    """What each part of an OR asks for: `(a AND b) OR (a AND c)` asks for `a`."""
    branches = [conjuncts(each) for each in _alternatives(condition)]
    if len(branches) < 2:
        return []
    texts = [{each.spelled() for each in branch} for branch in branches[1:]]
    return [each for each in branches[0] if all(each.spelled() in known for known in texts)]


def _alternatives(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.template == _OR:
        return [each for part in condition.arguments for each in _alternatives(part)]
    return [condition]


def _filtered(leaf: Relation, conditions: Sequence[Expression]) -> Relation:
    return Filter(columns=leaf.columns, input=leaf, conditions=tuple(conditions)) if conditions else leaf


def _put_together(sides: list[Relation], rest: list[Expression]) -> Relation:
    """The sides in an order in which each one is connected with those before it, as far as conditions connect them."""
    found, *waiting = sides
    while waiting:
        tried = [_with_side(found, side, rest) for side in waiting]
        connected = [place for place, each in enumerate(tried) if equalities(each).left]
        place = connected[0] if connected else 0
        taken = conjuncts(tried[place].condition)
        found = tried[place]
        waiting.pop(place)
        texts = {each.spelled() for each in taken}
        rest = [each for each in rest if each.spelled() not in texts]
    return _filtered(found, rest)


def _with_side(found: Relation, side: Relation, rest: Sequence[Expression]) -> Join:
    columns = (*found.columns, *side.columns)
    known = {each.id for each in columns}
    condition: Expression | None = None
    for each in rest:
        if columns_in(each) <= known:
            condition = each if condition is None else FUNCTIONS["and"]("and", [condition, each])
    kind = JoinKind.CROSS if condition is None else JoinKind.INNER
    return Join(columns=columns, left=found, right=side, kind=kind, condition=condition)


__all__ = ["is_inner", "joined", "may_move"]
