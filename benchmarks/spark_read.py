"""Scan with filter and aggregate on Spark: against Spark's own Parquet reader, and against the Paimon connector.

    python -m benchmarks.spark_read [--rows 20000000] [--repeats 3] [--ours] [--small] [--json]

A table of 7 columns in 8 buckets, fully compacted: Lakebed, as SQL and as `t.to_spark`, against `spark.read.parquet` on
the same files in the same session; at most 1.3 times its time is the goal. Then 5 % of the rows are upserted and not
compacted: Lakebed against the Paimon connector, which reads the same files in a process of its own.

Everybody answers once before the clocks start, then they take turns; the median counts, in wall time and in CPU time
of all processes of an engine. The answers are compared. `ratio` is the peer's time divided by Lakebed's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lakebed
from benchmarks.spark_peers import SCHEMA, Worker, available, make_rows
from lakebed.table.table import Table

CHUNK_ROWS = 1_000_000
AGGREGATES = ["count(*)", "sum(x)", "max(at)", "max(d)"]
QUERY = f"SELECT {', '.join(AGGREGATES)} FROM {{table}} WHERE n < 500"
FRAME = {"columns": ["x", "at", "d"], "condition": ["n", 500], "aggregates": AGGREGATES}

Way = Callable[[], tuple[Any, float, float]]


def fill(warehouse: Path, rows: int) -> Table:
    """The table, compacted to one run in each bucket."""
    options = {"bucket": "8", "write-only": "true"}
    table = lakebed.connect(warehouse).create_table("t", SCHEMA, primary_key=["k"], options=options)
    chunks = max(1, rows // CHUNK_ROWS)
    rng = np.random.default_rng(1)
    for chunk in range(chunks):  # each with keys from the whole range, so that compaction has to merge them
        keys = np.arange(chunk, rows, chunks)
        rng.shuffle(keys)
        table.write(make_rows(keys, chunk))
    table.compact(full=True)
    return table


def upsert(table: Table, rows: int) -> None:
    """New values for one row in twenty, all over the table."""
    keys = np.random.default_rng(2).choice(rows, rows // 20, replace=False)
    table.write(make_rows(keys, 1_000_000))


def file_paths(table: Table) -> list[str]:
    """The table's data files."""
    root = Path(table.location)
    return [str(next(root.glob(f"bucket-*/{file.file_name}"))) for file in table.scan().files]


def measure(ways: dict[str, Way], repeats: int) -> dict[str, list[float]]:
    """Median wall and CPU seconds of each way."""
    answers = {name: way()[0] for name, way in ways.items()}
    assert len({json.dumps(answer) for answer in answers.values()}) == 1, f"the answers differ: {answers}"
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            answer, wall, cpu = way()
            assert answer == answers[name], f"{name} answers {answer} instead of {answers[name]}"
            runs[name].append((wall, cpu))
    return {name: [statistics.median(values) for values in zip(*found, strict=True)] for name, found in runs.items()}


def report(case: str, rows: int, times: dict[str, list[float]], *, as_json: bool) -> None:
    """One line."""
    if as_json:
        print(json.dumps({"benchmark": "spark_read", "case": case, "rows": rows, "wall_cpu_s": times}), flush=True)
        return
    ours = times["lakebed"]
    parts = [f"lakebed {ours[0]:.2f} s wall {ours[1]:.2f} s cpu"]
    for name, (wall, cpu) in list(times.items())[1:]:
        parts.append(f"{name} {wall:.2f} / {cpu:.2f} (ratio {wall / ours[0]:.2f} / {cpu / ours[1]:.2f})")
    print(f"{case:14} " + "   ".join(parts), flush=True)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ours", action="store_true", help="measure no peers")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 200_000 if arguments.small else arguments.rows
    repeats = 1 if arguments.small else arguments.repeats
    peers, missing = available([] if arguments.ours else ["paimon"], build=not arguments.small)
    for name, reason in missing.items():
        print(f"{name} is not measured: {reason}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as directory:
        warehouse = Path(directory) / "warehouse"
        table = fill(warehouse, rows)
        with Worker("lakebed", warehouse) as ours:
            own: dict[str, Way] = {
                "lakebed": lambda: ours.step("query", text=QUERY),
                "to_spark": lambda: ours.step("frame", **FRAME),
            }
            paths = file_paths(table)
            plain: dict[str, Way] = {"parquet": lambda: ours.step("files", text=QUERY, paths=paths)}
            report("compacted", rows, measure({**own, **plain}, repeats), as_json=arguments.json)
            upsert(table, rows)
            if not peers:
                report("5 % upserted", rows, measure(own, repeats), as_json=arguments.json)
                return
            with Worker("paimon", warehouse, ours.settings) as paimon:
                theirs: dict[str, Way] = {"paimon": lambda: paimon.step("query", text=QUERY)}
                report("5 % upserted", rows, measure({**own, **theirs}, repeats), as_json=arguments.json)


if __name__ == "__main__":
    main()
