"""One Spark application with several queries into a few tables, which dies where it is told to.

    python -m tests.spark.stream_worker PLACE [PHASE NUMBER]

A phase is a point of the sink; the application kills itself, with everything it started, when it comes there for the
given time. It says `ready` when all queries run. Nothing of the product knows of phases: its functions are wrapped
here. The input has no end and is always the same, so what a table must hold follows from the number of its last batch.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lakebed
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.snapshot import SnapshotStore
from lakebed.rewrite.bucket import Compactor
from lakebed.spark.session import java_home
from lakebed.spark.stream.micro_batch import BatchWriter
from lakebed.table.follow_up import FollowUp
from lakebed.table.table import Table
from lakebed.write.commit import WriteCommit

ROWS = 20
"""Rows of each micro-batch."""
KEYS = 7
_INPUT = ["value as n", f"cast(value % {KEYS} as int) as k", "cast(value % 10 as int) as v"]
_KEPT = {"snapshot.num-retained.min": "3", "snapshot.num-retained.max": "6"}
_KEYED = {"bucket": "2", "num-sorted-run.compaction-trigger": "3", **_KEPT}
TABLES: dict[str, tuple[dict[str, str], list[str], dict[str, str]]] = {
    "events": ({"n": "BIGINT", "k": "INT", "v": "INT"}, [], {"bucket": "-1", **_KEPT}),
    "sums": (
        {"k": "INT NOT NULL", "v": "BIGINT", "c": "BIGINT"},
        ["k"],
        {
            **_KEYED,
            "merge-engine": "aggregation",
            "fields.v.aggregate-function": "sum",
            "fields.c.aggregate-function": "sum",
            "changelog-producer": "lookup",
        },
    ),
    "wide": (
        {"k": "INT NOT NULL", "a": "INT", "ga": "BIGINT", "b": "INT", "gb": "BIGINT"},
        ["k"],
        {
            **_KEYED,
            "merge-engine": "partial-update",
            "fields.ga.sequence-group": "a",
            "fields.gb.sequence-group": "b",
        },
    ),
}
QUERIES = {
    "events": ("events", ["n", "k", "v"]),
    "sums": ("sums", ["k", "cast(v as bigint) as v", "1L as c"]),
    "left": ("wide", ["k", "v as a", "n as ga", "cast(null as int) as b", "cast(null as bigint) as gb"]),
    "right": ("wide", ["k", "cast(null as int) as a", "cast(null as bigint) as ga", "v as b", "n as gb"]),
}
"""For each query its table, and what it makes of the input: number, key and value."""
SETS = ("x", "y")
"""There are two tables and two queries of each kind: starting them costs less than starting Spark once more."""

PHASES: dict[str, tuple[type, str, bool]] = {
    "a batch begins": (BatchWriter, "write", False),
    "tasks are done": (BatchWriter, "_answers", True),
    "files are written": (WriteCommit, "run", False),
    "manifests are written": (SnapshotStore, "publish", False),
    "a snapshot is published": (SnapshotStore, "publish", True),
    "a batch is committed": (WriteCommit, "run", True),
    "compacted files are written": (Compactor, "_commit", False),
    "a bucket is compacted": (Compactor, "run", True),
    "a file is deleted": (LocalFileIO, "delete", True),
    "a batch is followed up": (FollowUp, "run", True),
    "a batch ends": (BatchWriter, "write", True),
}
"""For each phase the function at which it is, and whether it comes after it."""


def create(place: Path) -> None:
    """Empty tables."""
    lake = lakebed.connect(place / "warehouse")
    for mark, (name, (columns, key, options)) in itertools.product(SETS, TABLES.items()):
        lake.create_table(f"{name}_{mark}", columns, primary_key=key, options=options)


def checkpoint_of(place: Path, query: str, mark: str) -> Path:
    """Where a query keeps its progress."""
    return place / "checkpoints" / f"{query}_{mark}"


def die_at(phase: str, number: int) -> None:
    """Lets this process and its children die at a phase."""
    owner, name, is_after = PHASES[phase]
    real: Callable[..., Any] = getattr(owner, name)
    times = itertools.count(1)
    lock = threading.Lock()

    def pass_by() -> None:
        with lock:
            if next(times) >= number:
                print(f"died as {phase}", flush=True)
                os.killpg(os.getpgid(0), signal.SIGKILL)

    @functools.wraps(real)
    def wrapped(*given: Any, **named: Any) -> Any:
        if not is_after:
            pass_by()
        result = real(*given, **named)
        if is_after:
            pass_by()
        return result

    setattr(owner, name, wrapped)


def lean_session() -> Any:
    """A session that starts quickly and needs little."""
    from pyspark.sql import SparkSession

    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "700m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.log.level": "ERROR",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.master("local[2]").appName("stream worker")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start(lake: lakebed.Lake, spark: Any, place: Path) -> list[Any]:
    """All queries."""
    queries = []
    for mark, (name, (table, columns)) in itertools.product(SETS, QUERIES.items()):
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
        frame = rows.option("startTimestamp", 0).load().selectExpr(*_INPUT).selectExpr(*columns)
        target: Table = lake.table(f"{table}_{mark}")
        checkpoint = checkpoint_of(place, name, mark)
        queries.append(target.write_stream(frame, checkpoint=checkpoint, trigger="100 milliseconds"))
    return queries


def main(place: str, phase: str = "", number: str = "1") -> None:
    """Runs until it dies."""
    spark = lean_session()
    lake = lakebed.connect(f"{place}/warehouse", spark=spark)
    if phase:
        die_at(phase, int(number))
    queries = start(lake, spark, Path(place))
    print("ready", flush=True)
    for query in queries:
        query.awaitTermination()  # raises if one of them fails


if __name__ == "__main__":
    main(*sys.argv[1:])
