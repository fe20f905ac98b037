"""The query of an INSERT as the table stores its rows: one flow for each part that UNION ALL puts together.

Parts are taken for themselves since rows of two of them may have the same key: a row of one that changes is told from
a row of the other that goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakebed.algebra.equalities import origin_of
from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    Project,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Unnest,
    Window,
)
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Call, Column, Expression, NotProven
from lakebed.records import dataclass
from lakebed.sql.bind.scope import Bound
from lakebed.sql.change.store import carried_kind, stored
from lakebed.types.logical import TIMESTAMPS, AtomicType, DataField, TypeRoot, is_root
from lakebed.views.plan.build import ViewPlan, planned
from lakebed.views.plan.growth import grows_only, staying
from lakebed.views.plan.judge import Judged, judged
from lakebed.views.rules.compile import top_of
from lakebed.views.sources import MOST_PRECISE, source_of

_WHOLE_SECONDS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


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
            if self._stays_apart(taken, self.fields[name]):
                return name
        return None

    def _stays_apart(self, taken: Column, field: DataField) -> bool:
        """Whether two values are two values in a column of the table."""
        if is_root(field.type, TypeRoot.CHAR):
            return False
        given, kind = taken.type, carried_kind(field)
        if is_root(field.type, TIMESTAMPS):
            return self._is_moment_apart(_made_of(self.root.input, taken), given == kind, _precision(field))
        if given == kind:
            return True
        if kinds.is_integral(given):
            return kinds.is_integral(kind) or kinds.is_decimal(kind) or kind == kinds.STRING
        if kinds.is_decimal(given):
            return bool(kind == kinds.STRING or (kinds.is_decimal(kind) and kind.scale >= given.scale))
        return bool(given == kinds.DATE and kind == kinds.STRING)

    def _is_moment_apart(self, value: Expression, is_same: bool, precision: int) -> bool:
        """Whether two moments are two in a column that cuts them. `is_same`: it is of their type, so that no clock that
        is set back makes one of two."""
        if isinstance(value, Column):
            found = self._read(value.id)
            is_cut = precision < MOST_PRECISE
            if not is_cut or found is None:
                return is_same and not is_cut
            field = next(each for each in source_of(found[0]).table.schema.fields if each.name == found[1])
            return is_same and is_root(field.type, TIMESTAMPS) and _precision(field) <= precision
        if isinstance(value, Call) and any(f"date_trunc('{word}'" in value.template for word in _WHOLE_SECONDS):
            return is_same or all(each.type == kinds.TIMESTAMP_NTZ for each in value.walk() if isinstance(each, Column))
        return is_same and precision >= MOST_PRECISE

    def _read(self, column: str) -> tuple[Scan, str] | None:
        """The table that a column is read from, and its name there."""
        found = [(scan, n) for scan in self.plan.scans for n, c in _named(scan) if c.id == column]
        return found[0] if found else None

    def key_in_words(self) -> str:
        """What tells its rows apart."""
        if self.plan.key is None:
            return "rows of the query may be equal"
        if not self.plan.key:
            return "the query has one row"
        own = dict(zip(self.plan.names, self.root.columns, strict=True))
        words = [self._called(own[name], name) for name in self.plan.key]
        return f"rows of the query are told apart by {', '.join(words)}"

    def _called(self, column: Column, name: str) -> str:
        """A column by the name that it has in its table."""
        value = _made_of(self.root, column)
        found = self._read(value.id) if isinstance(value, Column) else None
        if found is not None:
            return f"{'.'.join(source_of(found[0]).path)}.{found[1]}"
        return name if name in self.names else "a computed value"

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


def _made_of(node: Relation, column: Column) -> Expression:
    """How a column is computed; a column of a table if it is one."""
    match node:
        case Project() | Group():
            given = node.values if isinstance(node, Project) else node.keys
            value = next((v for each, v in zip(node.columns, given, strict=False) if each.id == column.id), None)
            if value is None:
                return column
            return _made_of(node.input, value) if isinstance(value, Column) else value
        case Filter() | Window() | Unnest():
            return _made_of(node.input, column)
        case Join():
            side = next((side for side in node.inputs if any(each.id == column.id for each in side.columns)), None)
            return column if side is None else _made_of(side, column)
    return column


def _named(scan: Scan) -> list[tuple[str, Column]]:
    return list(zip(scan.names, scan.columns, strict=True))


def _precision(field: DataField) -> int:
    assert isinstance(field.type, AtomicType)
    return field.type.precision
