"""The lake as the query of a materialized table sees it: names in one database, no settings of a session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from lakebed.definition.memory import TableMemory
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.sql.parse import parse
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Query, Sql
from lakebed.table.opened import OpenedTable, opened_of
from lakebed.table.table import Table


class LakeIn:
    """A lake in which plain names belong to a given database; SET changes nothing in it."""

    def __init__(self, lake: SqlLake, database: str) -> None:
        self._lake = lake
        self.current_database = database
        self.settings: dict[str, str] = {}
        self._tables: dict[str, Table] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake, name)

    def table(self, name: str) -> Table:
        """The table of that name, opened once."""
        full = self._full(name)
        if full not in self._tables:
            self._tables[full] = remembering(self._lake, self._lake.table(full))
        return self._tables[full]

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return self._lake.has_table(self._full(name))

    def tables(self, database: str | None = None) -> list[str]:
        """Names of the tables of a database."""
        return self._lake.tables(database or self.current_database)

    def _full(self, name: str) -> str:
        return name if "." in name else f"{self.current_database}.{name}"


def read_sql(text: str) -> Sql:
    """The one query that a text is."""
    statements = parse(text)
    if len(statements) != 1 or not isinstance(statements[0], Query):
        raise InvalidArgument("the text is not one query", hint="pass one SELECT, without others beside it")
    return statements[0].sql


# --- What a process remembers of tables from one refresh to the next: local copies of files in which rows are found by
# key, and manifests. A refresh opens its tables anew, and would begin anew with them.


_KEPT: WeakKeyDictionary[Any, dict[tuple[str, int], TableMemory]] = WeakKeyDictionary()
"""By lake, then by where a table is and when it was made."""


def remembering(lake: Any, table: Table) -> Table:
    """The table, with what a refresh before knew of its files."""
    if type(table) is not Table:
        return table
    opened = opened_of(table)
    context = opened.context
    try:
        place = (str(context.paths), context.schemas.get(0).time_millis)
    except LakebedError:  # without its first schema nobody can say whether it is the same table
        return table
    kept = _KEPT.setdefault(lake, {})
    known = kept.get(place)
    memory = TableMemory() if known is None else known.handed_on()
    kept[place] = memory
    return Table(OpenedTable(replace(context, memory=memory), opened.overrides, opened.pinned, opened.as_of_ms))
