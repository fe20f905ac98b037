"""`t.why(key)` on a large table: how long one key takes, and how many files are opened for it.

    python -m benchmarks.why [--rows 20000000] [--json]

The table has most of its rows on the lowest level and some newer ones above; keys are looked for all over it. Times are
of the wall clock, after the first key.
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

BATCH = 2_000_000
KEYS = 20


def made(lake: lakebed.Lake, rows: int) -> lakebed.Table:
    """A table with all keys once, compacted, and a hundredth of them once more."""
    options = {"bucket": "4", "write-only": "true"}
    table = lake.create_table("t", {"id": "BIGINT", "a": "BIGINT", "s": "STRING"}, primary_key=["id"], options=options)
    rng = np.random.default_rng(1)

    def batch(keys: np.ndarray) -> pa.Table:
        texts = pa.array(keys % 1000).cast(pa.string())
        return pa.table({"id": keys, "a": rng.integers(0, 10**9, len(keys)), "s": texts})

    with table.writer() as writer:
        for begin in range(0, rows, BATCH):
            writer.write(batch(np.arange(begin, min(rows, begin + BATCH))))
    table.with_options({"write-only": "false"}).compact(full=True)
    for _ in range(3):
        table.write(batch(np.unique(rng.integers(0, rows, rows // 300))))
    return table


def measured(rows: int) -> dict[str, float]:
    """Seconds for a key, files opened and files there are."""
    with tempfile.TemporaryDirectory(prefix="lakebed-why-") as directory:
        table = made(lakebed.connect(directory), rows)
        keys = np.random.default_rng(2).integers(0, rows, KEYS + 1).tolist()
        began = time.perf_counter()
        table.why(keys[0])
        cold, taken, opened = time.perf_counter() - began, [], []
        for key in keys[1:]:
            began = time.perf_counter()
            found = table.why(key)
            taken.append(time.perf_counter() - began)
            assert found[0].row is not None
            assert found[0].row["id"] == key
            opened.append(len(found.files.read))
        return {
            "rows": rows,
            "cold_s": cold,
            "warm_median_s": statistics.median(taken),
            "warm_most_s": max(taken),
            "files_opened_most": max(opened),
            "files": found.files.all,
        }


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.rows // (100 if given.small else 1))
    if given.json:
        print(json.dumps({"benchmark": "why", **found}))
        return
    for name, value in found.items():
        print(f"{name:20} {value:14,.3f}")


if __name__ == "__main__":
    main()
