"""UPDATE, DELETE, MERGE, temporary views and the time zone without Spark: what they do, and what is left to it."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import FileMissing, InvalidArgument, InvalidData, LakebedError, NotFound, Unsupported
from lakebed.spark.session import Session
from lakebed.sql.change import embedded_rows


class AskedForSpark(Exception):
    """What a statement runs into that has to start a session."""


class NoSpark(Session):
    """A session that can not be started."""

    def get(self) -> Any:
        """None."""
        raise AskedForSpark


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """A lake without Spark that has a table of each kind, and a source."""
    lake = lakebed.connect(tmp_path, spark=NoSpark())
    columns = "id INT, v BIGINT, s STRING, d DECIMAL(8, 2), c CHAR(3), r STRUCT<a: INT, b: STRING>"
    lake.sql(f"CREATE TABLE keyed ({columns}, PRIMARY KEY (id) NOT ENFORCED)")
    lake.sql(f"CREATE TABLE plain ({columns}) PARTITIONED BY (s)")
    for name in ("keyed", "plain"):
        lake.sql(f"INSERT INTO {name} VALUES (1, 10, 'a', 1.50, 'x', ROW(1, 'p')), (2, 20, 'b', NULL, 'y', NULL)")
    lake.sql("CREATE TABLE feed (id INT, v BIGINT, s STRING)")
    lake.sql("INSERT INTO feed VALUES (2, 200, 'b'), (3, 300, 'c')")
    return lake


def _rows(lake: lakebed.Lake, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in lake.table(name).to_arrow(list(columns)).to_pylist())


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_rows_change(lake: lakebed.Lake, name: str) -> None:
    """Values, conditions with queries, members of rows, text of fixed length: each statement does what it says."""
    lake.sql(f"UPDATE {name} SET v = v + 1, d = '2.345', c = 'q' WHERE id IN (SELECT id FROM feed)")
    assert _rows(lake, name, "id", "v", "c") == [(1, 10, "x  "), (2, 21, "q  ")]
    lake.sql(f"UPDATE {name} AS t SET r.b = upper(t.r.b), s = s WHERE t.d < 2")
    assert _rows(lake, name, "id", "r")[0] == (1, {"a": 1, "b": "P"})
    lake.sql(f"DELETE FROM {name} WHERE v = (SELECT max(v) FROM {name})")
    assert _rows(lake, name, "id", "s") == [(1, "a")]


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_rows_merge(lake: lakebed.Lake, name: str) -> None:
    """Every clause takes its rows: matched, not matched, not matched by the source."""
    lake.sql(
        f"MERGE INTO {name} AS t USING (SELECT * FROM feed) AS f ON t.id = f.id "
        "WHEN MATCHED AND f.v > 100 THEN UPDATE SET v = f.v + t.v "
        "WHEN NOT MATCHED THEN INSERT (id, v, s) VALUES (id, v, s) WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert _rows(lake, name, "id", "v", "s") == [(2, 220, "b"), (3, 300, "c")]


def test_whole_partitions_are_dropped(lake: lakebed.Lake) -> None:
    """A condition on partitions alone reads no row, and one that names none changes nothing."""
    before = len(lake.table("plain").snapshots())
    lake.sql("DELETE FROM plain WHERE s = 'nowhere'")
    assert len(lake.table("plain").snapshots()) == before
    lake.sql("DELETE FROM plain WHERE upper(s) = 'A'")
    assert _rows(lake, "plain", "id") == [(2,)]
    lake.sql("DELETE FROM plain")
    assert _rows(lake, "plain", "id") == []


@pytest.mark.parametrize(
    ("statement", "error", "match"),
    [
        ("UPDATE keyed SET nope = 1", NotFound, "no column `nope`"),
        ("UPDATE keyed SET v = nope", InvalidArgument, "no column `nope`"),
        ("UPDATE keyed SET id = 3", InvalidArgument, "primary key"),
        ("UPDATE keyed SET v = s", InvalidData, "column `v` is of type bigint, which does not take 'a'"),
        ("UPDATE keyed SET d = v * 1000000", InvalidData, "out of range|DECIMAL"),
        ("UPDATE keyed SET c = 'long text'", InvalidData, "CHAR"),
        ("DELETE FROM keyed WHERE 1 / (v - 10) > 0", InvalidData, "division by zero"),
        (
            "MERGE INTO keyed t USING (SELECT id % 1 + 1 AS id, v FROM feed) f ON t.id = f.id "
            "WHEN MATCHED THEN UPDATE SET v = f.v",
            InvalidData,
            "matches more than one row of the source",
        ),
        ("INSERT INTO keyed (id, v) SELECT CAST(NULL AS INT), 1", InvalidData, "null"),
    ],
)
def test_what_is_wrong_changes_nothing(lake: lakebed.Lake, statement: str, error: type, match: str) -> None:
    """Errors come without Spark, name the thing, and leave no snapshot."""
    before = lake.table("keyed").latest_snapshot()
    with pytest.raises(error, match=match):
        lake.sql(statement)
    assert lake.table("keyed").latest_snapshot() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE keyed SET s = soundex(s)",
        "DELETE FROM keyed WHERE c = 'x'",
        "UPDATE keyed SET v = TRUE",
        "MERGE INTO keyed t USING feed f ON t.id IN (SELECT id FROM feed) WHEN MATCHED THEN DELETE",
        "MERGE WITH SCHEMA EVOLUTION INTO keyed t USING feed f ON t.id = f.id WHEN MATCHED THEN UPDATE SET *",
        "INSERT INTO keyed (id, s) SELECT id, soundex(s) FROM feed",
    ],
)
def test_what_is_not_proven_is_left_to_spark(
    lake: lakebed.Lake, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark is asked before anything is changed; where it is not installed, the error says what it is needed for."""
    before = lake.table("keyed").latest_snapshot()
    with pytest.raises(AskedForSpark):
        lake.sql(statement)
    monkeypatch.setattr(embedded_rows, "find_spec", lambda name: None if name == "pyspark" else object())
    with pytest.raises(Unsupported, match="needs Spark, which is not installed; "):
        lake.sql(statement)
    assert lake.table("keyed").latest_snapshot() == before


