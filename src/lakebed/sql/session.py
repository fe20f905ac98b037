"""What statements need of the lake they run on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.result import SmallResult
from lakebed.table.table import Table


class SqlLake(Protocol):
    """The lake, as far as SQL is concerned. `lakebed.lake.Lake` is one."""

    settings: dict[str, str]
    """What SET has set for this lake: keys without `spark.paimon.`."""

    other_tables: dict[tuple[str, str], Any]
    """Tables of other systems that CREATE TABLE has defined, by database and name: see `connector_tables`."""

    @property
    def spark(self) -> Any:
        """The Spark session; starts one."""
        ...

    @property
    def is_spark_started(self) -> bool:
        """Whether there is a Spark session already."""
        ...

    @property
    def current_database(self) -> str:
        """The database that plain table names refer to."""
        ...

    def sql(self, text: str) -> Any:
        """Carries out statements: procedures say some of theirs as such."""
        ...

    def go_on(self, statements: Sequence[Any]) -> Any:
        """Carries out a SELECT, or INSERTs as one job, in streaming mode."""
        ...

    def jobs(self) -> Any:
        """The jobs that streaming INSERTs have started."""
        ...

    def use(self, database: str) -> None:
        """Makes a database the current one."""
        ...

    def databases(self) -> list[str]:
        """Names of all databases."""
        ...

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        ...

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Removes a database."""
        ...

    def tables(self, database: str | None = None) -> list[str]:
        """Names of the tables of a database."""
        ...

    def table(self, name: str) -> Table:
        """The table of that name."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        ...

    def create_table(
        self,
        name: str,
        schema: Any,
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
        name: str,
        schema: Any,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> bool:
        """Empties a table and defines it anew; False if it would be partitioned otherwise."""
        ...

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Removes a table."""
        ...

    def rename_table(self, old: str, new: str) -> None:
        """Gives a table another name."""
        ...

    def materialize(
        self,
        name: str,
        sql: str,
        *,
        freshness: str | None = None,
        policy: str = "auto",
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Any:
        """Makes a materialized table."""
        ...

    def refresh(self, name: str, *, full: bool = False) -> Any:
        """Brings a materialized table up to date."""
        ...

    def explain(self, name_or_sql: str) -> Any:
        """How a query follows changes."""
        ...

    def materialized(self, name: str) -> Any:
        """What is known of a materialized table."""
        ...

    def materialized_tables(self, database: str | None = None) -> Any:
        """All materialized tables of a database."""
        ...

    def alter_materialized(
        self,
        name: str,
        *,
        query: str | None = None,
        policy: str | None = None,
        freshness: str | None = None,
        suspended: bool | None = None,
    ) -> Any:
        """Gives a materialized table another query, policy or freshness, or stops and resumes its refreshes."""
        ...


def result(lake: SqlLake, columns: Mapping[str, pa.DataType], rows: Iterable[Sequence[Any]]) -> SmallResult:
    """Rows as a statement returns them."""
    return SmallResult(pa.schema(list(columns.items())), list(rows), lambda: lake.spark)


def nothing(lake: SqlLake) -> SmallResult:
    """What a statement returns that has nothing to say."""
    return result(lake, {}, [])


def connector_tables(lake: SqlLake) -> dict[tuple[str, str], ConnectorTable]:
    """Tables of other systems that statements have defined, by database and name. They end with the lake's handle."""
    found: dict[tuple[str, str], ConnectorTable] = lake.other_tables
    return found


def connector_table(lake: SqlLake, name: str) -> ConnectorTable | None:
    """The table of another system that a name means, `t` or `db.t`; None if it means none."""
    database, dot, table = name.rpartition(".")
    found: ConnectorTable | None = connector_tables(lake).get((database if dot else lake.current_database, table))
    return found
