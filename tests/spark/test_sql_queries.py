"""Queries in SQL: tables of the lake among Spark's own relations, and what of them is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidArgument, LakebedError, NotFound, Unsupported
from lakebed.sql.query import plan as planning
from lakebed.sql.query.plan import Planner
from lakebed.table.table import Table


def rows(lake: lakebed.Lake, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, in order of their texts."""
    return sorted((tuple(row) for row in lake.sql(query).collect()), key=repr)


@pytest.fixture
def tables(lake: lakebed.Lake) -> lakebed.Lake:
    """A lake with a keyed table of two commits and an append table."""
    lake.sql("CREATE TABLE t (k INT, v STRING, f DOUBLE, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1')")
    lake.sql("INSERT INTO t VALUES (1, 'a', 1.0), (2, 'b', CAST('NaN' AS DOUBLE))")
    lake.sql("INSERT INTO t VALUES (2, 'c', CAST('NaN' AS DOUBLE)), (3, NULL, NULL)")
    lake.sql("CREATE TABLE u (k INT, w STRING); INSERT INTO u VALUES (1, 'x'), (1, 'y'), (4, 'z')")
    return lake


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, v FROM t", [(1, "a"), (2, "c"), (3, None)]),
        ("SELECT T.K FROM t AS T WHERE v = 'c'", [(2,)]),
        ("SELECT default.t.v FROM default.t WHERE default.t.k = 1", [("a",)]),
        ("SELECT count(*) FROM t", [(3,)]),
        ("SELECT k FROM t WHERE f > 0", [(1,), (2,)]),
        ("SELECT t.k, w FROM t LEFT JOIN u ON t.k = u.k WHERE w IS NULL", [(2, None), (3, None)]),
        ("SELECT k FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = u.k)", [(4,)]),
        ("WITH t AS (SELECT k + 10 AS k FROM t) SELECT max(k) FROM t", [(13,)]),
        ("SELECT a.k FROM t a, t b WHERE a.k = b.k AND b.v = 'a'", [(1,)]),
        ("SELECT k FROM t VERSION AS OF 1 EXCEPT SELECT k FROM t WHERE k = 2", [(1,)]),
        ("SELECT k, v FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */ WHERE k = 2", [(2, "b")]),
        ("SELECT s.snapshot_id FROM `t$snapshots` s WHERE s.commit_kind = 'APPEND'", [(1,), (2,)]),
        ("FROM t SELECT k WHERE k < 2", [(1,)]),
        ("TABLE u", [(1, "x"), (1, "y"), (4, "z")]),
        ("SELECT x FROM (SELECT ARRAY[1, 2] AS a) CROSS JOIN UNNEST(a) AS e(x)", [(1,), (2,)]),
        ("SELECT k || v FROM t WHERE k = 1 UNION ALL SELECT CAST(id AS STRING) FROM range(1)", [("0",), ("1a",)]),
    ],
)
def test_queries(tables: lakebed.Lake, query: str, expected: list[tuple[Any, ...]]) -> None:
    """Lake tables, their past, system tables, Spark's relations and both spellings in one text."""
    assert rows(tables, query) == expected


