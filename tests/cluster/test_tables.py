"""Tables of a lake in an object store, written and read by workers that share nothing with the driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.cluster.bed import Bed
from tests.cluster.s3_server import SECRET_KEY

import lakebed
from lakebed.table.opened import opened_of

COLUMNS = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
SUMS = {"deduplicate": 125_750, "partial-update": 125_750, "aggregation": 500_500, "first-row": 500_000}
"""Of what `_upserted` writes: the rows 0 to 999 with their ids, then 500 to 1499 with ones."""


def _upserted(table: Any, spark: Any) -> None:
    table.write_spark(spark.range(0, 1000, 1, 4).selectExpr("id", "id AS v"))
    table.write_spark(spark.range(500, 1500, 1, 4).selectExpr("id", "1L AS v"))


def _names(table: lakebed.Table) -> list[str]:
    """All that lies in the store of a table."""
    context = opened_of(table).context
    return sorted(status.path for status in context.fileio.list_recursive(context.paths.root))


def test_workers_have_the_wheel_and_not_the_source(bed: Bed, spark: Any) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"place": [lakebed.__file__]})

    places = {row[0] for row in spark.range(0, 8, 1, 8).mapInArrow(where, "place string").collect()}
    assert len(places) == 2
    assert all(any(place.startswith(str(host.home)) for host in bed.hosts) for place in places)


@pytest.mark.parametrize("engine", SUMS)
def test_upserts_of_each_merge_engine(lake: lakebed.Lake, spark: Any, engine: str) -> None:
    sums = {"fields.v.aggregate-function": "sum"} if engine == "aggregation" else {}
    options = {"bucket": "2", "merge-engine": engine, **sums}
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options=options)
    _upserted(table, spark)
    assert table.to_spark().selectExpr("count(*)", "sum(v)").collect() == [(1500, SUMS[engine])]
    table.compact(full=True, on_spark=True)
    assert table.to_spark().selectExpr("count(*)", "sum(v)").collect() == [(1500, SUMS[engine])]
    assert table.to_arrow().num_rows == 1500


@pytest.mark.parametrize("mode", ["dynamic", "crossing", "append"])
def test_other_kinds_of_tables(lake: lakebed.Lake, spark: Any, mode: str) -> None:
    columns = {**COLUMNS, "p": "INT"}
    key = {"primary_key": ["id"]} if mode != "append" else {}
    parts = {"partition_by": ["p"]} if mode == "crossing" else {}
    table = lake.create_table("t", columns, **key, **parts, options={"bucket": "-1"})
    for shift in (0, 1):
        rows = spark.range(0, 1000, 1, 4)
        table.write_spark(rows.selectExpr("id", "id AS v", f"CAST((id + {shift}) % 3 AS INT) AS p"))
    assert table.to_spark().count() == (2000 if mode == "append" else 1000)
    table.compact(full=True)
    assert table.to_arrow().num_rows == (2000 if mode == "append" else 1000)


def test_statements(lake: lakebed.Lake) -> None:
    lake.sql("CREATE TABLE a (id BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')")
    lake.sql("CREATE TABLE b (id BIGINT, v BIGINT)")
    lake.sql("INSERT INTO a SELECT id, id FROM range(1000)")
    lake.sql("INSERT INTO b SELECT id, 1 FROM range(900, 1100)")
    lake.sql(
        "MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN UPDATE SET v = -1 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (b.id, b.v)"
    )
    lake.sql("DELETE FROM b WHERE id < 1000")
    lake.sql("UPDATE b SET v = 7 WHERE id = 1000")
    assert lake.sql("SELECT count(*), sum(v) FROM a").collect() == [(1100, sum(range(900)))]
    assert lake.sql("SELECT count(*), sum(v) FROM b").collect() == [(100, 106)]


def test_compaction_runs_where_the_session_is(lake: lakebed.Lake, spark: Any) -> None:
    """Enough rows that it pays; whose work it was is told by the names of the files."""
    table = lake.create_table(
        "t", {"id": "BIGINT NOT NULL", "v": "STRING"}, primary_key=["id"], options={"bucket": "2"}
    )
    for _ in range(2):
        table.write_spark(spark.range(0, 400_000, 1, 2).selectExpr("id", "repeat(md5(CAST(id AS STRING)), 2) AS v"))
    assert "the session is a cluster" in table.explain_work()
    jobs = spark.sparkContext.statusTracker()
    before = max(jobs.getJobIdsForGroup(None) or [0])
    table.compact(full=True)
    assert max(jobs.getJobIdsForGroup(None) or [0]) > before
    assert table.to_spark().count() == 400_000


def test_names_in_spark_refuse_bulk_in_one_process(lake: lakebed.Lake, spark: Any) -> None:
    """INSERT INTO a name places few rows where keys are looked for; more are refused, and nothing of them stays."""
    options = {"bucket": "-1", "lakebed.one-process-write.max-size": "100 kb"}
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options=options)
    names = lake.attach(spark)
    try:
        spark.sql("INSERT INTO lakebed_default.t SELECT id, id FROM range(1000)")
        files = _names(table)
        with pytest.raises(Exception, match=r"more than 100 kb of rows(.|\n)*write_spark"):
            spark.sql("INSERT INTO lakebed_default.t SELECT id, -1 FROM range(0, 100000, 1, 4)")
        assert _names(table) == files
        lake.sql("INSERT INTO t SELECT id, -1 FROM range(0, 100000, 1, 4)")
        assert spark.sql("SELECT count(*), sum(v) FROM lakebed_default.t").collect() == [(100_000, -100_000)]
    finally:
        names.detach()


def test_a_stream_with_kept_keys(bed: Bed, lake: lakebed.Lake, spark: Any, tmp_path: Any) -> None:
    """Rows move between partitions; each worker keeps the keys of its share, and lets go of them."""
    source = lake.create_table("s", {"id": "BIGINT NOT NULL", "p": "INT"})
    target = lake.create_table(
        "t", {"id": "BIGINT NOT NULL", "p": "INT"}, primary_key=["id"], partition_by=["p"], options={"bucket": "-1"}
    )
    for shift in range(3):
        rows = spark.range(0, 60_000, 1, 4).selectExpr("id", f"CAST((id + {shift}) % 2 AS INT) AS p")
        source.write_spark(rows)
        query = target.write_stream(source.read_stream(), checkpoint=str(tmp_path / "c"), trigger="availableNow")
        query.awaitTermination()
    assert target.to_spark().selectExpr("count(*)", "sum(p)").collect() == [(60_000, 30_000)]


def test_no_secret_is_told(bed: Bed, lake: lakebed.Lake, spark: Any) -> None:
    """Neither in event logs nor in logs of workers, plans, or errors."""
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    _upserted(table, spark)
    place = f"{bed.place('x')}/default.db/none"
    reader = spark.read.format("lakebed").options(**bed.store.options)
    with pytest.raises(Exception, match="none") as refused:
        reader.load(place).collect()
    assert SECRET_KEY not in str(refused.value)
    assert SECRET_KEY not in table.to_spark()._jdf.queryExecution().toString()
    told = bed.told()
    assert json.dumps("SparkListenerJobStart") in told
    assert SECRET_KEY not in told
