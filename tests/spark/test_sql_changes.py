"""INSERT, UPDATE, DELETE and MERGE: the rows they leave, in one commit, in this process or as a job."""

from __future__ import annotations

from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidArgument, InvalidData, LakebedError, NotFound, Unsupported
from lakebed.spark import read

KEYED = "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2')"
APPEND = "TBLPROPERTIES ('bucket' = '-1')"
VECTORS = "TBLPROPERTIES ('bucket' = '-1', 'deletion-vectors.enabled' = 'true')"
TRACKED = "TBLPROPERTIES ('bucket' = '-1', 'row-tracking.enabled' = 'true')"
COLUMN_FILES = (
    "TBLPROPERTIES ('bucket' = '-1', 'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', "
    "'deletion-vectors.enabled' = 'true')"
)
KINDS = (KEYED, APPEND, VECTORS, TRACKED, COLUMN_FILES)


@pytest.fixture(params=["here", "job"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small tables are changed in this process; with these limits none is small."""
    if request.param == "job":
        monkeypatch.setattr(read, "LOCAL_ROWS", 0)
    return str(request.param)


def rows(lake: lakebed.Lake, name: str = "t") -> list[tuple[Any, ...]]:
    """The rows of a table."""
    return sorted((tuple(row.values()) for row in lake.table(name).to_arrow().to_pylist()), key=repr)


def commits(lake: lakebed.Lake) -> int:
    """How often rows were committed."""
    return sum(snapshot.commit_kind != "COMPACT" for snapshot in lake.table("t").snapshots())


def filled(lake: lakebed.Lake, properties: str) -> lakebed.Lake:
    """A table of three rows in two commits."""
    lake.sql(f"CREATE TABLE t (k INT NOT NULL, n INT, s STRING) {properties}")
    lake.sql("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'); INSERT INTO t VALUES (3, 30, NULL)")
    return lake


# --- INSERT ----------------------------------------------------------------------------------------------------------


def test_insert_from_a_query(lake: lakebed.Lake, way: str) -> None:
    """Columns by position, by list and by name; types are fitted, missing columns are null."""
    lake.sql(f"CREATE TABLE t (k INT NOT NULL, n INT, s STRING) {KEYED}")
    lake.sql("CREATE TABLE src (a BIGINT, b INT); INSERT INTO src VALUES (1, 2)")
    lake.sql("INSERT INTO t SELECT a, b, b FROM src")
    lake.sql("INSERT INTO t (s, k) SELECT 'x', a + 1 FROM src")
    lake.sql("INSERT INTO t BY NAME SELECT a + 2 AS K, 'y' AS s FROM src")
    assert rows(lake) == [(1, 2, "2"), (2, None, "x"), (3, None, "y")]
    assert commits(lake) == 3


def test_insert_expressions(lake: lakebed.Lake) -> None:
    """VALUES with functions, and DEFAULT among them."""
    lake.sql("CREATE TABLE t (k INT, s STRING DEFAULT 'd')")
    lake.sql("INSERT INTO t VALUES (abs(-1), upper('x')), (2, DEFAULT)")
    assert rows(lake) == [(1, "X"), (2, "d")]


def test_insert_of_text_that_only_spark_can_read(lake: lakebed.Lake) -> None:
    """Unusual forms of dates are read by Spark; what it can not read is an error that says so."""
    lake.sql("CREATE TABLE t (d DATE)")
    lake.sql("INSERT INTO t VALUES ('2024')")
    assert [row[0].isoformat() for row in rows(lake)] == ["2024-01-01"]
    with pytest.raises(LakebedError, match="no date"):
        lake.sql("INSERT INTO t VALUES ('no date')")


def test_overwrite_reads_what_it_replaces(lake: lakebed.Lake, way: str) -> None:
    """A table can be overwritten with a query of itself."""
    filled(lake, KEYED)
    lake.sql("INSERT OVERWRITE t SELECT k, n + 1, s FROM t WHERE k < 3")
    assert rows(lake) == [(1, 11, "a"), (2, 21, "b")]


def test_spark_chooses_dynamic_overwrite(lake: lakebed.Lake) -> None:
    """Spark's mode `dynamic` replaces the partitions of the new rows only."""
    lake.sql("CREATE TABLE t (k INT, p INT, q INT) PARTITIONED BY (p, q)")
    lake.sql("INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1)")
    lake.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    try:
        lake.sql("INSERT OVERWRITE t PARTITION (p = 1) SELECT 10, 1")
    finally:
        lake.sql("RESET spark.sql.sources.partitionOverwriteMode")
    assert rows(lake) == [(10, 1, 1), (2, 1, 2), (3, 2, 1)]


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("INSERT INTO t SELECT 1, 2", "2 values for 3 columns"),
        ("INSERT INTO t SELECT 'x', 2, 's'", "column `k`"),
        ("INSERT INTO t BY NAME SELECT 1 AS k, 2 AS zz", "zz"),
        ("INSERT INTO t BY NAME SELECT 1 AS k, 2 AS K", "twice"),
        ("INSERT INTO t SELECT NULL, 1, 's'", "k"),
    ],
)
def test_insert_refuses(lake: lakebed.Lake, statement: str, match: str) -> None:
    """What does not fit is said before anything is written."""
    filled(lake, APPEND)
    with pytest.raises(LakebedError, match=match):
        lake.sql(statement)
    assert commits(lake) == 2


