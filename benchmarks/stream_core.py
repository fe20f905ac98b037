"""The same as `stream_thousand` without Spark: micro-batches committed by the core alone, in CPU time.

    python -m benchmarks.stream_core [--batches 1000] [--rows 1000] [--keys 50000] [--place DIR] [--small] [--json]

`batch` is the mean CPU time of the last tenth of the batches divided by that of the first (without ten that warm up).
After each of the last twelve batches everything is read: since compactions come every few batches, one read alone would
say little. `read` is their mean, and `worst_read` the largest of them, divided by the read after a full compaction.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time

import numpy as np
import pyarrow as pa

import lakebed
from benchmarks.stream_thousand import COLUMNS, WARM_UP

READS = 12


def rows_of(number: int, rows: int, keys: int) -> pa.Table:
    """The rows of a micro-batch, keys in no order."""
    values = np.arange(number * rows, (number + 1) * rows)
    mixed = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return pa.table(
        {
            "k": pa.array((mixed % np.uint64(keys)).astype(np.int64)),
            "x": pa.array((values % 1000).astype(np.int32)),
            "d": values / 7.0,
            "s1": pa.array(np.char.zfill(values.astype(str), 12)),
            "s2": pa.array(np.char.zfill((values * 31).astype(str), 12)),
        }
    )


def read_cpu_s(table: lakebed.Table) -> float:
    """The best of some reads of everything."""
    times = []
    for _ in range(6):
        began = time.process_time()
        table.to_arrow()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--place", help="where the table is made; on a disk of memory nothing waits for fsync")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    batches = 30 if arguments.small else arguments.batches
    times: list[float] = []
    reads: list[float] = []
    with tempfile.TemporaryDirectory(dir=arguments.place) as directory:
        table = lakebed.connect(directory).create_table("t", COLUMNS, primary_key=["k"], options={"bucket": "8"})
        for number in range(batches):
            rows = rows_of(number, arguments.rows, arguments.keys)
            began = time.process_time()
            with table.writer(commit_user="stream", commit_identifier=number + 1) as writer:
                writer.write(rows)
            times.append(time.process_time() - began)
            if number >= batches - READS:
                reads.append(read_cpu_s(table))
        table.compact(full=True)
        compacted = read_cpu_s(table)
    edge = max(1, len(times) // 10)
    first, last = statistics.mean(times[WARM_UP : WARM_UP + edge]), statistics.mean(times[-edge:])
    found = {
        "keys": arguments.keys,
        "batches": len(times),
        "first_ms": first * 1000,
        "last_ms": last * 1000,
        "batch": last / first,
        "compacted_read_ms": compacted * 1000,
        "read": statistics.mean(reads) / compacted,
        "worst_read": max(reads) / compacted,
    }
    if arguments.json:
        print(json.dumps({"benchmark": "stream_core", **found}))
    else:
        print(
            f"{len(times)} batches, {arguments.keys} keys: first {edge} {first * 1000:.0f} ms, last {edge} "
            f"{last * 1000:.0f} ms (ratio {last / first:.2f}); compacted read {compacted * 1000:.0f} ms, before that "
            f"{found['read']:.2f} times as long, {found['worst_read']:.2f} times at worst"
        )


if __name__ == "__main__":
    main()
