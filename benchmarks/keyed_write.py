"""Writing a primary-key table, against pypaimon and the native writer of pypaimon-rust on the same rows.

    python -m benchmarks.keyed_write [--case deduplicate ...] [--repeats 3] [--plain] [--small] [--json]

The rows of `merge_read`: one commit of 2 M rows in random key order, then five of 200 k rows. They are handed over as a
stream of batches of 100 k rows that is read from a file meanwhile, so the peak of a process is the writer's own doing.
Each measurement is a process of its own that has imported everything before its clock starts; the median counts. None
of them loads pandas, which pyarrow would do if it is installed, unless the writer needs it.
`ratio` is the peer's time (or memory) divided by ours. pypaimon's plain Python writer is measured with `--plain` only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import lakebed
from benchmarks.merge_read import AGGREGATION, make_rows
from benchmarks.peers import peer_python

BATCH_ROWS = 100_000

MEASURE = """
import json, re, sys, time
class NoPandas:  # pyarrow loads it (55 MB) wherever it happens to be installed
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, NoPandas)
import pyarrow as pa
warehouse, sources = sys.argv[1], sys.argv[2:]
def batches(source):
    with pa.OSFile(source) as file:
        yield from pa.ipc.open_stream(file)
def peak_mb():  # not ru_maxrss, which starts with the memory of the process that forked this one
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
def timed(write):
    wall, cpu = time.perf_counter(), time.process_time()
    for source in sources:
        write(batches(source))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps([wall, cpu, peak_mb()]))
"""
PEER = """
def write(batches):
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    for batch in batches:
        write.{write_batch}(batch)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()
timed(write)
"""
WRITERS = {
    "lakebed": """
import lakebed
table = lakebed.connect(warehouse).table("t")
def write(batches):
    with table.writer() as writer:
        for batch in batches:
            writer.write(batch)
timed(write)
""",
    "rust": """
from pypaimon_rust.datafusion import PaimonCatalog
table = PaimonCatalog({"warehouse": warehouse}).get_table(("default", "t"))
"""
    + PEER.format(write_batch="write_arrow"),
    "pypaimon": """
sys.meta_path.remove(NoPandas)  # it can not do without
from pypaimon import CatalogFactory
table = CatalogFactory.create({"warehouse": warehouse}).get_table("default.t")
"""
    + PEER.format(write_batch="write_arrow_batch"),
}
SMALL_BUFFER = {"write-buffer-size": "64 mb"}
CASES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "deduplicate, 64 mb buffer": SMALL_BUFFER,
    "aggregation": AGGREGATION,
    "aggregation, 64 mb buffer": {**AGGREGATION, **SMALL_BUFFER},
}


def make_sources(directory: Path, rows: int) -> list[str]:
    """One stream of batches for each commit."""
    rng = np.random.default_rng(1)
    keys = [rng.permutation(rows), *(rng.choice(rows, rows // 10, replace=False) for _ in range(5))]
    paths = []
    for number, chosen in enumerate(keys):
        table = make_rows("bigint", chosen, number)
        paths.append(str(directory / f"commit-{number}.arrows"))
        with pa.OSFile(paths[-1], "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table, max_chunksize=BATCH_ROWS)
    return paths


def measure(writer: str, options: dict[str, str], sources: list[str], rows: int) -> tuple[float, float, float]:
    """Wall and CPU seconds and peak memory (MB) of writing all commits into a new table in a fresh process."""
    python = sys.executable if writer == "lakebed" else peer_python(writer)
    with tempfile.TemporaryDirectory() as warehouse:
        with pa.OSFile(sources[0]) as file:
            schema = pa.ipc.open_stream(file).schema
        options = {"bucket": "1", "write-only": "true", **options}
        table = lakebed.connect(warehouse).create_table("t", schema, primary_key=["k"], options=options)
        done = subprocess.run(
            [python, "-c", MEASURE + WRITERS[writer], warehouse, *sources], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        found = table.to_arrow().num_rows
        assert found == rows, f"{writer} wrote {found} rows instead of {rows}"
    wall, cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu, peak


def main() -> None:
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--case", action="append", choices=CASES, help="only these")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ours", action="store_true", help="measure no peers")
    parser.add_argument("--plain", action="store_true", help="measure pypaimon's plain Python writer too")
    parser.add_argument("--small", action="store_true", help="a quick run that only shows that it works")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    arguments = parser.parse_args()
    rows = 20_000 if arguments.small else 2_000_000
    writers = ["lakebed", *([] if arguments.ours else ["rust"]), *(["pypaimon"] if arguments.plain else [])]
    with tempfile.TemporaryDirectory() as directory:
        sources = make_sources(Path(directory), rows)
        for name in arguments.case or CASES:
            runs: dict[str, list[tuple[float, float, float]]] = {writer: [] for writer in writers}
            for _ in range(1 if arguments.small else arguments.repeats):
                for writer in writers:
                    runs[writer].append(measure(writer, CASES[name], sources, rows))
            medians = {
                writer: [statistics.median(run[n] for run in found) for n in range(3)] for writer, found in runs.items()
            }
            report(name, rows, medians, as_json=arguments.json)


def report(name: str, rows: int, medians: dict[str, list[float]], *, as_json: bool) -> None:
    """One line."""
    if as_json:
        print(json.dumps({"benchmark": "keyed_write", "case": name, "rows": rows, "wall_cpu_s_peak_mb": medians}))
        return
    ours = medians["lakebed"]
    parts = [f"lakebed {ours[0]:.2f} s wall {ours[1]:.2f} s cpu {ours[2]:.0f} MB"]
    for writer, theirs in list(medians.items())[1:]:
        ratios = " / ".join(f"{there / here:.2f}" for there, here in zip(theirs, ours, strict=True))
        parts.append(f"{writer} {theirs[0]:.2f} / {theirs[1]:.2f} / {theirs[2]:.0f} MB (ratio {ratios})")
    print(f"{name:26} " + "   ".join(parts), flush=True)


if __name__ == "__main__":
    main()
