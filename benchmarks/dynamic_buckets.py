"""Keys in random order through Spark into a table that finds their buckets itself.

    python -m benchmarks.dynamic_buckets [--keys 5000000] [--commits 20] [--target 500000] [--small] [--json]

Each commit brings its share of new keys, and known ones among them: 30 % of its rows. All rows are made beforehand, as
Parquet files. `writing` is a table that nobody compacts: what a commit costs should follow the rows it brings, not the
table (`growth`: the last quarter of the commits against the second one). `compacting` compacts as commits make it due.
Afterwards every key is looked for in all buckets: it must be in one, with its last value, and in the index of that one;
no bucket may hold more than the target. Last comes what an index of twice as many keys costs in memory, in a process
of its own: 250 MB for 10 M keys are the bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

import lakebed
from benchmarks.spark_peers import SCHEMA, make_rows, tree_cpu_s
from lakebed.definition.partition_spec import key_hashes
from lakebed.metadata.hash_index import HashIndexStore, hash_entries
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader

UPDATES = 0.3
"""Known keys among the rows of a commit."""

INDEX_MEMORY = """
import json, sys
import numpy as np
from lakebed.bucket.dynamic import AssignerRules
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata.hash_index import HashIndexStore
from lakebed.metadata.paths import TablePaths
from lakebed.write.placement.dynamic import HashIndexes
from lakebed.types.binary_row import EMPTY_ROW
directory, keys = sys.argv[1], int(sys.argv[2])
def status_mib(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024
fileio, paths = LocalFileIO(), TablePaths(directory)
store = HashIndexStore(fileio, paths)
entries, rules = {}, AssignerRules(2_000_000)
def some(bucket):
    return np.arange(bucket, keys, 1 + keys // 2_000_000, dtype=np.int64).astype(np.int32) * np.int32(-1640531535)
for bucket in range(1 + keys // 2_000_000):
    entries[bucket] = store.write(EMPTY_ROW, bucket, some(bucket))
before = status_mib("VmRSS")
indexes = HashIndexes(fileio, paths, {EMPTY_ROW: entries}, rules)
known = some(0)[:250_000]
assert not indexes.assign(EMPTY_ROW, known).any()
new = np.arange(keys, keys + 250_000, dtype=np.int64).astype(np.int32) * np.int32(-1640531535)
indexes.assign(EMPTY_ROW, new)
print(json.dumps([before, status_mib("VmRSS"), status_mib("VmHWM")]))
"""


def make_sources(directory: Path, keys: int, commits: int) -> tuple[list[Path], npt.NDArray[np.int64]]:
    """A Parquet file for each commit, and the number of the commit that wrote each key last."""
    rng = np.random.default_rng(5)
    order = rng.permutation(keys)
    last = np.zeros(keys, dtype=np.int64)
    paths = []
    ends = np.linspace(0, keys, commits + 1, dtype=np.int64).tolist()
    for commit, (begin, end) in enumerate(itertools.pairwise(ends)):
        known, new = order[:begin], order[begin:end]
        count = min(len(known), round(len(new) * UPDATES / (1 - UPDATES)))
        chosen = rng.permutation(np.concatenate([new, rng.choice(known, count, replace=False)]) if count else new)
        last[chosen] = commit
        paths.append(directory / f"commit-{commit:03}.parquet")
        rows = make_rows(chosen, commit)
        rows = rows.set_column(4, SCHEMA.field("n"), [np.full(len(chosen), commit, dtype=np.int32)])
        pq.write_table(rows, paths[-1])
    return paths, last


def write(lake: lakebed.Lake, name: str, sources: list[Path], options: dict[str, str]) -> dict[str, list[float]]:
    """Wall and CPU seconds of each commit."""
    table = lake.create_table(name, SCHEMA, primary_key=["k"], options={"bucket": "-1", **options})
    times: dict[str, list[float]] = {"wall_s": [], "cpu_s": []}
    for source in sources:
        wall, cpu = time.perf_counter(), tree_cpu_s(os.getpid())
        table.write_spark(lake.spark.read.parquet(str(source)))
        times["wall_s"].append(round(time.perf_counter() - wall, 2))
        times["cpu_s"].append(round(tree_cpu_s(os.getpid()) - cpu, 2))
    return times


def check(table: lakebed.Table, last: npt.NDArray[np.int64], target: int) -> list[int]:
    """Looks at every row of every bucket and at the whole index; the number of keys of each bucket."""
    context = table._opened.current()
    snapshot = context.stores.snapshots.latest()
    fields = context.schema.fields_of(["k", "n"])
    reader = SplitReader(context, fields, None)
    store = HashIndexStore(context.fileio, context.paths)
    (entries,) = hash_entries(context.stores, snapshot).values()
    found: dict[int, list[npt.NDArray[np.int32]]] = {}
    seen = np.zeros(len(last), dtype=np.int64)
    for split in plan_scan(context, snapshot, None).splits:
        for batch in reader.read(split):
            keys = batch.column("k").to_numpy()
            np.add.at(seen, keys, 1)
            assert (batch.column("n").to_numpy() == last[keys]).all(), "an old row came back"
            found.setdefault(split.bucket, []).append(key_hashes(context, batch))
    assert (seen == 1).all(), f"{np.count_nonzero(seen != 1)} keys are in no bucket, or in several"
    everything = np.concatenate([store.read(entry) for entry in entries.values()])
    assert len(np.unique(everything)) == len(everything), "the index knows two buckets of a key"
    for bucket, parts in found.items():
        assert np.isin(np.concatenate(parts), store.read(entries[bucket])).all(), f"bucket {bucket}: not in its index"
    counts = [entry.row_count for entry in entries.values()]
    assert max(counts) <= target, f"{max(counts)} keys in a bucket"
    return counts


def growth(times: list[float]) -> float:
    """The last quarter of the commits against the second one: the first one pays for what starts with it."""
    quarter = max(1, len(times) // 4)
    return statistics.mean(times[-quarter:]) / statistics.mean(times[quarter : 2 * quarter] or times[:1])


def index_memory(keys: int) -> dict[str, float]:
    """What the keys' index takes: in use, and at most while it is loaded."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, "-c", INDEX_MEMORY, directory, str(keys)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    before, now, peak = json.loads(done.stdout)
    return {"keys": keys, "used_mib": round(now - before, 1), "peak_mib": round(peak - before, 1)}


def report(case: str, found: dict[str, Any], *, as_json: bool) -> None:
    """One line."""
    if as_json:
        print(json.dumps({"benchmark": "dynamic_buckets", "case": case, **found}), flush=True)
    else:
        print(f"{case:11} " + "   ".join(f"{name} {value}" for name, value in found.items()), flush=True)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keys", type=int, default=5_000_000)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--target", type=int, default=500_000, help="rows of a bucket")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    keys, commits, target = arguments.keys, arguments.commits, arguments.target
    if arguments.small:
        keys, commits, target = 20_000, 4, 2_000
    with tempfile.TemporaryDirectory() as directory:
        sources, last = make_sources(Path(directory), keys, commits)
        lake = lakebed.connect(Path(directory) / "warehouse")
        lake.spark.range(1000).mapInArrow(lambda batches: batches, "id long").count()
        shared = {"dynamic-bucket.target-row-num": str(target)}
        for case, options in {"writing": {"write-only": "true"}, "compacting": {}}.items():
            times = write(lake, case, sources, shared | options)
            counts = check(lake.table(case), last, target)
            found: dict[str, Any] = {f"growth_{unit}": round(growth(times[unit]), 2) for unit in times}
            report(case, {"buckets": counts, **times, **found}, as_json=arguments.json)
        lake.spark.stop()
    report("memory", index_memory(2 * keys), as_json=arguments.json)


if __name__ == "__main__":
    main()
