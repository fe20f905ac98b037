"""What metrics cost: commits and merging reads with nobody listening, against a build that measures nothing.

    python -m benchmarks.metrics_cost [--rounds 150] [--small] [--json]

Three processes do the same work by turns, a little at a time, so that whatever else keeps the machine busy is the same
for all: a copy of the source out of which every measurement was cut (`without`), the source as it is (`off`), and the
source as it is with a board that counts (`on`). A round is a few commits of 100 rows to a primary-key table, or some
reads that merge six runs. Times are CPU seconds of the process; the ratio of a round is to `without` in the same
round, and the median of all rounds counts. `again` is `without` once more: how far its ratio is from 1 says how far the
machine lets one trust the others.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import lakebed

SOURCE = Path(lakebed.__file__).parent
BUILDS = {"without": "cut", "again": "cut", "off": "whole", "on": "whole"}
"""What is measured, and of which copy of the source."""
WORKS = {"commit": 10, "merge_read": 4}
"""How much of each is done in a round."""

WORKER = """
import gc, sys, time
import pyarrow as pa
import lakebed
place, counts, rows = sys.argv[1], sys.argv[2] == "on", int(sys.argv[3])
if counts:
    lakebed.metrics.start()
lake = lakebed.connect(place)
options = {"bucket": "1", "write-only": "true"}
types = {"k": "BIGINT", "v": "DOUBLE", "s": "STRING"}
def batch(start, step, count):
    keys = range(start, start + step * count, step)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [0.5] * count, "s": ["abcdefgh"] * count})
written = lake.create_table("written", types, primary_key=["k"], options=options)
merged = lake.create_table("merged", types, primary_key=["k"], options=options)
for run in range(6):
    merged.write(batch(run, 3, rows))
small = batch(0, 1, 100)
def commit(): written.write(small)
def merge_read(): merged.to_arrow()
works = {"commit": commit, "merge_read": merge_read}
for work in works.values():
    for _ in range(5):
        work()
print("ready", flush=True)
for line in sys.stdin:
    name, times = line.split()
    work = works[name]
    gc.collect()
    began = time.process_time()
    for _ in range(int(times)):
        work()
    print(time.process_time() - began, flush=True)
"""


class _Cut(ast.NodeTransformer):
    """Takes measurements out of a module: what remains does the rest of the work as before."""

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        node.items = [item for item in node.items if not _measures(item.context_expr)]
        return node if node.items else node.body

    def visit_Expr(self, node: ast.Expr) -> Any:
        return None if _measures(node.value) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        return None if _measures(node.value) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        return ast.Constant(False) if ast.unparse(node) == "is_heard()" else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        blocks = [name for name in ("body", "orelse", "finalbody") if getattr(node, name, None)]
        super().generic_visit(node)
        for name in blocks:
            if getattr(node, name) == []:
                setattr(node, name, [ast.Pass()])
        return node


_COUNTERS = {"_count", "count_compacted", "self._count"}
"""Functions that do nothing but measure."""


def _measures(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return ast.unparse(node) == "self._timing"
    called = ast.unparse(node.func)
    owner, _, name = called.rpartition(".")
    return called in _COUNTERS or (name in ("tell", "timed") and owner.isupper()) or called == "timing.ended"


def cut_copy(folder: Path) -> int:
    """The source without measurements, in a folder; how many modules differ."""
    changed = 0
    for path in SOURCE.rglob("*.py"):
        place = folder / SOURCE.name / path.relative_to(SOURCE)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        if "lakebed.metrics" in text and "metrics" not in path.relative_to(SOURCE).parts:
            text = ast.unparse(ast.fix_missing_locations(_Cut().visit(ast.parse(text))))
            changed += 1
        place.write_text(text)
    return changed


class Worker:
    """A process of one build."""

    def __init__(self, source: Path, place: str, mode: str, rows: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORKER, place, mode, str(rows)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)
        assert self._answer() == "ready"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def seconds(self, work: str, times: int) -> float:
        """CPU time of so much work."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work} {times}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()


def measured(rounds: int, rows: int) -> dict[str, dict[str, list[float]]]:
    """CPU times of all rounds, by work and build."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    found: dict[str, dict[str, list[float]]] = {work: {name: [] for name in BUILDS} for work in WORKS}
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        sources = {"whole": SOURCE.parent, "cut": Path(folder) / "cut"}
        cut_copy(sources["cut"])
        workers = {name: Worker(sources[copy], f"{folder}/{name}", name, rows) for name, copy in BUILDS.items()}
        for _ in range(rounds):
            for work, times in WORKS.items():
                for name in random.sample(list(workers), len(workers)):
                    found[work][name].append(workers[name].seconds(work, times))
        for worker in workers.values():
            worker.__exit__(None, None, None)
    return found


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--small", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(4 if given.small else given.rounds, 1000 if given.small else 20_000)
    for work, times in found.items():
        base = times["without"]
        for name, mine in times.items():
            ratios = sorted(a / b for a, b in zip(mine, base, strict=True))
            middle, few = statistics.median(ratios), len(ratios) // 4
            line = {
                "work": work,
                "build": name,
                "ms": round(statistics.median(mine) / WORKS[work] * 1000, 3),
                "ratio": round(middle, 4),
                "middle_half": [round(ratios[few], 4), round(ratios[-few - 1], 4)],
                "of_sums": round(sum(sorted(mine)[: len(mine) // 2]) / sum(sorted(base)[: len(base) // 2]), 4),
            }
            print(json.dumps(line) if given.json else "  ".join(f"{key}={value}" for key, value in line.items()))


if __name__ == "__main__":
    main()
