"""Write of an append table and its full read, against pypaimon on the same rows in the same run.

    python -m benchmarks.append_table [--rows 2_000_000] [--repeats 3] [--small] [--json]

Each measurement runs in a process of its own; the median counts. `ratio` is the peer's time divided by ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.peers import peer_python

MEASURE = """
import json, os, sys, time
def timed(action):
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, time.perf_counter() - wall, time.process_time() - cpu
"""

OURS = (
    MEASURE
    + """
import pyarrow as pa, lakebed
rows = pa.ipc.open_file(sys.argv[1]).read_all()
table = lakebed.connect(sys.argv[2]).create_table("t", rows.schema)
_, write_wall, write_cpu = timed(lambda: table.write(rows))
read, read_wall, read_cpu = timed(table.to_arrow)
assert read.num_rows == rows.num_rows
"""
)

PEER = (
    MEASURE
    + """
import pyarrow as pa
from pypaimon import CatalogFactory, Schema
rows = pa.ipc.open_file(sys.argv[1]).read_all()
catalog = CatalogFactory.create({"warehouse": sys.argv[2]})
catalog.create_database("default", True)
catalog.create_table("default.t", Schema.from_pyarrow_schema(rows.schema), False)
table = catalog.get_table("default.t")
def write():
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(rows)
    commit.commit(writer.prepare_commit())
    writer.close(); commit.close()
def read():
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())
_, write_wall, write_cpu = timed(write)
read, read_wall, read_cpu = timed(read)
assert read.num_rows == rows.num_rows
"""
)

REPORT = """
print(json.dumps({"write": [write_wall, write_cpu], "read": [read_wall, read_cpu]}))
"""


def make_rows(count: int) -> pa.Table:
    """Seven columns as an event table has them."""
    rng = np.random.default_rng(7)
    digits = rng.integers(ord("0"), ord("9") + 1, count * 16, dtype=np.uint8)
    borders = np.arange(0, 16 * count + 1, 16, dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(borders), pa.py_buffer(digits)])
    names = pa.array([f"category-{n:07d}" for n in range(1000)]).take(pa.array(rng.integers(0, 1000, count)))
    return pa.table(
        {
            "id": np.arange(count, dtype=np.int64),
            "kind": rng.integers(0, 50, count).astype(np.int32),
            "at": pa.array(1_700_000_000_000_000 + np.sort(rng.integers(0, 10**12, count)), pa.timestamp("us")),
            "price": rng.random(count),
            "amount": rng.integers(0, 10_000, count).astype(np.int32),
            "category": names,
            "token": texts,
        }
    )


def measure(python: str, program: str, rows: Path) -> dict[str, list[float]]:
    """One run in a fresh process and a fresh warehouse."""
    with tempfile.TemporaryDirectory() as warehouse:
        done = subprocess.run(
            [python, "-c", program + REPORT, str(rows), warehouse], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    count = 20_000 if arguments.small else arguments.rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.arrow"
        rows = make_rows(count)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        runs: dict[str, list[dict[str, list[float]]]] = {"lakebed": [], "pypaimon": []}
        for _ in range(1 if arguments.small else arguments.repeats):
            runs["lakebed"].append(measure(sys.executable, OURS, path))
            runs["pypaimon"].append(measure(peer_python("pypaimon"), PEER, path))
    report = {}
    for step in ("write", "read"):
        for n, clock in enumerate(("wall", "cpu")):
            ours, peer = (statistics.median(run[step][n] for run in runs[who]) for who in ("lakebed", "pypaimon"))
            report[f"{step} {clock}"] = {"lakebed_s": ours, "pypaimon_s": peer, "ratio": peer / ours}
    if arguments.json:
        print(json.dumps({"benchmark": "append_table", "rows": count, "results": report}))
        return
    print(f"{count:,} rows, median of {len(runs['lakebed'])}")
    for name, row in report.items():
        ours, peer = row["lakebed_s"], row["pypaimon_s"]
        print(f"{name:11} lakebed {ours:.3f} s   pypaimon {peer:.3f} s   ratio {row['ratio']:.2f}")


if __name__ == "__main__":
    main()
