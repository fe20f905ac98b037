"""Carries out queries, and hands to Spark what is Spark's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.spark.errors import spark_errors
from lakebed.sql.parse.query import read_query
from lakebed.sql.query.answer import QueryResult
from lakebed.sql.query.choose import Choice, choose
from lakebed.sql.query.file_names import with_file_names
from lakebed.sql.query.plan import Planner
from lakebed.sql.query.pushdown import comparable_types, needs_of
from lakebed.sql.query.references import is_common_expression, references
from lakebed.sql.query.views import forget, remember, view_names, view_text
from lakebed.sql.result import LazyResult
from lakebed.sql.session import SqlLake, result
from lakebed.sql.settings import hand_over_settings
from lakebed.sql.statements import Query, SparkStatement, Sql
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import quoted
from lakebed.table.plans import plan_read
from lakebed.table.system.handle import DefinedTable
from lakebed.types.arrow import from_arrow_schema, to_arrow_schema
from lakebed.types.logical import DataField
from lakebed.write.make_room import relaxed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.explain.scan import ScanExplained

_TEMPORARY_VIEW = re.compile(
    r"CREATE\s+(?P<replace>OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?P<name>`[^`]+`|\w+)\s+AS\s*", re.IGNORECASE
)

_CACHE = re.compile(r"CACHE\s+(?:LAZY\s+)?TABLE\s+([\w.`]+)", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


def run_query(lake: SqlLake, statement: Query) -> Any:
    """SELECT, WITH, VALUES, FROM: a DataFrame; without a session something that acts as one, and starts none itself."""
    sql = with_file_names(lake, statement.sql)
    if lake.is_spark_started:
        return Planner.start(lake).frame(sql)
    choice = choose(lake, sql)
    frame = _frame_of(lake, sql, choice)
    embedded = choice.embedded
    return frame() if embedded is None else LazyResult(embedded.schema, embedded.table, frame, embedded.zone)


def answer(lake: SqlLake, sql: Sql, engine: str) -> QueryResult:
    """A query for `lake.query`."""
    sql = with_file_names(lake, sql)
    choice = choose(lake, sql, engine)
    return QueryResult(choice, _frame_of(lake, sql, choice))


def explain(lake: SqlLake, sql: Sql, engine: str = "auto") -> str:
    """Who would answer a query, why, and how."""
    sql = with_file_names(lake, sql)
    choice = choose(lake, sql, engine)
    lines = [f"engine: {choice.engine.value}", f"because: {choice.reason}"]
    if choice.embedded is not None:
        lines += ["", choice.embedded.plan()]
    return "\n".join([*lines, *(f"\n{read!r}" for read in _reads(lake, sql))])


def _reads(lake: SqlLake, sql: Sql) -> Iterator[ScanExplained]:
    """What is read of each table of the lake, and what its files need not be opened for."""
    from lakebed.explain.scan import explain_scan

    for reference in references(lake, sql):
        table = reference.table
        if isinstance(table, DefinedTable):
            continue
        types = comparable_types(table)
        needs = needs_of(reference.node, types)
        names = None if needs.columns is None else [name for name in table.arrow_schema.names if name in needs.columns]
        planned = plan_read(table, names or None, needs.predicate)
        if isinstance(planned, tuple):
            yield explain_scan(*planned)


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
    view = _TEMPORARY_VIEW.fullmatch(statement.text.strip() + " ")
    if view is not None:
        return _create_view(lake, view["name"].strip("`"), statement.query, replaces=view["replace"] is not None)
    planner = Planner.start(lake)
    text = planner.text(statement.query)
    if text != statement.query.text and re.match(r"\s*CREATE\b", statement.text, re.IGNORECASE):
        raise Unsupported(
            "a view that Spark's catalog keeps can not read tables of the lake", hint="create a TEMPORARY VIEW"
        )
    # What Spark remembers as text (CACHE TABLE) needs the views for as long as the session lives.
    return planner.views.sql(f"{statement.text}{text}", keep=_EXPLAIN.match(statement.text) is None)


def _create_view(lake: SqlLake, name: str, query: Sql, *, replaces: bool) -> None:
    """The text stays with us: later statements see the tables as they are then. A session gets the plan."""
    query = _in_its_database(lake, query)
    _refuse_circle(lake, name, query)
    if not lake.is_spark_started and choose(lake, query).embedded is not None:
        if not replaces and view_text(lake, name) is not None:
            raise InvalidArgument(
                f"there is a temporary view `{name}` already", hint="write CREATE OR REPLACE TEMPORARY VIEW"
            )
        forget(lake, name)  # views are handed to a session in the order of their definitions
        remember(lake, name, query)
        return
    _plan_view(lake, name, query, replaces=replaces)


def _plan_view(lake: SqlLake, name: str, query: Sql, *, replaces: bool) -> None:
    frame = Planner.start(lake).frame(query)
    with spark_errors():
        if replaces:
            frame.createOrReplaceTempView(name)
        else:
            frame.createTempView(name)
        remember(lake, name, query, lake.spark.table(name))


def _in_its_database(lake: SqlLake, query: Sql) -> Sql:
    """The query with tables in the database that was the current one: USE does not change a view."""
    edits = {}
    for reference in references(lake, query):
        first = reference.node.this
        if len(reference.node.parts) == 1 and isinstance(first, exp.Identifier) and "start" in first.meta:
            edits[first.meta["start"], first.meta["start"]] = f"{quoted(lake.current_database)}."
    return read_query(Cursor(query.spliced(edits))) if edits else query


def _refuse_circle(lake: SqlLake, name: str, query: Sql) -> None:
    """Raises if a view would be made of itself, which nobody could read."""
    left, seen = [query], set()
    while left:
        for node in left.pop().tables():
            called = node.name.lower()
            if len(node.parts) > 1 or called in seen or is_common_expression(node):
                continue
            seen.add(called)
            inner = view_text(lake, called)
            if inner is not None:
                left.append(inner)
            if called == name.lower() and (inner is not None or not lake.has_table(name)):
                raise InvalidArgument(f"view `{name}` would be made of itself", hint="give it another name")


def hand_over(lake: SqlLake) -> None:
    """Gives a session that has just started what statements have defined without one: the time zone and views."""
    hand_over_settings(lake)
    for name in view_names(lake):
        query = view_text(lake, name)
        assert query is not None
        try:
            _plan_view(lake, name, query, replaces=True)
        except LakebedError:  # its tables may have changed: whoever uses it is told
            remember(lake, name, query)


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
