"""DataFrames into tables: one commit, one run for each bucket, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import lakebed
from lakebed.bucket.fixed import assign_buckets
from lakebed.spark.distribute import with_bucket

COLUMNS = {"id": "BIGINT NOT NULL", "p": "STRING NOT NULL", "v": "INT"}


def _frame(spark: Any, count: int, value: int = 1) -> Any:
    return spark.range(0, count, 1, 3).select(
        "id", sf.concat(sf.lit("p"), sf.col("id") % 3).alias("p"), sf.lit(value).alias("v")
    )


def _sum(table: lakebed.Table) -> int:
    return sum(table.to_arrow(["v"])["v"].to_pylist())


@pytest.mark.parametrize(
    ("key", "partitions", "options"),
    [
        ((), (), {}),
        ((), ("p",), {}),
        ((), (), {"bucket": "3", "bucket-key": "id"}),
        (("id",), (), {"bucket": "1"}),
        (("id",), (), {"bucket": "4"}),
        (("id", "p"), ("p",), {"bucket": "2"}),
        (("p", "id"), (), {"bucket": "3", "bucket-key": "p"}),
        (("id",), (), {"dynamic-bucket.target-row-num": "100"}),
        (("id", "p"), ("p",), {"dynamic-bucket.target-row-num": "50"}),
    ],
)
def test_rows_arrive(
    spark: Any, lake: lakebed.Lake, key: tuple[str, ...], partitions: tuple[str, ...], options: dict[str, str]
) -> None:
    """Tables of all kinds hold the frame's rows after one commit; upserts replace, appends add."""
    table = lake.create_table("t", COLUMNS, primary_key=key, partition_by=partitions, options=options)
    assert table.write_spark(_frame(spark, 500)).id == 1
    assert table.write_spark(_frame(spark, 100, 5)) is not None
    assert table.to_arrow().num_rows == (500 if key else 600)
    assert _sum(table) == (900 if key else 1000)
    assert len(set(table.to_arrow(["id"])["id"].to_pylist())) == 500
    assert table.check() == []


def test_a_bucket_gets_one_run(spark: Any, lake: lakebed.Lake) -> None:
    """However many partitions the frame has, each bucket gets one file per commit."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "4", "write-only": "true"})
    for _ in range(3):
        table.write_spark(_frame(spark, 300).repartition(5))
    assert len(table.scan().files) == 12


def test_later_rows_of_a_key_win_within_and_between_frames(spark: Any, lake: lakebed.Lake) -> None:
    """A commit replaces what earlier ones wrote, also when both were planned on the same snapshot."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    table.write_spark(_frame(spark, 10, 1))
    table.write_spark(_frame(spark, 10, 2))
    assert _sum(table) == 20


def test_row_kinds(spark: Any, lake: lakebed.Lake) -> None:
    """A column with row kinds deletes rows."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    table.write_spark(_frame(spark, 10))
    gone = _frame(spark, 4).withColumn("kind", sf.lit("-D"))
    table.write_spark(gone, row_kind="kind")
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [4, 5, 6, 7, 8, 9]


def test_overwrite(spark: Any, lake: lakebed.Lake) -> None:
    """Overwriting replaces the partitions of the new rows, those named, or the table."""
    table = lake.create_table("t", COLUMNS, primary_key=["id", "p"], partition_by=["p"], options={"bucket": "1"})
    table.write_spark(_frame(spark, 30))
    table.write_spark(_frame(spark, 1, 7), overwrite=True)
    assert table.to_arrow().num_rows == 21
    table.write_spark(_frame(spark, 30).filter("p = 'p1'").limit(2), overwrite={"p": "p1"})
    assert table.to_arrow().num_rows == 13
    table.write_spark(_frame(spark, 3), overwrite={})
    assert table.to_arrow().num_rows == 3


def test_what_does_not_fit_is_said_and_leaves_nothing(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """A bad column is refused before a job starts, a bad row by the task that meets it; no file stays."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    with pytest.raises(lakebed.errors.InvalidData, match="`z`"):
        table.write_spark(_frame(spark, 3).withColumn("z", sf.lit(1)))
    with pytest.raises(lakebed.errors.InvalidData, match="`v`"):
        table.write_spark(_frame(spark, 3).drop("v"))
    nulls = _frame(spark, 100).withColumn("p", sf.when(sf.col("id") != 77, sf.col("p")))
    with pytest.raises(lakebed.errors.InvalidData, match=r"`p` is NOT NULL"):
        table.write_spark(nulls)
    assert table.latest_snapshot() is None
    assert not list(tmp_path.rglob("data-*"))


