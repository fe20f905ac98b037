"""`lake.sql`: reads the text, and has each statement carried out by whoever can.

What needs no Spark starts none. The result is that of the last statement: a DataFrame, or something that looks like
one and has its rows already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakebed.errors import InvalidArgument
from lakebed.sql import alter, ddl, settings, show
from lakebed.sql import ddl_statements as ds
from lakebed.sql import statements as st
from lakebed.sql.parse import Statement, parse
from lakebed.sql.procedures import call
from lakebed.sql.session import SqlLake, nothing

_DEEDS: dict[type[Any], Callable[[SqlLake, Any], Any]] = {
    ds.CreateDatabase: ddl.create_database,
    ds.DropDatabase: ddl.drop_database,
    ds.UseDatabase: ddl.use_database,
    ds.UseCatalog: ddl.use_catalog,
    ds.CreateTable: ddl.create_table,
    ds.DropTable: ddl.drop_table,
    ds.Truncate: ddl.truncate,
    ds.Analyze: ddl.analyze,
    ds.AlterTable: alter.alter_table,
    ds.ShowDatabases: show.show_databases,
    ds.ShowCatalogs: show.show_catalogs,
    ds.ShowCurrent: show.show_current,
    ds.ShowTables: show.show_tables,
    ds.ShowCreateTable: show.show_create_table,
    ds.ShowPartitions: show.show_partitions,
    ds.ShowTags: show.show_tags,
    ds.ShowOptions: show.show_options,
    ds.ShowProcedures: show.show_procedures,
    ds.DescribeDatabase: show.describe_database,
    ds.SetSetting: settings.set_setting,
    ds.ResetSetting: settings.reset_setting,
    ds.Call: call,
}


def run(lake: SqlLake, text: str) -> Any:
    """Carries out all statements of a text, in order; gives the result of the last one."""
    if not isinstance(text, str):
        raise InvalidArgument(f"the statement is {type(text).__name__}, not text", hint="pass SQL as a string")
    statements = parse(text)
    if not statements:
        raise InvalidArgument("the text holds no statement", hint="pass SQL, for example SHOW TABLES")
    found: Any = None
    for statement in statements:
        found = run_statement(lake, statement)
    return nothing(lake) if found is None else found


def run_statement(lake: SqlLake, statement: Statement) -> Any:
    """Carries out one statement."""
    deed = _DEEDS.get(type(statement))
    if deed is not None:
        return deed(lake, statement)
    if isinstance(statement, ds.Describe | ds.ShowColumns):
        return _describe(lake, statement)
    if isinstance(statement, ds.RefreshTable):
        # Each statement looks at the latest state anyway.
        return None if lake.has_table(statement.name) else lake.spark.sql(statement.text)
    return _run_on_spark(lake, statement)


def _describe(lake: SqlLake, statement: ds.Describe | ds.ShowColumns) -> Any:
    """A table of the lake, or else a view of Spark."""
    if not lake.has_table(statement.name) and lake.is_spark_started and lake.spark.catalog.tableExists(statement.name):
        return lake.spark.sql(statement.text)
    if isinstance(statement, ds.Describe):
        return show.describe(lake, statement)
    return show.show_columns(lake, statement)


def _run_on_spark(lake: SqlLake, statement: Statement) -> Any:
    from lakebed.sql import delete, insert, merge, queries, update  # pyspark is heavy: only when it is used

    deeds: dict[type[Any], Callable[[SqlLake, Any], Any]] = {
        st.Query: queries.run_query,
        st.SparkStatement: queries.run_spark,
        st.Insert: insert.insert,
        st.Update: update.update,
        st.Delete: delete.delete,
        st.Merge: merge.merge,
    }
    return deeds[type(statement)](lake, statement)
