"""Which columns tell the rows of a relation apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakebed.algebra.equalities import equalities, origin_of
from lakebed.algebra.relations import Filter, Group, Join, JoinKind, Numbers, Project, Relation, Scan, Window
from lakebed.expressions.nodes import Column

Key = tuple[Column, ...]


def key_of(node: Relation, tables: Mapping[str, Key]) -> Key | None:
    """Columns whose values no two rows share; None if rows may be equal. `tables` are the keys of scans, by view.

    The columns are those of the tables below, or of a grouping: they may have to be carried up to where they are asked
    for. Whether one may be null is told by the column.
    """
    match node:
        case Scan():
            return tables.get(node.view)
        case Filter() | Window():
            return key_of(node.input, tables)
        case Project():
            return key_of(node.input, tables)
        case Numbers():
            return node.columns
        case Group() if node.sets is None:
            pairs = zip(node.columns, node.keys, strict=False)
            return tuple(replace(each, nullable=value.nullable) for each, value in pairs)
        case Join():
            return _of_join(node, tables)
    return None


def _of_join(node: Join, tables: Mapping[str, Key]) -> Key | None:
    left = key_of(node.left, tables)
    if node.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return left
    if node.latest is not None and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        return left
    right = key_of(node.right, tables)
    if left is None or right is None or node.kind not in (JoinKind.INNER, JoinKind.CROSS, JoinKind.LEFT):
        return None
    same = equalities(node)
    # A row of one side is told by its key. What it says to equal a column of the other side is then known of that, too.
    given = {origin_of(node.right, each) for each in same.right if isinstance(each, Column)}
    ours, theirs = left, tuple(each for each in right if each.id not in given)
    if node.kind is JoinKind.LEFT:
        return (*ours, *(replace(each, nullable=True) for each in theirs))
    given = {origin_of(node.left, each) for each in same.left if isinstance(each, Column)}
    others = tuple(each for each in left if each.id not in given)
    return (*ours, *theirs) if len(left) + len(theirs) <= len(right) + len(others) else (*right, *others)
