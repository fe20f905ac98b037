"""Streams into tables: every micro-batch once, whatever happens to Spark's own log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.streams import batch, drain, forget_last_batch, stream

import lakebed


@pytest.fixture
def sums(lake: lakebed.Lake) -> lakebed.Table:
    """A table in which a batch that comes twice shows."""
    options = {"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    return lake.create_table("t", {"id": "BIGINT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)


def test_a_batch_that_spark_forgot_is_not_counted_twice(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """Without the last entry of its commit log Spark delivers a batch again: the table takes it once."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for number in range(3):
        batch(source, number, [{"id": i, "v": 1} for i in range(5)])
    drain(sums, stream(spark, source), checkpoint)
    forget_last_batch(checkpoint)
    sums.expire_snapshots(retain_max=1, retain_min=1)
    drain(sums, stream(spark, source), checkpoint)
    assert sums.to_arrow()["v"].to_pylist() == [3] * 5


def test_a_restarted_query_goes_on(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """The commit user is the query's id, which a checkpoint keeps."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    for number in range(2):
        batch(source, number, [{"id": 1, "v": 1}])
        drain(sums, stream(spark, source), checkpoint)
    assert sums.to_arrow()["v"].to_pylist() == [2]
    assert len({snapshot.commit_user for snapshot in sums.snapshots()}) == 1
    assert [snapshot.commit_identifier for snapshot in sums.snapshots()] == [1, 2]


def test_row_kinds_come_with_the_stream(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A column named `rowkind` that the table has not tells what each row does."""
    table = lake.create_table("t", {"id": "BIGINT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    for number, kinds in enumerate(({1: "+I", 2: "+I"}, {1: "-D"})):
        batch(tmp_path / "in", number, [{"rowkind": kind, "id": key, "v": 1} for key, kind in kinds.items()])
        drain(table, stream(spark, tmp_path / "in", "rowkind string, id long, v int"), tmp_path / "checkpoint")
    assert table.to_arrow().to_pydict() == {"id": [2], "v": [1]}


def test_complete_output_replaces(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """In complete mode each batch is the whole result."""
    table = lake.create_table(
        "t", {"id": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=["id"], options={"bucket": "1"}
    )
    for number in range(2):
        batch(tmp_path / "in", number, [{"id": i % 2, "v": 1} for i in range(4)])
    counts = stream(spark, tmp_path / "in").groupBy("id").count().withColumnRenamed("count", "n")
    drain(table, counts, tmp_path / "checkpoint", output_mode="complete")
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [{"id": 0, "n": 4}, {"id": 1, "n": 4}]


def test_what_is_no_stream_is_refused(spark: Any, sums: lakebed.Table, tmp_path: Path) -> None:
    """A batch DataFrame, an unknown mode and an unknown trigger are named."""
    with pytest.raises(lakebed.errors.InvalidArgument, match="not a stream"):
        sums.write_stream(spark.range(3), checkpoint=tmp_path / "c")
    batch(tmp_path / "in", 0, [{"id": 1, "v": 1}])
    frame = stream(spark, tmp_path / "in")
    with pytest.raises(lakebed.errors.InvalidArgument, match="`appnd`"):
        sums.write_stream(frame, checkpoint=tmp_path / "c", output_mode="appnd")
    with pytest.raises(lakebed.errors.InvalidArgument, match="trigger"):
        sums.write_stream(frame, checkpoint=tmp_path / "c", trigger={"sometimes": True})
