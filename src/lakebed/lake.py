"""A lake: one warehouse of databases and tables, opened by `connect`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from lakebed.calls import explains_call, explains_calls
from lakebed.catalog.base import Catalog
from lakebed.catalog.names import DEFAULT_DATABASE, TableName, parse_table_name
from lakebed.catalog.registry import open_catalog
from lakebed.cleanup import on_failure
from lakebed.definition.arguments import names_argument, options_argument
from lakebed.definition.incoming import is_spark_frame, reader_of
from lakebed.definition.python_rows import (
    are_python_rows,
    fields_of_rows,
    fields_of_type,
    is_record_type,
    python_columns,
)
from lakebed.definition.views import refuse_view_options
from lakebed.errors import AlreadyExists, InvalidArgument
from lakebed.notebook import html_table, no_member
from lakebed.options import LAKEBED_VIEW_QUERY
from lakebed.spark.jobs import SparkJobs
from lakebed.spark.session import Session, keep_memory_warm
from lakebed.table.table import Table
from lakebed.types.arrow import as_data_type, from_arrow_schema
from lakebed.types.logical import DataField, renumbered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.spark.attach import Attached
    from lakebed.sql.query.answer import QueryResult
    from lakebed.views.consistent import ConsistentTables
    from lakebed.views.describe import MaterializedTable
    from lakebed.views.result import Refreshed

SchemaLike = Any
"""A pyarrow schema, a mapping from column names to types, a list of fields, or a class that tells them."""


@explains_call(dict.fromkeys(("warehouse", "location", "uri", "url", "root"), "lakebed.connect(path)"))
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
    return Lake(open_catalog(os.fspath(path), options, jobs), jobs, options)


_HABITS = {
    "execute": "lake.sql(text)",
    "list_tables": "lake.tables()",
    "table_names": "lake.tables()",
    "get_table": "lake.table(name)",
    "load_table": "lake.table(name)",
    "open_table": "lake.table(name)",
    "read_table": "lake.table(name).to_arrow()",
    "write_table": "lake.create_table(name, rows), or lake.table(name).write(rows)",
    "list_databases": "lake.databases()",
    "namespaces": "lake.databases()",
    "schemas": "lake.databases()",
    "drop": "lake.drop_table(name)",
    "cursor": "lake.query(text).df(), in place of pandas.read_sql",
    **dict.fromkeys(("read_sql", "sql_query", "ask"), "lake.query(text).df()"),
    **dict.fromkeys(
        ("register", "create_temp_view", "create_view", "from_pandas", "from_df"),
        "lake.create_table(name, df); or join in DuckDB, which sees both: t = lake['t'], and duckdb.sql('FROM t, df')",
    ),
    **dict.fromkeys(("read_csv", "read_parquet"), "lake.create_table(name, pandas.read_csv(path)), or any other rows"),
}
"""Words that users of other libraries try."""

_IN_TIME = "lake.table(name).at(snapshot=...), or tag=..., timestamp=..."
_TABLE_ARGUMENTS = {
    **dict.fromkeys(("keys", "key", "pk", "primary_keys", "unique_key"), "primary_key=['id']"),
    **dict.fromkeys(("partitions", "partition_keys", "partition_cols", "partitioned_by"), "partition_by=['day']"),
    **dict.fromkeys(("properties", "tblproperties", "table_properties"), "options={'bucket': '4'}"),
    **dict.fromkeys(("bucket", "buckets", "num_buckets"), "options={'bucket': '4'}"),
    "merge_engine": "options={'merge-engine': 'deduplicate'}",
    "changelog_producer": "options={'changelog-producer': 'lookup'}",
}
_ARGUMENTS = {
    "table": {
        **dict.fromkeys(("snapshot", "snapshot_id", "version", "tag", "timestamp"), _IN_TIME),
        "branch": "lake.table(name).on_branch(branch)",
        "options": "lake.table(name).with_options({...})",
    },
    "create_table": {
        **_TABLE_ARGUMENTS,
        **dict.fromkeys(
            ("data", "rows", "df", "columns", "fields"), "it in the place of the schema: create_table(name, rows)"
        ),
        **dict.fromkeys(("exist_ok", "exists_ok", "ignore_if_exists"), "if_not_exists=True"),
        **dict.fromkeys(("mode", "overwrite", "replace"), "lake.replace_table(name, schema)"),
    },
    "replace_table": _TABLE_ARGUMENTS,
    "drop_table": dict.fromkeys(("ignore_if_not_exists", "missing_ok", "purge"), "if_exists=True"),
    "create_database": dict.fromkeys(("exist_ok", "exists_ok", "ignore_if_exists"), "if_not_exists=True"),
    **{name: {"*": "values for the text into args={'name': value}, for :name"} for name in ("sql", "query")},
}
"""Arguments that users of other libraries try."""


@explains_calls(_ARGUMENTS)
class Lake:
    """Databases and tables of one warehouse. Names are `table` (in the current database) or `database.table`."""

    def __init__(
        self, catalog: Catalog, jobs: SparkJobs | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self._catalog = catalog
        self._jobs = jobs or SparkJobs(Session(None))
        self._storage_options = dict(options or {})
        self._database = DEFAULT_DATABASE
        self.settings: dict[str, str] = {}
        """Options for all tables in statements of this lake: what SET has set."""
        self.other_tables: dict[tuple[str, str], Any] = {}
        """Tables of other systems, by database and name: what CREATE TABLE ... WITH ('connector' = ...) has defined."""
        self.started_jobs: dict[str, Any] = {}
        """Jobs that streaming INSERTs have started, by their ids: `jobs` lists them."""
        this = weakref.ref(self)
        self._jobs.session.when_started(lambda: _hand_over(this()))

    def __repr__(self) -> str:
        return f"<lakebed lake at {self._catalog.root}>"

    def _repr_html_(self) -> str:
        names = self.tables()
        caption = f"lake at {self._catalog.root}, database {self._database}"
        return html_table(caption, ("table",), ((name,) for name in names), len(names))

    if not TYPE_CHECKING:  # or a checker of types would take any name for a member

        def __getattr__(self, name: str) -> Any:
            is_table = not name.startswith("_") and self.has_table(name)
            habits = {name: f'lake["{name}"]'} if is_table else _HABITS
            raise no_member(self, name, habits, f'a table is lake["{name}"], if there is one; lake.tables() lists them')

    @property
    def location(self) -> str:
        """Where the warehouse is."""
        return self._catalog.root

    @property
    def storage_options(self) -> dict[str, str]:
        """What the lake was opened with, keys of its store among them: not for logs."""
        return dict(self._storage_options)

    @property
    def spark(self) -> SparkSession:
        """The Spark session in use; a local one is started if there is none yet."""
        return self._jobs.spark

    @property
    def is_spark_started(self) -> bool:
        """Whether a Spark session is in use already."""
        return self._jobs.session.is_started

    def attach(
        self, spark: SparkSession | None = None, *, prefix: str = "lakebed_", databases: Sequence[str] | None = None
    ) -> Attached:
        """Gives the tables of the lake names in a Spark session (that of the lake), as long as that lives.

        The table `shop.orders` becomes `lakebed_shop.orders` for `spark.sql`, `spark.table` and `spark.catalog`: it can
        be queried, joined, inserted into and read as a stream, and its rows are the newest whenever a query runs. New
        tables and columns show after `refresh()` of the result. UPDATE, DELETE, MERGE, time travel and `CREATE TABLE`
        are statements of `lake.sql`, which also reads less: Spark pushes neither columns nor filters down there.
        """
        from lakebed.spark.attach import Attached  # needs PySpark

        session = self._jobs.spark if spark is None else Session(spark).get()
        chosen = None if databases is None else names_argument(databases, "databases")
        return Attached(session, self._catalog, prefix, chosen)

    def sql(self, text: str, args: Mapping[str, Any] | Sequence[Any] | None = None) -> DataFrame:
        """Carries out SQL in Flink's or Spark's spelling, one statement or several with `;` between them.

        Queries give a Spark DataFrame. What needs no Spark, such as SHOW TABLES, starts none and gives rows that look
        like one. The result is that of the last statement. After SET 'execution.runtime-mode' = 'streaming' SELECTs
        give changes as they come, and INSERTs a job that goes on.

        `args` are values for the text, which need no quotes: a dict for `:name`, a list for `?`.
        """
        from lakebed.sql.run import run  # the parser is only for those who use it

        return run(self, text, args)

    def go_on(self, statements: Sequence[Any]) -> Any:
        """Carries out statements in streaming mode: a SELECT gives its changes as they come, INSERTs become a job.

        `sql` calls it after SET 'execution.runtime-mode' = 'streaming'.
        """
        # Pipelines hold lakes, and stand above them: this is the one way up.
        return import_module("lakebed.pipelines.streaming").carried_out(self, statements)

    def jobs(self) -> list[Any]:
        """Jobs that streaming INSERTs of this lake have started, those that have ended too.

        Each has an `id`, a `status` and `states`; `wait()` waits for its end, `stop()` ends it.
        """
        return list(self.started_jobs.values())

    def query(
        self, sql: str, args: Mapping[str, Any] | Sequence[Any] | None = None, *, engine: str = "auto"
    ) -> QueryResult:
        """The rows of a SELECT, computed in this process if that is known to give what Spark gives, else by Spark.

        All that `lake.sql` reads can be asked, and `args` are as there. `engine` is `auto`, `duckdb` (here, or an error
        that says why not) or `spark`. The result has `arrow()`, `df()`, `pl()`, `fetchall()`, `show()` and `batches()`.
        """
        from lakebed.sql.run import query  # the parser is only for those who use it

        return query(self, sql, args, engine)

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
    ) -> Refreshed | None:
        """Makes a materialized table: the rows of a query, which `refresh` brings up to date from what has changed.

        It is an ordinary table with a complete changelog, which any reader of Paimon opens; only its refresh writes it.
        `policy` is `auto` (whichever way is cheaper), `incremental` (from changes wherever that can be), `incremental
        strict` (or an error) or `full`. `freshness` is how old the rows may be, for who refreshes in a loop. None with
        `if_not_exists` if the table is there.
        """
        from lakebed.views.define import ViewRequest, create_view
        from lakebed.views.swap import finish_swap

        key, partition = names_argument(primary_key, "primary_key"), names_argument(partition_by, "partition_by")
        if if_not_exists and (self.has_table(name) or finish_swap(self, name)):
            return None
        return create_view(self, ViewRequest(name, sql, freshness, policy, key, partition, options, comment))

    def refresh(self, name: str, *, full: bool = False) -> Refreshed:
        """Brings a materialized table up to date, and says which way, why, and how many rows changed.

        `full` computes all of it and writes the difference.
        """
        from lakebed.views.refresh import refresh_view

        return refresh_view(self, name, full=full)

    def refresh_all(self, *names: str, full: bool = False) -> list[Refreshed]:
        """Refreshes materialized tables together: all of the current database that are not suspended, or those named.

        Those below come before those that read them, and all see the same batch of a sync, which goes on meanwhile.
        """
        from lakebed.views.together import refresh_together

        return refresh_together(self, names, full=full)

    def consistent(self, *tables: str) -> ConsistentTables:
        """Tables at one moment: those of one sync at a batch that all of them have, so that no transaction of the
        source is seen in part. All tables of the current database if none are named.

        The result reads them (`table`, `query`, `sql`) and says as of when (`position`, `snapshots`, `why`). A table of
        no sync is at its newest snapshot whose changes are told, one that a materialized table read as that one saw it.
        """
        from lakebed.views.consistent import consistent_tables

        return consistent_tables(self, tables)

    def at(self, *tables: str, position: str) -> ConsistentTables:
        """As `consistent`, at the newest moment at or before a position of the source: `16/B374D848`, `0-1-1234`."""
        from lakebed.views.consistent import consistent_tables

        return consistent_tables(self, tables, position)

    def explain(self, name_or_sql: str) -> str:
        """How a materialized table, or a query that could become one, follows changes: a line for each part of it."""
        from lakebed.views.explain import explained

        return explained(self, name_or_sql)

    def materialized(self, name: str) -> MaterializedTable:
        """What is known of a materialized table: its query, how it is refreshed, and how it was last."""
        from lakebed.views.describe import described

        return described(self.table(name))

    def materialized_tables(self, database: str | None = None) -> list[MaterializedTable]:
        """All materialized tables of a database (the current one)."""
        from lakebed.views.swap import finish_swaps

        place = database or self._database
        finish_swaps(self, place)
        names = [f"{place}.{name}" for name in self.tables(place)]
        return [self.materialized(name) for name in names if LAKEBED_VIEW_QUERY.key in self.table(name).options]

    def alter_materialized(
        self,
        name: str,
        *,
        query: str | None = None,
        policy: str | None = None,
        freshness: str | None = None,
        suspended: bool | None = None,
    ) -> Refreshed | None:
        """Gives a materialized table another query, which is computed at once, or another policy or freshness.

        One that is `suspended` is left out when all of a database are refreshed.
        """
        from lakebed.views.define import alter_view

        return alter_view(self, name, query, policy, freshness, suspended)

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

    def __getitem__(self, name: str) -> Table:
        """The table of that name: `lake["orders"]`."""
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a table: `"orders" in lake`."""
        return isinstance(name, str) and self.has_table(name)

    def __iter__(self) -> Iterator[str]:
        """Names of the tables of the current database."""
        return iter(self.tables())

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

        `schema` is a schema of pyarrow or Spark, a mapping from column names to types (`{"id": "BIGINT NOT NULL"}`), a
        dataclass or a pydantic model, whose annotations tell the columns, or rows: a DataFrame, an Arrow table, a dict
        of columns, a list of dicts. Rows are written, too, unless the table was there already; if that fails, there is
        no table. Options are Paimon's, by their own names; an option that is not honoured is refused by name.
        """
        rows, columns = _rows_given(schema)
        definition = _definition(columns, primary_key, partition_by, options, comment)
        refuse_view_options(definition["options"], name)
        place = self._parse(name)
        if rows is None:
            return self._catalog.create_table(place, **definition, if_not_exists=if_not_exists)
        try:
            table = self._catalog.create_table(place, **definition, if_not_exists=False)
        except AlreadyExists:
            if not if_not_exists:
                raise
            return self._catalog.table(place)  # with its own rows
        with on_failure(lambda: self._catalog.drop_table(place, if_exists=True)):
            table.write(rows)
        return table

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
        refuse_view_options(definition["options"], name)
        return self._catalog.replace_table(self._parse(name), **definition)

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Removes a table with all its files."""
        self._catalog.drop_table(self._parse(name), if_exists=if_exists)

    def rename_table(self, old: str, new: str) -> None:
        """Gives a table another name, also in another database."""
        self._catalog.rename_table(self._parse(old), self._parse(new))

    def _parse(self, name: str) -> TableName:
        return parse_table_name(name, self._database)


