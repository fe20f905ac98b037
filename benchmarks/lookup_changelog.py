"""What a changelog costs: small upserts into a large table with `changelog-producer` = `lookup`.

    python -m benchmarks.lookup_changelog [--profile] [--small] [--json]

A table of 2 M rows (bigint key, two doubles, two texts of 16 characters, a timestamp; one bucket), compacted; then 20
commits of 10 k random upserts each, every one with its compaction and its changelog. The same on 200 k rows: what a
commit costs should follow the rows it brings, not the table (`growth`, at most 1.5 wanted). And the same on 2 M rows
with a full compaction after each commit, which rewrites the bucket and tells the same changes (`gain`, at least 3
wanted). Each is a process of its own; the first commit also makes local copies to look rows up in, so the median and
the mean over all 20 are told. `--profile` shows where the time of the large table goes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile

WORKER = """
import cProfile, json, pstats, statistics, sys, time
import numpy as np
import lakebed, lakebed.rewrite.bucket
from benchmarks.merge_read import make_rows
warehouse, producer, rows, upserts, commits, profiled = *sys.argv[1:3], *map(int, sys.argv[3:7])
rng = np.random.default_rng(7)
first = make_rows("bigint", rng.permutation(rows).astype(np.int64), 0)
table = lakebed.connect(warehouse).create_table(
    "t", first.schema.set(0, first.schema.field("k").with_nullable(False)), primary_key=["k"],
    options={"bucket": "1", "changelog-producer": producer},
)
table.write(first)
table.compact(full=True)
deltas = [make_rows("bigint", rng.choice(rows, upserts, replace=False).astype(np.int64), 1 + n) for n in range(commits)]
start = table.snapshots()[-1].id
class OneThread:  # a profile sees one thread only
    def __init__(self, workers): pass
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def map(self, function, items): return map(function, items)
if profiled:
    lakebed.rewrite.bucket.ThreadPoolExecutor = OneThread
profile = cProfile.Profile()
walls, cpus = [], []
for delta in deltas:
    wall, cpu = time.perf_counter(), time.process_time()
    if profiled:
        profile.enable()
    table.write(delta)
    profile.disable()
    walls.append(time.perf_counter() - wall)
    cpus.append(time.process_time() - cpu)
events = table.changes(start).num_rows
assert events == 2 * upserts * commits, f"{events} events"
if profiled:
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
print(json.dumps({
    "wall_ms": [1000 * statistics.median(walls), 1000 * statistics.mean(walls)],
    "cpu_ms": [1000 * statistics.median(cpus), 1000 * statistics.mean(cpus)],
    "walls_ms": [round(1000 * wall) for wall in walls],
    "cpus_ms": [round(1000 * cpu) for cpu in cpus],
}))
"""


def measure(producer: str, rows: int, upserts: int, commits: int, *, profiled: bool = False) -> dict[str, list[float]]:
    """Median and mean milliseconds of a commit, wall and CPU, in a fresh process."""
    with tempfile.TemporaryDirectory() as warehouse:
        arguments = [warehouse, producer, *map(str, (rows, upserts, commits, int(profiled)))]
        done = subprocess.run([sys.executable, "-c", WORKER, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    if profiled:
        print(done.stderr)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--profile", action="store_true", help="only the large table, with a profile of it")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows, upserts, commits = (20_000, 100, 3) if arguments.small else (2_000_000, 10_000, 20)
    if arguments.profile:
        measure("lookup", rows, upserts, commits, profiled=True)
        return
    found = {
        "lookup, large": measure("lookup", rows, upserts, commits),
        "lookup, a tenth": measure("lookup", rows // 10, upserts, commits),
        "rewriting, large": measure("full-compaction", rows, upserts, commits),
    }
    for name, times in found.items():
        if arguments.json:
            print(json.dumps({"benchmark": "lookup_changelog", "case": name, **times}))
            continue
        (wall, mean_wall), (cpu, mean_cpu) = times["wall_ms"], times["cpu_ms"]
        print(
            f"{name:18} commit: median {wall:.0f} ms wall {cpu:.0f} ms cpu, mean {mean_wall:.0f} / {mean_cpu:.0f}",
            flush=True,
        )
    if not arguments.json:
        large, tenth, rewriting = found.values()
        for unit in ("wall_ms", "cpu_ms"):
            growth = [a / b for a, b in zip(large[unit], tenth[unit], strict=True)]
            gain = [a / b for a, b in zip(rewriting[unit], large[unit], strict=True)]
            print(
                f"{unit[:-3]:4} growth median {growth[0]:.2f} mean {growth[1]:.2f}, "
                f"gain median {gain[0]:.1f} mean {gain[1]:.1f}"
            )


if __name__ == "__main__":
    main()
