"""What a micro-batch costs in a table: time per batch, and the time until its rows are visible.

    python -m benchmarks.stream_latency [--batches 24] [--rows 1000 --rows 50000] [--peer paimon] [--small] [--json]

Micro-batches of 1,000 and of 50,000 rows, nine in ten of them with keys that are there, go into a table of 8 buckets
without changelog (`none`) and with one (`lookup`), by `t.write_stream` and by `writeStream.format("lakebed")`, and as a
measure into plain Parquet files by a `foreachBatch` of the same session. The sinks take turns, a few batches each, so
that what else the machine does hits all of them; the first two batches of each turn do not count. `ratio` is the median
time of a batch divided by that of plain Parquet in the same run: of the whole batch with Spark's own log (`trigger`),
and of the sink alone (`add`). Then files come one by one, a second apart: seconds until their rows are visible. The
Paimon connector is measured the same way in its own process, against the plain Parquet of its own session.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.spark_peers import Worker, available, make_rows

TURNS = 3
IGNORED = 2
KEYS = 200_000
SINKS = {"none": {}, "lookup": {"changelog-producer": "lookup"}}
PARQUET = "parquet"


def make_batches(directory: Path, rows: int, count: int) -> list[Path]:
    """One file for each micro-batch, with keys that come again and again."""
    rng = np.random.default_rng(rows)
    directory.mkdir(parents=True)
    paths = []
    for number in range(count):
        keys = rng.choice(KEYS, rows, replace=False)
        paths.append(directory / f"{number:05}.parquet")
        pq.write_table(make_rows(keys, number), paths[-1])
    return paths


def measure(
    worker: Worker, home: Path, rows: int, batches: int, follows: int, *, by_format: bool
) -> dict[str, dict[str, Any]]:
    """Times of all sinks of an engine for batches of that size."""
    sinks = {f"{name}_{rows}": options for name, options in SINKS.items()}
    if by_format:
        sinks[f"none_{rows}_format"] = {}
    for sink, options in sinks.items():
        worker.step("create", sink=sink, options=options)
    found: dict[str, dict[str, list[float]]] = {sink: {"trigger": [], "add": []} for sink in [PARQUET, *sinks]}
    per_turn = max(1, batches // TURNS) + IGNORED
    files = make_batches(home / f"batches-{rows}", rows, per_turn * TURNS)
    for turn in range(TURNS):
        for sink in found:
            source = home / f"source-{sink}-{rows}"
            source.mkdir(exist_ok=True)
            for file in files[turn * per_turn : (turn + 1) * per_turn]:
                shutil.copyfile(file, source / file.name)
            for times in worker.step("run", sink=sink, source=str(source))[0][IGNORED:]:
                found[sink]["trigger"].append(times["triggerExecution"])
                found[sink]["add"].append(times["addBatch"])
    result: dict[str, dict[str, Any]] = {}
    # On a machine that is busy with other things files come more slowly, or they would only wait for each other.
    interval_s = max(1.0, 2 * max(statistics.median(times["trigger"]) for times in found.values()) / 1000)
    for sink, times in found.items():
        given = [str(file) for file in files[:follows]]
        source = f"{home}/follow-{sink}-{rows}"
        waits = worker.step("follow", sink=sink, source=source, files=given, interval_s=interval_s)[0][IGNORED:]
        name = sink.replace(f"_{rows}", "")
        result[name] = {
            "trigger_ms": statistics.median(times["trigger"]),
            "add_ms": statistics.median(times["add"]),
            "visible_p50_s": float(np.percentile(waits, 50)),
            "visible_p99_s": float(np.percentile(waits, 99)),
        }
    plain = result[PARQUET]
    for values in result.values():
        values["ratio_trigger"] = values["trigger_ms"] / plain["trigger_ms"]
        values["ratio_add"] = values["add_ms"] / plain["add_ms"]
    return result


def report(engine: str, rows: int, found: dict[str, dict[str, Any]], *, as_json: bool) -> None:
    """One line for each sink."""
    if as_json:
        print(json.dumps({"benchmark": "stream_latency", "engine": engine, "rows": rows, "sinks": found}), flush=True)
        return
    for sink, values in found.items():
        print(
            f"{engine:8} {rows:6} rows  {sink:12} trigger {values['trigger_ms']:6.0f} ms (ratio "
            f"{values['ratio_trigger']:4.2f})   add {values['add_ms']:6.0f} ms (ratio {values['ratio_add']:4.2f})   "
            f"visible p50 {values['visible_p50_s']:5.2f} s  p99 {values['visible_p99_s']:5.2f} s",
            flush=True,
        )


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--batches", type=int, default=24)
    parser.add_argument("--follows", type=int, default=20, help="files that come one by one")
    parser.add_argument("--rows", type=int, action="append", help="rows of a batch; 1000 and 50000 by default")
    parser.add_argument("--peer", action="append", choices=["paimon"], help="measure the connector too")
    parser.add_argument("--format", action="store_true", help='measure writeStream.format("lakebed") too')
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    sizes = [100] if arguments.small else arguments.rows or [1000, 50_000]
    batches, follows = (1, 4) if arguments.small else (arguments.batches, arguments.follows)
    peers, missing = available(arguments.peer or [], build=not arguments.small)
    for name, reason in missing.items():
        print(f"{name} is not measured: {reason}", file=sys.stderr)
    settings: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as directory:
        for engine in ["lakebed", *peers]:
            home = Path(directory) / engine
            warehouse = home / "warehouse"
            warehouse.mkdir(parents=True)
            with Worker(engine, warehouse, settings, script="stream_worker.py") as worker:
                settings = settings or worker.settings
                for rows in sizes:
                    by_format = arguments.format and engine == "lakebed"
                    found = measure(worker, home, rows, batches, follows, by_format=by_format)
                    report(engine, rows, found, as_json=arguments.json)


if __name__ == "__main__":
    main()