def test_a_failed_job_leaves_nothing(spark: Any, lake: lakebed.Lake, tmp_path: Path) -> None:
    """When the frame itself fails half-way, the files of the tasks that were done go."""
    table = lake.create_table("t", COLUMNS)
    broken = _frame(spark, 100).withColumn(
        "v", sf.when(sf.col("id") == 99, sf.raise_error(sf.lit("broken"))).otherwise(sf.lit(1)).cast("int")
    )
    with pytest.raises(Exception, match="broken"):
        table.write_spark(broken)
    assert table.latest_snapshot() is None
    assert not list(tmp_path.rglob("data-*"))


def test_compaction_follows(spark: Any, lake: lakebed.Lake) -> None:
    """Commits by Spark compact what they made due."""
    table = lake.create_table(
        "t", COLUMNS, primary_key=["id"], options={"bucket": "2", "num-sorted-run.compaction-trigger": "3"}
    )
    for value in range(4):
        table.write_spark(_frame(spark, 100, value))
    assert {snapshot.commit_kind.value for snapshot in table.snapshots()} == {"APPEND", "COMPACT"}
    assert _sum(table) == 300


def test_compaction_as_a_job(spark: Any, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large compactions run in Spark's tasks, and their changelog is complete."""
    monkeypatch.setattr("lakebed.spark.tasks.HERE_BYTES", -1)
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2", "changelog-producer": "lookup"})
    table.write_spark(_frame(spark, 50, 1))
    table.write_spark(_frame(spark, 10, 2))
    kinds = table.changes()["rowkind"].to_pylist()
    assert kinds.count("+I") == 50
    assert kinds.count("-U") == kinds.count("+U") == 10


def test_a_replayed_commit_is_skipped(spark: Any, lake: lakebed.Lake) -> None:
    """The same commit user and identifier a second time changes nothing."""
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options=options)
    jobs = table._opened.context.jobs
    assert jobs is not None
    for _ in range(2):
        jobs.write(table, _frame(spark, 10), commit_user="stream", commit_identifier=4)
    assert _sum(table) == 10


@pytest.mark.parametrize("column", ["BIGINT NOT NULL", "INT NOT NULL"])
def test_buckets_in_spark_are_buckets_in_arrow(spark: Any, lake: lakebed.Lake, column: str) -> None:
    """The hash that is spelled out for Spark agrees with ours on small, large and negative keys."""
    table = lake.create_table("t", {"k": column}, primary_key=["k"], options={"bucket": "7"})
    top = 2**63 - 1 if "BIGINT" in column else 2**31 - 1
    values = [0, 1, -1, 7, top, -top - 1, top // 3, -top // 5, *range(-500, 500)]
    keys = pa.table({"k": values}, schema=table.arrow_schema)
    numbered = with_bucket(spark.createDataFrame(keys), table.schema.fields, 7, "default", "b")
    assert numbered is not None
    found = {row["k"]: row["b"] for row in numbered.collect()}
    wanted = assign_buckets([keys["k"].combine_chunks()], [table.schema.fields[0].type], 7)
    assert [found[value] for value in values] == wanted.tolist()


def test_the_format_reads_and_writes(spark: Any, lake: lakebed.Lake) -> None:
    """`format("lakebed")` works by path, with options, and a query does not change what the next one sees."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    _frame(spark, 30).write.format("lakebed").mode("append").save(table.location)
    _frame(spark, 10, 5).write.format("lakebed").mode("append").save(table.location)
    frame = spark.read.format("lakebed").load(table.location)
    assert frame.filter("id = 3").collect()[0]["v"] == 5
    assert frame.count() == 30
    earlier = spark.read.format("lakebed").option("scan.snapshot-id", "1").load(table.location)
    assert earlier.filter("v = 5").count() == 0
    _frame(spark, 2).write.format("lakebed").mode("overwrite").save(table.location)
    assert table.to_arrow().num_rows == 2
