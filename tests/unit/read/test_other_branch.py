"""Reads of two branches as one table, where they meet time travel, counts, waiting rows and statements."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import Unsupported

COLUMNS = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "STRING"}


def _write(table: lakebed.Table, *rows: tuple[int, int, str]) -> None:
    p, k, v = zip(*rows, strict=True)
    table.write(pa.table({"p": pa.array(p, pa.int32()), "k": pa.array(k, pa.int32()), "v": v}))


def _rows(table: lakebed.Table, **asked: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(**asked).to_pylist())


def _table(path: Path, *, has_key: bool = True, **options: str) -> lakebed.Table:
    """Partition 1 is the table's own, partition 2 that of branch `b`."""
    lake = lakebed.connect(path)
    key = ["p", "k"] if has_key else []
    own = {"bucket": "1"} if has_key else {}
    table = lake.create_table("t", COLUMNS, primary_key=key, partition_by=["p"], options=own | options)
    _write(table, (1, 1, "main"))
    table.create_branch("b")
    _write(table.on_branch("b"), (2, 1, "branch"), (2, 2, "branch"))
    return table.with_options({"scan.fallback-branch": "b"})


def test_rows_of_both_are_counted(tmp_path: Path) -> None:
    """A read without columns has as many rows as one with all of them."""
    both = _table(tmp_path)
    assert both.count() == both.to_arrow(columns=[]).num_rows == both.to_arrow().num_rows == 3
    assert both.count("p = 2") == 2
    assert both.count("k > 1") == 1


@pytest.mark.parametrize("waiting", ["false", "true"])
def test_partitions_that_options_name_are_those_of_both(tmp_path: Path, waiting: str) -> None:
    """`scan.partitions` chooses among the partitions of both, whether or not rows that wait are shown."""
    postponed = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}
    both = _table(tmp_path, **postponed)
    both.on_branch("b").compact()
    both = both.with_options({"postpone.merge-on-read": waiting})
    branch = [(2, 1, "branch"), (2, 2, "branch")]
    own = [(1, 1, "main")] if waiting == "true" else []
    assert _rows(both) == own + branch
    assert _rows(both.with_options({"scan.partitions": "p=1"})) == own
    assert _rows(both.with_options({"scan.partitions": "p=2"})) == branch
    with pytest.raises(Unsupported, match="two branches"):
        _rows(both.with_options({"scan.partitions": "max_pt()"}))


def test_waiting_rows_are_not_added_to_a_part(tmp_path: Path) -> None:
    """A mode that shows a part of a state, with an option that shows more of it: refused by name."""
    both = _table(tmp_path, **{"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"})
    part = {"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": "99999999999999"}
    with pytest.raises(Unsupported, match="from-file-creation-time"):
        _rows(both.with_options(part))
    alone = lakebed.connect(tmp_path).table("t").with_options(part)
    assert _rows(alone) == []
    with pytest.raises(Unsupported, match=r"postpone\.merge-on-read"):
        _rows(alone.with_options({"postpone.merge-on-read": "true"}))


def test_the_other_branch_is_read_as_of_the_same_time(tmp_path: Path) -> None:
    """Whichever way somebody goes back, both branches are as they were; a table fixed at its latest is as now."""
    both = _table(tmp_path)
    then, moment = _rows(both), both.on_branch("b").latest_snapshot().time_millis
    time.sleep(0.01)
    _write(both.on_branch("b"), (2, 1, "later"))
    time.sleep(0.01)
    _write(lakebed.connect(tmp_path).table("t"), (1, 1, "later"))
    both.create_tag("second", 2)
    second = [(1, 1, "later"), (2, 1, "later"), (2, 2, "branch")]
    assert _rows(both) == _rows(both.pinned()) == second
    assert sorted(both.to_polars(lazy=True).collect().rows()) == second
    time.sleep(0.01)
    _write(both.on_branch("b"), (2, 1, "latest"))
    for table in (both.at(timestamp=moment), both.with_options({"scan.timestamp-millis": str(moment)})):
        assert _rows(table) == then
    for table in (both.at(snapshot=2), both.at(tag="second"), both.with_options({"scan.snapshot-id": "2"})):
        assert _rows(table) == second
    assert _rows(both.pinned())[1] == (2, 1, "latest")


@pytest.mark.parametrize("has_key", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET v = 'new' WHERE p = 2 AND k = 1",
        "DELETE FROM t WHERE p = 2",
        "DELETE FROM t WHERE p = 2 AND k = 1",
        "MERGE INTO t USING (SELECT 2 AS p, 1 AS k) s ON t.p = s.p AND t.k = s.k WHEN MATCHED THEN DELETE",
    ],
)
def test_rows_of_the_other_branch_are_not_changed_here(tmp_path: Path, has_key: bool, statement: str) -> None:
    """One that is written here would hide all others of its partition: refused, and fine in the branch itself."""
    both = _table(tmp_path, has_key=has_key)
    lake = lakebed.connect(tmp_path)
    lake.sql("ALTER TABLE t SET ('scan.fallback-branch' = 'b')")
    before = _rows(lake.table("t"))
    assert before == _rows(both)
    with pytest.raises(Unsupported, match=r"\$branch_b"):
        lake.sql(statement)
    assert _rows(lake.table("t")) == before
    lake.sql(statement.replace(" t ", " `t$branch_b` ").replace("t.", "`t$branch_b`."))
    assert _rows(lake.table("t")) != before
    lake.sql("ALTER TABLE t RESET ('scan.fallback-branch')")
    lake.sql("UPDATE t SET v = 'own' WHERE k = 1")
    assert _rows(lake.table("t")) == [(1, 1, "own")]
