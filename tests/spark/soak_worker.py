"""One of the processes that work on a table at the same time, until a file tells them to stop.

    python -m tests.spark.soak_worker ROLE PLACE

What a process has to say at the end is its last line, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakebed
from lakebed.table.table import Table

KEYS = 200
ROWS = 50
"""Rows of each commit."""
OPTIONS = {
    "bucket": "2",
    "write-only": "true",
    "merge-engine": "aggregation",
    "fields.v.aggregate-function": "sum",
    "changelog-producer": "lookup",
    "num-sorted-run.stop-trigger": "12",
}


def create(place: Path) -> Table:
    """A table of sums, which its writers do not compact."""
    return lakebed.connect(place / "warehouse").create_table(
        "t", {"k": "INT NOT NULL", "v": "BIGINT"}, primary_key=["k"], options=OPTIONS
    )


def open_table(place: Path) -> Table:
    return lakebed.connect(place / "warehouse").table("t")


def added(number: int) -> list[int]:
    """The keys to which a commit of the plain writer adds one."""
    return [(number * 37 + i * 3) % KEYS for i in range(ROWS)]


def stops(place: Path, role: str) -> Callable[[], bool]:
    """Whether a role is to end."""
    return (place / f"stop {role}").exists


def write(place: Path) -> int:
    """Commits with numbers of its own; how many there were."""
    table, number = open_table(place), 0
    is_over = stops(place, "write")
    while not is_over():
        rows = pa.table({"k": pa.array(added(number), pa.int32()), "v": pa.array([1] * ROWS, pa.int64())})
        with table.writer(commit_user="plain", commit_identifier=number + 1) as writer:
            writer.write(rows)
            writer.commit()
        number += 1
        time.sleep(0.5)
    return number


def stream(place: Path) -> int:
    """A Spark query; how many batches it wrote."""
    from tests.spark.stream_worker import lean_session

    spark = lean_session()
    table = lakebed.connect(place / "warehouse", spark=spark).table("t")
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
    frame = source.option("startTimestamp", 0).load().selectExpr(f"cast(value % {KEYS} as int) as k", "1L as v")
    query = table.write_stream(frame, checkpoint=place / "checkpoint", trigger="700 milliseconds")
    is_over = stops(place, "stream")
    while not is_over():
        if query.exception() is not None:
            raise AssertionError(str(query.exception()))
        time.sleep(0.1)
    while query.status["isTriggerActive"] and query.isActive:
        time.sleep(0.01)  # between two batches, so that the log tells how many there were
    error = query.exception()
    query.stop()
    batches = len([entry for entry in (place / "checkpoint" / "commits").iterdir() if entry.name.isdigit()])
    spark.stop()
    assert error is None, error
    return batches


def expire(place: Path) -> int:
    """Keeps as few snapshots as it may; how many it removed."""
    table, count = open_table(place), 0
    is_over = stops(place, "expire")
    while not is_over():
        count += len(table.expire_snapshots(retain_max=4, retain_min=2).snapshots)
        time.sleep(0.3)
    return count


def read(place: Path) -> dict[str, int]:
    """Follows the changes, strictly; the rows that they come to."""
    table = open_table(place)
    changes = table.follow(options={"consumer-id": "reader"})
    rows: dict[str, int] = {}
    is_over = stops(place, "read")
    while True:
        last = is_over()
        for told in changes:
            take_in(rows, told)
        changes.acknowledge()
        if last:
            return rows
        time.sleep(0.1)


def take_in(rows: dict[str, int], told: pa.Table) -> None:
    """Applies changes, each of which must fit the row as it was told before."""
    for change in told.to_pylist():
        key = str(change["k"])
        if change["rowkind"] in ("-U", "-D"):
            assert rows.pop(key) == change["v"], change
        else:
            assert key not in rows, change
            rows[key] = change["v"]


ROLES: dict[str, Callable[[Path], Any]] = {role.__name__: role for role in (write, stream, expire, read)}

if __name__ == "__main__":
    done = ROLES[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps(done), flush=True)