def _hand_over(lake: Lake | None) -> None:
    """Gives a session that has just started what statements have defined without one."""
    if lake is not None:
        from lakebed.sql.query.run import hand_over  # the parser is only for those who use it

        hand_over(lake)


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


def _rows_given(given: SchemaLike) -> tuple[Any, SchemaLike]:
    """The rows that are given in place of a schema, and their columns; None and the schema, if it is one."""
    if is_spark_frame(given):
        return given, given.schema
    if are_python_rows(given):
        return given, fields_of_rows(given) or python_columns(given).schema
    if not hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.RecordBatch):
        return None, given
    rows = reader_of(given)
    index = [name for name in rows.schema.names if name.startswith("__index_level_")]
    if index:
        raise InvalidArgument(
            f"column `{index[0]}` is the index of a pandas DataFrame", hint="pass df.reset_index(drop=True)"
        )
    return rows, rows.schema


def _to_fields(schema: SchemaLike) -> tuple[DataField, ...]:
    if is_record_type(schema):
        return fields_of_type(schema)
    if isinstance(schema, pa.Schema):
        return from_arrow_schema(schema)
    if type(schema).__module__ == "pyspark.sql.types" and hasattr(schema, "fields"):
        from lakebed.spark.types import arrow_schema  # pyspark is there already

        return from_arrow_schema(arrow_schema(schema))
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
        hint='pass a pyarrow schema, a mapping like {"id": "BIGINT NOT NULL", "name": "STRING"}, or rows',
    )
