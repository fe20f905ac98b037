"""Many processes commit to one table at once: nothing acknowledged is lost, the later commit wins, ids have no gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from tests.faults.commit_worker import COLUMNS, SHARED_KEY
from tests.faults.fault_tables import data_paths, open_lake, stores_of
from tests.faults.worker_pool import run_workers

from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.table.table import Table

# Without the lock the processes get in each other's way all the time: correctness must not rest on it.
SIZES = [
    pytest.param((8, 20, True), id="8x20"),
    pytest.param((8, 100, True), id="8x100", marks=pytest.mark.nightly),
    pytest.param((4, 25, False), id="4x25-without-lock"),
    pytest.param((8, 400, False), id="8x400-without-lock", marks=pytest.mark.nightly),
]


def make(directory: Path, **arguments: Any) -> Table:
    """The table that all commit to."""
    return open_lake(LocalFileIO(), str(directory)).create_table("t", COLUMNS, **arguments)


def check_history(table: Table, by_snapshot: dict[int, int]) -> None:
    """Every snapshot is acknowledged, and each holds what its committer was told; no file is gone or left over."""
    ids = sorted(by_snapshot)
    assert ids == list(range(1, len(ids) + 1))
    assert [snapshot.id for snapshot in table.snapshots()] == ids
    changes = table.changes().filter(pc.field("id") == SHARED_KEY)
    assert changes["v"].to_pylist() == [by_snapshot[snapshot] for snapshot in ids]
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.total_record_count == 2 * len(ids)
    files = {str(path) for path in Path(table.location).glob("bucket-*/*")}
    assert files == data_paths(table, latest.id)
    assert len(live_files(stores_of(table), latest)) == len(ids)


@pytest.mark.parametrize("size", SIZES)
def test_append_table(shared_directory: Path, size: tuple[int, int, bool]) -> None:
    """All rows of all commits are there once, in the order of the snapshots."""
    count, commits, uses_lock = size
    table = make(shared_directory)
    by_snapshot = run_workers(shared_directory, count, commits, uses_lock=uses_lock)
    check_history(table, by_snapshot)
    assert sorted(table.to_arrow()["v"].to_pylist()) == sorted([*by_snapshot.values(), *by_snapshot.values()])


@pytest.mark.parametrize("size", SIZES)
def test_primary_key_table(shared_directory: Path, size: tuple[int, int, bool]) -> None:
    """The shared key shows in every snapshot what that snapshot wrote; keys of their own are all there."""
    count, commits, uses_lock = size
    table = make(shared_directory, primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    by_snapshot = run_workers(shared_directory, count, commits, uses_lock=uses_lock)
    check_history(table, by_snapshot)
    found = dict(zip(*table.to_arrow().to_pydict().values(), strict=True))
    assert found == {SHARED_KEY: by_snapshot[len(by_snapshot)]} | {value: value for value in by_snapshot.values()}
    last = -1
    for snapshot in table.snapshots():
        (entry,) = delta_entries(stores_of(table), snapshot)
        assert entry.file.min_sequence_number > last
        last = entry.file.max_sequence_number
    for snapshot_id in (1, 2, 10, 50, 100):
        shown = table.at(snapshot=snapshot_id).to_arrow(filter=[("id", "=", SHARED_KEY)])
        assert shown["v"].to_pylist() == [by_snapshot[snapshot_id]]
