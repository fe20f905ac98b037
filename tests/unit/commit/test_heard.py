"""Who listens hears the commits of the block, and of nobody else."""

from __future__ import annotations

import threading

import pyarrow as pa
from tests.unit.warehouse_under_test import Warehouse

from lakebed.commit.committer import heard_commits


def test_commits_are_heard(warehouse: Warehouse) -> None:
    """Table, snapshot and rows of each commit; nothing of other threads, nothing afterwards, no empty commits."""
    table = warehouse.table("t", {"a": "INT"})
    row = pa.table({"a": pa.array([1, 2], pa.int32())})
    with heard_commits() as heard:
        table.write(row)
        table.write(row.slice(0, 0))
        other = threading.Thread(target=warehouse.reopened().table("t").write, args=(row,))
        other.start()
        other.join()
        table.write(row.slice(0, 1), overwrite=True)
    table.write(row)
    assert [(one.table, one.snapshot.id, one.added_rows) for one in heard] == [("default.t", 1, 2), ("default.t", 3, 1)]
