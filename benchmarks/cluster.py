"""Upsert, compaction, scans and a stream on a Spark cluster with the lake in S3: with one worker and with two.

    python -m benchmarks.cluster [--rows 2000000] [--workers 1 --workers 2] [--small] [--json]

The cluster is that of `tests/cluster`: the driver, each worker and the store have networks of their own, whose bytes
are counted, sent and received. Seconds of each step, megabytes of each host, and the driver's share of what the workers
have moved. Each worker has one core. `scan` is read by Spark's own reader where Hadoop's module for S3 can be had,
`scan (arrow)` by ours. Everybody has started and run one job before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

COLUMNS = {"id": "BIGINT NOT NULL", "v": "STRING", "x": "BIGINT"}
ROW = ["id", "concat(sha2(CAST(id AS STRING), 256), md5(CAST(id AS STRING))) AS v", "{x} AS x"]
BUCKETS = 4

Measured = dict[str, dict[str, Any]]
"""Of each step, and of all: `seconds`, `mb` of each host, and `driver_share`."""


class Clock:
    """Measures steps on a bed."""

    def __init__(self, bed: Any) -> None:
        self._bed = bed
        self.found: Measured = {}
        self._seconds, self._moved = 0.0, Counter[str]()

    def step(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs a step; what it gave."""
        before, start = self._bed.traffic(), time.perf_counter()
        given = run()
        seconds, after = time.perf_counter() - start, self._bed.traffic()
        moved = Counter({host: after[host] - before[host] for host in before})
        self._seconds += seconds
        self._moved += moved
        self.found[name] = _told(seconds, moved)
        return given

    def all_steps(self) -> Measured:
        """What was found, with the sum of it."""
        return {**self.found, "total": _told(self._seconds, self._moved)}


def _told(seconds: float, moved: Mapping[str, int]) -> dict[str, Any]:
    by_workers = sum(size for host, size in moved.items() if host != "driver")
    return {
        "seconds": round(seconds, 2),
        "mb": {host: round(size / 1e6, 2) for host, size in moved.items()},
        "driver_share": round(moved["driver"] / by_workers, 4) if by_workers else None,
    }


def _rows(spark: Any, start: int, stop: int, x: int, tasks: int) -> Any:
    return spark.range(start, stop, 1, tasks).selectExpr(*(column.format(x=x) for column in ROW))


def _scan(table: Any) -> list[Any]:
    found: list[Any] = table.to_spark().selectExpr("count(*)", "sum(x)", "sum(length(v))").collect()
    return found


def measure(bed: Any, spark: Any, rows: int, workers: int) -> Measured:
    """All steps with that many workers; what they leave is checked."""
    from lakebed.spark import read

    lake, clock, tasks = bed.lake(f"bench-{workers}", spark), Clock(bed), 2 * workers
    options = {"bucket": str(BUCKETS), "write-only": "true"}
    keyed = lake.create_table("keyed", COLUMNS, primary_key=["id"], options=options)
    source = lake.create_table("source", COLUMNS, options={"bucket": "-1"})
    target = lake.create_table("target", COLUMNS, options={"bucket": "-1"})
    warm = lake.create_table("warm", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    warm.write_spark(_rows(spark, 0, 100_000, 0, tasks))
    _scan(warm)
    upserted = rows // 4
    clock.step("load", lambda: keyed.write_spark(_rows(spark, 0, rows, 1, tasks)))
    clock.step("upsert", lambda: keyed.write_spark(_rows(spark, 0, upserted, 2, tasks)))
    merging = clock.step("scan, merging", lambda: _scan(keyed))
    clock.step("compaction", lambda: keyed.with_options({"write-only": "false"}).compact(full=True, on_spark=True))
    answers = [clock.step("scan", lambda: _scan(keyed))]
    with mock.patch.object(read, "spark_prefix", return_value=None):
        answers.append(clock.step("scan (arrow)", lambda: _scan(keyed)))
    assert answers == [merging, merging], (merging, answers)
    assert merging[0][:2] == (rows, rows + upserted), merging
    source.write_spark(_rows(spark, 0, rows, 1, tasks))

    def stream() -> None:
        checkpoint = str(bed.home / f"checkpoint-{workers}")
        arrived = source.read_stream().drop("rowkind")
        target.write_stream(arrived, checkpoint=checkpoint, trigger="availableNow").awaitTermination()

    clock.step("stream", stream)
    assert _scan(target)[0][:2] == (rows, rows)
    return clock.all_steps()


def run(rows: int, workers: int) -> Measured:
    """Starts a cluster, and measures."""
    from tests.cluster.bed import Bed

    # As in an environment that is activated: Spark looks for `python3` on the driver, too.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with (
        tempfile.TemporaryDirectory(prefix="lakebed-cluster-") as home,
        Bed(Path(home) / "bed", workers, has_store_apart=True) as bed,
    ):
        spark = bed.session(**bed.hadoop())
        try:
            return measure(bed, spark, rows, workers)
        finally:
            spark.stop()


def report(rows: int, workers: int, found: Measured, *, as_json: bool) -> None:
    """One line for each step, or one for all."""
    if as_json:
        print(json.dumps({"benchmark": "cluster", "rows": rows, "workers": workers, "steps": found}), flush=True)
        return
    for name, step in found.items():
        told = "  ".join(f"{host} {size:.1f} MB" for host, size in step["mb"].items())
        share = "" if step["driver_share"] is None else f"  (driver {step['driver_share']:.2%})"
        print(f"{workers} workers  {name:13} {step['seconds']:6.1f} s   {told}{share}", flush=True)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", action="append", type=int, help="how many; 1, then 2, if left out")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    from tests.compat.judges.environments import JudgeUnavailable

    rows = 50_000 if arguments.small else arguments.rows
    for workers in arguments.workers or ([1] if arguments.small else [1, 2]):
        try:
            report(rows, workers, run(rows, workers), as_json=arguments.json)
        except JudgeUnavailable as missing:
            print(f"the cluster is not measured: {missing}", file=sys.stderr)
            report(rows, workers, {}, as_json=arguments.json)


if __name__ == "__main__":
    main()
