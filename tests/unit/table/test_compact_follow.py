"""The compaction that runs beside writers: it keeps up, gives way where it must, and ends when it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, StorageError
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.rewrite import bucket as compact
from lakebed.table import compact_follow
from lakebed.table.compact_follow import Follower, follower_of
from lakebed.table.plans import plan_write

WRITE_ONLY = {"write-only": "true", "bucket": "2", "num-sorted-run.compaction-trigger": "3"}
COLUMNS = {"k": "INT NOT NULL", "v": "INT"}


def _rows(start: int, count: int = 20) -> pa.Table:
    keys = range(start, start + count)
    return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(keys, pa.int32())})


def _table(warehouse: Warehouse, **options: str) -> lakebed.Table:
    return warehouse.table("t", COLUMNS, primary_key=["k"], options=WRITE_ONLY | options)


def _runs(table: lakebed.Table) -> int:
    """Files of the fullest bucket."""
    buckets = [split.bucket for split in table.scan().splits for _ in split.files]
    return max(map(buckets.count, buckets), default=0)


def _drain(follower: Follower) -> int:
    count = 0
    while follower.step() is not None:
        count += 1
    return count


def test_keeps_up_with_a_writer(warehouse: Warehouse) -> None:
    """After each commit what is due is compacted: files stay few, rows stay, and the writer never waits."""
    table = _table(warehouse)
    follower = follower_of(table)
    for n in range(20):
        table.write(_rows(n * 10))
        _drain(follower)
        assert _runs(table) <= 3
    assert table.to_arrow().num_rows == 210
    assert table.check() == []


def test_waits_for_new_snapshots(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read as long as nobody commits; after a minute it is looked again, as some rules go by time."""
    table = _table(warehouse)
    table.write(_rows(0))
    follower = follower_of(table)
    assert follower.step() is None
    looks: list[int] = []
    monkeypatch.setattr(Follower, "_compacted", lambda self, context: looks.append(1))
    assert follower.step() is None
    assert looks == []
    follower._looked_ms -= 60_000
    follower.step()
    table.write(_rows(0))
    follower.step()
    assert looks == [1, 1]


def test_ends_when_told(warehouse: Warehouse) -> None:
    """An event or a function ends it; every compaction is reported."""
    table = _table(warehouse)
    for n in range(5):
        table.write(_rows(n))
    stop = threading.Event()
    told: list[Snapshot] = []

    def report(snapshot: Snapshot) -> None:
        told.append(snapshot)
        stop.set()

    assert table.compact_follow(stop, interval="10 ms", report=report) == 1
    assert [snapshot.commit_kind for snapshot in told] == [CommitKind.COMPACT]
    asked = iter([False, False, True])
    assert table.compact_follow(lambda: next(asked, True), interval=0.01) == 0


