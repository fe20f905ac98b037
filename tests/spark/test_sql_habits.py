"""Habits of Flink's and Spark's users that a Spark session answers: casts, plans, views, values for a text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.sessions import IS_CONNECT

import lakebed
from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.expressions.spark_functions import SPARK_FUNCTIONS


@pytest.fixture
def tables(lake: lakebed.Lake) -> Iterator[lakebed.Lake]:
    """A lake with a small table. Views that Spark remembers as text go afterwards: other tests look for them."""
    lake.sql("CREATE TABLE t (k INT, v STRING, ts TIMESTAMP(3)) WITH ('bucket' = '-1')")
    lake.sql(
        "INSERT INTO t VALUES (1, 'a', TIMESTAMP '2024-01-01 00:01:00'), (2, 'b', TIMESTAMP '2024-01-01 00:11:00')"
    )
    yield lake
    for view in lake.spark.catalog.listTables():
        if view.name.startswith("lakebed_view_"):
            lake.spark.catalog.dropTempView(view.name)


def test_a_varchar_of_any_length(tables: lakebed.Lake) -> None:
    """Flink's VARCHAR without a length is a text."""
    row = tables.sql("SELECT CAST(k AS VARCHAR) AS a, TRY_CAST('x' AS VARCHAR) AS b FROM t WHERE k = 1").collect()[0]
    assert tuple(row) == ("1", "x")


def test_explain_plan_for(tables: lakebed.Lake) -> None:
    """Flink's words for EXPLAIN."""
    assert "lan" in tables.sql("EXPLAIN PLAN FOR SELECT k FROM t").collect()[0][0]


@pytest.mark.skipif(IS_CONNECT, reason="Spark Connect looks names up each time a result is used")
@pytest.mark.parametrize("words", ["", "EXTENDED ", "FORMATTED ", "CODEGEN ", "COST "])
def test_a_plan_leaves_no_view(tables: lakebed.Lake, words: str) -> None:
    """Spark's list of tables has nothing of ours after EXPLAIN, and the plan can still be read."""
    before = {view.name for view in tables.spark.catalog.listTables()}
    plan = tables.sql(f"EXPLAIN {words}SELECT k FROM t WHERE k > 1")
    assert {view.name for view in tables.spark.catalog.listTables()} == before
    assert len(plan.collect()[0][0]) > 20


@pytest.mark.parametrize(
    ("text", "near"), [("cuont(*)", "count"), ("lenght(v)", "length"), ("strftime(ts, '')", "date_format")]
)
def test_functions_that_spark_does_not_know(tables: lakebed.Lake, text: str, near: str) -> None:
    """A session is asked, since it may have functions of its own; what it does not know is told with the nearest."""
    with pytest.raises(NotFound, match=f"(?s)no function `{text.partition('(')[0]}`.*{near}"):
        tables.sql(f"SELECT {text} FROM t")
    tables.sql("CREATE OR REPLACE TEMPORARY FUNCTION lenghten(x STRING) RETURNS STRING RETURN x || x")
    assert tables.query("SELECT lenghten('a')").fetchall() == [("aa",)]
    tables.sql("DROP TEMPORARY FUNCTION lenghten")


def test_moments_as_flink_makes_them(tables: lakebed.Lake) -> None:
    """Flink's way to make a moment of a number is Spark's `timestamp_millis`."""
    ours, theirs = tables.sql("SELECT TO_TIMESTAMP_LTZ(1700000000000, 3), timestamp_millis(1700000000000)").collect()[0]
    assert ours == theirs


@pytest.mark.nightly
def test_the_names_of_functions(tables: lakebed.Lake) -> None:
    """The list that mistyped names are looked up in is that of the installed Spark."""
    shown = (row[0] for row in tables.spark.sql("SHOW SYSTEM FUNCTIONS").collect())
    assert tuple(sorted(name for name in shown if name.isidentifier())) == SPARK_FUNCTIONS


def test_views_shown_are_those_of_users(tables: lakebed.Lake) -> None:
    """SHOW VIEWS has the temporary views that were made, and none that stand for tables inside statements."""
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW mine AS SELECT k FROM t")
    tables.sql("EXPLAIN SELECT * FROM t").collect()
    tables.sql("CACHE TABLE kept AS SELECT k FROM t")
    shown = tables.sql("SHOW VIEWS")
    names = {row["viewName"] for row in shown.collect()}
    assert {"mine", "kept"} <= names
    assert not [name for name in names if name.startswith("lakebed_view_")]
    assert [row["viewName"] for row in tables.sql("SHOW VIEWS LIKE 'min*'").collect()] == ["mine"]
    tables.sql("UNCACHE TABLE kept; DROP VIEW kept; DROP VIEW mine")


