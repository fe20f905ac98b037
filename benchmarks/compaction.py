"""Full compaction of a table whose files overlap, against pyarrow rewriting the same files without merging anything.

    python -m benchmarks.compaction [--case deduplicate ...] [--repeats 3] [--small] [--json]

The tables are those of `merge_read`: 2 M rows, then 5 upserts of 200 k rows. pyarrow reads the data files row group by
row group and writes all rows of a bucket to one file, with the same compression and no dictionaries. Each measurement
is a process of its own on a fresh copy of the table; the median counts, in wall time and in CPU time. `ratio` is
pyarrow's time divided by ours: what merging, statistics, syncing and the commit leave of the plain speed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.merge_read import CASES, fill

MEASURE = """
import glob, json, os, sys, time
def timed(action):
    wall, cpu = time.perf_counter(), time.process_time()
    rows = action()
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, rows]))
"""
WORKERS = {
    "lakebed": """
import lakebed
table = lakebed.connect(sys.argv[1]).table("t")
def compact():
    table.compact(full=True)
    return sum(file.row_count for file in table.scan().files)
timed(compact)
""",
    "pyarrow": """
import pyarrow.parquet as pq
def rewrite():
    rows = 0
    for bucket in glob.glob(sys.argv[1] + "/default.db/t/bucket-*"):
        files = [pq.ParquetFile(name, pre_buffer=False) for name in glob.glob(bucket + "/*.parquet")]
        with pq.ParquetWriter(bucket + "/out", files[0].schema_arrow, compression="zstd", compression_level=1,
                              use_dictionary=False, store_schema=False) as writer:
            for file in files:
                for group in range(file.num_row_groups):
                    read = file.read_row_group(group)
                    writer.write_table(read, row_group_size=len(read))
                    rows += len(read)
    return rows
timed(rewrite)
""",
}


def measure(worker: str, filled: str, expected_rows: int) -> tuple[float, float]:
    """Wall and CPU seconds in a fresh process on a copy of the warehouse."""
    with tempfile.TemporaryDirectory() as directory:
        warehouse = str(Path(directory) / "warehouse")
        shutil.copytree(filled, warehouse)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE + WORKERS[worker], warehouse], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    wall, cpu, rows = json.loads(done.stdout.splitlines()[-1])
    assert rows == expected_rows, f"{worker} wrote {rows} rows instead of {expected_rows}"
    return wall, cpu


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", action="append", choices=CASES, help="only these")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 20_000 if arguments.small else 2_000_000
    for name in arguments.case or CASES:
        runs: dict[str, list[tuple[float, float]]] = {worker: [] for worker in WORKERS}
        with tempfile.TemporaryDirectory() as warehouse:
            fill(warehouse, CASES[name], rows)
            for _ in range(1 if arguments.small else arguments.repeats):
                runs["lakebed"].append(measure("lakebed", warehouse, rows))
                runs["pyarrow"].append(measure("pyarrow", warehouse, rows + 5 * (rows // 10)))
        times = {worker: [statistics.median(run[n] for run in found) for n in (0, 1)] for worker, found in runs.items()}
        if arguments.json:
            print(json.dumps({"benchmark": "compaction", "case": name, "rows": rows, "wall_cpu_s": times}))
            continue
        (wall, cpu), (plain_wall, plain_cpu) = times["lakebed"], times["pyarrow"]
        print(
            f"{name:27} lakebed {wall:.2f} s wall {cpu:.2f} s cpu   pyarrow {plain_wall:.2f} / {plain_cpu:.2f} "
            f"(ratio {plain_wall / wall:.2f} / {plain_cpu / cpu:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
