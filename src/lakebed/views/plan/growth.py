"""Whether the result of a query can lose rows: what can not take rows back must not be sent such.

Tables without a key, and those that keep the first row of a key, only grow as long as nobody deletes or overwrites. If
somebody does, the rows that are to be taken back are refused when they come.
"""

from __future__ import annotations

from collections.abc import Collection

from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    JoinKind,
    Numbers,
    Project,
    Relation,
    Rows,
    Scan,
    SetKind,
    SetOperation,
    Unnest,
    Window,
)
from lakebed.definition.context import TableContext
from lakebed.expressions.nodes import Column, Expression
from lakebed.options import IGNORE_DELETE
from lakebed.table.opened import opened_of


def grows_only(node: Relation) -> bool:
    """Whether rows are only ever added: none goes, and none changes."""
    match node:
        case Scan():
            return is_looked_up(node) or _grows(opened_of(node.source.table).current())
        case Rows() | Numbers():
            return True
        case Filter() | Project() | Unnest():
            return grows_only(node.input)
        case SetOperation() if node.kind is SetKind.UNION_ALL:
            return all(map(grows_only, node.inputs))
        case Join() if node.kind in (JoinKind.INNER, JoinKind.CROSS, JoinKind.SEMI):
            return all(map(grows_only, node.inputs))
        case Join() if node.kind is JoinKind.LEFT and is_looked_up(node.right):
            return grows_only(node.left)
        case Group():
            return not node.aggregates and bool(node.keys) and node.sets is None and grows_only(node.input)
    return False


def is_looked_up(node: Relation) -> bool:
    """Whether rows of a relation are only looked up, so that its changes do not count."""
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan) and bool(node.source.is_lookup)


def staying(node: Relation) -> frozenset[str] | None:
    """Columns whose values, taken together, are there for ever once a row has them, though the row may change; None
    if even the last row may go."""
    match node:
        case Scan():
            return _of_table(node)
        case Rows() | Numbers():
            return frozenset(each.id for each in node.columns)
        case Filter():
            below = staying(node.input)
            return below if below is not None and _looks_at(node.conditions) <= below else None
        case Project():
            below = staying(node.input)
            if below is None:
                return None
            pairs = zip(node.columns, node.values, strict=True)
            return frozenset(each.id for each, value in pairs if _looks_at((value,)) <= below)
        case Unnest():
            below = staying(node.input)
            if below is None or _looks_at((node.array,)) <= below:
                return None if below is None else below | {each.id for each in node.outputs}
            return below if node.is_outer else None
        case Window():
            return staying(node.input)
        case Group() if node.sets is None:
            return _of_group(node)
        case Join():
            return _of_join(node)
        case SetOperation() if node.kind is SetKind.UNION_ALL:
            return _of_union(node)
    return None


def _of_table(node: Scan) -> frozenset[str] | None:
    context = opened_of(node.source.table).current()
    if is_looked_up(node) or _grows(context):
        return frozenset(each.id for each in node.columns)
    if not context.options[IGNORE_DELETE]:
        return None
    named = zip(node.names, node.columns, strict=True)
    return frozenset(each.id for name, each in named if name in node.source.table.primary_key)


def _grows(context: TableContext) -> bool:
    return not context.has_key or context.is_first_row


def _of_group(node: Group) -> frozenset[str] | None:
    below = staying(node.input)
    if below is None:
        return None
    pairs = zip(node.columns, node.keys, strict=False)
    if not _looks_at(node.keys) <= below:  # a row may move from one group to another, and leave none behind
        return None
    return frozenset(each.id for each, _ in pairs)


def _of_join(node: Join) -> frozenset[str] | None:
    left = staying(node.left)
    if left is None or node.is_lateral:
        return None
    if node.kind is JoinKind.LEFT:
        return left
    if node.kind not in (JoinKind.INNER, JoinKind.CROSS, JoinKind.SEMI):
        return None
    right = staying(node.right)
    if right is None or not _looks_at(node.expressions) <= left | right:
        return None
    return left if node.kind is JoinKind.SEMI else left | right


def _of_union(node: SetOperation) -> frozenset[str] | None:
    found = [staying(side) for side in node.inputs]
    places = []
    for side, stays in zip(node.inputs, found, strict=True):
        if stays is None:
            return None
        places.append({n for n, each in enumerate(side.columns) if each.id in stays})
    return frozenset(node.columns[n].id for n in set.intersection(*places))


def _looks_at(expressions: Collection[Expression]) -> set[str]:
    return {each.id for value in expressions for each in value.walk() if isinstance(each, Column)}
