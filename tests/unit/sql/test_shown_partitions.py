"""Partitions in SHOW and DESCRIBE, in overwrites, and where reads have to choose some."""

from __future__ import annotations

import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, NotFound


@pytest.fixture
def lake(warehouse: Warehouse) -> lakebed.Lake:
    """A table with two partition columns."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (v INT, p STRING, q INT) PARTITIONED BY (p, q)")
    lake.sql("INSERT INTO t VALUES (1, 'a:b', 1), (2, 'a:b', 1), (3, NULL, 2)")
    return lake


def rows(lake: lakebed.Lake, text: str) -> list[tuple[object, ...]]:
    """What a statement gives."""
    return [tuple(row) for row in lake.sql(text).collect()]


def test_shown_as_spark_shows_them(lake: lakebed.Lake) -> None:
    """Escaped, null as null, moments without idle zeros; the system table keeps Paimon's names."""
    assert sorted(rows(lake, "SHOW PARTITIONS t")) == [("p=a%3Ab/q=1",), ("p=null/q=2",)]
    kept = sorted(rows(lake, "SELECT `partition` FROM `t$partitions`"))
    assert kept == [("p=__DEFAULT_PARTITION__/q=2",), ("p=a:b/q=1",)]
    lake.sql("CREATE TABLE m (v INT, p TIMESTAMP(6)) PARTITIONED BY (p)")
    lake.sql("INSERT INTO m VALUES (1, TIMESTAMP '2024-06-01 10:30:01'), (2, TIMESTAMP '2024-06-01 10:30:01.5')")
    shown = {text for (text,) in rows(lake, "SHOW PARTITIONS m")}
    assert shown == {"p=2024-06-01 10%3A30%3A01", "p=2024-06-01 10%3A30%3A01.500000"}


def test_one_partition_described(lake: lakebed.Lake) -> None:
    """What it adds up to, below the columns, and in SHOW TABLE EXTENDED; it has to be named in full, and exist."""
    found = {row[0]: row[1] for row in rows(lake, "DESCRIBE FORMATTED t PARTITION (p = 'a:b', q = 1)")}
    assert found["Partition Values"] == "[p=a:b, q=1]"
    assert "recordCount=2, fileCount=1" in str(found["Partition Parameters"])
    [row] = rows(lake, "SHOW TABLE EXTENDED LIKE 't' PARTITION (p = 'a:b', q = 1)")
    assert row[:3] == ("default", "t", False)
    assert "Partition Statistics: 2 rows" in str(row[3])
    for what in ("DESCRIBE t", "SHOW TABLE EXTENDED LIKE 't'"):
        with pytest.raises(InvalidArgument, match="leaves out `q`"):
            lake.sql(f"{what} PARTITION (p = 'a:b')")
        with pytest.raises(NotFound, match="no such partition"):
            lake.sql(f"{what} PARTITION (p = 'c', q = 1)")


def test_tables_in_full(lake: lakebed.Lake) -> None:
    """Each with lines about it."""
    lake.sql("CREATE TABLE u (v INT) COMMENT 'of u'")
    found = rows(lake, "SHOW TABLE EXTENDED IN default LIKE 't|u'")
    assert [row[:3] for row in found] == [("default", "t", False), ("default", "u", False)]
    lines = dict(line.split(": ", 1) for line in str(found[1][3]).splitlines())
    assert (lines["Namespace"], lines["Table"], lines["Provider"]) == ("default", "u", "paimon")
    assert lines["Comment"] == "of u"


def test_partitions_by_fractions_are_replaced(lake: lakebed.Lake) -> None:
    """A literal is a double, the column narrower: both mean the same partition."""
    lake.sql("CREATE TABLE f (v INT, p FLOAT) PARTITIONED BY (p)")
    lake.sql("INSERT INTO f VALUES (1, 12.3), (2, 45.6)")
    lake.sql("INSERT OVERWRITE f PARTITION (p = 12.3) VALUES (5)")
    assert sorted(rows(lake, "SELECT v FROM f")) == [(2,), (5,)]


def test_partitions_are_not_added_empty(lake: lakebed.Lake) -> None:
    """They come with their rows: that is said, and a column that does not exist is an error."""
    with pytest.warns(match="come with their rows"):
        lake.sql("ALTER TABLE t ADD PARTITION (p = 'z', q = 1)")
    assert len(rows(lake, "SHOW PARTITIONS t")) == 2
    with pytest.raises(NotFound, match="`x` is not a partition column"):
        lake.sql("ALTER TABLE t ADD PARTITION (x = 'z')")


def test_reads_of_everything_may_be_forbidden(lake: lakebed.Lake) -> None:
    """Then a filter has to leave a partition out; tables without partitions are free."""
    lake.sql("SET spark.paimon.read.allow.fullScan=false")
    for filtered in ("", "WHERE v = 1", "WHERE q > 0"):
        with pytest.raises(InvalidArgument, match="reads all partitions"):
            lake.sql(f"SELECT v FROM t {filtered}").collect()
    assert rows(lake, "SELECT v FROM t WHERE q > 1") == [(3,)]
    lake.sql("DELETE FROM t WHERE v = 1")
    lake.sql("CREATE TABLE u (v INT)")
    assert rows(lake, "SELECT v FROM u") == []


def test_settings_about_reading_leave_lists_alone(lake: lakebed.Lake) -> None:
    """A state that does not exist matters only where rows are read; a hint says what it says."""
    lake.sql("SET spark.paimon.scan.snapshot-id=9")
    assert rows(lake, "SELECT count(*) FROM `t$options`") == [(0,)]
    assert rows(lake, "SELECT count(*) FROM `t$snapshots`") == [(1,)]
    with pytest.raises(NotFound):
        lake.sql("SELECT * FROM t")


def test_like_may_leave_parts_out(lake: lakebed.Lake) -> None:
    """Flink's words after LIKE, the last one counting."""
    lake.sql("CREATE TABLE s (k INT, p INT, PRIMARY KEY (k, p) NOT ENFORCED) PARTITIONED BY (p) WITH ('bucket' = '2')")
    lake.sql("CREATE TABLE a LIKE s (EXCLUDING OPTIONS)")
    lake.sql("CREATE TABLE b WITH ('bucket' = '3') LIKE s (INCLUDING ALL, OVERWRITING OPTIONS, EXCLUDING PARTITIONS)")
    lake.sql("CREATE TABLE c LIKE s (EXCLUDING ALL INCLUDING PARTITIONS)")
    shapes = {n: (lake.table(n).primary_key, lake.table(n).partition_by, lake.table(n).options) for n in "abc"}
    assert shapes == {
        "a": (("k", "p"), ("p",), {}),
        "b": (("k", "p"), (), {"bucket": "3"}),
        "c": ((), ("p",), {}),
    }
    with pytest.raises(InvalidArgument, match="LIKE knows ALL"):
        lake.sql("CREATE TABLE d LIKE s (EXCLUDING NOTHING)")
