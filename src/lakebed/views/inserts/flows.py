"""The query of an INSERT as the table stores its rows: one flow for each part that UNION ALL puts together.

Parts are taken for themselves since rows of two of them may have the same key: a row of one that changes is told from
a row of the other that goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakebed.algebra.relations import (
    Filter,
    Group,
    Project,
    Relation,
    SetKind,
    SetOperation,
    Sort,
)
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Column, Expression, NotProven
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.store import carried_kind, stored
from lakebed.types.logical import TIMESTAMPS, AtomicType, DataField, TypeRoot, is_root
from lakebed.views.plan.build import ViewPlan, planned
from lakebed.views.plan.growth import grows_only, staying
from lakebed.views.plan.judge import Judged, column_names, judged
from lakebed.views.plan.keys import origin_of
from lakebed.views.rules.compile import top_of
from lakebed.views.sources import source_of

_MOST_PRECISE = 6
"""Moments are computed to so many digits of a second."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A part of the query. Its columns have the names of the table's, then come those that only tell rows apart."""

    plan: ViewPlan
    fields: Mapping[str, DataField]
    """The columns of the table that get values, by name."""

    @property
    def root(self) -> Project:
        """The operator at its end, which gives the columns of the table."""
        assert isinstance(self.plan.root, Project)
        return self.plan.root

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.plan.names[: self.plan.shown]

    @property
    def grows_only(self) -> bool:
        """Whether rows are only added."""
        return grows_only(self.root)

    def keeps(self, names: Sequence[str]) -> bool:
        """Whether values of these columns, once there, are there for ever."""
        stays = staying(self.root)
        own = dict(zip(self.plan.names, self.root.columns, strict=True))
        return stays is not None and all(name in own and own[name].id in stays for name in names)

    # --- what tells rows apart -----------------------------------------------------------------------------------

    def is_key(self, names: Sequence[str]) -> bool:
        """Whether no two rows have the same values of these columns."""
        key = self.plan.key
        return key is not None and all(self._told_by(each, names) is not None for each in key)

    def _told_by(self, key: str, names: Sequence[str]) -> str | None:
        """Which of these columns has what a column of the query's key has, so that two values stay two."""
        given = dict(zip(self.plan.names, zip(self.root.columns, self.root.values, strict=True), strict=True))
        wanted = origin_of(self.root, given[key][0])
        for name in names:
            if name not in given or name not in self.fields:
                continue
            taken = _taken(given[name][1], self.fields[name])
            if taken is None or origin_of(self.root.input, taken) != wanted:
                continue
            if self._stays_apart(taken, self.fields[name], wanted):
                return name
        return None

    def _stays_apart(self, taken: Column, field: DataField, origin: str) -> bool:
        """Whether two values are two values in a column of the table."""
        if is_root(field.type, TypeRoot.CHAR):
            return False
        if is_root(field.type, TIMESTAMPS) and _precision(field) < _MOST_PRECISE:
            before = self._read_as(origin)
            return before is not None and is_root(before.type, TIMESTAMPS) and _precision(before) <= _precision(field)
        given, kind = taken.type, carried_kind(field)
        if given == kind:
            return True
        if kinds.is_integral(given):
            return kinds.is_integral(kind) or kinds.is_decimal(kind) or kind == kinds.STRING
        if kinds.is_decimal(given):
            return bool(kind == kinds.STRING or (kinds.is_decimal(kind) and kind.scale >= given.scale))
        return bool(given == kinds.DATE and kind == kinds.STRING)

    def _read_as(self, origin: str) -> DataField | None:
        """The column of a table that a column is."""
        for scan in self.plan.scans:
            for name, each in zip(scan.names, scan.columns, strict=True):
                if each.id == origin:
                    source = source_of(scan)
                    return next(field for field in source.table.schema.fields if field.name == name)
        return None

    def key_in_words(self) -> str:
        """What tells its rows apart."""
        if self.plan.key is None:
            return "rows of the query may be equal"
        if not self.plan.key:
            return "the query has one row"
        called = column_names(self.root)
        own = dict(zip(self.plan.names, self.root.columns, strict=True))
        shown = [name if name in self.names else called.get(own[name].id, name) for name in self.plan.key]
        return f"rows of the query are told apart by {', '.join(shown)}"

    # --- groups whose old rows are not known ---------------------------------------------------------------------

    def replaced_by(self, names: Sequence[str]) -> Mapping[str, tuple[int, Expression]] | None:
        """If the query ends with groups whose keys these columns are: for each of them the place of its key, and how
        it is stored, over a column `k<place>`. None if it ends otherwise, or rows of groups may be left out."""
        top, carried = top_of(self.root)
        node: Relation = self.root
        while isinstance(node, Project):
            node = node.input
        if not isinstance(top, Group) or node is not top:
            return None
        origins = [origin_of(self.root, each) for each in carried]
        given = dict(zip(self.plan.names, self.root.values, strict=True))
        found: dict[str, tuple[int, Expression]] = {}
        for name in names:
            if name not in given or name not in self.fields:
                return None
            taken = _taken(given[name], self.fields[name])
            origin = None if taken is None else origin_of(self.root.input, taken)
            if taken is None or origin not in origins:
                return None
            place = origins.index(origin)
            found[name] = (place, stored(replace(taken, id=f"k{place + 1}"), self.fields[name], by_place=True))
        return found

    @property
    def judged_replacing(self) -> Judged:
        """The words for it if groups at its end are replaced by their keys."""
        return judged(self.root, top_of(self.root)[0])


def flows_of(bound: Bound, fields: Sequence[DataField]) -> list[Flow]:
    """The parts of a query whose columns are those of a table."""
    by_name = {field.name: field for field in fields}
    taken = {name: by_name[name] for name in bound.names}
    parts = _parts(bound.relation)
    return [Flow(planned(Bound(part, bound.names), is_stored=False), taken) for part in parts]


def _parts(node: Relation) -> list[Relation]:
    match node:
        case SetOperation() if node.kind is SetKind.UNION_ALL:
            return [part for side in node.inputs for part in _named_like(node, side)]
        case Project() | Filter():
            below = _parts(node.input)
            return [node] if len(below) == 1 else [replace(node, input=part) for part in below]
        case Sort():
            return _parts(node.input)
    return [node]


def _named_like(node: Relation, side: Relation) -> list[Relation]:
    return [Project(columns=node.columns, input=part, values=part.columns) for part in _parts(side)]


def _taken(value: Expression, field: DataField) -> Column | None:
    """The column whose value a column of the table stores; None if it is computed otherwise."""
    for each in value.walk():
        if isinstance(each, Column):
            try:
                if stored(each, field, by_place=True) == value:
                    return each
            except NotProven:
                continue
    return None


def _precision(field: DataField) -> int:
    assert isinstance(field.type, AtomicType)
    return field.type.precision
