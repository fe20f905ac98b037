"""Peak memory of compacting and of streaming one large bucket whose files overlap.

    python -m benchmarks.memory [--rows 20000000] [--engine deduplicate ...] [--small] [--json]

The bucket is filled by ten commits of rows / 10 rows each, with keys from all over the range, never compacted. Each
measurement is a process of its own: the peak of its resident memory, and what it had before it began. The bound that
counts is 1 GiB for 20 M rows; it must not grow with the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile

import numpy as np

import lakebed
from benchmarks.merge_read import AGGREGATION, make_rows

COMMITS = 10
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": AGGREGATION,
}
MEASURE = """
import json, sys
import lakebed
table = lakebed.connect(sys.argv[1]).table("t")
def peak_mib():  # of this program alone: what `getrusage` says includes the process that started it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
before = peak_mib()
"""
ACTIONS = {
    "to_batches": "rows = sum(batch.num_rows for batch in table.to_batches())",
    "compact": "table.compact(full=True); rows = sum(file.row_count for file in table.scan().files)",
}
REPORT = "\nprint(json.dumps([before, peak_mib(), rows]))"


def fill(warehouse: str, options: dict[str, str], rows: int) -> int:
    """Makes the table; returns how many keys it has."""
    rng = np.random.default_rng(1)
    sample = make_rows("bigint", np.arange(1), 0)
    options = {"bucket": "1", "write-only": "true", **options}
    table = lakebed.connect(warehouse).create_table("t", sample.schema, primary_key=["k"], options=options)
    is_used = np.zeros(rows, dtype=np.bool_)
    for commit in range(COMMITS):
        keys = rng.choice(rows, rows // COMMITS, replace=False)
        is_used[keys] = True
        table.write(make_rows("bigint", keys, commit))
    return int(np.count_nonzero(is_used))


def measure(warehouse: str, action: str, keys: int) -> tuple[float, float]:
    """MiB before and at the peak, in a fresh process."""
    code = MEASURE + ACTIONS[action] + REPORT
    done = subprocess.run([sys.executable, "-c", code, warehouse], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    before, peak, rows = json.loads(done.stdout.splitlines()[-1])
    assert rows == keys, f"{action} came to {rows} rows instead of {keys}"
    return before, peak


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only these")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 20_000 if arguments.small else arguments.rows
    for engine in arguments.engine or ENGINES:
        with tempfile.TemporaryDirectory() as warehouse:
            keys = fill(warehouse, ENGINES[engine], rows)
            for action in ACTIONS:  # compaction comes last: it changes the table
                before, peak = measure(warehouse, action, keys)
                if arguments.json:
                    found = {"benchmark": "memory", "case": f"{engine}, {action}", "rows": rows}
                    print(json.dumps({**found, "before_mib": before, "peak_mib": peak}))
                else:
                    print(
                        f"{engine:15} {action:11} {rows:>10} rows   peak {peak:6.0f} MiB (before {before:.0f})",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