def test_beside_writers(warehouse: Warehouse) -> None:
    """Two writers and a follower at once: nobody fails, nothing is lost."""
    table = _table(warehouse)
    stop, failures = threading.Event(), []

    def guarded(work: Callable[[], Any]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def write(offset: int) -> None:
        own = warehouse.reopened().table("t")
        for n in range(15):
            own.write(_rows(offset + n * 10, 10))

    follower = guarded(lambda: warehouse.reopened().table("t").compact_follow(stop, interval="1 ms"))
    writers = [guarded(lambda: write(0)), guarded(lambda: write(1000))]
    for writer in writers:
        writer.join()
    stop.set()
    follower.join()
    assert failures == []
    assert sorted(table.to_arrow()["k"].to_pylist()) == [*range(150), *range(1000, 1150)]
    assert any(snapshot.commit_kind == CommitKind.COMPACT for snapshot in table.snapshots())


def test_only_buckets_that_conflict_are_lost(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else compacts one bucket meanwhile: the work on the other one is committed, no file is left behind."""
    table = _table(warehouse)
    for _ in range(4):
        table.write(_rows(0))
    other = warehouse.reopened().table("t")
    real, is_first = compact.compacted_bucket, iter([True])

    def interrupted(maker: Any, picked: Any, *rest: Any) -> Any:
        done = real(maker, picked, *rest)
        if picked.bucket == 0 and next(is_first, False):
            keep = compact.in_buckets({(picked.partition, 0)})
            context, identity = plan_write(other)
            compact.Compactor(context, True, keep).run(identity)
        return done

    monkeypatch.setattr(compact, "compacted_bucket", interrupted)
    follower = follower_of(table)
    assert follower.step() is not None
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds[-2:] == [CommitKind.COMPACT, CommitKind.COMPACT]
    assert _runs(table) == 1
    time.sleep(0.005)
    moment_ms = time.time_ns() // 1_000_000 - 1
    assert table.remove_orphan_files(older_than=moment_ms, dry_run=True).paths == ()
    assert sorted(table.to_arrow()["k"].to_pylist()) == list(range(20))


def test_all_buckets_conflict(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """When all work is lost it begins again, and finds nothing due any more."""
    table = _table(warehouse)
    for _ in range(4):
        table.write(_rows(0))
    other = warehouse.reopened().table("t")
    real, is_first = compact.compacted_bucket, iter([True])

    def interrupted(*given: Any) -> Any:
        done = real(*given)
        if next(is_first, False):
            with monkeypatch.context() as patch:
                patch.setattr(compact, "compacted_bucket", real)
                other.compact(full=True)
        return done

    monkeypatch.setattr(compact, "compacted_bucket", interrupted)
    rounds = iter([False] * 4)
    assert table.compact_follow(lambda: next(rounds, True), interval="1 ms") == 0
    assert _runs(table) == 1


def test_rounds_are_limited(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round does not grow without bound: the bucket with the most files comes first, the others in later rounds."""
    monkeypatch.setattr(compact_follow, "_ROUND_BYTES", 1)
    table = _table(warehouse)
    for _ in range(4):
        table.write(_rows(0))
    assert _drain(follower_of(table)) == 2
    assert _runs(table) == 1


def test_expires_what_writers_leave(warehouse: Warehouse) -> None:
    """Writers of such tables expire nothing; this job does."""
    retained = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}
    table = _table(warehouse, **retained)
    for n in range(8):
        table.write(_rows(n))
    assert len(table.snapshots()) == 8
    _drain(follower_of(table))
    assert len(table.snapshots()) <= 3


def test_changelog_by_full_compactions(warehouse: Warehouse) -> None:
    """With producer `full-compaction` the changes of writers are told after as many commits as the table says."""
    table = _table(warehouse, **{"changelog-producer": "full-compaction", "full-compaction.delta-commits": "3"})
    follower = follower_of(table)
    for n in range(6):
        table.write(_rows(n * 20))
        _drain(follower)
    told = [snapshot.changelog_record_count for snapshot in table.snapshots() if snapshot.changelog_record_count]
    assert told[0] == 60
    assert sum(count or 0 for count in told) == 120


def test_rows_that_wait_are_placed(warehouse: Warehouse) -> None:
    """Postponed rows get their buckets, whoever wrote them."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options={"bucket": "-2", "write-only": "true"})
    with table.writer(commit_user="stream", commit_identifier=1) as writer:
        writer.write(_rows(0))
        writer.commit()
    assert table.to_arrow().num_rows == 0
    _drain(follower_of(table))
    assert table.to_arrow().num_rows == 20


def test_tables_without_key(warehouse: Warehouse) -> None:
    """Small files are joined."""
    table = warehouse.table("t", COLUMNS, options={"write-only": "true", "compaction.min.file-num": "3"})
    for n in range(6):
        table.write(_rows(n))
    _drain(follower_of(table))
    assert len(table.scan().files) == 1
    assert table.to_arrow().num_rows == 120


def test_a_dropped_table_ends_it(warehouse: Warehouse) -> None:
    """There is nothing left to follow."""
    table = _table(warehouse)
    table.write(_rows(0))
    follower = follower_of(table)
    warehouse.lake.drop_table("t")
    count = compact_follow.follow(
        lambda: [follower], compact_follow.Stop.of(None), 1, lambda _, __: None, table._opened.context.clock
    )
    assert count == 0
    assert follower.is_over


def test_failures_are_tried_again(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage that fails for a while does not end it; one that fails for good does, with its error."""
    table = _table(warehouse)
    table.write(_rows(0))
    monkeypatch.setattr(compact_follow, "MINUTE_MS", 1)
    rounds: list[int] = []

    def fails(self: Follower) -> Snapshot | None:
        rounds.append(1)
        raise StorageError("the disk is away", hint="wait")

    monkeypatch.setattr(Follower, "step", fails)
    assert table.compact_follow(lambda: len(rounds) >= 5, interval="1 ms") == 0
    rounds.clear()
    with pytest.raises(StorageError, match="away"):
        table.compact_follow(interval="1 ms")
    assert len(rounds) == 10


def test_arguments(warehouse: Warehouse) -> None:
    """What can not be meant is refused."""
    table = _table(warehouse)
    with pytest.raises(InvalidArgument, match="stop"):
        table.compact_follow(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="interval"):
        table.compact_follow(interval=0)
    with pytest.raises(InvalidOption, match="soon"):
        table.compact_follow(interval="soon")
    with pytest.raises(InvalidArgument, match="not a partition column"):
        table.compact_follow(where=[("k", "==", 1)])
