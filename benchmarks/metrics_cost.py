"""What metrics cost: commits and merging reads with nobody listening, against a build that measures nothing.

    python -m benchmarks.metrics_cost [--turns 1500] [--small] [--json]

Four builds are loaded into one process, so that nothing but the code differs, and do the same work by turns: a copy of
the source out of which every measurement was cut (`without`), the same once more (`again`), the source as it is
(`off`), and as it is with a board that counts (`on`). A turn is one commit of 100 rows to a primary-key table, or one
read that merges six runs; its time is CPU time of the process. The order of the builds is drawn anew for each turn, and
the mean of the faster half of the turns of each counts. How far `again` is from 1 says how far to trust the others.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

import lakebed

SOURCE = Path(lakebed.__file__).parent
BUILDS = {"without": "cut", "again": "cut", "off": "whole", "on": "whole"}
"""What is measured, and of which copy of the source."""
_COLLECT_EVERY = 20
"""Turns between two collections of garbage, which are nobody's time."""


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


class Build:
    """One copy of the package, beside others in this process, with tables to work on."""

    def __init__(self, name: str, source: Path, place: str, rows: int) -> None:
        self._source = str(source)
        self._modules: dict[str, ModuleType] = {}
        with self.in_use():
            package: Any = importlib.import_module("lakebed")
            assert Path(package.__file__).is_relative_to(source)
            if name == "on":
                package.metrics.start()
            lake = package.connect(place)
            options = {"bucket": "1", "write-only": "true"}
            types = {"k": "BIGINT", "v": "DOUBLE", "s": "STRING"}
            self._written = lake.create_table("written", types, primary_key=["k"], options=options)
            self._merged = lake.create_table("merged", types, primary_key=["k"], options=options)
            for run in range(6):
                self._merged.write(_rows(run, 3, rows))
        self._small = _rows(0, 1, 100)
        self.works: dict[str, Callable[[], object]] = {"commit": self._commit, "merge_read": self._merged.to_arrow}

    def _commit(self) -> None:
        self._written.write(self._small)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """What is imported in the block comes from this copy."""
        before = _taken_out()
        sys.modules.update(self._modules)
        sys.path.insert(0, self._source)
        try:
            yield
        finally:
            sys.path.remove(self._source)
            self._modules = _taken_out()
            sys.modules.update(before)

    def seconds(self, work: str) -> float:
        """CPU time of one turn."""
        act = self.works[work]
        with self.in_use():
            began = time.process_time()
            act()
            return time.process_time() - began


def _taken_out() -> dict[str, ModuleType]:
    """All modules of the package that are loaded, which are not any more."""
    names = [name for name in sys.modules if name.partition(".")[0] == "lakebed"]
    return {name: sys.modules.pop(name) for name in names}


def _rows(start: int, step: int, count: int) -> pa.Table:
    keys = range(start, start + step * count, step)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [0.5] * count, "s": ["abcdefgh"] * count})


def measured(turns: int, rows: int) -> dict[str, dict[str, list[float]]]:
    """CPU times of all turns, by work and build."""
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        sources = {"whole": SOURCE.parent, "cut": Path(folder) / "cut"}
        cut_copy(sources["cut"])
        builds = {name: Build(name, sources[copy], f"{folder}/{name}", rows) for name, copy in BUILDS.items()}
        found: dict[str, dict[str, list[float]]] = {}
        for work in ("commit", "merge_read"):
            found[work] = {name: [] for name in BUILDS}
            for turn in range(-5, turns):
                if turn % _COLLECT_EVERY == 0:
                    gc.collect()
                for name in random.sample(list(builds), len(builds)):
                    seconds = builds[name].seconds(work)
                    if turn >= 0:
                        found[work][name].append(seconds)
    return found


def _faster_half(times: list[float]) -> float:
    half = sorted(times)[: max(1, len(times) // 2)]
    return sum(half) / len(half)


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--turns", type=int, default=1500)
    parser.add_argument("--small", action="store_true", help="a few turns, to see that it runs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    gc.disable()
    found = measured(20 if given.small else given.turns, 1000 if given.small else 10_000)
    for work, times in found.items():
        base = _faster_half(times["without"])
        for name, mine in times.items():
            line = {
                "work": work,
                "build": name,
                "ms": round(_faster_half(mine) * 1000, 3),
                "ratio": round(_faster_half(mine) / base, 4),
            }
            print(
                json.dumps({"benchmark": "metrics_cost", **line})
                if given.json
                else "  ".join(f"{key}={value}" for key, value in line.items())
            )


if __name__ == "__main__":
    main()
