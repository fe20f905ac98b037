"""INSERT of literals: no Spark, one commit, the values in their columns."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """An empty lake."""
    return lakebed.connect(tmp_path)


def _rows(lake: lakebed.Lake, name: str = "t") -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in lake.table(name).to_arrow().to_pylist()), key=repr)


def test_no_spark_is_started(lake: lakebed.Lake) -> None:
    """Rows of literals are written as one commit without a session."""
    lake.sql("CREATE TABLE t (k INT, v STRING)")
    assert lake.sql("INSERT INTO t VALUES (1, 'a'), (2, NULL)").collect() == []
    assert _rows(lake) == [(1, "a"), (2, None)]
    assert not lake.is_spark_started
    assert len(lake.table("t").snapshots()) == 1


def test_n_16_text_becomes_a_timestamp(lake: lakebed.Lake) -> None:
    """The later update time wins whichever row comes first, and text is read as a timestamp."""
    lake.sql(
        "CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED, name STRING, update_time TIMESTAMP(3)) "
        "WITH ('sequence.field' = 'update_time', 'bucket' = '4')"
    )
    lake.sql("INSERT INTO t VALUES (1, 'Bob', '2023-10-01 12:05:00')")
    lake.sql("INSERT INTO t VALUES (1, 'Alice', '2023-10-01 12:00:00')")
    assert _rows(lake) == [(1, "Bob", dt.datetime(2023, 10, 1, 12, 5))]


def test_columns_by_name(lake: lakebed.Lake) -> None:
    """A list of columns may leave some out, in any order and case; those are null or have their default."""
    lake.sql("CREATE TABLE t (a INT, b INT DEFAULT 2, c STRING)")
    lake.sql("INSERT INTO t (C, a) VALUES ('x', 1)")
    lake.sql("INSERT INTO t VALUES (2, DEFAULT, DEFAULT)")
    assert _rows(lake) == [(1, 2, "x"), (2, 2, None)]


@pytest.mark.parametrize(
    ("statement", "error", "match"),
    [
        ("INSERT INTO t VALUES (1)", InvalidData, "1 values for 2 columns"),
        ("INSERT INTO t VALUES (1, 2), (1)", InvalidArgument, "differ in length"),
        ("INSERT INTO t (k) VALUES (1, 2)", InvalidData, "2 values for 1 columns"),
        ("INSERT INTO t (k, k) VALUES (1, 2)", InvalidArgument, "given twice"),
        ("INSERT INTO t (z) VALUES (1)", NotFound, "no column `z`"),
        ("INSERT INTO t PARTITION (k = 1) VALUES (1)", InvalidArgument, "not a partition column"),
        ("INSERT INTO nowhere VALUES (1)", NotFound, "nowhere"),
        ("INSERT INTO t VALUES ('x', 'y')", InvalidData, "column `k`"),
        ("INSERT INTO t REPLACE WHERE k = 1 VALUES (1, 'x')", Unsupported, "REPLACE WHERE"),
    ],
)
def test_what_is_wrong_is_said(lake: lakebed.Lake, statement: str, error: type[Exception], match: str) -> None:
    """Errors name the column or table, and nothing is written."""
    lake.sql("CREATE TABLE t (k INT, v STRING)")
    with pytest.raises(error, match=match):
        lake.sql(statement)
    assert lake.table("t").snapshots() == []


def test_overwrite(lake: lakebed.Lake) -> None:
    """A named partition is replaced; without a name, the partitions of the new rows are."""
    lake.sql("CREATE TABLE t (k INT, p INT, q STRING) PARTITIONED BY (p, q)")
    lake.sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'a')")
    lake.sql("INSERT OVERWRITE t PARTITION (p = 1, q = 'a') VALUES (10)")
    assert _rows(lake) == [(10, 1, "a"), (2, 1, "b"), (3, 2, "a")]
    lake.sql("INSERT OVERWRITE t PARTITION (p = 1) VALUES (11, 'c')")
    assert _rows(lake) == [(11, 1, "c"), (3, 2, "a")]
    lake.sql("INSERT OVERWRITE t VALUES (30, 2, 'a')")
    assert _rows(lake) == [(11, 1, "c"), (30, 2, "a")]


def test_overwrite_of_a_table_without_partitions(lake: lakebed.Lake) -> None:
    """All rows are replaced."""
    lake.sql("CREATE TABLE t (k INT); INSERT INTO t VALUES (1), (2)")
    lake.sql("INSERT OVERWRITE t VALUES (3)")
    assert _rows(lake) == [(3,)]


def test_partition_values_have_the_type_of_the_column(lake: lakebed.Lake) -> None:
    """A PARTITION clause casts its values, and rows bring the other partition columns."""
    lake.sql("CREATE TABLE t (k STRING, d DATE, h INT) PARTITIONED BY (d, h)")
    lake.sql("INSERT INTO t PARTITION (d = '2024-04-18', h) VALUES (1, 7)")
    assert _rows(lake) == [("1", dt.date(2024, 4, 18), 7)]
    with pytest.raises(InvalidArgument, match="no value of partition column `d`"):
        lake.sql("INSERT INTO t PARTITION (d = 'soon', h) VALUES (1, 7)")


def test_branches_and_hints(lake: lakebed.Lake) -> None:
    """A statement writes to the branch that the name or a hint says."""
    lake.sql("CREATE TABLE t (k INT)")
    lake.table("t").create_branch("b")
    lake.sql("INSERT INTO `t$branch_b` VALUES (1)")
    lake.sql("INSERT INTO t /*+ OPTIONS('branch' = 'b') */ VALUES (2)")
    assert _rows(lake) == []
    assert _rows(lake, "t$branch_b") == [(1,), (2,)]


def test_settings_for_reads_do_not_concern_writes(lake: lakebed.Lake) -> None:
    """A session that reads an old snapshot writes to the latest one."""
    lake.sql("CREATE TABLE t (k INT); INSERT INTO t VALUES (1)")
    lake.sql("SET spark.paimon.scan.snapshot-id = 1")
    lake.sql("INSERT INTO t VALUES (2)")
    assert _rows(lake) == [(1,), (2,)]


def test_pyspark_is_not_imported() -> None:
    """The way of literals does not even load PySpark."""
    import subprocess

    program = (
        "import sys, tempfile, lakebed\n"
        "lake = lakebed.connect(tempfile.mkdtemp())\n"
        'lake.sql("CREATE TABLE t (k INT); INSERT INTO t VALUES (1)")\n'
        "sys.exit('pyspark' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, env={"PYTHONPATH": "src"}).returncode == 0
