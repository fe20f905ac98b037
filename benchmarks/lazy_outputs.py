"""Peak memory of streaming a large table into others through Arrow's C stream.

    python -m benchmarks.lazy_outputs [--rows 10000000] [--warehouse DIR]

The table has a primary key and four buckets with two runs each, so that rows are merged while they stream. Each
consumer is a process of its own and goes through all rows; told are its peak of resident memory and its time. The goal
is 500 MiB for 10 M rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa

import lakebed

GOAL_MIB = 500
BEGIN = """
import json, sys, time
import lakebed
t = lakebed.connect(sys.argv[1]).table("t")
def peak_mib():  # of this program alone: what `getrusage` says includes the process that started it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
began = time.perf_counter()
"""
CONSUMERS = {
    "pyarrow": "import pyarrow as pa\nrows = sum(b.num_rows for b in pa.RecordBatchReader.from_stream(t))",
    "duckdb": "import duckdb\nrows = duckdb.sql('SELECT count(*), sum(v), max(s) FROM t').fetchall()[0][0]",
    "duckdb, to_duckdb": "rows = t.to_duckdb().aggregate('count(*), sum(v), max(s)').fetchall()[0][0]",
    "polars": "import polars as pl\n"
    "rows = t.scan_polars().select(pl.len(), pl.col('v').sum(), pl.col('s').max())"
    ".collect(engine='streaming').item(0, 0)",
}
END = "\nprint(json.dumps([peak_mib(), time.perf_counter() - began, rows]))"


def fill(warehouse: str, rows: int) -> None:
    """Makes the table, in pieces, so that this process stays small as well."""
    columns = {"k": "BIGINT NOT NULL", "v": "BIGINT", "f": "DOUBLE", "s": "STRING"}
    options = {"bucket": "4", "write-only": "true"}
    table = lakebed.connect(warehouse).create_table("t", columns, primary_key=["k"], options=options)
    piece = 1_000_000
    for step in (1, 2):
        with table.writer() as writer:
            for start in range(0, rows, piece):
                keys = np.arange(start, min(start + piece, rows), step)
                texts = pa.array(keys % 100_003).cast(pa.string())
                writer.write(pa.table({"k": keys, "v": keys * 7, "f": keys / 3, "s": texts}))


def measure(warehouse: str, code: str) -> tuple[float, float, int]:
    """Peak MiB, seconds and rows of a consumer, in a fresh process."""
    program = BEGIN + code + END
    done = subprocess.run([sys.executable, "-c", program, warehouse], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    peak, seconds, rows = json.loads(done.stdout.splitlines()[-1])
    return peak, seconds, rows


def main() -> None:
    """Fills a table and lets each consumer have it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--warehouse", help="a directory that has been filled before, or is to be kept")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        warehouse = arguments.warehouse or directory
        if "t" not in lakebed.connect(warehouse):
            began = time.perf_counter()
            fill(warehouse, arguments.rows)
            print(f"filled with {arguments.rows:,} rows in {time.perf_counter() - began:.0f} s")
        for name, code in CONSUMERS.items():
            peak, seconds, rows = measure(warehouse, code)
            verdict = "within" if peak < GOAL_MIB else "ABOVE"
            print(f"{name:18} {rows:>12,} rows  {seconds:6.1f} s  peak {peak:6.0f} MiB  ({verdict} {GOAL_MIB})")


if __name__ == "__main__":
    main()
