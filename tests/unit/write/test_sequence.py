"""What writers remember of buckets moves on with the table, and equals what a fresh look gives."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.write import sequence as bucket_state
from lakebed.write.sequence import BucketStates


def rows(start: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + 20), pa.int64())})


def describe(states: BucketStates, partition: bytes) -> list[tuple[int, int]]:
    return [(states.next_sequence_number(partition, b), states.run_count(partition, b)) for b in range(2)]


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_states_move_on_over_compactions(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, producer: str) -> None:
    """Only what changed is read, and the numbers and runs are those of a fresh look; an overwrite is looked at anew."""
    options = {"bucket": "2", "changelog-producer": producer, "num-sorted-run.compaction-trigger": "3"}
    table: lakebed.Table = warehouse.table("t", {"id": "BIGINT NOT NULL"}, primary_key=["id"], options=options)
    table.write(rows(0))
    stores = table._opened.context.stores
    states = BucketStates.load(stores, stores.snapshots.latest())
    partition = table.scan().splits[0].partition
    with monkeypatch.context() as patch:
        patch.setattr(bucket_state, "live_files", lambda *arguments, **more: pytest.fail("read everything"))
        moved = []
        for number in range(7):
            table.with_options({}).write(rows(10 * number)) if number % 3 else table.compact(full=True)
            states = states.advanced_to(stores, stores.snapshots.latest())
            moved.append((stores.snapshots.latest(), states))
    for snapshot, found in moved:
        assert describe(found, partition) == describe(BucketStates.load(stores, snapshot), partition)
    table.write(rows(5), overwrite=True)
    latest = stores.snapshots.latest()
    assert describe(states.advanced_to(stores, latest), partition) == describe(
        BucketStates.load(stores, latest), partition
    )


def test_an_emptied_partition_has_no_number_of_buckets() -> None:
    """A handle that saw a compaction leave nothing of a partition writes to it in another number of buckets."""
    lake = lakebed.connect("memory://emptied-partition")
    columns = {"k": "INT NOT NULL", "p": "INT NOT NULL"}
    options = {"bucket": "1", "changelog-producer": "full-compaction"}
    table = lake.create_table("t", columns, primary_key=["k", "p"], partition_by=["p"], options=options)
    data = pa.table({"k": pa.array([1], pa.int32()), "p": pa.array([1], pa.int32())})
    table.write(data.append_column("kind", pa.array(["-D"])), row_kind="kind")
    assert not table.scan().files
    table.alter(lakebed.SetOption("bucket", "3"))
    assert table.write(data) is not None
    lake.table("t").alter(lakebed.SetOption("bucket", "2"))
    with pytest.raises(lakebed.errors.CommitConflict, match="3"):
        table.write(data)
