"""What is measured where: reads, writes, commits, compactions, lookups, streams, views and object stores."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.metrics.conftest import Numbers
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import CommitConflict, StorageError
from lakebed.testing.s3_server import BUCKET, S3State

KEYED = {"id": "BIGINT", "v": "STRING"}


def _rows(count: int, text: str = "a", start: int = 0) -> pa.Table:
    return pa.table({"id": range(start, start + count), "v": [text] * count})


def test_a_write_and_a_read(warehouse: Warehouse, counted: Numbers) -> None:
    """Rows, files and bytes are those of the table's own lists."""
    table = warehouse.table("t", KEYED, _rows(10), primary_key=["id"])
    name = table.name
    assert counted("lakebed_write_rows_total", table=name, kind="data") == 10
    assert counted("lakebed_write_files_total", table=name, kind="data") == 1
    assert counted("lakebed_commit_duration_seconds", table=name, kind="append", outcome="done") == 1
    assert counted("lakebed_commit_attempts_total", table=name, kind="append") == 1
    assert counted("lakebed_commit_retries_total", table=name) is None
    assert counted("lakebed_write_duration_seconds", table=name, outcome="done") == 1
    planned = counted("lakebed_scan_files_total", table=name) or 0
    assert table.to_arrow(filter="id < 4").num_rows == 4
    assert counted("lakebed_scan_files_total", table=name) == planned + 1
    assert counted("lakebed_scan_rows_total", table=name) == 4
    assert counted("lakebed_scan_read_time_seconds_total", table=name) > 0
    written = counted("lakebed_write_file_size_bytes_total", table=name, kind="data")
    assert counted("lakebed_scan_file_size_bytes_total", table=name) == written * (planned + 1)


def test_changelog_files_are_told_apart(warehouse: Warehouse, counted: Numbers) -> None:
    """Of a table that keeps its input."""
    table = warehouse.table("t", KEYED, _rows(3), primary_key=["id"], options={"changelog-producer": "input"})
    assert counted("lakebed_write_rows_total", table=table.name, kind="data") == 3
    assert counted("lakebed_write_rows_total", table=table.name, kind="changelog") == 3


def test_a_writer_that_waits_is_measured_from_its_beginning(warehouse: Warehouse, counted: Numbers) -> None:
    """An empty one ends with nothing, one that is given up is not counted as a write."""
    table = warehouse.table("t", KEYED, primary_key=["id"])
    with table.writer():
        pass
    with pytest.raises(lakebed.errors.InvalidData), table.writer() as writer:
        writer.write({"id": ["no number"], "v": ["a"]})
    assert counted("lakebed_write_duration_seconds", table=table.name, outcome="nothing") == 1
    assert counted("lakebed_write_duration_seconds", table=table.name, outcome="done") is None


