"""Rows per second from key column to bucket number, against pypaimon's fixed-bucket writer on the same rows.

    python -m benchmarks.bucket_hash [--rows 10_000_000] [--alone] [--small] [--json]

pypaimon runs in an interpreter of its own, on fewer rows because it goes row by row; the buckets of those rows must be
the same on both sides, or the benchmark fails. With `--alone` only lakebed is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.peers import peer_python
from lakebed.bucket.fixed import assign_buckets
from lakebed.types import logical as lt
from lakebed.types.logical import DataType

NUM_BUCKETS = 100
REPEATS = 5

# Reads the rows from an Arrow file, asks the extractor of pypaimon's writer for their buckets, prints time and buckets.
PEER = """
import json, sys, time
import pyarrow as pa
from pypaimon import Schema
from pypaimon.schema.table_schema import TableSchema
from pypaimon.write.row_key_extractor import FixedBucketRowKeyExtractor

batch = pa.ipc.open_file(sys.argv[1]).get_batch(0)
schema = Schema.from_pyarrow_schema(batch.schema, options={"bucket": sys.argv[2], "bucket-key": "key"})
extractor = FixedBucketRowKeyExtractor(TableSchema.from_schema(0, schema))
extractor._extract_buckets_batch(batch.slice(0, 1000))
begin = time.perf_counter()
buckets = extractor._extract_buckets_batch(batch)
print(json.dumps({"seconds": time.perf_counter() - begin, "buckets": buckets}))
"""


def keys(rows: int) -> dict[str, tuple[DataType, pa.Array]]:
    """The key columns that are measured."""
    rng = np.random.default_rng(42)
    digits = rng.integers(ord("0"), ord("9") + 1, rows * 16, dtype=np.uint8)
    borders = np.arange(0, 16 * rows + 1, 16, dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(borders), pa.py_buffer(digits)])
    return {
        "bigint": (lt.BIGINT, pa.array(rng.integers(-(1 << 63), 1 << 63, rows))),
        "string16": (lt.STRING, texts),
        # Not compared, but part of daily life: lengths that differ from row to row.
        "string0to40": (lt.STRING, _ragged(rng, digits, rows // 10)),
    }


def _ragged(rng: np.random.Generator, digits: np.ndarray, rows: int) -> pa.Array:
    borders = np.zeros(rows + 1, np.int32)
    lengths = rng.integers(0, 41, rows)
    np.cumsum(lengths, out=borders[1:])
    data = np.resize(digits, max(int(borders[-1]), 1))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(borders), pa.py_buffer(data)])


def our_seconds(column: pa.Array, data_type: DataType) -> float:
    """The best time of several."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.perf_counter()
        assign_buckets([column], [data_type], NUM_BUCKETS)
        best = min(best, time.perf_counter() - begin)
    return best


def peer_seconds(python: str, column: pa.Array, data_type: DataType) -> float:
    """pypaimon's time for these rows; fails when it puts any row elsewhere than we do."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "keys.arrow")
        batch = pa.record_batch({"key": column})
        with pa.ipc.new_file(path, batch.schema) as writer:
            writer.write_batch(batch)
        command = [python, "-c", PEER, str(path), str(NUM_BUCKETS)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if answer["buckets"] != assign_buckets([column], [data_type], NUM_BUCKETS).tolist():
        sys.exit("pypaimon assigns other buckets to the same rows")
    return float(answer["seconds"])


def main() -> None:
    """Runs all key columns and prints one line, or one JSON object, for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows for lakebed")
    parser.add_argument("--peer-rows", type=int, default=200_000, help="rows for pypaimon")
    parser.add_argument("--small", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    arguments = parser.parse_args()
    rows = 100_000 if arguments.small else arguments.rows
    peer_rows = min(2_000 if arguments.small else arguments.peer_rows, rows)
    for name, (data_type, column) in keys(rows).items():
        result: dict[str, object] = {"benchmark": "bucket_hash", "key": name, "rows": len(column)}
        ours = len(column) / our_seconds(column, data_type)
        result["rows_per_second"] = round(ours)
        if not arguments.alone:
            sample = column.slice(0, peer_rows)
            peer = len(sample) / peer_seconds(peer_python("pypaimon"), sample, data_type)
            result |= {"peer_rows_per_second": round(peer), "times_faster": round(ours / peer, 1)}
        if arguments.json:
            print(json.dumps(result))
        else:
            print("  ".join(f"{label}={value:,}" if isinstance(value, (int, float)) else str(value)
                            for label, value in result.items()))  # fmt: skip


if __name__ == "__main__":
    main()