@pytest.mark.parametrize("statement", ["UPDATE keyed SET v = 0", "INSERT INTO keyed (id) SELECT id + 10 FROM feed"])
def test_many_rows_are_left_to_spark(lake: lakebed.Lake, statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than one process should write go to jobs, but not where there is no Spark."""
    monkeypatch.setattr(embedded_rows, "MOST_ROWS_HERE", 1)
    with pytest.raises(AskedForSpark):
        lake.sql(statement)
    monkeypatch.setattr(embedded_rows, "find_spec", lambda name: None if name == "pyspark" else object())
    lake.sql(statement)


def test_stored_nulls_stay_beside_defaults(lake: lakebed.Lake) -> None:
    """A column that shows a default in place of null keeps its null when another one is set."""
    lake.sql(
        "CREATE TABLE t (id INT, v INT, w INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('fields.v.default-value' = '7')"
    )
    lake.table("t").write([{"id": 1, "v": None, "w": 1}])
    lake.sql("UPDATE t SET w = v WHERE v = 7")
    assert _rows(lake, "t", "id", "v", "w") == [(1, 7, 7)]
    lake.sql("ALTER TABLE t RESET ('fields.v.default-value')")
    assert _rows(lake, "t", "id", "v", "w") == [(1, None, 7)]


def test_insert_into_finer_moments(lake: lakebed.Lake) -> None:
    """A query's moments go into columns of any precision."""
    lake.sql("CREATE TABLE t (a TIMESTAMP(9), b TIMESTAMP(3))")
    lake.sql("INSERT INTO t SELECT x, x FROM VALUES (TIMESTAMP_NTZ '2024-05-14 13:45:00.123456') AS v(x)")
    found = [value.isoformat() for value in lake.table("t").to_arrow().to_pylist()[0].values()]
    assert found == ["2024-05-14T13:45:00.123456", "2024-05-14T13:45:00.123000"]


# --- views -----------------------------------------------------------------------------------------------------------


def test_views_show_tables_as_they_are(lake: lakebed.Lake) -> None:
    """A view stands for its text, also within another one, in another database, and in statements that change rows."""
    lake.sql("CREATE TEMPORARY VIEW Big AS SELECT id, v * 2 AS w FROM feed WHERE v > 100")
    lake.sql("CREATE OR REPLACE TEMP VIEW bigger AS SELECT id FROM big b WHERE b.w > 400")
    lake.sql("INSERT INTO feed VALUES (4, 400, 'd')")
    lake.sql("CREATE DATABASE other; USE other")
    assert sorted(lake.query("SELECT * FROM bigger").fetchall()) == [(3,), (4,)]
    lake.sql("USE default")
    lake.sql("INSERT INTO keyed (id, v) SELECT id, w FROM BIG WHERE id = 4")
    lake.sql("DELETE FROM keyed WHERE id NOT IN (SELECT id FROM bigger)")
    assert _rows(lake, "keyed", "id", "v") == [(4, 800)]
    shown = [tuple(row) for row in lake.sql("SHOW VIEWS LIKE 'bigg*|x'").toArrow().to_pylist()[0].items()]
    assert shown == [("namespace", ""), ("viewName", "bigger"), ("isTemporary", True)]
    assert lake.sql("DESCRIBE big").toArrow().to_pydict()["data_type"] == ["int", "bigint"]
    lake.sql("DROP VIEW bigger; DROP VIEW IF EXISTS bigger")
    assert lake.sql("SHOW VIEWS").toArrow().to_pydict()["viewName"] == ["big"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMPORARY VIEW v AS SELECT 1 AS one",
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM w",
        "CREATE TEMPORARY VIEW x AS SELECT * FROM nowhere",
        "DROP VIEW x",
    ],
)
def test_views_that_can_not_be(lake: lakebed.Lake, statement: str) -> None:
    """A name that is taken, a circle, a table that is not there: refused, and the views are as they were."""
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT 2 AS two; CREATE TEMPORARY VIEW w AS SELECT * FROM v")
    with pytest.raises(LakebedError):
        lake.sql(statement)
    assert lake.query("SELECT * FROM w").fetchall() == [(2,)]


