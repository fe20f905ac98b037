"""The query of a pipeline over what has landed of the sources that it names.

A column that is declared AS PROCTIME() has no value that could land: it says that a join is a lookup join, under
whatever name.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lakebed.connectors import is_synced, reading_query
from lakebed.errors import Unsupported
from lakebed.lake import Lake
from lakebed.sql.bind.temporal import is_processing_name
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.statements import Sql
from lakebed.sql.words.names import quoted
from lakebed.types.logical import TIMESTAMPS, TypeRoot, is_root

_NOW = "current_timestamp()"
"""What PROCTIME() becomes in the definition of a table."""

_TIMES = TIMESTAMPS | {TypeRoot.DATE}

Others = Mapping[tuple[int, int], ConnectorTable]
"""Tables of other systems, by where they stand in a query."""


def check_versions(sql: Sql, others: Others) -> None:
    """Raises if the version of a time is asked for of a source of changes that lands with the newest rows only."""
    for node in sql.partners():
        table = others.get(node.meta.get("span", (0, 0)))
        if table is None or not is_synced(table) or _is_processing(node, others):
            continue
        types = {field.name: field.type for field in table.columns}
        if not any(name in types and is_root(types[name], _TIMES) for name in table.primary_key):
            key = ", ".join(table.primary_key) or "key"
            raise Unsupported(
                f"what `{table.full_name}` was at `{node.meta['as_of'].sql('spark')}` is not known: of each ({key}) "
                "the newest row lands",
                hint=f"declare PRIMARY KEY ({key}, time) NOT ENFORCED, the time a TIMESTAMP column, and "
                "'landing.ignore-delete' = 'true': all versions stay then, also of rows that are deleted",
            )


def landed_text(lake: Lake, sql: Sql, others: Others) -> str:
    """The query with what has landed in the place of the sources."""
    aliased = {node.meta["span"] for node in sql.tables() if node.alias}
    edits = {}
    for span, table in others.items():
        edits[span] = f"({reading_query(lake, table, _used(sql, span, table))})"
        if span not in aliased and not any(node.meta.get("span") == span for node in sql.partners()):
            edits[span] += f" AS {quoted(table.name)}"
    for node in sql.partners():
        start, end = node.meta["as_of_span"]
        clause = sql.text[start:end]
        source = _source(node, others)
        if source is not None and _is_now(source, node.meta["as_of"].name):
            clause = " FOR SYSTEM_TIME AS OF PROCTIME()"
        span = node.meta.get("span")
        is_alone = span in others and span not in aliased
        edits[start, end] = f"{clause} AS {quoted(others[span].name)}" if is_alone else clause
    return sql.spliced(edits)


def _used(sql: Sql, span: tuple[int, int], table: ConnectorTable) -> set[str]:
    """Computed columns to show: what PROCTIME() gives only if it is asked for, which is refused then."""
    words = {each.name.lower() for each in sql.tree.find_all(exp.Column)}
    around = [node.find_ancestor(exp.Select) for node in sql.tables() if node.meta["span"] == span]
    stars = [each for each in sql.tree.find_all(exp.Star) if not isinstance(each.parent, exp.Count)]
    has_star = any(star.find_ancestor(exp.Select) is each for star in stars for each in around)
    return {name for name in table.computed if has_star or not _is_now(table, name) or name.lower() in words}


def _is_now(table: ConnectorTable, column: str) -> bool:
    values = {name.lower(): value for name, value in table.computed.items()}
    return values.get(column.lower(), "").strip().lower() == _NOW


def _is_processing(node: exp.Expression, others: Others) -> bool:
    """Whether a join is as of the time at which a row comes, as far as the text and the sources tell."""
    asked = node.meta["as_of"]
    if not isinstance(asked, exp.Column):
        return True
    source = _source(node, others)
    is_declared = source is not None and asked.name.lower() in {each.lower() for each in source.order}
    return _is_now(source, asked.name) if source is not None and is_declared else is_processing_name(asked.name)


def _source(node: exp.Expression, others: Others) -> ConnectorTable | None:
    """The table of another system whose time a join is as of."""
    asked = node.meta["as_of"]
    left = _named(node, asked.table) if isinstance(asked, exp.Column) else None
    return None if left is None else others.get(left.meta["span"])


def _named(node: exp.Expression, name: str) -> exp.Table | None:
    """The table that is called so in the SELECT around a join."""
    select = node.find_ancestor(exp.Select)
    tables = [] if select is None else select.find_all(exp.Table)
    found = (each for each in tables if each.find_ancestor(exp.Select) is select and "span" in each.meta)
    return next((each for each in found if each.alias_or_name.lower() == name.lower()), None)
