"""What a lake, the database `sys` and Spark ask of a catalog, whatever keeps its list of tables.

A catalog knows which databases and tables there are and where each lies. What a table is stands in its own files, so
all catalogs give the same `TableContext`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lakebed.catalog.names import TableName
from lakebed.clock import Clock, IdSource
from lakebed.definition.context import TableContext
from lakebed.fileio.base import FileIO
from lakebed.table.table import Table
from lakebed.types.logical import DataField


class Catalog(Protocol):
    """Databases and tables by name."""

    @property
    def root(self) -> str:
        """What the lake is called: the place of its warehouse."""
        ...

    @property
    def fileio(self) -> FileIO:
        """Where the files of tables are."""
        ...

    @property
    def clock(self) -> Clock:
        """What tables ask for the time."""
        ...

    @property
    def ids(self) -> IdSource:
        """What tables ask for names that nobody else has."""
        ...

    def databases(self) -> list[str]:
        """Names of all databases."""
        ...

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        ...

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Removes a database; one that holds tables only with `cascade`."""
        ...

    def check_database(self, name: str) -> None:
        """Raises unless there is such a database."""
        ...

    def tables(self, database: str) -> list[str]:
        """Names of a database's tables."""
        ...

    def create_table(
        self,
        name: TableName,
        fields: Sequence[DataField],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Makes a table and returns it."""
        ...

    def replace_table(
        self,
        name: TableName,
        fields: Sequence[DataField],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> bool:
        """Takes the rows of a table away and gives it another definition; False if it can not be done in its place."""
        ...

    def table(self, name: TableName) -> Table:
        """The table of that name."""
        ...

    def context(self, name: TableName) -> TableContext:
        """What the parts of a table need to know of it."""
        ...

    def has_table(self, name: TableName) -> bool:
        """Whether there is such a table."""
        ...

    def drop_table(self, name: TableName, *, if_exists: bool = False) -> None:
        """Removes a table with all its files."""
        ...

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Gives a table another name, also in another database."""
        ...


__all__ = ["Catalog"]