def test_a_view_is_no_longer_there(lake: lakebed.Lake) -> None:
    """What is dropped is not found, and a view of the same name as a table goes before it."""
    lake.sql("CREATE TEMPORARY VIEW feed AS SELECT 5 AS five")
    assert lake.query("SELECT * FROM feed").fetchall() == [(5,)]
    lake.sql("DROP VIEW feed")
    assert len(lake.query("SELECT * FROM feed").fetchall()) == 2
    with pytest.raises(NotFound, match="nope"):
        lake.sql("SELECT * FROM nope")


# --- the time zone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "SET TIME ZONE 'Asia/Tokyo'",
        "SET spark.sql.session.timeZone = Asia/Tokyo",
        "SET 'table.local-time-zone' = 'Asia/Tokyo'",
    ],
)
def test_the_zone_counts_at_once(lake: lakebed.Lake, statement: str) -> None:
    """Clocks of queries and of literals that are inserted are read in it, until it is taken back."""
    lake.sql("CREATE TABLE t (at TIMESTAMP_LTZ(3))")
    asked = "SELECT unix_micros(TIMESTAMP '2024-01-01 00:00:00') AS m"
    before = lake.query(asked).fetchall()
    lake.sql(statement)
    assert lake.sql("SET spark.sql.session.timeZone").toArrow().to_pydict()["value"] == ["Asia/Tokyo"]
    assert lake.query(asked).fetchall() == [(1704034800000000,)]
    lake.sql("INSERT INTO t VALUES ('2024-01-01 00:00:00')")
    found = lake.table("t").to_arrow().to_pylist()[0]["at"]
    assert found.astimezone(dt.UTC) == dt.datetime(2023, 12, 31, 15, tzinfo=dt.UTC)
    lake.sql("RESET spark.sql.session.timeZone")
    assert lake.query(asked).fetchall() == before


