"""Lookup joins: `JOIN dim FOR SYSTEM_TIME AS OF o.proctime AS d`. Rows are joined with what the table shows when they
come, and what changes in it later changes nothing of rows that were sent."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokens import TokenType

from lakebed.algebra.relations import Filter, Join, JoinKind, Project, Relation, Unnest, scans
from lakebed.errors import Unsupported
from lakebed.sql.statements import Sql
from lakebed.sql.words.cursor import Cursor
from lakebed.views.inserts.flows import Flow
from lakebed.views.lake_in import read_sql
from lakebed.views.plan.growth import grows_only, is_looked_up
from lakebed.views.sources import source_of

_MARK = "when a row comes"
_CLAUSE = re.compile(rf"\s*VERSION\s+AS\s+OF\s+'{_MARK}'", re.IGNORECASE)


def read_lookups(query: str) -> tuple[Sql, frozenset[int]]:
    """A query in which lookup joins are plain ones, and the places where the names of their tables begin."""
    marked = _marked(query)
    if marked == query:
        return read_sql(query), frozenset()
    found = read_sql(marked)
    edits, starts, shorter = {}, [], 0
    for node in sorted(found.tree.find_all(exp.Table), key=lambda each: each.meta["span"]):
        start, end = node.meta["span"]
        text = found.text[start:end]
        if _CLAUSE.search(text) is None:
            continue
        plain = _CLAUSE.sub("", text)
        edits[start, end] = plain
        starts.append(start - shorter)
        shorter += len(text) - len(plain)
    return read_sql(found.spliced(edits)), frozenset(starts)


def _marked(query: str) -> str:
    """The text with a mark that can be read where a lookup join says at which time; constants are no lookups."""
    cursor, parts, done = Cursor(query), [], 0
    while not cursor.is_done:
        if cursor.sees("FOR", "SYSTEM_TIME", "AS", "OF"):
            after = cursor.tokens[cursor.index + 4 : cursor.index + 7]
            is_column = len(after) == 3 and after[1].text == "." and after[0].token_type is not TokenType.NUMBER
            is_now = [each.text.upper() for each in after] == ["PROCTIME", "(", ")"]
            if is_column or is_now:
                parts += [query[done : cursor.current.start], f"VERSION AS OF '{_MARK}'"]
                done = after[2].end + 1
        cursor.take()
    return "".join([*parts, query[done:]])


def check_lookups(target: str, flow: Flow) -> None:
    """Raises unless rows with what was looked up are only ever added: it could not be looked up again as it was."""
    if any(source_of(scan).is_lookup for scan in flow.plan.scans) and not _adds_rows(flow.root):
        raise Unsupported(
            f"INSERT INTO {target}: rows of the query may change or go after a lookup join, and what was looked up for "
            "them can not be again",
            hint="leave FOR SYSTEM_TIME AS OF out: changes of both tables are followed then",
        )


def _adds_rows(node: Relation) -> bool:
    match node:
        case Filter() | Project() | Unnest():
            return _adds_rows(node.input)
        case Join() if is_looked_up(node.right):
            return node.kind in (JoinKind.INNER, JoinKind.LEFT) and _adds_rows(node.left)
    return grows_only(node) and not any(source_of(scan).is_lookup for scan in scans(node))
