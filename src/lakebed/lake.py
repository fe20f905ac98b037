"""A lake: one warehouse of databases and tables, opened by `connect`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from lakebed.catalog.base import Catalog
from lakebed.catalog.names import DEFAULT_DATABASE, TableName, parse_table_name
from lakebed.catalog.registry import open_catalog
from lakebed.definition.arguments import names_argument, options_argument
from lakebed.errors import InvalidArgument
from lakebed.spark.jobs import SparkJobs
from lakebed.spark.session import Session, keep_memory_warm
from lakebed.table.table import Table
from lakebed.types.arrow import as_data_type, from_arrow_schema
from lakebed.types.logical import DataField, renumbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.sql.query.answer import QueryResult

SchemaLike = Any
"""A pyarrow schema, a mapping from column names to types, or a list of fields."""


def connect(path: str | os.PathLike[str], spark: object = None, options: Mapping[str, str] | None = None) -> Lake:
    """Opens the warehouse at a local path or a URL (s3://, gs://, az://, memory://).

    `options` are those of the file system, such as `s3.endpoint`, and `metastore`: the kind of catalog. Nothing is
    created until something is written, and Spark is not started until something needs it: `spark` is the session to use
    then, a local one if left out.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"path is {path!r}", hint="pass a directory, or a URL such as s3://bucket/path")
    keep_memory_warm()
    jobs = SparkJobs(spark if isinstance(spark, Session) else Session(spark))
    return Lake(open_catalog(os.fspath(path), options, jobs), jobs)


class Lake:
    """Databases and tables of one warehouse. Names are `table` (in the current database) or `database.table`."""

    def __init__(self, catalog: Catalog, jobs: SparkJobs | None = None) -> None:
        self._catalog = catalog
        self._jobs = jobs or SparkJobs(Session(None))
        self._database = DEFAULT_DATABASE
        self.settings: dict[str, str] = {}
        """Options for all tables in statements of this lake: what SET has set."""

    def __repr__(self) -> str:
        return f"<lakebed lake at {self._catalog.root}>"

    @property
    def spark(self) -> SparkSession:
        """The Spark session in use; a local one is started if there is none yet."""
        return self._jobs.spark

    @property
    def is_spark_started(self) -> bool:
        """Whether a Spark session is in use already."""
        return self._jobs.session.is_started

    def sql(self, text: str) -> DataFrame:
        """Carries out SQL in Flink's or Spark's spelling, one statement or several with `;` between them.

        Queries give a Spark DataFrame. What needs no Spark, such as SHOW TABLES, starts none and gives rows that look
        like one. The result is that of the last statement.
        """
        from lakebed.sql.run import run  # the parser is only for those who use it

        return run(self, text)

    def query(self, sql: str, *, engine: str = "auto") -> QueryResult:
        """The rows of a SELECT, computed in this process if that is known to give what Spark gives, else by Spark.

        All that `lake.sql` reads can be asked. `engine` is `auto`, `duckdb` (here, or an error that says why not) or
        `spark`. The result has `arrow()`, `df()`, `pl()`, `fetchall()`, `show()` and `batches()`.
        """
        from lakebed.sql.run import query  # the parser is only for those who use it

        return query(self, sql, engine)

    @property
    def current_database(self) -> str:
        """The database that plain table names refer to."""
        return self._database

    def use(self, database: str) -> None:
        """Makes a database the current one."""
        self._catalog.check_database(database)
        self._database = database

    def databases(self) -> list[str]:
        """Names of all databases."""
        return self._catalog.databases()

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Makes a database."""
        self._catalog.create_database(name, if_not_exists=if_not_exists)

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Removes a database; one that holds tables only with `cascade`."""
        self._catalog.drop_database(name, cascade=cascade, if_exists=if_exists)
        if name == self._database:
            self._database = DEFAULT_DATABASE

    def tables(self, database: str | None = None) -> list[str]:
        """Names of the tables of a database (the current one)."""
        return self._catalog.tables(database or self._database)

    def table(self, name: str) -> Table:
        """The table of that name."""
        return self._catalog.table(self._parse(name))

    def has_table(self, name: str) -> bool:
        """Whether there is such a table."""
        return self._catalog.has_table(self._parse(name))

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Makes a table and returns it.

        `schema` is a pyarrow schema, or a mapping from column names to types: `{"id": "BIGINT NOT NULL", ...}`.
        Options are Paimon's, by their own names; an option that is not honoured is refused by name.
        """
        definition = _definition(schema, primary_key, partition_by, options, comment)
        return self._catalog.create_table(self._parse(name), **definition, if_not_exists=if_not_exists)

    def replace_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> bool:
        """Takes the rows of a table away and gives it another definition, as `create_table` describes one.

        Old snapshots can still be read. False, and nothing is changed, if the table would be partitioned otherwise.
        """
        definition = _definition(schema, primary_key, partition_by, options, comment)
        return self._catalog.replace_table(self._parse(name), **definition)

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Removes a table with all its files."""
        self._catalog.drop_table(self._parse(name), if_exists=if_exists)

    def rename_table(self, old: str, new: str) -> None:
        """Gives a table another name, also in another database."""
        self._catalog.rename_table(self._parse(old), self._parse(new))

    def _parse(self, name: str) -> TableName:
        return parse_table_name(name, self._database)


class _Definition(TypedDict):
    """What a table is to be, as a catalog takes it."""

    fields: tuple[DataField, ...]
    primary_key: Sequence[str]
    partition_by: Sequence[str]
    options: Mapping[str, object]
    comment: str | None


def _definition(
    schema: SchemaLike,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    options: Mapping[str, object] | None,
    comment: str | None,
) -> _Definition:
    """The arguments of `create_table` and `replace_table`, checked."""
    if comment is not None and not isinstance(comment, str):
        raise InvalidArgument(f"comment is {comment!r}", hint="pass text")
    return {
        "fields": _to_fields(schema),
        "primary_key": names_argument(primary_key, "primary_key"),
        "partition_by": names_argument(partition_by, "partition_by"),
        "options": options_argument(options),
        "comment": comment,
    }


def _to_fields(schema: SchemaLike) -> tuple[DataField, ...]:
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema)
    if isinstance(schema, Mapping):
        counter = iter(range(1 << 30))
        fields = []
        for name, given in schema.items():
            if not isinstance(name, str):
                raise InvalidArgument(f"column name {name!r} is no text", hint="name columns by text")
            column_id = next(counter)
            fields.append(DataField(column_id, name, renumbered(as_data_type(given, name), lambda: next(counter))))
        return tuple(fields)
    if isinstance(schema, Sequence) and schema and all(isinstance(field, DataField) for field in schema):
        return tuple(schema)
    raise InvalidArgument(
        f"schema of type {type(schema).__name__} is not understood",
        hint='pass a pyarrow schema or a mapping like {"id": "BIGINT NOT NULL", "name": "STRING"}',
    )