def test_a_zone_that_only_spark_knows(lake: lakebed.Lake) -> None:
    """Anything but the name of a place is for Spark to understand or refuse."""
    for zone in ("+08:00", "Nowhere/Land", "PST"):
        with pytest.raises(AskedForSpark):
            lake.sql(f"SET TIME ZONE '{zone}'")


# --- nothing is loaded -----------------------------------------------------------------------------------------------


def test_pyspark_is_not_even_loaded(tmp_path: Path) -> None:
    """Statements that change rows, views and settings neither start Spark nor import it."""
    code = (
        "import sys, lakebed\n"
        f"lake = lakebed.connect({str(tmp_path)!r})\n"
        "lake.sql('CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b INT); INSERT INTO t VALUES (1, 1), (2, 2)')\n"
        "lake.sql('UPDATE t SET b = 5 WHERE a = 1; DELETE FROM t WHERE a = 2')\n"
        "lake.sql('CREATE TEMPORARY VIEW v AS SELECT a + 1 AS a, b FROM t')\n"
        "lake.sql('MERGE INTO t USING v ON t.a = v.a WHEN NOT MATCHED THEN INSERT *')\n"
        "lake.sql(\"SET TIME ZONE 'UTC'; SHOW VIEWS; DROP VIEW v\")\n"
        "assert sorted(lake.query('SELECT * FROM t').fetchall()) == [(1, 5), (2, 5)]\n"
        "assert 'pyspark' not in sys.modules, 'pyspark was loaded'\n"
        "assert not lake.is_spark_started\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_errors_of_reading_stay_what_they_are(
    lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is gone while the engine reads rows from us is said to be missing, not to be wrong data."""
    from lakebed.embedded import tables

    monkeypatch.setattr(tables, "_SMALL_BYTES", 0)
    lake.sql("INSERT INTO keyed (id, v) VALUES (1, 5)")  # what overlaps is merged by us
    for file in (tmp_path / "default.db" / "keyed").rglob("data-*"):
        file.unlink()
    for statement in ("UPDATE keyed SET v = 1 WHERE id = 1", "INSERT INTO feed (id) SELECT id FROM keyed"):
        with pytest.raises(FileMissing):
            lake.sql(statement)


@pytest.mark.parametrize("is_key", [True, False])
def test_moments_finer_than_engines_carry_are_not_cut(tmp_path: Path, is_key: bool) -> None:
    """A statement that would store a moment with fewer digits is refused, and all others are carried out."""
    lake = lakebed.connect(tmp_path)
    fine = pa.array([None if not is_key else 3000, 1000, 2007], pa.timestamp("ns"))
    rows = pa.table({"k": fine if is_key else pa.array([1, 2, 3]), "at": fine, "v": pa.array([1, 2, 3], pa.int32())})
    columns = {"k": "TIMESTAMP(9) NOT NULL" if is_key else "BIGINT NOT NULL", "at": "TIMESTAMP(9)", "v": "INT"}
    table = lake.create_table("t", columns, primary_key=["k"], options={"bucket": "1"})
    table.write(rows.slice(0, 2))
    lake.sql("UPDATE t SET v = 9 WHERE v = 1")
    assert sorted(table.to_arrow()["v"].to_pylist()) == [2, 9]
    table.write(rows.slice(2))
    before = table.latest_snapshot()
    column = "k" if is_key else "at"
    with pytest.raises(Unsupported, match=f"column `{column}` holds moments finer than a microsecond"):
        lake.sql("UPDATE t SET v = 10 WHERE v = 9")
    assert table.latest_snapshot() == before
    if is_key:
        with pytest.raises(Unsupported, match="would be cut"):
            lake.sql("DELETE FROM t WHERE v = 9")
    else:
        lake.sql("DELETE FROM t WHERE v = 9")
        assert table.to_arrow()["at"].cast(pa.int64()).to_pylist() == [1000, 2007]
