"""Large changes of rows and compactions run in Spark's tasks, with the outcome that they have in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidData, Unsupported
from lakebed.spark import read, tasks
from lakebed.write import pieces

APPEND = "'bucket' = '-1'"
VECTORS = "'bucket' = '-1', 'deletion-vectors.enabled' = 'true'"
TRACKED = "'bucket' = '-1', 'row-tracking.enabled' = 'true'"
BUCKETED = "'bucket' = '2', 'bucket-key' = 'k'"
EVOLVING = "'bucket' = '-1', 'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"
COLUMNS = "k INT, n INT, s STRING"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small, and nothing may be worked on in this process."""
    monkeypatch.setattr(read, "LOCAL_ROWS", 0)
    monkeypatch.setattr(tasks, "HERE_BYTES", -1)
    monkeypatch.setattr(pieces, "ThreadPoolExecutor", None)


def filled(lake: lakebed.Lake, options: str, commits: int = 3) -> lakebed.Table:
    """A table with twenty rows from each commit."""
    lake.sql(f"CREATE TABLE t ({COLUMNS}) TBLPROPERTIES ({options})")
    for number in range(commits):
        first = 20 * number
        lake.sql(f"INSERT INTO t SELECT CAST(id AS INT), 0, 'a' FROM range({first}, {first + 20})")
    return lake.table("t")


def shown(table: lakebed.Table, *columns: str) -> list[tuple[Any, ...]]:
    """The rows in the order of their keys."""
    return sorted(tuple(row.values()) for row in table.to_arrow(list(columns) or None).to_pylist())


def no_more_files_than_needed(table: lakebed.Table) -> bool:
    """Whether nothing lies around that no snapshot refers to."""
    time.sleep(0.01)
    return table.remove_orphan_files(older_than=time.time_ns() // 1_000_000 - 1, dry_run=True).file_count == 0


@pytest.mark.parametrize("options", [APPEND, VECTORS, TRACKED, BUCKETED])
def test_rows_change_in_tasks(lake: lakebed.Lake, options: str) -> None:
    """DELETE, UPDATE and MERGE leave the rows they should, and nothing else on disk."""
    table = filled(lake, options)
    lake.sql("DELETE FROM t WHERE k % 10 = 3")
    lake.sql("UPDATE t SET n = k WHERE k BETWEEN 15 AND 24")
    lake.sql(
        "MERGE INTO t USING (SELECT CAST(id AS INT) AS k FROM range(58, 62)) AS u ON t.k = u.k "
        "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT VALUES (u.k, -1, 'new')"
    )
    wanted = [
        (k, k if 15 <= k <= 24 else -1 if k >= 60 else 0, "new" if k >= 60 else "m" if k >= 58 else "a")
        for k in range(62)
        if k % 10 != 3
    ]
    assert shown(table) == wanted
    assert [snapshot.commit_kind.value for snapshot in table.snapshots()][3:] == ["OVERWRITE"] * 3
    assert no_more_files_than_needed(table)


def test_rows_keep_their_ids(lake: lakebed.Lake) -> None:
    """Rows that are rewritten in tasks, because others of their file go or change, keep their ids."""
    table = filled(lake, TRACKED)
    before = dict(shown(table, "k", "_ROW_ID"))
    lake.sql("DELETE FROM t WHERE k = 7")
    lake.sql("UPDATE t SET n = 1 WHERE k = 8")
    after = dict(shown(table, "k", "_ROW_ID"))
    assert after == {k: row_id for k, row_id in before.items() if k != 7}


def test_columns_change_in_tasks(lake: lakebed.Lake) -> None:
    """Where columns have files of their own, each range of rows gets one file with the columns that change."""
    table = filled(lake, EVOLVING)
    lake.sql("UPDATE t SET n = k WHERE k BETWEEN 15 AND 24")
    assert shown(table, "k", "n") == [(k, k if 15 <= k <= 24 else 0) for k in range(60)]
    new = [file for file in table.scan().files if file.write_cols == ("n",)]
    assert [file.row_count for file in new] == [20, 20]
    lake.sql(
        "MERGE INTO t USING (SELECT CAST(id AS INT) AS k FROM range(58, 62)) AS u ON t.k = u.k "
        "WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED THEN INSERT VALUES (u.k, -1, 'new')"
    )
    assert shown(table, "k", "s")[57:] == [(57, "a"), (58, "m"), (59, "m"), (60, "new"), (61, "new")]
    with pytest.raises(Unsupported, match="not deleted"):
        lake.sql("DELETE FROM t WHERE k = 1")
    assert no_more_files_than_needed(table)


def test_columns_change_and_rows_are_marked_in_tasks(lake: lakebed.Lake) -> None:
    """One MERGE changes columns of rows, marks others as deleted and adds some; compactions in tasks keep the marks."""
    table = filled(lake, f"{EVOLVING}, 'deletion-vectors.enabled' = 'true'")
    lake.sql("UPDATE t SET n = k WHERE k < 5")
    lake.sql("DELETE FROM t WHERE k = 2 OR k BETWEEN 30 AND 39")
    lake.sql(
        "MERGE INTO t USING (SELECT CAST(id AS INT) AS k FROM range(0, 80, 4)) AS u ON t.k = u.k "
        "WHEN MATCHED AND t.k % 8 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'm' "
        "WHEN NOT MATCHED AND u.k >= 60 THEN INSERT VALUES (u.k, -1, 'new')"
    )
    gone = {2, *range(30, 40), *range(0, 60, 8)}
    wanted = [(k, k if k < 5 else 0, "m" if k % 4 == 0 else "a", k) for k in range(60) if k not in gone]
    wanted += [(k, -1, "new", 60 + place) for place, k in enumerate(range(60, 80, 4))]
    before = shown(table, "k", "n", "s")
    assert [(k, n, s) for k, n, s, _ in wanted] == before
    assert shown(table, "k", "_ROW_ID")[: 60 - len(gone)] == [(k, k) for k, *_ in wanted[: 60 - len(gone)]]
    assert table.compact(full=True, on_spark=True) is not None
    assert shown(table, "k", "n", "s") == before
    assert [row[0] for row in lake.sql("SELECT k FROM t WHERE n > 0 ORDER BY k").collect()] == [1, 3, 4]
    assert lake.sql("SELECT count(*) FROM t").collect()[0][0] == len(wanted)
    assert table.check(deep=True) == []
    assert no_more_files_than_needed(table)


def test_a_row_that_matches_twice_is_found(lake: lakebed.Lake) -> None:
    """Places of old rows are counted where they are gathered."""
    table = filled(lake, APPEND, commits=1)
    with pytest.raises(InvalidData, match="more than one row"):
        lake.sql(
            "MERGE INTO t USING (SELECT CAST(id % 2 AS INT) AS k FROM range(4)) AS u ON t.k = u.k "
            "WHEN MATCHED THEN UPDATE SET n = 1"
        )
    assert shown(table, "n") == [(0,)] * 20
    assert no_more_files_than_needed(table)


@pytest.mark.parametrize(
    ("options", "compact"),
    [
        (APPEND, lambda table: table.compact(full=True, on_spark=True)),
        (BUCKETED, lambda table: table.compact(full=True, on_spark=True)),
        (EVOLVING, lambda table: table.compact(full=True, on_spark=True)),
        (APPEND, lambda table: table.compact(order_by=["n", "k"], order_strategy="zorder", on_spark=True)),
    ],
)
def test_files_are_joined_in_tasks(
    lake: lakebed.Lake, options: str, compact: Callable[[lakebed.Table], object]
) -> None:
    """Compactions of tables without a key, sorted or not, change files and no rows."""
    table = filled(lake, options)
    before, files = shown(table), len(table.scan().files)
    assert compact(table) is not None
    assert shown(table) == before
    assert len(table.scan().files) < files
    assert no_more_files_than_needed(table)


def test_waiting_rows_are_placed_in_tasks(lake: lakebed.Lake, spark: Any) -> None:
    """Rows of a table with postponed buckets come to their buckets in tasks, partition by partition."""
    options = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "postpone.default-bucket-num": "2"}
    table = lake.create_table(
        "t", {"p": "INT NOT NULL", "k": "INT NOT NULL"}, primary_key=["p", "k"], partition_by=["p"], options=options
    )
    table.write_spark(spark.range(0, 40, 1, 4).selectExpr("CAST(id % 2 AS INT) AS p", "CAST(id AS INT) AS k"))
    assert table.to_arrow().num_rows == 0
    table.compact(full=True, on_spark=True)
    assert shown(table, "k") == [(k,) for k in range(40)]
    assert table.check() == []