def test_a_commit_that_lost_the_race(disk: Warehouse, counted: Numbers) -> None:
    """Attempts that others were faster than are counted, and the commit that got through at last is one."""
    table = disk.table("t", KEYED, _rows(1), primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    barrier = threading.Barrier(4)

    def write(number: int) -> None:
        with disk.reopened().table("t").writer() as writer:
            writer.write(_rows(1, start=number))
            barrier.wait()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    done = counted("lakebed_commit_duration_seconds", table=table.name, kind="append", outcome="done")
    attempts = counted("lakebed_commit_attempts_total", table=table.name, kind="append")
    assert done == 5
    assert attempts == done + (counted("lakebed_commit_retries_total", table=table.name, kind="append") or 0)


def test_a_commit_that_was_refused(warehouse: Warehouse, counted: Numbers) -> None:
    """Its time is counted as that of a conflict."""
    options = {"bucket": "1", "commit.max-retries": "0"}
    table = warehouse.table("t", KEYED, _rows(1), primary_key=["id"], options=options)
    from lakebed.commit.committer import Committer

    publish = Committer._publish
    try:
        Committer._publish = lambda self, snapshot, visibility: False  # type: ignore[method-assign]
        with pytest.raises(CommitConflict):
            table.write(_rows(1))
    finally:
        Committer._publish = publish  # type: ignore[method-assign]
    assert counted("lakebed_commit_duration_seconds", table=table.name, outcome="conflict") == 1
    assert counted("lakebed_write_duration_seconds", table=table.name, outcome="conflict") == 1
    assert counted("lakebed_commit_retries_total", table=table.name, kind="append") == 1
    assert counted("lakebed_write_rows_total", table=table.name, kind="data") == 1


def test_a_compaction(warehouse: Warehouse, counted: Numbers) -> None:
    """Files in and out; one that only changes its level is neither."""
    table = warehouse.table("t", KEYED, _rows(4), primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    table.with_options({"write-only": "false"}).compact(full=True)
    name = table.name
    assert counted("lakebed_compaction_duration_seconds", table=name, outcome="done") == 1
    assert counted("lakebed_compaction_read_files_total", table=name) == 0
    table.write(_rows(4, "b"))
    table.with_options({"write-only": "false"}).compact(full=True)
    assert counted("lakebed_compaction_read_files_total", table=name) == 2
    assert counted("lakebed_compaction_written_files_total", table=name) == 1
    assert counted("lakebed_compaction_read_size_bytes_total", table=name) > 0
    assert counted("lakebed_compaction_written_size_bytes_total", table=name) > 0
    table.with_options({"write-only": "false"}).compact(full=True)
    assert counted("lakebed_compaction_duration_seconds", table=name, outcome="nothing") == 1


@pytest.mark.parametrize("order_by", [[], ["id"]], ids=["joined", "sorted"])
def test_a_compaction_of_an_append_table(warehouse: Warehouse, counted: Numbers, order_by: list[str]) -> None:
    """Joined or sorted."""
    table = warehouse.table("t", KEYED, _rows(4))
    table.write(_rows(4))
    table.compact(full=True, order_by=order_by)
    assert counted("lakebed_compaction_duration_seconds", table=table.name, outcome="done") == 1
    assert counted("lakebed_compaction_read_files_total", table=table.name) == 2
    assert counted("lakebed_compaction_written_files_total", table=table.name) == 1


def test_a_lookup(warehouse: Warehouse, counted: Numbers) -> None:
    """Keys that were asked for, and rows that were found."""
    table = warehouse.table("t", KEYED, _rows(4), primary_key=["id"])
    table.lookup(pa.table({"id": [1, 2, 99]}))
    assert counted("lakebed_lookup_duration_seconds", table=table.name, outcome="done") == 1
    assert counted("lakebed_lookup_keys_total", table=table.name) == 3
    assert counted("lakebed_lookup_rows_total", table=table.name) == 2


def test_a_follower(warehouse: Warehouse, counted: Numbers) -> None:
    """The changes that it took, and how old they were."""
    table = warehouse.table("t", KEYED, _rows(4), primary_key=["id"], options={"changelog-producer": "input"})
    stream = table.follow()
    assert sum(each.num_rows for each in stream) == 4
    table.write(_rows(2))
    assert sum(each.num_rows for each in stream) == 2
    assert counted("lakebed_stream_read_rows_total", table=table.name) == 6
    assert 0 <= counted("lakebed_stream_read_lag_seconds", table=table.name) < 60


def test_a_branch_has_a_name_of_its_own(warehouse: Warehouse, counted: Numbers) -> None:
    """What is written there is not added to the table."""
    table = warehouse.table("t", KEYED, _rows(4), primary_key=["id"])
    table.create_branch("b")
    branch = table.on_branch("b")
    branch.write(_rows(2))
    assert branch.name != table.name
    assert counted("lakebed_write_rows_total", table=table.name, kind="data") == 4
    assert counted("lakebed_write_rows_total", table=branch.name, kind="data") == 2


def test_a_materialized_table(warehouse: Warehouse, counted: Numbers) -> None:
    """Which way each refresh went, and what it changed; one that fails is counted, too."""
    pytest.importorskip("duckdb")
    warehouse.table("t", KEYED, _rows(4), primary_key=["id"], options={"changelog-producer": "input"})
    lake = warehouse.lake
    lake.materialize("v", "SELECT v, count(*) AS n FROM t GROUP BY v", policy="incremental")
    lake.table("t").write(_rows(2, "b", start=10))
    lake.refresh("v")
    lake.refresh("v")
    name = "default.v"
    ways = {
        each["outcome"]: each["count"]
        for each in lakebed.metrics.snapshot()["lakebed_view_refresh_duration_seconds"]
        if each["table"] == name
    }
    assert ways["incremental"] == 1
    assert ways["none"] == 1
    assert counted("lakebed_view_changed_rows_total", table=name, kind="inserted") >= 1
    lake.drop_table("t")
    with pytest.raises(lakebed.errors.LakebedError):
        lake.refresh("v")
    assert counted("lakebed_view_refresh_duration_seconds", table=name, outcome="failed") == 1


def test_an_object_store(s3: S3State, counted: Numbers) -> None:
    """Requests by what was asked, those that were repeated, and those that were given up."""
    soon = {"s3.retry-interval": "10 ms", "s3.retry-max-interval": "20 ms", "s3.retry-timeout": "30 s"}
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options | soon)
    lake.create_table("t", {"id": [1]})
    assert counted("lakebed_object_store_request_duration_seconds", action="create", outcome="done") >= 1
    assert counted("lakebed_object_store_retries_total", action="read") is None
    s3.go_away(0.5)
    assert lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options | soon).table("t").count() == 1
    repeated: list[dict[str, Any]] = lakebed.metrics.snapshot()["lakebed_object_store_retries_total"]
    assert sum(each["value"] for each in repeated) >= 1
    s3.go_away(60)
    with pytest.raises(StorageError):
        lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options | soon | {"s3.retry-timeout": "20 ms"}).tables()
    failed = [
        each
        for each in lakebed.metrics.snapshot()["lakebed_object_store_request_duration_seconds"]
        if each["outcome"] == "failed"
    ]
    assert failed
