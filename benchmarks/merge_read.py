"""Full read of a primary-key table whose files overlap, against pypaimon and pypaimon-rust on the same files.

    python -m benchmarks.merge_read [--case deduplicate ...] [--repeats 3] [--plain] [--small] [--json]

2 M rows, then 5 upserts of 200 k rows, never compacted. Each measurement is the second read of a process of its own;
the median counts, in wall time and in CPU time. What the readers find is compared once, value by value. `ratio` is the
peer's time divided by ours. The plain Python reader of pypaimon takes minutes: it is measured with `--plain` only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import lakebed
from benchmarks.peers import peer_python

MEASURE = """
import hashlib, json, sys, time
import pyarrow as pa, pyarrow.compute as pc
def digest(batches):  # of all rows in key order, so that two readers can be compared
    table = pa.Table.from_batches(batches)
    keys = [(name, "ascending") for name in table.column_names if name.startswith("k")]
    table = table.sort_by(keys).combine_chunks()
    found = hashlib.sha256()
    for column in table.columns:
        for chunk in column.chunks:
            found.update(str(chunk.type).encode())
            if chunk.null_count:  # what lies below a null is nobody's business
                found.update(pc.is_valid(chunk).cast(pa.uint8()).buffers()[1])
                chunk = chunk.drop_null()
            assert chunk.null_count == 0 and chunk.offset == 0
            for buffer in chunk.buffers()[1:]:
                found.update(buffer)
    return found.hexdigest()
def timed(action):
    action()  # the first read of a process also imports modules and fills memory pools
    wall, cpu = time.perf_counter(), time.process_time()
    batches = action()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows = sum(batch.num_rows for batch in batches)
    print(json.dumps([wall, cpu, rows, digest(batches) if sys.argv[2] == "check" else None]))
"""
READERS = {
    "lakebed": """
import lakebed
table = lakebed.connect(sys.argv[1]).table("t")
timed(lambda: table.to_arrow().to_batches())
""",
    "rust": """
from pypaimon_rust.datafusion import PaimonCatalog
table = PaimonCatalog({"warehouse": sys.argv[1]}).get_table(("default", "t"))
def read():
    builder = table.new_read_builder()
    return builder.new_read().read(builder.new_scan().plan().splits())
timed(read)
""",
    "pypaimon": """
