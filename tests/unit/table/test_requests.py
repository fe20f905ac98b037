"""What tables on an object store cost: how many requests, how many of them after each other, and how long that is.

Each request takes 20 ms, as it would in a region of one's own. The best of a few turns counts: on a busy machine
requests that are sent at once need not arrive at once. How long it takes is what the requests in series take, and the
CPU time: what other programs on the machine take does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import lakebed
from lakebed import Table
from lakebed.errors import LakebedError
from lakebed.testing.s3_server import BUCKET, RequestLog, S3State

DELAY_SECONDS = 0.02
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
LATER = {"snapshot.num-retained.min": "100"}
KINDS = {
    "key": {"primary_key": ["id"], "options": {"bucket": "1", "num-sorted-run.compaction-trigger": "50", **LATER}},
    "append": {"options": LATER},
    "buckets": {"options": {"bucket": "2", "bucket-key": "id", **LATER}},
}


def row(number: int) -> pa.Table:
    return pa.table({"id": [number], "v": ["x"]}, schema=SCHEMA)


def table_on(s3: S3State, kind: str = "key", name: str = "t") -> Table:
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options)
    return lake.create_table(name, SCHEMA, **KINDS[kind])


def best_of(s3: S3State, turns: int, act: Callable[[int], object]) -> tuple[RequestLog, float]:
    """The log of the turn with the fewest requests in series, and the shortest time of any."""
    logs, seconds = [], []
    s3.delay_seconds = DELAY_SECONDS
    for turn in range(turns):
        started = time.process_time()
        with s3.counted() as log:
            act(turn)
        seconds.append(time.process_time() - started + log.in_series * DELAY_SECONDS)
        logs.append(log)
    s3.delay_seconds = 0.0
    assert len({len(log) for log in logs}) == 1, "\n\n".join(map(str, logs))
    return min(logs, key=lambda log: log.in_series), min(seconds)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("before", [2, 8])
def test_commit_of_one_row(s3: S3State, kind: str, before: int) -> None:
    """Eleven requests, six after each other, also where the numbers of snapshots get another digit."""
    table = table_on(s3, kind)
    for number in range(before):
        table.write(row(number))
    log, seconds = best_of(s3, 4, lambda turn: table.write(row(100 + turn)))
    assert len(log) <= 11, str(log)
    assert log.in_series <= 6, str(log)
    assert seconds < 0.25
    assert table.count() == before + 4


@pytest.mark.parametrize("kind", list(KINDS))
def test_warm_read(s3: S3State, kind: str) -> None:
    """A handle that has read before asks for what may have changed, and for the rows."""
    table = table_on(s3, kind)
    table.write(row(1))
    table.to_arrow()
    log, seconds = best_of(s3, 3, lambda turn: table.to_arrow())
    assert len(log) <= 3, str(log)
    assert log.in_series <= 2, str(log)
    assert seconds < 0.1


def test_small_files_are_read_beside_each_other(s3: S3State) -> None:
    """Twelve files take as long as one."""
    for kind in ("key", "append"):
        table = table_on(s3, kind, kind)
        for number in range(12):
            table.write(row(number))
        table.to_arrow()
        log, _ = best_of(s3, 3, lambda turn, table=table: table.to_arrow())
        assert len(log) == 14
        assert log.in_series <= 3, str(log)
        assert sum(batch.num_rows for batch in table.to_batches()) == 12
        assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(12))


def test_two_writers_see_each_other(s3: S3State) -> None:
    """What another handle commits, rolls back, alters or drops is seen by the next call, whatever is remembered."""
    one = table_on(s3)
    two = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options).table("t")
    for number in range(12):  # past a change of digits
        (one, two)[number % 2].write(row(number))
        assert one.count() == two.count() == number + 1
        assert one.latest_snapshot().id == number + 1
    two.rollback_to(9)
    assert one.to_arrow().num_rows == 9
    one.write(row(50))
    assert two.to_arrow().num_rows == 10
    two.rollback_to(9)
    two.write(row(60))  # another snapshot 10
    assert sorted(one.to_arrow()["id"].to_pylist()) == [*range(9), 60]
    one.write(row(61))
    assert sorted(two.to_arrow()["id"].to_pylist()) == [*range(9), 60, 61]
    two.alter(lakebed.AddColumn("w", "INT"))
    assert one.to_arrow().column_names == ["id", "v", "w"]
    one.write(row(62).append_column("w", pa.array([1], pa.int32())))
    assert two.count() == 12


def test_table_made_anew(s3: S3State) -> None:
    """A table of the same name with other columns is noticed by handles of the old one."""
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options=s3.options)
    old = table_on(s3)
    old.write(row(1))
    lake.drop_table("t")
    with pytest.raises(LakebedError):
        old.write(row(2))
    new = lake.create_table("t", {"id": "BIGINT NOT NULL", "z": "INT"}, primary_key=["id"], options={"bucket": "1"})
    new.write(pa.table({"id": pa.array([7], pa.int64()), "z": pa.array([1], pa.int32())}))
    assert lake.table("t").to_arrow().to_pylist() == [{"id": 7, "z": 1}]


def test_a_store_that_is_away_while_others_commit(s3: S3State) -> None:
    """Commits outlast an outage, and none is doubled when its answer was cut off after it was carried out."""
    table = table_on(s3)
    lake = lakebed.connect(f"s3://{BUCKET}/lake", options={**s3.options, "s3.retry-interval": "10 ms"})
    table = lake.table("t")
    for number in range(6):
        if number % 3 == 0:
            s3.go_away(0.2)
        s3.answers_cut = number
        table.write(row(number))
        s3.answers_cut = 0
    assert [snapshot.id for snapshot in table.snapshots() if snapshot.operation == "WRITE"][:2] == [1, 2]
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(6))
    assert sum(snapshot.delta_record_count for snapshot in table.snapshots()) == 6