def test_schema_merge(lake: lakebed.Lake) -> None:
    """With the setting, columns that only the query has are added to the table."""
    filled(lake, APPEND)
    lake.sql("SET spark.paimon.write.merge-schema = true")
    lake.sql("INSERT INTO t BY NAME SELECT 4 AS k, struct(1 AS x) AS more")
    assert rows(lake)[-1] == (4, None, None, {"x": 1})


# --- UPDATE ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("properties", KINDS)
def test_update(lake: lakebed.Lake, way: str, properties: str) -> None:
    """Matching rows get new values computed from the old ones, in one commit; others stay."""
    filled(lake, properties)
    lake.sql("UPDATE t SET n = k + n, s = concat(s, '!') WHERE k IN (SELECT 2 UNION ALL SELECT 3)")
    assert rows(lake) == [(1, 10, "a"), (2, 22, "b!"), (3, 33, None)]
    assert commits(lake) == 3
    lake.sql("UPDATE t AS x SET x.n = NULL WHERE x.n > 1000")
    assert commits(lake) == 3


def test_update_keeps_ids(lake: lakebed.Lake, way: str) -> None:
    """A row keeps its id, and says which snapshot wrote it last."""
    filled(lake, TRACKED)
    lake.sql("UPDATE t SET s = 'z' WHERE _ROW_ID = 0")
    found = lake.sql("SELECT k, s, _ROW_ID, _SEQUENCE_NUMBER FROM t").collect()
    assert sorted(map(tuple, found)) == [(1, "z", 0, 3), (2, "b", 1, 1), (3, None, 2, 2)]


def test_update_of_members(lake: lakebed.Lake) -> None:
    """Members of rows are set one by one; rows as a whole are matched by name."""
    lake.sql("CREATE TABLE t (k INT, d STRUCT<a: INT, b: STRUCT<c: STRING>>)")
    lake.sql("INSERT INTO t VALUES (1, struct(1, struct('x')))")
    lake.sql("UPDATE t SET d.b.c = 'y'")
    assert rows(lake) == [(1, {"a": 1, "b": {"c": "y"}})]
    lake.sql("UPDATE t SET d = named_struct('b', named_struct('c', 'z'), 'a', 2L)")
    assert rows(lake) == [(1, {"a": 2, "b": {"c": "z"}})]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("UPDATE t SET k = 5", InvalidArgument),
        ("UPDATE t SET zz = 5", NotFound),
        ("UPDATE t SET n = 'x'", InvalidData),
        ("UPDATE t SET n = 1 WHERE zz = 1", InvalidArgument),
    ],
)
def test_update_refuses(lake: lakebed.Lake, statement: str, error: type[Exception]) -> None:
    """Keys can not be set, nor what is not there or does not fit."""
    filled(lake, KEYED)
    with pytest.raises(error):
        lake.sql(statement)
    assert commits(lake) == 2


def test_update_needs_an_engine_that_replaces_rows(lake: lakebed.Lake) -> None:
    """Where rows of a key add up, a new version is not one."""
    filled(lake, "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', 'merge-engine' = 'first-row')")
    with pytest.raises(Unsupported, match="first-row"):
        lake.sql("UPDATE t SET n = 1")


# --- DELETE ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("properties", KINDS)
def test_delete(lake: lakebed.Lake, way: str, properties: str) -> None:
    """Rows go for which the condition is true; where it is null they stay."""
    filled(lake, properties)
    lake.sql("DELETE FROM t WHERE s <> 'a'")
    assert rows(lake) == [(1, 10, "a"), (3, 30, None)]
    lake.sql("DELETE FROM t x WHERE x.k = (SELECT max(k) FROM t)")
    assert rows(lake) == [(1, 10, "a")]
    assert commits(lake) == 4
    lake.sql("DELETE FROM t")
    assert rows(lake) == []


def test_delete_of_whole_partitions(lake: lakebed.Lake) -> None:
    """A condition on partition columns drops partitions, whatever it consists of."""
    lake.sql("CREATE TABLE t (k INT, p STRING, q INT) PARTITIONED BY (p, q) TBLPROPERTIES ('primary-key' = 'k,p,q')")
    lake.sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 1)")
    lake.sql("DELETE FROM t WHERE upper(p) = 'A' AND q % 2 = 0")
    assert rows(lake) == [(1, "a", 1), (3, "b", 1)]
    assert lake.table("t").snapshots()[-1].operation == "TRUNCATE"
    lake.sql("DELETE FROM t WHERE p = 'nothing'")
    assert commits(lake) == 2


