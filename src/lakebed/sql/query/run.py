"""Carries out queries, and hands to Spark what is Spark's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.spark.errors import spark_errors
from lakebed.sql.query.answer import QueryResult
from lakebed.sql.query.choose import Choice, choose
from lakebed.sql.query.plan import Planner
from lakebed.sql.query.views import remember
from lakebed.sql.result import LazyResult
from lakebed.sql.session import SqlLake, result
from lakebed.sql.statements import Query, SparkStatement, Sql
from lakebed.types.arrow import from_arrow_schema, to_arrow_schema
from lakebed.types.logical import DataField
from lakebed.write.make_room import relaxed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEMPORARY_VIEW = re.compile(
    r"CREATE\s+(?P<replace>OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?P<name>`[^`]+`|\w+)\s+AS\s*", re.IGNORECASE
)

_CACHE = re.compile(r"CACHE\s+(?:LAZY\s+)?TABLE\s+([\w.`]+)", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


def run_query(lake: SqlLake, statement: Query) -> Any:
    """SELECT, WITH, VALUES, FROM: a DataFrame; without a session something that acts as one, and starts none itself."""
    if lake.is_spark_started:
        return Planner.start(lake).frame(statement.sql)
    choice = choose(lake, statement.sql)
    frame = _frame_of(lake, statement.sql, choice)
    embedded = choice.embedded
    return frame() if embedded is None else LazyResult(embedded.schema, embedded.table, frame, embedded.zone)


def answer(lake: SqlLake, sql: Sql, engine: str) -> QueryResult:
    """A query for `lake.query`."""
    choice = choose(lake, sql, engine)
    return QueryResult(choice, _frame_of(lake, sql, choice))


def explain(lake: SqlLake, sql: Sql, engine: str = "auto") -> str:
    """Who would answer a query, why, and how."""
    choice = choose(lake, sql, engine)
    lines = [f"engine: {choice.engine.value}", f"because: {choice.reason}"]
    return "\n".join(lines if choice.embedded is None else [*lines, "", choice.embedded.plan()])


def _frame_of(lake: SqlLake, sql: Sql, choice: Choice) -> Callable[[], DataFrame]:
    """The query on Spark, on the snapshots that it was first bound to."""
    return lambda: Planner.start(lake, choice.pins).frame(sql)


def run_spark(lake: SqlLake, statement: SparkStatement) -> Any:
    """A statement that is Spark's; tables of the lake in a query at its end are there for it."""
    if not lake.is_spark_started and statement.query is not None and _EXPLAIN.match(statement.text):
        lines = explain(lake, statement.query)
        return result(lake, {"plan": pa.string()}, [(lines,)])
    if statement.query is None:
        cached = _CACHE.fullmatch(statement.text.strip())
        if cached is not None and lake.has_table(cached[1].replace("`", "")):
            raise Unsupported(
                f"`{cached[1]}` is a table of the lake, of which Spark caches queries only",
                hint=f"type CACHE TABLE c AS SELECT * FROM {cached[1]}",
            )
        with spark_errors():
            return lake.spark.sql(statement.text)
    planner = Planner.start(lake)
    view = _TEMPORARY_VIEW.fullmatch(statement.text.strip() + " ")
    if view is not None:
        return _create_view(lake, planner, view, statement.query)
    text = planner.text(statement.query)
    if text != statement.query.text and re.match(r"\s*CREATE\b", statement.text, re.IGNORECASE):
        raise Unsupported(
            "a view that Spark's catalog keeps can not read tables of the lake", hint="create a TEMPORARY VIEW"
        )
    # What Spark remembers as text (CACHE TABLE) needs the views for as long as the session lives.
    return planner.views.sql(f"{statement.text}{text}", keep=_EXPLAIN.match(statement.text) is None)


def _create_view(lake: SqlLake, planner: Planner, view: re.Match[str], query: Sql) -> None:
    """The plan is Spark's, the text stays with us: later statements see the tables as they are then."""
    frame = planner.frame(query)
    name = view["name"].strip("`")
    with spark_errors():
        if view["replace"]:
            frame.createOrReplaceTempView(name)
        else:
            frame.createTempView(name)
        remember(lake, name, query, lake.spark.table(name))


def schema_of(lake: SqlLake, query: Sql) -> pa.Schema:
    """The columns that a query gives, as Arrow types."""
    choice = None if lake.is_spark_started else choose(lake, query)
    if choice is not None and choice.embedded is not None:
        fields = from_arrow_schema(choice.embedded.schema)
        return to_arrow_schema(replace(field, type=relaxed(field.type)) for field in fields)
    return to_arrow_schema(incoming_fields(Planner.start(lake).frame(query)))


def incoming_fields(frame: DataFrame) -> tuple[DataField, ...]:
    """The columns of a DataFrame as columns of a table."""
    from lakebed.spark.types import arrow_type

    fields = [pa.field(field.name, arrow_type(field.dataType, field.name)) for field in frame.schema.fields]
    return tuple(replace(field, type=relaxed(field.type)) for field in from_arrow_schema(pa.schema(fields)))
