"""Lookup joins: `JOIN dim FOR SYSTEM_TIME AS OF o.proctime AS d`. Rows are joined with what the table shows when they
come, and what changes in it later changes nothing of rows that were sent."""

from __future__ import annotations

from lakebed.algebra.relations import Filter, Join, JoinKind, Project, Relation, Unnest, scans
from lakebed.errors import Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Sql
from lakebed.views.inserts.flows import Flow
from lakebed.views.plan.growth import grows_only, is_looked_up
from lakebed.views.sources import bound_query, source_of


def note_lookup(relation: Relation, clause: str) -> None:
    """Tells the tables of a relation that rows are only looked up in them."""
    for scan in scans(relation):
        source_of(scan).is_lookup = True


def only_looked_up(lake: SqlLake, sql: Sql) -> frozenset[str]:
    """The tables of a query, by their full names, whose changes do not count."""
    if not sql.partners():
        return frozenset()
    try:
        found = [source_of(scan) for scan in scans(bound_query(lake, sql, {}, looked_up=note_lookup).relation)]
    except NotProven:  # which is said when the query is to run
        return frozenset()
    names = {each.table.name for each in found if each.is_lookup}
    return frozenset(names - {each.table.name for each in found if not each.is_lookup})


def check_lookups(title: str, flow: Flow) -> None:
    """Raises unless rows with what was looked up are only ever added: it could not be looked up again as it was."""
    if has_lookups(flow) and not _adds_rows(flow.root):
        raise Unsupported(
            f"{title}: rows of the query may change or go after a lookup join, and what was looked up for "
            "them can not be again",
            hint="leave FOR SYSTEM_TIME AS OF out: changes of both tables are followed then",
        )


def has_lookups(flow: Flow) -> bool:
    """Whether rows are looked up in a table."""
    return any(source_of(scan).is_lookup for scan in flow.plan.scans)


def _adds_rows(node: Relation) -> bool:
    match node:
        case Filter() | Project() | Unnest():
            return _adds_rows(node.input)
        case Join() if is_looked_up(node.right):
            return node.kind in (JoinKind.INNER, JoinKind.LEFT) and _adds_rows(node.left)
    return grows_only(node) and not any(source_of(scan).is_lookup for scan in scans(node))