def test_what_is_said_of_windows_works(tables: lakebed.Lake) -> None:
    """What the hint for TUMBLE has people type gives its rows."""
    found = tables.sql(
        "SELECT window.start, count(*) AS n FROM t GROUP BY window(ts, '10 MINUTES') ORDER BY 1"
    ).collect()
    assert [row["n"] for row in found] == [1, 1]


VALUES: list[Any] = [
    *(7, -1, -(1 << 31), 1 << 31, -(1 << 63), True, None, 1.5, 1e300, -0.1, math.inf, -math.inf),
    *(Decimal("12.50"), Decimal(100), Decimal("-0.001"), "it's \\ \"quoted\" `so` \\' :v ? -- \n é", ""),
    *(dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 45), dt.timedelta(days=1, seconds=2.5)),
    *(dt.timedelta(days=-1), b"\x00'\xff"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_those_of_spark(tables: lakebed.Lake, value: Any) -> None:
    """Value and type of a parameter are what Spark's own `sql(args=...)` makes of it."""
    text = "SELECT {} AS v, typeof({}) AS t"
    expected = tables.spark.sql(text.format(":v", ":v"), args={"v": value}).collect()
    assert tables.sql(text.format(":v", ":v"), args={"v": value}).collect() == expected
    assert tables.sql(text.format("?", "?"), args=[value, value]).collect() == expected


def test_values_in_queries(tables: lakebed.Lake) -> None:
    """Conditions, limits, time travel, UPDATE and DELETE take values; an attack is a text that nothing equals."""
    lake = tables
    assert [r.k for r in lake.sql("SELECT k FROM t WHERE v = :v", {"v": "b"}).collect()] == [2]
    assert lake.sql("SELECT k FROM t WHERE v = :v", {"v": "x' OR '1' = '1"}).count() == 0
    assert lake.sql("SELECT k FROM t WHERE v = ?", ["x\\' OR 1 = 1 -- "]).count() == 0
    assert lake.sql("SELECT k FROM t VERSION AS OF :n LIMIT :m", {"n": 1, "m": 1}).count() == 1
    lake.sql("UPDATE t SET v = :new WHERE k = :k", {"new": "it's", "k": 1})
    assert [r.v for r in lake.sql("SELECT v FROM t WHERE v = ?", ["it's"]).collect()] == ["it's"]
    lake.sql("DELETE FROM t WHERE v IN (:a, :b)", {"a": "it's", "b": "'); DROP TABLE t; --"})
    assert [r.k for r in lake.sql("SELECT k FROM t").collect()] == [2]
    assert lake.sql("SELECT array_contains(:l, 2) AS x, :m['a'] AS y", {"l": [1, 2], "m": {"a": 5}}).collect()[0] == (
        True,
        5,
    )


def test_hints_of_spark_name_what_the_query_names(tables: lakebed.Lake) -> None:
    """BROADCAST of an alias, of a table and of a view: none of them is looked for in the lake."""
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW other AS SELECT k FROM t")
    for words in ("BROADCAST(a)", "BROADCAST(o)", "MERGE(a, o)", "REPARTITION(2)"):
        found = tables.sql(f"SELECT /*+ {words} */ a.k FROM t a JOIN other o ON a.k = o.k ORDER BY 1").collect()
        assert [row.k for row in found] == [1, 2]
    assert tables.sql("SELECT /*+ BROADCAST(t) */ count(*) FROM t").collect()[0][0] == 2
    tables.sql("DROP VIEW other")


def test_caching_a_table(tables: lakebed.Lake) -> None:
    """Spark does not know tables of the lake; it caches a query on one."""
    with pytest.raises(Unsupported, match="CACHE TABLE c AS SELECT"):
        tables.sql("CACHE TABLE t")


def test_schemas_of_spark(tables: lakebed.Lake) -> None:
    """A table is made from the schema of a DataFrame, and keeps what may not be null."""
    frame = tables.spark.sql(
        "SELECT 1L AS id, 'x' AS s, CAST(1.5 AS DECIMAL(5, 2)) AS d, array(1) AS a, current_date AS day"
    )
    made = tables.create_table("made", frame.schema)
    made.write_spark(frame)
    assert made.to_spark().collect() == frame.collect()
    with pytest.raises(InvalidArgument, match=r"(?s)pandas is no Spark DataFrame.*`write` takes"):
        made.write_spark(frame.toPandas())
