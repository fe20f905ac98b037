"""From the bound query of a materialized table to what is kept of it: columns, key, and how it follows changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakebed.algebra.relations import (
    Filter,
    Group,
    Join,
    JoinKind,
    Numbers,
    Project,
    Relation,
    Scan,
    Unnest,
    Window,
    scans,
    used_ids,
)
from lakebed.expressions.nodes import Column
from lakebed.records import dataclass
from lakebed.sql.bind.scope import Bound
from lakebed.views.plan.judge import Judged, judged
from lakebed.views.plan.keys import Key, key_of
from lakebed.views.plan.linear import Linear, linear
from lakebed.views.plan.normalise import Normaliser, carrying, pruned
from lakebed.views.rules.compile import top_of
from lakebed.views.rules.windows import common_partition

HIDDEN_PREFIX = "__"
"""How columns begin that a materialized table has for itself."""


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """The query of a materialized table. Its columns are those of the query, then those it keeps for itself."""

    root: Relation
    names: tuple[str, ...]
    shown: int
    """How many of the columns are the query's own."""
    key: tuple[str, ...] | None
    """Names of columns that tell rows apart; None if rows may be equal."""
    is_nullable: bool
    """Whether a column of the key may be null."""
    judged: Judged
    linear: Linear | None = None
    """If the query ends with a grouping whose values add up."""

    @property
    def is_full(self) -> bool:
        """Whether each refresh has to compute all of it."""
        return self.judged.full is not None

    @property
    def scans(self) -> list[Scan]:
        """The tables that are read, with the columns that are needed; each once, also where a query uses it twice."""
        return list({scan.view: scan for scan in scans(self.root)}.values())


def planned(bound: Bound, *, is_stored: bool = True) -> ViewPlan:
    """The plan of a query; `key` of a scan's source are the names of its table's primary key.

    `is_stored`: its rows are kept, so that changes can be added to them. Otherwise all of a change is computed, old
    values as well as new ones.
    """
    normaliser = Normaliser()
    relation = normaliser.plain(bound.relation)
    if not isinstance(relation, Project):  # so that a column can be added beside those of the query
        fresh = tuple(replace(each, id=f"o{n + 1}") for n, each in enumerate(relation.columns))
        relation = Project(columns=fresh, input=relation, values=relation.columns)
    shown = relation.columns
    relation, adding = linear(relation, normaliser.new) if is_stored else (relation, None)
    tables = {scan.view: key_columns(scan) for scan in scans(relation)}
    tables = {view: key for view, key in tables.items() if key}
    key = key_of(relation, tables)
    wanted = _to_carry(relation, key)
    if adding is not None:
        wanted |= {each.id for each in adding.states.columns[len(adding.states.keys) :]}
    if wanted:
        relation = carrying(relation, wanted)
    found = None if key is None else tuple(carried_by(relation, each) for each in key)
    if found is not None and any(each is None for each in found):
        key, found = None, None
    used = used_ids(relation) | {each.id for columns in tables.values() for each in columns}
    relation = pruned(relation, used)
    hidden = [each for each in relation.columns if each not in shown]
    names = (*bound.names, *(f"{HIDDEN_PREFIX}k{n + 1}" for n in range(len(hidden))))
    by_id = {each.id: name for each, name in zip(relation.columns, names, strict=True)}
    top, _ = top_of(relation) if is_stored else (None, ())
    if adding is not None:
        adding = replace(adding, states=states_of(relation))
    return ViewPlan(
        root=relation,
        names=names,
        shown=len(shown),
        key=None if found is None else tuple(dict.fromkeys(by_id[each.id] for each in found if each is not None)),
        is_nullable=key is not None and any(each.nullable for each in key),
        judged=judged(relation, top, None if adding is None else adding.states),
        linear=adding,
    )


def states_of(root: Relation) -> Group:
    """The grouping at the end of a query."""
    while isinstance(root, Project):
        root = root.input
    assert isinstance(root, Group)
    return root


def key_columns(scan: Scan) -> Key:
    """The columns of a scan that are the primary key of its table; none if it has none."""
    names: Sequence[str] = scan.source.key
    by_name = dict(zip(scan.names, scan.columns, strict=True))
    return tuple(by_name[name] for name in names) if all(name in by_name for name in names) else ()


def _to_carry(root: Relation, key: Key | None) -> set[str]:
    """Columns that are needed above and are not there: those of the key, and those by which windows are partitioned."""
    wanted = [] if key is None else [each for each in key if carried_by(root, each) is None]
    node = root
    while isinstance(node, Project | Filter):
        node = node.input
    if isinstance(node, Window):
        partition = [each for each in common_partition(node) if isinstance(each, Column)]
        wanted += [each for each in partition if carried_by(root, each, node) is None]
    return {each.id for each in wanted}


def carried_by(node: Relation, wanted: Column, origin: Relation | None = None) -> Column | None:
    """The column of a relation that hands on a column of what it reads, or of `origin`; None if none does."""
    if node is origin:
        return next((each for each in node.columns if each.id == wanted.id), None)
    match node:
        case Project():
            below = carried_by(node.input, wanted, origin)
            if below is None:
                return None
            pairs = zip(node.columns, node.values, strict=True)
            found = [each for each, value in pairs if isinstance(value, Column) and value.id == below.id]
            return next((each for each in found if each.id == below.id), found[0] if found else None)
        case Filter() | Window() | Unnest():
            return carried_by(node.input, wanted, origin)
        case Join():
            sides = node.inputs if node.kind not in (JoinKind.SEMI, JoinKind.ANTI) else (node.left,)
            carried = (carried_by(side, wanted, origin) for side in sides)
            return next((each for each in carried if each is not None), None)
        case Scan() | Group() | Numbers():
            return next((each for each in node.columns if each.id == wanted.id), None)
    return None


def with_rows(root: Relation, rows: Relation) -> Relation:
    """What a query does after its last grouping, over other rows in the place of the groups."""
    return replace(root, input=with_rows(root.input, rows)) if isinstance(root, Project) else rows
