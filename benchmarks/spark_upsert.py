"""Load and upserts on Spark, each followed by a query: against the Paimon connector and Delta Lake's MERGE.

    python -m benchmarks.spark_upsert [--rows 10000000] [--peer paimon] [--ours] [--small] [--json]

One load of 10 M rows into a table of 8 buckets, then 10 upserts of 500 k rows (`rows` / 20), nine in ten of them with
keys that are there; after each, `SELECT count(*), sum(x)`. All engines read the same Parquet files, one engine after
the other, each in a process of its own, whose session has started and run one job before the clock starts. Lakebed and
Paimon compact as they do by default. What the queries answer is compared. Wall seconds, and CPU seconds of all
processes of an engine; `ratio` is the peer's total divided by Lakebed's.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.spark_peers import Worker, available, make_rows

QUERY = "SELECT count(*), sum(x) FROM {table}"
UPSERTS = 10
LOAD_FILES = 8

Times = dict[str, list[float]]
"""Wall and CPU seconds of `load`, of all `upserts`, of all `queries`, and `total`."""


def make_sources(directory: Path, rows: int, upserts: int) -> list[Path]:
    """What to load, and what to upsert: a directory of Parquet files, then one file each."""
    rng = np.random.default_rng(1)
    first = directory / "load"
    first.mkdir()
    keys = rng.permutation(rows)
    for part, chosen in enumerate(np.array_split(keys, LOAD_FILES)):
        pq.write_table(make_rows(chosen, part), first / f"part-{part}.parquet")
    count = rows // 20
    sources = [first]
    for upsert in range(upserts):
        old = rng.choice(rows, count - count // 10, replace=False)
        new = rows + upsert * count + np.arange(count // 10)
        chosen = rng.permutation(np.concatenate([old, new]))
        sources.append(directory / f"upsert-{upsert}.parquet")
        pq.write_table(make_rows(chosen, 100 + upsert), sources[-1])
    return sources


def run(worker: Worker, sources: list[Path]) -> tuple[Times, list[Any]]:
    """The times, and what the queries answered."""
    times: Times = {part: [0.0, 0.0] for part in ("load", "upserts", "queries", "total")}
    answers = []

    def step(part: str, do: str, **arguments: Any) -> Any:
        answer, wall, cpu = worker.step(do, **arguments)
        for name in (part, "total"):
            times[name] = [times[name][0] + wall, times[name][1] + cpu]
        return answer

    for number, source in enumerate(sources):
        step("upserts" if number else "load", "upsert" if number else "load", source=str(source))
        answers.append(step("queries", "query", text=QUERY)[0])
    return times, answers


def report(rows: int, times: dict[str, Times], *, as_json: bool) -> None:
    """One line for each engine."""
    if as_json:
        print(json.dumps({"benchmark": "spark_upsert", "rows": rows, "wall_cpu_s": times}))
        return
    ours = times["lakebed"]["total"]
    for name, found in times.items():
        parts = [f"{part} {wall:.1f} / {cpu:.1f}" for part, (wall, cpu) in found.items()]
        ratios = [there / here for there, here in zip(found["total"], ours, strict=True)]
        print(f"{name:8} " + "   ".join(parts) + f"   (ratio {ratios[0]:.2f} / {ratios[1]:.2f})", flush=True)


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--peer", action="append", choices=["paimon", "delta"], help="only these")
    parser.add_argument("--ours", action="store_true", help="measure no peers")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 100_000 if arguments.small else arguments.rows
    wanted = [] if arguments.ours else arguments.peer or ["paimon", "delta"]
    peers, missing = available(wanted, build=not arguments.small)
    for name, reason in missing.items():
        print(f"{name} is not measured: {reason}", file=sys.stderr)
    times: dict[str, Times] = {}
    answers: dict[str, list[Any]] = {}
    settings: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        sources = make_sources(Path(directory), rows, 1 if arguments.small else UPSERTS)
        for name in ["lakebed", *peers]:
            warehouse = Path(directory) / name / "warehouse"
            warehouse.mkdir(parents=True)
            with Worker(name, warehouse, settings) as worker:
                settings = settings or worker.settings
                times[name], answers[name] = run(worker, sources)
    for name, found in answers.items():
        assert found == answers["lakebed"], f"{name} answers {found}, lakebed {answers['lakebed']}"
    report(rows, times, as_json=arguments.json)


if __name__ == "__main__":
    main()
