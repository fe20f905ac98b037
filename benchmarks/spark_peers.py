"""Engines on Spark that benchmarks drive: this package, the Paimon connector and Delta Lake, each in its own process.

The peers run on the PySpark that both are made for, in an environment of the compatibility tests, with the settings of
our own local session; their jars come from Maven. Where Maven has the Paimon connector not, name the jars of one in
LAKEBED_PAIMON_CONNECTOR, with `:` between them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from tests.compat.judges.environments import JudgeUnavailable, is_at_hand, prepare_jars

from benchmarks.peers import peer_python

WORKER = "spark_worker.py"
TICKS = os.sysconf("SC_CLK_TCK")
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("x", pa.int32()),
        pa.field("at", pa.timestamp("us")),
        pa.field("d", pa.float64()),
        pa.field("n", pa.int32()),
        pa.field("s1", pa.string()),
        pa.field("s2", pa.string()),
    ]
)
"""The rows of these benchmarks. `n` is below 1000, evenly."""


def make_rows(keys: np.ndarray, seed: int) -> pa.Table:
    """Rows for these keys; the texts have 12 characters."""
    rng = np.random.default_rng(seed)
    count = len(keys)

    def texts() -> pa.Array:
        digits = rng.integers(ord("0"), ord("9") + 1, count * 12, dtype=np.uint8)
        borders = np.arange(0, 12 * count + 1, 12, dtype=np.int32)
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(borders), pa.py_buffer(digits)])

    numbers = rng.integers(0, 1_000_000, count, dtype=np.int32)
    times = pa.array(rng.integers(0, 10**15, count), pa.timestamp("us"))
    columns = [keys, numbers, times, rng.random(count), rng.integers(0, 1000, count, dtype=np.int32), texts(), texts()]
    return pa.table([pa.array(column) for column in columns], schema=SCHEMA)


def available(names: list[str], *, build: bool) -> tuple[list[str], dict[str, str]]:
    """Those of the peers that can be measured here, and why the others can not. Without `build`, nothing is made."""
    found, missing = [], {}
    for name in names:
        if not build and not (is_at_hand("spark") and (_given_jars(name) or is_at_hand(_pins_name(name)))):
            missing[name] = "its environment has not been built yet"
            continue
        try:
            _jars(name)  # first: a registry that lacks them says so in seconds, and PySpark is large
            peer_python("spark")
        except JudgeUnavailable as reason:
            missing[name] = str(reason)
        else:
            found.append(name)
    return found, missing


def _pins_name(peer: str) -> str:
    return "paimon-connector" if peer == "paimon" else peer


def _given_jars(peer: str) -> list[str]:
    given = os.environ.get("LAKEBED_PAIMON_CONNECTOR", "") if peer == "paimon" else ""
    return [jar for jar in given.split(":") if jar]


def _jars(peer: str) -> list[str]:
    return _given_jars(peer) or [str(path) for path in prepare_jars(_pins_name(peer))]


class Worker:
    """An engine at work. Every step is measured: wall seconds, and CPU seconds of all its processes together."""

    def __init__(
        self, name: str, warehouse: Path, settings: dict[str, str] | None = None, script: str = WORKER
    ) -> None:
        self.name = name
        program = str(Path(__file__).with_name(script))
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the worker runs)
        environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
        self._child = subprocess.Popen(
            [sys.executable if name == "lakebed" else peer_python("spark"), "-P", program, name, str(warehouse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            cwd=warehouse.parent,  # Spark leaves directories behind in the current one
        )
        jars = [] if name == "lakebed" else _jars(name)
        given = {**(settings or {}), **({"spark.jars": ",".join(jars)} if jars else {})}
        self.settings: dict[str, str]
        self.settings, self.start_s, _ = self.step("start", settings=given)

    @property
    def pid(self) -> int:
        """Its process, above Spark's."""
        return self._child.pid

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        self._stderr.close()

    def step(self, do: str, **arguments: Any) -> tuple[Any, float, float]:
        """The answer to one step, wall seconds, CPU seconds."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        cpu, wall = tree_cpu_s(self._child.pid), time.perf_counter()
        self._child.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        wall, cpu = time.perf_counter() - wall, tree_cpu_s(self._child.pid) - cpu
        if not line:
            self._stderr.seek(0)
            raise SystemExit(f"{self.name} ended during {do}:\n" + self._stderr.read().decode(errors="replace")[-6000:])
        return json.loads(line), wall, cpu


def tree_cpu_s(root: int) -> float:
    """CPU seconds so far of a process and all below it, with those of them that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name of the program may hold anything, but it ends with the last bracket.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(int(value) for value in fields[11:15])
    below = {root}
    while grown := {pid for pid, parent in parents.items() if parent in below and pid not in below}:
        below |= grown
    return sum(ticks.get(pid, 0) for pid in below) / TICKS
