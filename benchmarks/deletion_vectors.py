"""A scan before and after 1 % of a table's rows were deleted by marking them, here and on Spark.

    python -m benchmarks.deletion_vectors [--rows 10000000] [--repeats 3] [--here] [--small] [--json]

An append table of 10 M rows of 7 columns in files of at most 1 M rows. The delete is every row with `n` < 10, about 1 %
of each file; it must rewrite no data file. `count` is the quickest scan there is: `sum(x)`; `all` takes every column.
Here: through `to_batches`. On Spark: through `to_spark`, with both cores. Median seconds; `ratio` is after divided by
before, at most 1.5 wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc

import lakebed
from benchmarks.spark_peers import SCHEMA, make_rows, tree_cpu_s

FILE_ROWS = 1_000_000
OPTIONS = {"deletion-vectors.enabled": "true"}
COLUMNS: dict[str, list[str]] = {"sum": ["x"], "all": SCHEMA.names}


def fill(lake: lakebed.Lake, rows: int) -> lakebed.Table:
    """The table, one commit for each file."""
    table = lake.create_table("t", SCHEMA, options=OPTIONS)
    for start in range(0, rows, FILE_ROWS):
        table.write(make_rows(np.arange(start, min(start + FILE_ROWS, rows)), start))
    return table


def scans_here(table: lakebed.Table) -> dict[str, Callable[[], int]]:
    """Reads in this process, by name; each tells the sum of a column."""

    def scan(columns: list[str]) -> int:
        return sum(pc.sum(batch.column("x")).as_py() or 0 for batch in table.to_batches(columns))

    return {f"here, {name}": lambda columns=columns: scan(columns) for name, columns in COLUMNS.items()}  # type: ignore[misc]


def scans_on_spark(table: lakebed.Table) -> dict[str, Callable[[], int]]:
    """Reads as Spark jobs, by name."""

    def scan(columns: list[str]) -> int:
        frame = table.to_spark(columns)
        others = [f"count({name})" for name in columns if name != "x"]
        return int(frame.selectExpr("sum(x)", *others).collect()[0][0])

    return {f"spark, {name}": lambda columns=columns: scan(columns) for name, columns in COLUMNS.items()}  # type: ignore[misc]


def timed(scan: Callable[[], int], repeats: int) -> tuple[int, float, float]:
    """What it tells, and its median wall and CPU seconds; the first run is not counted."""
    answer, walls, cpus = scan(), [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), tree_cpu_s(os.getpid())
        assert scan() == answer
        walls.append(time.perf_counter() - wall)
        cpus.append(tree_cpu_s(os.getpid()) - cpu)
    return answer, statistics.median(walls), statistics.median(cpus)


def delete(table: lakebed.Table) -> dict[str, Any]:
    """Deletes 1 %, and looks at what came of the data files."""
    before = {file.file_name for file in table.scan().files}
    rows = sum(file.row_count for file in table.scan().files)
    start = time.perf_counter()
    table.delete_where(pc.field("n") < 10)
    seconds = time.perf_counter() - start
    assert {file.file_name for file in table.scan().files} == before, "data files were rewritten"
    marked = sum(place.cardinality or 0 for split in table.scan().splits for place in split.vectors.values())
    return {"wall_s": round(seconds, 2), "marked": round(marked / rows, 4), "rewritten_files": 0}


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="without Spark")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows, repeats = (120_000, 1) if arguments.small else (arguments.rows, arguments.repeats)

    def report(case: str, **found: Any) -> None:
        if arguments.json:
            print(json.dumps({"benchmark": "deletion_vectors", "case": case, "rows": rows, **found}), flush=True)
        else:
            print(f"{case:12} " + "   ".join(f"{name} {value}" for name, value in found.items()), flush=True)

    with tempfile.TemporaryDirectory() as directory:
        lake = lakebed.connect(directory)
        table = fill(lake, rows)
        scans = scans_here(table) | ({} if arguments.here else scans_on_spark(table))
        before = {name: timed(scan, repeats) for name, scan in scans.items()}
        report("delete", **delete(table))
        for name, scan in scans.items():
            answer, wall, cpu = timed(scan, repeats)
            assert answer < before[name][0]
            report(
                name,
                before_s=round(before[name][1], 3),
                after_s=round(wall, 3),
                ratio=round(wall / before[name][1], 2),
                cpu_ratio=round(cpu / max(before[name][2], 0.01), 2),
            )
        if not arguments.here:
            lake.spark.stop()


if __name__ == "__main__":
    main()
