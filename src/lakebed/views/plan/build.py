"""From the bound query of a materialized table to what is kept of it: columns, key, and how it follows changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from lakebed.sql.bind.scope import Bound
from lakebed.views.plan.judge import Judged, judged
from lakebed.views.plan.keys import Key, key_of
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

    @property
    def is_full(self) -> bool:
        """Whether each refresh has to compute all of it."""
        return self.judged.full is not None

    @property
    def scans(self) -> list[Scan]:
        """The tables that are read, with the columns that are needed; each once, also where a query uses it twice."""
        return list({scan.view: scan for scan in scans(self.root)}.values())


def planned(bound: Bound) -> ViewPlan:
    """The plan of a query; `key` of a scan's source are the names of its table's primary key."""
    relation = Normaliser().plain(bound.relation)
    if not isinstance(relation, Project):  # so that a column can be added beside those of the query
        fresh = tuple(replace(each, id=f"o{n + 1}") for n, each in enumerate(relation.columns))
        relation = Project(columns=fresh, input=relation, values=relation.columns)
    shown = relation.columns
    tables = {scan.view: key_columns(scan) for scan in scans(relation)}
    tables = {view: key for view, key in tables.items() if key}
    key = key_of(relation, tables)
    wanted = _to_carry(relation, key)
    if wanted:
        relation = carrying(relation, wanted)
    found = None if key is None else tuple(_above(relation, each) for each in key)
    if found is not None and any(each is None for each in found):
        key, found = None, None
    used = used_ids(relation) | {each.id for columns in tables.values() for each in columns}
    relation = pruned(relation, used)
    hidden = [each for each in relation.columns if each not in shown]
    names = (*bound.names, *(f"{HIDDEN_PREFIX}k{n + 1}" for n in range(len(hidden))))
    by_id = {each.id: name for each, name in zip(relation.columns, names, strict=True)}
    top, _ = top_of(relation)
    return ViewPlan(
        root=relation,
        names=names,
        shown=len(shown),
        key=None if found is None else tuple(dict.fromkeys(by_id[each.id] for each in found if each is not None)),
        is_nullable=key is not None and any(each.nullable for each in key),
        judged=judged(relation, top),
    )


def key_columns(scan: Scan) -> Key:
    """The columns of a scan that are the primary key of its table; none if it has none."""
    names: Sequence[str] = scan.source.key
    by_name = dict(zip(scan.names, scan.columns, strict=True))
    return tuple(by_name[name] for name in names) if all(name in by_name for name in names) else ()


def _to_carry(root: Relation, key: Key | None) -> set[str]:
    """Columns that are needed above and are not there: those of the key, and those by which windows are partitioned."""
    wanted = [] if key is None else [each for each in key if _above(root, each) is None]
    node = root
    while isinstance(node, Project | Filter):
        node = node.input
    if isinstance(node, Window):
        partition = [each for each in common_partition(node) if isinstance(each, Column)]
        wanted += [each for each in partition if _above(root, each, node) is None]
    return {each.id for each in wanted}


def _above(node: Relation, wanted: Column, origin: Relation | None = None) -> Column | None:
    """The column of a relation that hands on a column of what it reads, or of `origin`; None if none does."""
    if node is origin:
        return next((each for each in node.columns if each.id == wanted.id), None)
    match node:
        case Project():
            below = _above(node.input, wanted, origin)
            if below is None:
                return None
            pairs = zip(node.columns, node.values, strict=True)
            return next((each for each, value in pairs if isinstance(value, Column) and value.id == below.id), None)
        case Filter() | Window() | Unnest():
            return _above(node.input, wanted, origin)
        case Join():
            sides = node.inputs if node.kind not in (JoinKind.SEMI, JoinKind.ANTI) else (node.left,)
            found = (_above(side, wanted, origin) for side in sides)
            return next((each for each in found if each is not None), None)
        case Scan() | Group() | Numbers():
            return next((each for each in node.columns if each.id == wanted.id), None)
    return None