def test_projection_and_filter_reach_the_table(tables: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the columns and files are read that the query needs."""
    seen: list[tuple[Any, Any]] = []
    plan = planning.plan_read

    def spied(table: Table, columns: Any = None, filter: Any = None) -> Any:  # noqa: A002
        seen.append((columns, None if filter is None else str(filter)))
        return plan(table, columns, filter)

    monkeypatch.setattr(planning, "plan_read", spied)
    assert rows(tables, "SELECT v FROM t WHERE k = 1") == [("a",)]
    assert rows(tables, "SELECT count(*) FROM t") == [(3,)]
    assert seen == [(["k", "v"], "k = 1"), (["k"], None)]


def test_all_references_see_one_snapshot(tables: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit between the two references of a query is seen by neither or both."""
    framed = Planner.table_frame
    calls = []

    def writing(self: Planner, table: Table, *arguments: Any, **named: Any) -> Any:
        calls.append(table)
        frame = framed(self, table, *arguments, **named)
        if len(calls) == 1:
            tables.sql("INSERT INTO u VALUES (9, 'q')")
        return frame

    monkeypatch.setattr(Planner, "table_frame", writing)
    assert rows(tables, "SELECT count(*) FROM u UNION ALL SELECT count(*) FROM u") == [(3,), (3,)]


def test_results_outlive_other_statements(tables: lakebed.Lake) -> None:
    """A DataFrame shows the snapshot of its statement, whatever is run after it."""
    before = tables.sql("SELECT * FROM u")
    tables.sql("INSERT INTO u VALUES (5, 'n')")
    after = tables.sql("SELECT * FROM u")
    assert (before.count(), after.count(), before.filter("k = 1").count()) == (3, 4, 2)


def test_spark_views(tables: lakebed.Lake) -> None:
    """Views of Spark go before tables; views on tables show them as they are when they are used."""
    spark = tables.spark
    spark.range(2).createOrReplaceTempView("only_sparks")
    assert rows(tables, "SELECT t.k FROM t JOIN only_sparks ON k = id") == [(1,)]
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW bigger AS SELECT k FROM t WHERE k > 1")
    assert rows(tables, "SELECT * FROM bigger") == [(2,), (3,)]
    tables.sql("INSERT INTO t VALUES (4, 'd', 0)")
    assert rows(tables, "SELECT * FROM bigger") == [(2,), (3,), (4,)]
    spark.range(1).createOrReplaceTempView("bigger")
    assert rows(tables, "SELECT * FROM bigger") == [(0,)]
    for name in ("only_sparks", "bigger"):
        spark.catalog.dropTempView(name)


def test_no_views_are_left_behind(tables: lakebed.Lake) -> None:
    """A classic session keeps none of our views; Connect keeps a bounded number."""
    rows(tables, "SELECT * FROM t JOIN u ON t.k = u.k")
    with pytest.raises(LakebedError):
        tables.sql("SELECT nowhere FROM t")
    source = "(SELECT 1 AS k, 'z' AS v, 1 AS more) AS s ON t.k = s.k"
    tables.sql(f"MERGE WITH SCHEMA EVOLUTION INTO t USING {source} WHEN MATCHED THEN UPDATE SET *")
    left = [table.name for table in tables.spark.catalog.listTables() if table.name.startswith("lakebed_view")]
    assert len(left) == 0 or type(tables.spark).__module__.startswith("pyspark.sql.connect")


def test_explain(tables: lakebed.Lake) -> None:
    """EXPLAIN knows the tables."""
    assert "Filter" in tables.sql("EXPLAIN EXTENDED SELECT k FROM t WHERE v = 'a'").collect()[0][0]


def test_a_catalog_view_is_refused(tables: lakebed.Lake) -> None:
    """A view that outlives the session can not be kept."""
    with pytest.raises(Unsupported, match="view"):
        tables.sql("CREATE VIEW kept AS SELECT * FROM t")


@pytest.mark.parametrize(
    ("query", "error", "match"),
    [
        ("SELECT nope FROM t", InvalidArgument, "nope"),
        ("SELECT * FROM missing", NotFound, "missing"),
        ("SELECT * FROM t VERSION AS OF 'nope'", NotFound, "tag `nope`"),
        ("SELECT * FROM `t$nothing`", NotFound, "names no system table"),
    ],
)
def test_errors(tables: lakebed.Lake, query: str, error: type[Exception], match: str) -> None:
    """Errors are ours, and name what the user named."""
    with pytest.raises(error, match=match) as caught:
        tables.sql(query).collect()
    assert "lakebed_view" not in str(caught.value)


def test_hidden_columns(lake: lakebed.Lake) -> None:
    """Hidden columns are there if named, and `*` does not mean them."""
    lake.sql("CREATE TABLE t (id INT, data STRING) WITH ('row-tracking.enabled' = 'true')")
    lake.sql("INSERT INTO t VALUES (11, 'a'), (22, 'b')")
    assert rows(lake, "SELECT * FROM t") == [(11, "a"), (22, "b")]
    assert rows(lake, "SELECT *, _ROW_ID, _SEQUENCE_NUMBER FROM t") == [(11, "a", 0, 1), (22, "b", 1, 1)]
    assert rows(lake, "SELECT data FROM t WHERE _ROW_ID = 1") == [("b",)]


def test_padded_text(lake: lakebed.Lake) -> None:
    """Text of fixed length is filled up, and compares regardless of that."""
    lake.sql("CREATE TABLE t (k INT, c CHAR(9)) TBLPROPERTIES ('file.format' = 'parquet')")
    lake.sql("INSERT INTO t VALUES (1, 'Friday'); INSERT INTO t SELECT 2, 'Sunday'")
    assert rows(lake, "SELECT c FROM t WHERE c = 'Friday'") == [("Friday   ",)]
    assert rows(lake, "SELECT c FROM t WHERE k = 2") == [("Sunday   ",)]


def test_a_lake_without_spark_reads_nothing(tmp_path: Path) -> None:
    """SHOW TABLES starts no session."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (k INT)")
    assert [tuple(row)[1] for row in lake.sql("SHOW TABLES").collect()] == ["t"]
    assert not lake.is_spark_started


def test_sparks_own_errors_stay_as_they_are(tables: lakebed.Lake) -> None:
    """Statements that go past us fail in Spark's way, also after one of ours has failed."""
    from pyspark.errors import AnalysisException

    with pytest.raises(LakebedError):
        tables.sql("SELECT nope FROM t").collect()
    with pytest.raises(AnalysisException):
        tables.spark.sql("SELECT nope FROM range(1)").collect()


def test_nested_columns_of_changed_tables(lake: lakebed.Lake) -> None:
    """Arrays of rows with nulls among them come back whole after deletes and updates."""
    lake.sql(
        "CREATE TABLE t (k INT, a ARRAY<ROW<x INT, y STRING>>, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket' = '1')"
    )
    lake.sql("INSERT INTO t VALUES (1, ARRAY[ROW(1, 'x')]), (2, NULL), (3, ARRAY[ROW(2, 'z'), NULL]), (4, NULL)")
    lake.sql("DELETE FROM t WHERE k = 1")
    assert rows(lake, "SELECT * FROM t") == [(2, None), (3, [(2, "z"), None]), (4, None)]


def test_unnested_maps(lake: lakebed.Lake) -> None:
    """UNNEST of a map gives keys and values, of an array of rows their members."""
    lake.sql("CREATE TABLE t (k INT, m MAP<STRING, INT>, a ARRAY<ROW<x INT, y STRING>>)")
    lake.sql("INSERT INTO t VALUES (1, MAP['a', 1, 'b', 2], ARRAY[ROW(7, 'x')])")
    assert rows(lake, "SELECT k, key, n FROM t CROSS JOIN UNNEST(t.m) AS u(key, n)") == [(1, "a", 1), (1, "b", 2)]
    assert rows(lake, "SELECT p, q FROM t, UNNEST(a) AS u(p, q)") == [(7, "x")]
    assert rows(lake, "SELECT key, n FROM (SELECT 1) CROSS JOIN UNNEST(MAP['c', 3]) AS u(key, n)") == [("c", 3)]


def test_settings_of_the_session(tables: lakebed.Lake) -> None:
    """`spark.paimon.<option>` set in Spark counts for tables, for all of them or by name; SET goes before it."""
    conf = tables.spark.conf
    try:
        conf.set("spark.paimon.scan.snapshot-id", "1")
        assert rows(tables, "SELECT k, v FROM t WHERE k = 2") == [(2, "b")]
        tables.sql("SET spark.paimon.scan.snapshot-id = 2")
        assert rows(tables, "SELECT k, v FROM t WHERE k = 2") == [(2, "c")]
        tables.sql("RESET spark.paimon.scan.snapshot-id")
        conf.unset("spark.paimon.scan.snapshot-id")
        conf.set("spark.paimon.*.default.u.scan.snapshot-id", "1")
        assert rows(tables, "SELECT k, v FROM t WHERE k = 2") == [(2, "c")]
    finally:
        conf.unset("spark.paimon.scan.snapshot-id")
        conf.unset("spark.paimon.*.default.u.scan.snapshot-id")
    assert rows(tables, "SELECT count(*) FROM t") == [(3,)]
