"""A thousand micro-batches: whether they get slower, and whether reading their table does.

    python -m benchmarks.stream_thousand [--batches 1000] [--rows 1000] [--changelog lookup] [--small] [--json]

Micro-batches of 1,000 rows, one after the other, into a table of 8 buckets that compacts and expires as it does by
default. `batch` is the median time of the last 100 divided by that of the first 100 (without the very first ten, in
which the JVM warms up); `read` is the time of `t.to_arrow()` divided by that after a full compaction.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import lakebed

WARM_UP = 10
COLUMNS = {"k": "BIGINT NOT NULL", "x": "INT", "d": "DOUBLE", "s1": "STRING", "s2": "STRING"}


def rows_of(spark: Any, rows: int, keys: int) -> Any:
    """An endless stream: one batch after the other with so many rows each, keys again and again."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
    return source.selectExpr(
        f"pmod(xxhash64(value), {keys}) as k",
        "cast(value % 1000 as int) as x",
        "value / 7.0D as d",
        "lpad(cast(value as string), 12, '0') as s1",
        "lpad(cast(value * 31 as string), 12, '0') as s2",
    )


def run(table: lakebed.Table, frame: Any, checkpoint: Path, batches: int) -> list[float]:
    """Milliseconds of each batch, in order."""
    found: dict[int, float] = {}
    query = table.write_stream(frame, checkpoint=checkpoint)
    while len(found) < batches:
        time.sleep(1)
        if query.exception() is not None:
            raise SystemExit(str(query.exception()))
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                found[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
    query.stop()
    return [found[number] for number in sorted(found)]


def read_s(table: lakebed.Table) -> float:
    """The best of some reads of everything."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        table.to_arrow()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument(
        "--keys", type=int, default=1_000_000, help="different keys; with fewer the table stays smaller"
    )
    parser.add_argument("--changelog", default="none", choices=["none", "input", "lookup", "full-compaction"])
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    batches = 30 if arguments.small else arguments.batches
    with tempfile.TemporaryDirectory() as directory:
        lake = lakebed.connect(f"{directory}/warehouse")
        options = {"bucket": "8", "changelog-producer": arguments.changelog}
        table = lake.create_table("t", COLUMNS, primary_key=["k"], options=options)
        began = time.perf_counter()
        times = run(table, rows_of(lake.spark, arguments.rows, arguments.keys), Path(directory, "checkpoint"), batches)
        wall_s = time.perf_counter() - began
        files = sum(len(split.files) for split in table.scan().splits)
        before = read_s(table)
        table.compact(full=True)
        after = read_s(table)
        lake.spark.stop()
    edge = max(1, len(times) // 10)
    first, last = statistics.median(times[WARM_UP : WARM_UP + edge]), statistics.median(times[-edge:])
    found = {
        "batches": len(times),
        "wall_s": wall_s,
        "first_ms": first,
        "last_ms": last,
        "batch": last / first,
        "files": files,
        "read_s": before,
        "compacted_read_s": after,
        "read": before / after,
    }
    if arguments.json:
        print(json.dumps({"benchmark": "stream_thousand", "changelog": arguments.changelog, **found}))
    else:
        print(
            f"{len(times)} batches in {wall_s:.0f} s: first {edge} {first:.0f} ms, last {edge} {last:.0f} ms (ratio "
            f"{last / first:.2f}); {files} live files; read {before:.3f} s, compacted {after:.3f} s (ratio "
            f"{before / after:.2f})"
        )


if __name__ == "__main__":
    main()