def test_delete_where_rows_add_up(lake: lakebed.Lake) -> None:
    """The files are rewritten, which needs them to be compacted."""
    filled(
        lake,
        "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', 'merge-engine' = 'aggregation', "
        "'fields.n.aggregate-function' = 'sum', 'write-only' = 'true')",
    )
    lake.sql("INSERT INTO t VALUES (1, 5, 'b')")
    with pytest.raises(InvalidArgument, match="compact"):
        lake.sql("DELETE FROM t WHERE k = 2")
    lake.table("t").with_options({"write-only": "false"}).compact(full=True)
    lake.sql("DELETE FROM t WHERE k = 2")
    assert rows(lake) == [(1, 15, "b"), (3, 30, None)]


# --- MERGE -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("properties", KINDS)
def test_merge(lake: lakebed.Lake, way: str, properties: str) -> None:
    """Clauses are tried in order; rows of either side alone have clauses of their own; all is one commit."""
    filled(lake, properties)
    lake.sql("CREATE TABLE src (k INT, n BIGINT, s STRING)")
    lake.sql("INSERT INTO src VALUES (1, 100, 'A'), (2, 200, 'B'), (7, 700, 'G'), (8, 800, 'H')")
    lake.sql(
        "MERGE INTO t USING src ON t.k = src.k "
        "WHEN MATCHED AND src.n < 150 THEN UPDATE SET n = t.n + src.n "
        "WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED AND n > 750 THEN INSERT (k, s) VALUES (k, s) "
        "WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND n = 30 THEN UPDATE SET s = 'left'"
    )
    assert rows(lake) == [(1, 110, "a"), (3, 30, "left"), (7, 700, "G"), (8, None, "H")]
    assert commits(lake) == 3


def test_merge_keeps_ids(lake: lakebed.Lake, way: str) -> None:
    """Updated rows keep their ids, inserted ones get new ones."""
    filled(lake, TRACKED)
    lake.sql(
        "MERGE INTO t USING (SELECT 2 AS k, 'm' AS s UNION ALL SELECT 9, 'n') AS x ON t.k = x.k "
        "WHEN MATCHED THEN UPDATE SET s = x.s WHEN NOT MATCHED THEN INSERT (k, s) VALUES (x.k, x.s)"
    )
    found = lake.sql("SELECT k, s, _ROW_ID, _SEQUENCE_NUMBER FROM t").collect()
    assert sorted(map(tuple, found)) == [(1, "a", 0, 1), (2, "m", 1, 3), (3, None, 2, 2), (9, "n", 3, 3)]


@pytest.mark.parametrize("properties", [KEYED, APPEND])
def test_merge_refuses_two_rows_for_one(lake: lakebed.Lake, way: str, properties: str) -> None:
    """Which of two source rows would count is not known; deleting twice is deleting."""
    filled(lake, properties)
    source = "(SELECT * FROM VALUES (1, 5), (1, 6) AS v(k, n)) AS src ON t.k = src.k"
    with pytest.raises(LakebedError, match="more than one row"):
        lake.sql(f"MERGE INTO t USING {source} WHEN MATCHED THEN UPDATE SET n = src.n")
    assert commits(lake) == 2
    lake.sql(f"MERGE INTO t USING {source} WHEN MATCHED THEN DELETE")
    assert [row[0] for row in rows(lake)] == [2, 3]


def test_merge_does_not_move_keys(lake: lakebed.Lake) -> None:
    """A key may only be set to what it equals."""
    filled(lake, KEYED)
    source = "(SELECT 5 AS k, 10 AS n, 'q' AS s) AS src"
    with pytest.raises(InvalidArgument, match="primary key"):
        lake.sql(f"MERGE INTO t USING {source} ON t.n = src.n WHEN MATCHED THEN UPDATE SET *")
    with pytest.raises(InvalidArgument, match="primary key"):
        lake.sql(f"MERGE INTO t USING {source} ON t.n = src.n WHEN MATCHED THEN UPDATE SET k = src.k + 1")
    lake.sql(f"MERGE INTO t USING {source} ON t.k + 4 = src.k AND src.n = t.n WHEN MATCHED THEN UPDATE SET s = src.s")
    assert rows(lake)[0] == (1, 10, "q")


def test_merge_evolves(lake: lakebed.Lake) -> None:
    """WITH SCHEMA EVOLUTION adds the columns that `*` brings, and keeps those it does not."""
    filled(lake, KEYED)
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS k, 'z' AS s, 7L AS more) AS x ON t.k = x.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(lake) == [(1, 10, "z", 7), (2, 20, "b", None), (3, 30, None, None)]


def test_create_table_as(lake: lakebed.Lake) -> None:
    """The table has the columns of the query, and its rows."""
    filled(lake, APPEND)
    lake.sql("CREATE TABLE c TBLPROPERTIES ('primary-key' = 'k') AS SELECT k, n * 2 AS m FROM t WHERE k < 3")
    assert rows(lake, "c") == [(1, 20), (2, 40)]
    assert lake.table("c").primary_key == ("k",)
