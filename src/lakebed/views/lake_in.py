"""The lake as the query of a materialized table sees it: names in one database, no settings of a session."""

from __future__ import annotations

from typing import Any

from lakebed.errors import InvalidArgument
from lakebed.sql.parse import parse
from lakebed.sql.session import SqlLake
from lakebed.sql.statements import Query, Sql
from lakebed.table.table import Table
from lakebed.views.kept_copies import remembering


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