def test_a_failed_rewrite_leaves_nothing(lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If others replace the file that is rewritten, the statement begins anew, and the first try leaves no file."""
    from lakebed.rewrite import rows_by_place as row_changes

    table = filled(lake, APPEND, commits=1)
    commit, raced = row_changes._Fitting.commit, []

    def race(self: Any, touched: Any, messages: Any) -> Any:
        if not raced:
            raced.append(True)
            lake.sql("UPDATE t SET s = 'b' WHERE k = 0")
        return commit(self, touched, messages)

    monkeypatch.setattr(row_changes._Fitting, "commit", race)
    lake.sql("UPDATE t SET n = n + 1 WHERE k < 2")
    assert shown(table)[:3] == [(0, 1, "b"), (1, 1, "a"), (2, 0, "a")]
    assert no_more_files_than_needed(table)


def test_small_files_are_joined_before_the_commit(lake: lakebed.Lake, spark: Any) -> None:
    """With `precommit-compact` the files of all tasks become one, in a task, before anybody sees them."""
    table = lake.create_table("t", {"id": "BIGINT"}, options={"precommit-compact": "true"})
    table.write_spark(spark.range(0, 60, 1, 4))
    assert len(table.snapshots()) == 1
    assert [file.row_count for file in table.scan().files] == [60]
    assert no_more_files_than_needed(table)


def test_partitions_are_rescaled_in_tasks(lake: lakebed.Lake, spark: Any) -> None:
    """Each partition is rewritten into another number of buckets by a task of its own."""
    columns = {"p": "INT NOT NULL", "k": "INT NOT NULL"}
    table = lake.create_table("t", columns, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    table.write_spark(spark.range(0, 40, 1, 4).selectExpr("CAST(id % 2 AS INT) AS p", "CAST(id AS INT) AS k"))
    lake.sql("CALL sys.rescale(table => 't', bucket_num => 3)")
    assert shown(table, "k") == [(k,) for k in range(40)]
    assert len(table.scan().files) == 6
    assert table.check() == []
    assert no_more_files_than_needed(table)
