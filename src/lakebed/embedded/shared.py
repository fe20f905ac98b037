"""Groups that a query names more than once are computed once.

A common table expression is bound anew for each use, since columns are unique, and DuckDB would compute it as often.
What is worth to be kept are groups: their rows are few, and much is read for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from lakebed.algebra.relations import Group, Relation, Scan, changed, used_ids
from lakebed.expressions.nodes import Column
from lakebed.records import dataclass


def spelled(relation: Relation) -> str:
    """A SELECT of the relation in which equal groups stand once, in front."""
    shared = _shared([part for part in relation.walk() if isinstance(part, Group)])
    if not shared:
        return relation.spelled()
    scans = {id(use): each.scan(use) for each in shared for use in each.uses}
    listed = ", ".join(f"{each.name} AS MATERIALIZED ({each.uses[0].spelled()})" for each in shared)
    return f"WITH {listed} {changed(relation, lambda part: scans.get(id(part))).spelled()}"


@dataclass(frozen=True)
class _Shared:
    """Groups that are the same but for the names of their columns."""

    name: str
    uses: list[Group]

    def scan(self, use: Group) -> Scan:
        """What stands in the place of one of them."""
        names = tuple(each.id for each in self.uses[0].columns)
        return Scan(columns=use.columns, source=None, view=self.name, names=names)


def _shared(groups: Sequence[Group]) -> list[_Shared]:
    """Groups that occur more than once; those within them stand there already. REQUIRES: outer ones come first."""
    found: list[_Shared] = []
    within: set[int] = set()
    for place, group in enumerate(groups):
        if id(group) in within or not _stands_alone(group):
            continue
        same = [
            other for other in groups[place + 1 :] if id(other) not in within and _Comparison().are_same(group, other)
        ]
        if same:
            found.append(_Shared(f"shared_{len(found)}", [group, *same]))
            within |= {id(part) for each in (group, *same) for part in each.walk()}
    return found


def _stands_alone(group: Group) -> bool:
    """Whether it looks at no column of a query around it."""
    return used_ids(group) <= {each.id for part in group.walk() for each in part.columns}


class _Comparison:
    """Whether two relations are the same if columns of the one are called as those of the other."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def are_same(self, a: Any, b: Any) -> bool:
        """Of relations, expressions and what they are made of."""
        if type(a) is not type(b):
            return False
        if isinstance(a, Column):
            met = self._ids.setdefault(a.id, b.id) == b.id and self._back.setdefault(b.id, a.id) == a.id
            return met and a.type == b.type
        if isinstance(a, Scan):
            return a.source == b.source and a.names == b.names and self.are_same(a.columns, b.columns)
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.are_same, a, b))
        if is_dataclass(a):
            return all(self.are_same(getattr(a, each.name), getattr(b, each.name)) for each in fields(a))
        return bool(a == b)
