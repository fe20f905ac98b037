"""`lake.sql`: reads the text, and has each statement carried out by whoever can.

What needs no Spark starts none. The result is that of the last statement: a DataFrame, or something that looks like
one and has its rows already.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidArgument
from lakebed.sql import settings
from lakebed.sql import statements as st
from lakebed.sql.parse import Statement, parse, parse_sets
from lakebed.sql.session import SqlLake, connector_table, connector_tables, nothing
from lakebed.sql.words.parameters import Arguments, bound

if TYPE_CHECKING:
    from lakebed.sql.query.answer import QueryResult


@cache
def _deeds() -> dict[type[Any], Callable[[SqlLake, Any], Any]]:
    """Who carries out what needs no query; loaded only when it is needed, since queries are asked most."""
    from lakebed.sql.define import alter, connectors, earlier_states, materialized, show, streaming
    from lakebed.sql.define import tables as ddl
    from lakebed.sql.procedures import call, show_procedures

    return {
        st.CreateDatabase: ddl.create_database,
        st.DropDatabase: ddl.drop_database,
        st.UseDatabase: ddl.use_database,
        st.UseCatalog: ddl.use_catalog,
        st.CreateTable: ddl.create_table,
        st.CreateConnectorTable: connectors.create,
        st.DropTable: ddl.drop_table,
        st.Truncate: ddl.truncate,
        st.Analyze: ddl.analyze,
        st.AlterTable: alter.alter_table,
        st.ShowDatabases: show.show_databases,
        st.ShowCatalogs: show.show_catalogs,
        st.ShowCurrent: show.show_current,
        st.ShowTables: show.show_tables,
        st.ShowCreateTable: show.show_create_table,
        st.ShowPartitions: show.show_partitions,
        st.ShowTags: show.show_tags,
        st.ShowOptions: show.show_options,
        st.ShowProcedures: show_procedures,
        st.DescribeDatabase: show.describe_database,
        st.DescribeHistory: earlier_states.describe_history,
        st.Restore: earlier_states.restore,
        st.Vacuum: earlier_states.vacuum,
        st.CreateMaterialized: materialized.create,
        st.AlterMaterialized: materialized.alter,
        st.DropMaterialized: materialized.drop,
        st.RefreshMaterialized: materialized.refresh,
        st.ShowMaterialized: materialized.show,
        st.ShowCreateMaterialized: materialized.show_create,
        st.ExplainMaterialized: materialized.explain,
        st.ShowJobs: streaming.show_jobs,
        st.StopJob: streaming.stop_job,
        st.SetSetting: settings.set_setting,
        st.ResetSetting: settings.reset_setting,
        st.Call: call,
    }


def run(lake: SqlLake, text: str, args: Arguments = None) -> Any:
    """Carries out all statements of a text, in order; gives the result of the last one."""
    if not isinstance(text, str):
        raise InvalidArgument(f"the statement is {type(text).__name__}, not text", hint="pass SQL as a string")
    sets = parse_sets(_filled_in(lake, text, args))
    if not sets:
        raise InvalidArgument("the text holds no statement", hint="pass SQL, for example SHOW TABLES")
    found: Any = None
    for statements in sets:
        found = _run_set(lake, statements)
    return nothing(lake) if found is None else found


def _filled_in(lake: SqlLake, text: str, args: Arguments) -> str:
    """The text with values for its markers, and for what it asks of partitions."""
    text = bound(text, args)
    if "max_pt" not in text.lower():
        return text
    from lakebed.sql.query.newest_partition import with_newest_partitions  # only when it is used

    return with_newest_partitions(lake, text)


def _run_set(lake: SqlLake, statements: list[Statement]) -> Any:
    """Statements that belong together, or one; the result of the last."""
    if settings.is_streaming(lake):
        from lakebed.sql.define.streaming import goes_on

        if goes_on(lake, statements):
            return lake.go_on(statements)
    found: Any = None
    for statement in statements:
        with settings.settings_of_one_statement():
            found = run_statement(lake, statement)
    return found


def query(lake: SqlLake, text: str, args: Arguments, engine: str) -> QueryResult:
    """Carries out a text that is one query, on the engine that is asked for."""
    from lakebed.sql.query.run import answer

    if not isinstance(text, str):
        raise InvalidArgument(f"the query is {type(text).__name__}, not text", hint="pass SQL as a string")
    given = _filled_in(lake, text, args)
    read = _remembered(given) if len(given) <= _REMEMBERED_LETTERS else _one_query(given)
    with settings.settings_of_one_statement():
        return answer(lake, read, engine)


def _one_query(text: str) -> st.Sql:
    statements = parse(text)
    if len(statements) != 1 or not isinstance(statements[0], st.Query):
        raise InvalidArgument(
            "the text is not one query",
            hint="pass one SELECT, without others beside it; lake.sql(...) takes all other statements",
        )
    return statements[0].sql


_REMEMBERED_LETTERS = 1 << 14
_remembered = lru_cache(maxsize=64)(_one_query)
"""Programs ask the same again and again: how a text reads is remembered, what it means is found out each time."""


def run_statement(lake: SqlLake, statement: Statement) -> Any:
    """Carries out one statement."""
    if isinstance(statement, st.Query):
        return _run_on_rows(lake, statement)
    if connector_tables(lake):
        from lakebed.sql.define.connectors import refuse_as_table

        refuse_as_table(lake, statement)
    from lakebed.sql.traced import traced  # queries write nothing, and start without it

    with traced(lake, statement):
        return _carried_out(lake, statement)


def _carried_out(lake: SqlLake, statement: Statement) -> Any:
    deed = _deeds().get(type(statement))
    if deed is not None:
        return deed(lake, statement)
    if isinstance(statement, st.Describe | st.ShowColumns):
        return _describe(lake, statement)
    if isinstance(statement, st.RefreshTable):
        # Each statement looks at the latest state anyway.
        return None if lake.has_table(statement.name) else lake.spark.sql(statement.text)
    if isinstance(statement, st.SparkStatement):
        from lakebed.sql.define.spark_views import answer_about_views

        answer = answer_about_views(lake, statement)
        if answer is not None:
            return answer
    return _run_on_rows(lake, statement)


def _describe(lake: SqlLake, statement: st.Describe | st.ShowColumns) -> Any:
    """A table of the lake, or else a view of Spark."""
    from lakebed.sql.define import show
    from lakebed.sql.define.connectors import describe
    from lakebed.sql.define.spark_views import describe_view

    other = connector_table(lake, statement.name)
    if other is not None:
        return describe(lake, other, statement)
    if not lake.has_table(statement.name) and lake.is_spark_started and lake.spark.catalog.tableExists(statement.name):
        return lake.spark.sql(statement.text)
    if not lake.has_table(statement.name):
        view = describe_view(lake, statement.name)
        if view is not None:
            return view if isinstance(statement, st.Describe) else lake.spark.sql(statement.text)
    if isinstance(statement, st.Describe):
        return show.describe(lake, statement)
    return show.show_columns(lake, statement)


def _run_on_rows(lake: SqlLake, statement: Statement) -> Any:
    """Queries, and statements that change rows."""
    from lakebed.sql.query import run as queries  # what each needs is loaded only when it is used

    if isinstance(statement, st.Query):
        return queries.run_query(lake, statement)
    from lakebed.sql.change import delete, insert, merge, update

    deeds: dict[type[Any], Callable[[SqlLake, Any], Any]] = {
        st.SparkStatement: queries.run_spark,
        st.Insert: insert.insert,
        st.Update: update.update,
        st.Delete: delete.delete,
        st.Merge: merge.merge,
    }
    return deeds[type(statement)](lake, statement)
