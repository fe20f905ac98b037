"""Rows of a table found by key where Spark works: in tasks, and for each micro-batch of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.streams import batch, stream

import lakebed


@pytest.fixture
def users(lake: lakebed.Lake) -> lakebed.Table:
    """Users 0 to 99, of which some were written twice."""
    table = lake.create_table(
        "users", {"id": "BIGINT NOT NULL", "name": "STRING"}, primary_key=["id"], options={"bucket": "4"}
    )
    for text, keys in (("old", range(100)), ("new", range(0, 100, 10))):
        table.write(pa.table({"id": pa.array(keys, pa.int64()), "name": [f"{text}{key}" for key in keys]}))
    return table


def test_in_tasks(spark: Any, users: lakebed.Table) -> None:
    """A lookup is sent to the tasks of a job, which all see the snapshot that it was made for."""
    finder = users.key_lookup()
    users.write(pa.table({"id": [20], "name": ["later"]}))

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            yield from finder.rows(rows).to_batches()

    frame = spark.range(0, 200, 1, 3).mapInArrow(join, "id bigint, name string")
    expected = {key: f"{'old' if key % 10 else 'new'}{key}" for key in range(100)}
    assert dict(map(tuple, frame.collect())) == expected


def test_for_each_batch(spark: Any, users: lakebed.Table, tmp_path: Path) -> None:
    """A function that Spark calls for each micro-batch finds the rows as they are then."""
    seen = tmp_path / "seen"  # the function may run in another process

    def enrich(frame: Any, batch_id: int) -> None:
        names = users.lookup(frame.toArrow(), ["name"])["name"].to_pylist()
        with seen.open("a") as sink:
            print(json.dumps(names), file=sink)
        users.write(pa.table({"id": [1], "name": [f"after {batch_id}"]}))

    for number in range(2):
        batch(tmp_path / "in", number, [{"id": 1, "v": 0}, {"id": 10, "v": 0}, {"id": 1000, "v": 0}])
    query = (
        stream(spark, tmp_path / "in")
        .writeStream.foreachBatch(enrich)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [json.loads(line) for line in seen.read_text().splitlines()] == [["old1", "new10"], ["after 0", "new10"]]


def test_a_write_only_table_is_compacted_by_a_stream(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """With the option on its handle one of the writers takes compaction over: files stay few."""
    options = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "3"}
    table = lake.create_table("t", {"id": "BIGINT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)
    for number in range(8):
        batch(tmp_path / "in", number, [{"id": i, "v": number} for i in range(5)])
    writer = table.with_options({"write-only": "false"})
    frame = stream(spark, tmp_path / "in")
    writer.write_stream(frame, checkpoint=tmp_path / "c", trigger={"availableNow": True}).awaitTermination()
    assert table.to_arrow()["v"].to_pylist() == [7] * 5
    assert len(table.scan().files) <= 4
