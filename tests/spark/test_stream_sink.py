"""The streaming sinks, `t.write_stream` and `writeStream.format("lakebed")`: every micro-batch once, whole, in time."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S
from tests.spark.streams import batch, drain, drain_format, files_below, forget_last_batch, live_files, stream

import lakebed
from lakebed.metadata.snapshot import CommitKind
from lakebed.spark.stream import micro_batch as stream_write

SINKS = pytest.mark.parametrize("sink", [drain, drain_format], ids=["write_stream", "format"])
Sink = Callable[..., None]
SUMS = {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
KEYED = {"id": "BIGINT NOT NULL", "v": "INT"}


@pytest.fixture
def sums(lake: lakebed.Lake) -> lakebed.Table:
    """A table in which a batch that comes twice shows."""
    return lake.create_table("t", KEYED, primary_key=["id"], options=SUMS)


def ones(count: int) -> list[dict[str, Any]]:
    return [{"id": key, "v": 1} for key in range(count)]


def identifiers(table: lakebed.Table, kind: CommitKind = CommitKind.APPEND) -> list[int]:
    return [snapshot.commit_identifier for snapshot in table.snapshots() if snapshot.commit_kind == kind]


@SINKS
def test_r_01_a_batch_that_was_committed_is_not_committed_again(
    spark: Any, sums: lakebed.Table, tmp_path: Path, sink: Sink
) -> None:
    """Killed after the commit of batch 3 and started again: the sums and the snapshots are as before."""
    for number in range(3):
        batch(tmp_path / "in", number, ones(5))
    sink(sums, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    before = sums.snapshots()
    forget_last_batch(tmp_path / "checkpoint")
    sink(sums, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    assert sums.to_arrow()["v"].to_pylist() == [3] * 5
    assert sums.snapshots() == before
    assert identifiers(sums) == [1, 2, 3]


@SINKS
def test_a_batch_whose_snapshot_has_expired_is_known(
    spark: Any, sums: lakebed.Table, tmp_path: Path, sink: Sink
) -> None:
    """Neither the snapshot of the batch nor Spark's log entry is left, and another user committed last."""
    for number in range(2):
        batch(tmp_path / "in", number, ones(5))
    sink(sums, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    sums.write(pa.table({"id": pa.array([9], pa.int64()), "v": pa.array([1], pa.int32())}))
    sums.expire_snapshots(retain_max=1, retain_min=1)
    assert len(sums.snapshots()) == 1
    forget_last_batch(tmp_path / "checkpoint")
    sink(sums, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    assert Counter(sums.to_arrow()["v"].to_pylist()) == {2: 5, 1: 1}


def test_r_02_a_batch_that_died_before_its_commit_is_committed_once(
    spark: Any, sums: lakebed.Table, tmp_path: Path
) -> None:
    """What it has written is no part of the table, and goes; the replay commits."""
    batch(tmp_path / "in", 0, ones(5))
    # Whichever process commits: it can not write its manifest, when the rows are in their files already.
    obstacle = Path(sums.location) / "manifest"
    obstacle.write_text("in the way")
    query = sums.write_stream(
        stream(spark, tmp_path / "in"), checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}
    )
    with pytest.raises(Exception, match="manifest"):
        query.awaitTermination()
    obstacle.unlink()
    assert sums.snapshots() == []
    drain(sums, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    assert sums.to_arrow()["v"].to_pylist() == [1] * 5
    assert identifiers(sums) == [1]
    assert files_below(sums) == live_files(sums)


def test_r_03_queries_do_not_know_each_other(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """Two queries, one of each kind, write the same batches to one table: both commit all of theirs."""
    for number in range(2):
        batch(tmp_path / "in", number, ones(3))
    drain(sums, stream(spark, tmp_path / "in"), tmp_path / "a")
    drain_format(sums, stream(spark, tmp_path / "in"), tmp_path / "b")
    assert sums.to_arrow()["v"].to_pylist() == [4] * 3
    assert sorted(Counter(snapshot.commit_user for snapshot in sums.snapshots()).values()) == [2, 2]


@SINKS
def test_a_missing_compaction_is_made_when_the_batch_comes_again(
    spark: Any, lake: lakebed.Lake, tmp_path: Path, sink: Sink
) -> None:
    """Batch 2 is due for a full compaction, which a killed driver did not make: the replay makes only that."""
    table = lake.create_table(
        "t", KEYED, primary_key=["id"], options={**SUMS, "full-compaction.delta-commits": "2", "write-only": "true"}
    )
    for number in range(2):
        batch(tmp_path / "in", number, ones(5))
    sink(table, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    table.alter(lakebed.SetOption("write-only", "false"))
    forget_last_batch(tmp_path / "checkpoint")
    sink(table, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    assert identifiers(table) == [1, 2]
    assert identifiers(table, CommitKind.COMPACT) == [2]
    assert table.to_arrow()["v"].to_pylist() == [2] * 5


@pytest.mark.parametrize(
    ("gathered", "large"),
    [(0, -1), (0, 1 << 20), (200, 1 << 20), (1 << 20, 1 << 20)],
    ids=["shuffled", "by tasks", "by tasks and driver", "by the driver"],
)
def test_a_batch_is_whole_whoever_writes_it(
    spark: Any, lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gathered: int, large: int
) -> None:
    """Rows are the same whether tasks write them or the driver, moved before or not; the last one of a key wins."""
    monkeypatch.setattr(stream_write, "_GATHERED_BYTES", gathered)
    monkeypatch.setattr(stream_write, "_FIRST_GATHERED_BYTES", gathered)
    monkeypatch.setattr(stream_write, "_LARGE_BYTES", large)
    table = lake.create_table("t", KEYED, primary_key=["id"], options={"bucket": "3"})
    for number in range(3):
        batch(tmp_path / "in", number, [{"id": key, "v": number} for key in range(100 - 10 * number)])
        batch(tmp_path / "in2", number, [{"id": 200 + number, "v": number}])
    frame = stream(spark, tmp_path / "in").union(stream(spark, tmp_path / "in2"))
    drain(table, frame, tmp_path / "checkpoint")
    found = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert found == {key: min(2, (99 - key) // 10) for key in range(100)} | {200: 0, 201: 1, 202: 2}
    assert table.check() == []


@pytest.mark.parametrize(
    ("options", "partitioned"),
    [
        ({"bucket": "-1"}, []),
        ({"bucket": "-1", "dynamic-bucket.initial-buckets": "1"}, []),
        ({"bucket": "-1"}, ["p"]),
        ({"bucket": "-2", "postpone.default-bucket-num": "2"}, []),
    ],
    ids=["dynamic", "dynamic, one task", "across partitions", "postponed"],
)
def test_tables_that_choose_buckets_themselves(
    spark: Any, lake: lakebed.Lake, tmp_path: Path, options: dict[str, str], partitioned: list[str]
) -> None:
    """Keys stay where they are from batch to batch, so that a later row replaces an earlier one."""
    columns = {**KEYED, "p": "INT"}
    table = lake.create_table("t", columns, primary_key=["id"], partition_by=partitioned, options=options)
    for number in range(3):
        rows = [{"id": key, "v": number, "p": number % 2} for key in range(number, 10)]
        batch(tmp_path / "in", number, rows)
    drain(table, stream(spark, tmp_path / "in", "id long, v int, p int"), tmp_path / "checkpoint")
    if options["bucket"] == "-2":
        table.compact()
    found = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert found == {key: min(key, 2) for key in range(10)}


def test_format_counts_on_rows_of_several_tasks(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Several tasks write to the same buckets in each batch: no row is lost, no two rows have one number."""
    table = lake.create_table("t", KEYED, primary_key=["id"], options={**SUMS, "write-only": "true"})
    for number in range(2):
        for source in ("in", "in2"):
            batch(tmp_path / source, number, ones(20))
    frame = stream(spark, tmp_path / "in").union(stream(spark, tmp_path / "in2"))
    drain_format(table, frame, tmp_path / "checkpoint")
    assert table.to_arrow()["v"].to_pylist() == [4] * 20
    for bucket in range(2):
        files = [file for split in table.scan().splits if split.bucket == bucket for file in split.files]
        ranges = sorted((file.min_sequence_number, file.max_sequence_number) for file in files)
        assert len(files) == 4
        assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def test_format_replaces_in_complete_mode(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """Each batch is the whole result."""
    table = lake.create_table(
        "t", {"id": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=["id"], options={"bucket": "2"}
    )
    for number in range(2):
        batch(tmp_path / "in", number, [{"id": number, "v": 1}, {"id": 7, "v": 1}])
    counts = stream(spark, tmp_path / "in").groupBy("id").count().withColumnRenamed("count", "n")
    drain_format(table, counts, tmp_path / "checkpoint", mode="complete")
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, "n": 1},
        {"id": 1, "n": 1},
        {"id": 7, "n": 2},
    ]


def test_format_takes_row_kinds(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A column `rowkind`, or the one that the option names, says what each row does."""
    table = lake.create_table("t", KEYED, primary_key=["id"], options={"bucket": "1"})
    batch(tmp_path / "in", 0, [{"rowkind": "+I", "id": 1, "v": 1}, {"rowkind": "+I", "id": 2, "v": 1}])
    drain_format(table, stream(spark, tmp_path / "in", "rowkind string, id long, v int"), tmp_path / "a")
    batch(tmp_path / "in2", 0, [{"op": "-D", "id": 1, "v": 1}])
    drain_format(table, stream(spark, tmp_path / "in2", "op string, id long, v int"), tmp_path / "b", rowkind="op")
    assert table.to_arrow().to_pydict() == {"id": [2], "v": [1]}


def test_format_says_what_to_use_instead(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A table that chooses buckets by its keys is refused with a way out; rows that do not fit name their column."""
    batch(tmp_path / "in", 0, [{"id": 1, "v": 1}])
    dynamic = lake.create_table("d", KEYED, primary_key=["id"], options={"bucket": "-1"})
    with pytest.raises(Exception, match=r"(?s)index of its keys.*t\.write_stream"):
        drain_format(dynamic, stream(spark, tmp_path / "in"), tmp_path / "a")
    other = lake.create_table("o", {"id": "BIGINT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})
    with pytest.raises(Exception, match="`v`"):
        drain_format(other, stream(spark, tmp_path / "in"), tmp_path / "b")
    assert dynamic.snapshots() == other.snapshots() == []


def test_n_23_schema_then_rows_then_commit(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A stream that got a column changes the table first, then writes, then commits: one commit per micro-batch."""
    options = {"bucket": "2", "write.merge-schema": "true"}
    table = lake.create_table("t", KEYED, primary_key=["id"], options=options)
    batch(tmp_path / "in", 0, ones(3))
    drain(table, stream(spark, tmp_path / "in"), tmp_path / "checkpoint")
    batch(tmp_path / "in", 1, [{"id": 1, "v": 2, "w": "new"}])
    drain(table, stream(spark, tmp_path / "in", "id long, v int, w string"), tmp_path / "checkpoint")
    assert table.schema.field_names == ["id", "v", "w"] or tuple(table.schema.field_names) == ("id", "v", "w")
    assert [(s.commit_identifier, s.schema_id) for s in table.snapshots()] == [(1, 0), (2, 1)]
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [tuple(row.values()) for row in rows] == [(0, 1, None), (1, 2, "new"), (2, 1, None)]


@SINKS
def test_n_24_small_files_of_a_batch_are_joined(spark: Any, lake: lakebed.Lake, tmp_path: Path, sink: Sink) -> None:
    """Two tasks leave one file in each batch."""
    table = lake.create_table("t", {"id": "BIGINT", "v": "INT"}, options={"precommit-compact": "true"})
    for number in range(2):
        for source in ("in", "in2"):
            batch(tmp_path / source, number, ones(20))
    sink(table, stream(spark, tmp_path / "in").union(stream(spark, tmp_path / "in2")), tmp_path / "checkpoint")
    assert table.to_arrow().num_rows == 80
    assert len(live_files(table)) == 2
    assert files_below(table) == live_files(table)


def test_n_22_batch_mode_makes_one_commit_of_a_stream(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """All that is there becomes one commit; a query that would never end is refused."""
    for number in range(3):
        batch(tmp_path / "in", number, ones(5))
    frame = spark.readStream.schema("id long, v int").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    table = sums.with_options({"write-mode": "batch"})
    table.write_stream(frame, checkpoint=tmp_path / "checkpoint").awaitTermination()
    assert identifiers(sums) == [1]
    with pytest.raises(lakebed.errors.InvalidOption, match="batch"):
        table.write_stream(frame, checkpoint=tmp_path / "other", trigger="1 second")


def test_n_25_rows_wait_no_longer_than_the_rollover_interval(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """The query's own interval of an hour is too long for the table's second."""
    batch(tmp_path / "in", 0, ones(5))
    table = sums.with_options({"sink.rolling-policy.rollover-interval": "1 s"})
    query = table.write_stream(stream(spark, tmp_path / "in"), checkpoint=tmp_path / "checkpoint", trigger="1 hour")
    try:
        _wait_for(lambda: len(sums.snapshots()) == 1)
        batch(tmp_path / "in", 1, ones(5))
        _wait_for(lambda: len(sums.snapshots()) == 2)
    finally:
        query.stop()


@SINKS
def test_the_watermark_of_a_stream_is_in_its_snapshots(
    spark: Any, lake: lakebed.Lake, tmp_path: Path, sink: Sink
) -> None:
    """The latest event time less the delay; late rows do not take it back."""
    table = lake.create_table("t", {"id": "BIGINT", "at": "TIMESTAMP_LTZ(3)"}, options={"bucket": "-1"})
    for number, second in enumerate((30, 10, 50)):
        batch(tmp_path / "in", number, [{"id": number, "at": f"2026-01-01T00:00:{second}Z"}])
    frame = stream(spark, tmp_path / "in", "id long, at timestamp").withWatermark("at", "5 seconds")
    sink(table, frame, tmp_path / "checkpoint")
    begin = 1767225600000
    watermarks = [snapshot.watermark for snapshot in table.snapshots()]
    assert watermarks == [begin + 25_000, begin + 25_000, begin + 45_000]


@SINKS
def test_an_empty_batch_is_no_commit(spark: Any, sums: lakebed.Table, tmp_path: Path, sink: Sink) -> None:
    """A filter lets nothing through in one of two batches: one snapshot."""
    batch(tmp_path / "in", 0, [{"id": 1, "v": 0}])
    batch(tmp_path / "in", 1, [{"id": 1, "v": 1}])
    sink(sums, stream(spark, tmp_path / "in").where("v > 0"), tmp_path / "checkpoint")
    assert identifiers(sums) == [2]


@pytest.mark.parametrize("kind", ["write_stream", "format"])
def test_a_stopped_query_leaves_no_debris(spark: Any, lake: lakebed.Lake, tmp_path: Path, kind: str) -> None:
    """Stopped in the middle of batches: what orphan cleaning leaves are the files of the table, and it goes on."""
    options = {"bucket": "2", "bucket-key": "id", "write-only": "true"}
    table = lake.create_table("t", {"id": "BIGINT", "v": "INT"}, options=options)
    frame = spark.readStream.format("rate").option("rowsPerSecond", 20_000).load()
    frame = frame.selectExpr("value as id", "cast(value % 7 as int) as v")
    checkpoint = tmp_path / "checkpoint"

    def start() -> Any:
        if kind == "write_stream":
            return table.write_stream(frame, checkpoint=checkpoint)
        writer = frame.writeStream.format("lakebed").option("checkpointLocation", str(checkpoint))
        return writer.start(table.location)

    for goal in (1, 3):
        query = start()
        _wait_for(lambda: len(table.snapshots()) >= goal)  # noqa: B023
        query.stop()
    time.sleep(0.1)
    table.remove_orphan_files(older_than=int(time.time() * 1000) - 1)
    known = {
        file.file_name
        for snapshot in table.snapshots()
        for split in table.at(snapshot=snapshot.id).scan().splits
        for file in split.files
    }
    assert files_below(table) == known
    ids = table.to_arrow()["id"].to_pylist()
    assert sorted(ids) == list(range(len(ids)))


def test_stopping_in_the_middle_of_a_batch_is_no_failure(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """The job of a batch is cancelled: the query has no error, nothing is left behind, and the batch comes again."""
    began = tmp_path / "began"

    def slowly(batches: Any) -> Any:
        for rows in batches:
            began.touch()
            time.sleep(300)
            yield rows

    batch(tmp_path / "in", 0, ones(5))
    frame = stream(spark, tmp_path / "in")
    query = sums.write_stream(frame.mapInArrow(slowly, frame.schema), checkpoint=tmp_path / "checkpoint")
    _wait_for(began.exists)
    query.stop()
    assert query.exception() is None
    assert query.awaitTermination(PATIENCE_S)
    assert sums.snapshots() == []
    assert files_below(sums) == set()
    sums.write_stream(frame, checkpoint=tmp_path / "checkpoint", trigger="availableNow").awaitTermination(PATIENCE_S)
    assert identifiers(sums) == [1]
    sums.compact(full=True)


def _wait_for(holds: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
