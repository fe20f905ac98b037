"""Incremental clustering: which files are sorted together, on which level they lie then, and that no row changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import Unsupported

_LARGE = 6
_OPTIONS = {
    "clustering.columns": "a,b",
    "clustering.incremental": "true",
    "clustering.strategy": "order",
    "num-levels": "6",
    "num-sorted-run.compaction-trigger": "2",
}


def _table(lake: lakebed.Lake, **options: str) -> lakebed.Table:
    more = {key.replace("_", "-").replace("--", "."): value for key, value in options.items()}
    columns = {"p": "INT", "a": "INT", "b": "INT", "s": "STRING"}
    return lake.create_table("t", columns, partition_by=["p"], options={**_OPTIONS, **more})


def _write(table: lakebed.Table, numbers: range, *, p: int = 0, text: str = "") -> None:
    rows = [{"p": p, "a": -number, "b": number, "s": f"{number}{text}"} for number in numbers]
    table.write(pa.Table.from_pylist(rows, schema=table.arrow_schema))


def _levels(lake: lakebed.Lake) -> list[tuple[int, int]]:
    rows = lake.query("SELECT level, record_count FROM t$files").fetchall()
    return sorted((int(level), int(count)) for level, count in rows)


def _values(table: lakebed.Table) -> Counter[tuple[int, int, int, str]]:
    return Counter(tuple(row.values()) for row in table.to_arrow().to_pylist())


def test_new_files_are_sorted_among_themselves(tmp_path: Path) -> None:
    """What was sorted stays as it is beside little that is new, until everything is asked for."""
    lake = lakebed.connect(tmp_path)
    table = _table(lake)
    for number in range(_LARGE):
        _write(table, range(number * 100, number * 100 + 100))
    rows = _values(table)
    lake.sql("CALL sys.compact(`table` => 't')")
    assert _levels(lake) == [(5, 600)]
    _write(table, range(1000, 1003))
    _write(table, range(1003, 1007))
    rows += Counter((0, -number, number, str(number)) for number in range(1000, 1007))
    lake.sql("CALL sys.compact(`table` => 't')")
    assert _levels(lake) == [(4, 7), (5, 600)]
    lake.sql("CALL sys.compact(`table` => 't', compact_strategy => 'full')")
    assert _levels(lake) == [(5, 607)]
    assert _values(table) == rows
    assert table.to_arrow().column("a").to_pylist() == sorted(table.to_arrow().column("a").to_pylist())
    assert table.compact(full=True) is None
    assert not table.check()


@pytest.mark.parametrize("tracks", ["true", "false"])
def test_deleted_rows_go_and_others_keep_their_ids(tmp_path: Path, tracks: str) -> None:
    """Marks of rows are a reason to sort what is sorted already; partitions without any are left alone."""
    lake = lakebed.connect(tmp_path)
    table = _table(lake, deletion_vectors__enabled="true", row_tracking__enabled=tracks)
    for p in (0, 1):
        _write(table, range(5), p=p)
        _write(table, range(5, 10), p=p)
    ids = "_ROW_ID" if tracks == "true" else "p"
    before = set(lake.query(f"SELECT p, b, {ids} FROM t").fetchall())
    table.compact(full=True)
    assert _levels(lake) == [(5, 10), (5, 10)]
    lake.sql("DELETE FROM t WHERE p = 1 AND b = 3")
    assert table.compact() is None, "one run is not many"
    assert table.compact(full=True) is not None
    assert _levels(lake) == [(5, 9), (5, 10)]
    assert set(lake.query(f"SELECT p, b, {ids} FROM t").fetchall()) == {row for row in before if row[:2] != (1, 3)}
    assert not table.check()


def test_other_columns_sort_anew(tmp_path: Path) -> None:
    """After ALTER everything is sorted by the new columns, once, and only when all of it is asked for."""
    lake = lakebed.connect(tmp_path)
    table = _table(lake)
    _write(table, range(10))
    _write(table, range(10, 20))
    table.compact(full=True)
    lake.sql("ALTER TABLE t SET ('clustering.columns' = 'b')")
    table = lake.table("t")
    assert table.compact(full=True) is not None
    assert table.to_arrow().column("b").to_pylist() == list(range(20))
    assert table.compact(full=True) is None


def test_an_order_of_ones_own_is_refused(tmp_path: Path) -> None:
    """The table has one, which the next compaction would bring back."""
    table = _table(lakebed.connect(tmp_path))
    _write(table, range(3))
    with pytest.raises(Unsupported, match=r"clustering\.incremental"):
        table.compact(order_by=["b"])


def test_buckets_are_sorted_by_themselves_after_writes(tmp_path: Path) -> None:
    """Where rows of a bucket need no order, a write sorts its bucket as soon as it has enough runs."""
    lake = lakebed.connect(tmp_path)
    lake.sql(
        "CREATE TABLE t (k INT, s STRING) WITH ('bucket' = '1', 'bucket-key' = 'k', 'bucket-append-ordered' = 'false', "
        "'clustering.columns' = 's', 'clustering.strategy' = 'order', 'clustering.incremental' = 'true', "
        "'num-levels' = '6', 'num-sorted-run.compaction-trigger' = '3')"
    )
    for number in range(1, 3):
        lake.sql(f"INSERT INTO t VALUES ({number}, '{9 - number}')")
    assert _levels(lake) == [(0, 1), (0, 1)]
    lake.sql("INSERT INTO t VALUES (3, '6')")
    assert _levels(lake) == [(5, 3)]
    assert lake.query("SELECT k FROM t").fetchall() == [(3,), (2,), (1,)]
    assert not lake.table("t").check()
