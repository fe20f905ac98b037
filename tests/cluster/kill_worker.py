"""A driver that is killed: upserts, streams behind them, a database, MERGE, compaction, expiry, in repeatable steps.

Started with the settings of a bed as JSON. Writes the number of each step that is done into a file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession

import lakebed
import lakebed.cdc

KEYS = 2000
COLUMNS = {"id": "BIGINT NOT NULL", "p": "INT", "step": "INT"}


def tables(lake: lakebed.Lake) -> tuple[Any, Any, Any]:
    """Rows as they come; each of them once more, by a stream; and the last of each key."""
    came = lake.create_table("came", COLUMNS, options={"bucket": "-1"}, if_not_exists=True)
    told = lake.create_table("told", COLUMNS, options={"bucket": "-1"}, if_not_exists=True)
    moving = {"primary_key": ["id"], "partition_by": ["p"], "options": {"bucket": "-1"}}
    last = lake.create_table("last", COLUMNS, **moving, if_not_exists=True)
    return came, told, last


def main(told: str) -> None:
    """Runs the steps that are not done."""
    given = json.loads(told)
    builder = SparkSession.builder.master(given["master"]).appName("killed")
    for key, value in given["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lake = lakebed.connect(given["lake"], spark=spark, options=given["options"])
    came, once, last = tables(lake)
    done, checkpoint = Path(given["done"]), given["checkpoint"]
    for step in range(int(done.read_text()) if done.exists() else 0, given["steps"]):
        rows = spark.range(0, KEYS, 1, 4).selectExpr("id", f"CAST((id + {step}) % 3 AS INT) p", f"{step} AS step")
        came.write_spark(rows)
        streams = {"once": (once, came.read_stream().drop("rowkind")), "last": (last, came.read_stream())}
        for name, (table, stream) in streams.items():
            table.write_stream(stream, checkpoint=f"{checkpoint}/{name}", trigger="availableNow").awaitTermination()
        _follow(lake, given, step)
        lake.sql(
            f"MERGE INTO last USING (SELECT id FROM last WHERE id < 10) s ON last.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET step = {step}"
        )
        last.compact(full=step % 2 == 1, on_spark=True)
        last.expire_snapshots(retain_max=5, retain_min=2)
        done.write_text(str(step + 1))
    spark.stop()


def _follow(lake: lakebed.Lake, given: dict[str, Any], step: int) -> None:
    """Changes all rows of the database's table in three transactions, and brings the lake up to it."""
    with psycopg.connect(given["database"], autocommit=True) as database:
        for part in range(3):
            database.execute(f"UPDATE kept SET step = {step} WHERE id % 3 = {part}")
        database.execute(f"INSERT INTO kept VALUES ({KEYS + step}, {step}, '') ON CONFLICT DO NOTHING")
        database.execute(f"DELETE FROM kept WHERE id = {KEYS + step - 1}")
    run = lakebed.cdc.sync(
        lake,
        "postgres",
        "default",
        checkpoint=given["cdc_checkpoint"],
        trigger={"availableNow": True},
        source_options=given["source"],
        here_bytes=1000,  # so that tasks write all of it
    )
    run.wait()


if __name__ == "__main__":
    main(sys.argv[1])