from pypaimon import CatalogFactory
table = CatalogFactory.create({"warehouse": sys.argv[1]}).get_table("default.t")
def read():
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_batches()
timed(read)
""",
}


@dataclass(frozen=True)
class Case:
    """A table definition."""

    options: dict[str, str] = field(default_factory=dict)
    buckets: int = 1
    key: str = "bigint"
    null_share: float = 0.0
    """Which part of the values that are not part of the key is null."""


AGGREGATION = {
    "merge-engine": "aggregation",
    "fields.a.aggregate-function": "sum",
    "fields.b.aggregate-function": "max",
}
CASES = {
    "deduplicate": Case(),
    "deduplicate, 4 buckets": Case(buckets=4),
    "deduplicate, string key": Case(key="string"),
    "deduplicate, composite key": Case(key="composite"),
    "partial-update": Case({"merge-engine": "partial-update"}),
    "partial-update, half nulls": Case({"merge-engine": "partial-update"}, null_share=0.5),
    "aggregation": Case(AGGREGATION),
}


def key_columns(kind: str, keys: np.ndarray) -> dict[str, pa.Array]:
    """Key columns for key numbers."""
    if kind == "bigint":
        return {"k": pa.array(keys)}
    if kind == "string":
        return {"k": pa.array(np.char.mod("key-%012d", keys).tolist())}
    return {"k": pa.array(keys // 1000), "k2": pa.array((keys % 1000).astype(np.int32))}


def make_rows(kind: str, keys: np.ndarray, seed: int) -> pa.Table:
    """Rows with two doubles, two texts of 16 characters and a timestamp."""
    rng = np.random.default_rng(seed)
    count = len(keys)

    def texts() -> pa.Array:
        digits = rng.integers(ord("0"), ord("9") + 1, count * 16, dtype=np.uint8)
        borders = np.arange(0, 16 * count + 1, 16, dtype=np.int32)
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(borders), pa.py_buffer(digits)])

    return pa.table(
        {
            **key_columns(kind, keys),
            "a": rng.random(count),
            "b": rng.random(count),
            "s": texts(),
            "t": texts(),
            "at": pa.array(rng.integers(0, 10**15, count), pa.timestamp("us")),
        }
    )


def with_nulls(rows: pa.Table, share: float, seed: int) -> pa.Table:
    """The rows with so many of their values missing, other ones in each column."""
    rng = np.random.default_rng(seed)
    for place, name in enumerate(rows.column_names):
        if share and not name.startswith("k"):
            is_null = pa.array(rng.random(rows.num_rows) < share)
            column = pc.if_else(is_null, pa.scalar(None, rows.schema.field(name).type), rows.column(name))
            rows = rows.set_column(place, name, column)
    return rows


def fill(warehouse: str, case: Case, rows: int) -> None:
    """The table: one large commit and five small ones on top."""
    rng = np.random.default_rng(1)
    first = with_nulls(make_rows(case.key, rng.permutation(rows), 2), case.null_share, 3)
    key = [name for name in first.column_names if name.startswith("k")]
    options = {"bucket": str(case.buckets), "write-only": "true", **case.options}
    table = lakebed.connect(warehouse).create_table("t", first.schema, primary_key=key, options=options)
    table.write(first)
    for seed in range(5):
        upserts = make_rows(case.key, rng.choice(rows, rows // 10, replace=False), 10 + seed)
        table.write(with_nulls(upserts, case.null_share, 20 + seed))


def measure(reader: str, warehouse: str, rows: int, *, check: bool) -> tuple[float, float, str | None]:
    """Wall and CPU seconds of one read in a fresh process, and with `check` a digest of what it read."""
    python = sys.executable if reader == "lakebed" else peer_python(reader)
    done = subprocess.run(
        [python, "-c", MEASURE + READERS[reader], warehouse, "check" if check else ""],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    wall, cpu, found, digest = json.loads(done.stdout.splitlines()[-1])
    assert found == rows, f"{reader} found {found} rows instead of {rows}"
    return wall, cpu, digest


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", action="append", choices=CASES, help="only these")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="measure pypaimon's plain Python reader too")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 20_000 if arguments.small else 2_000_000
    readers = ["lakebed", "rust", *(["pypaimon"] if arguments.plain else [])]
    for name in arguments.case or CASES:
        with tempfile.TemporaryDirectory() as warehouse:
            fill(warehouse, CASES[name], rows)
            runs: dict[str, list[tuple[float, float, str | None]]] = {reader: [] for reader in readers}
            for repeat in range(1 if arguments.small else arguments.repeats):
                for reader in readers:
                    runs[reader].append(measure(reader, warehouse, rows, check=repeat == 0))
        assert len({found[0][2] for found in runs.values()}) == 1, "the readers found different rows"
        times = {
            reader: [statistics.median(times) for times in list(zip(*found, strict=True))[:2]]
            for reader, found in runs.items()
        }
        if arguments.json:
            print(json.dumps({"benchmark": "merge_read", "case": name, "rows": rows, "wall_cpu_s": times}))
            continue
        ours = times["lakebed"]
        parts = [f"lakebed {ours[0]:.2f} s wall {ours[1]:.2f} s cpu"]
        for reader in readers[1:]:
            wall, cpu = times[reader]
            parts.append(f"{reader} {wall:.2f} / {cpu:.2f} (ratio {wall / ours[0]:.2f} / {cpu / ours[1]:.2f})")
        print(f"{name:27} " + "   ".join(parts), flush=True)


if __name__ == "__main__":
    main()
