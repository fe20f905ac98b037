"""Writers, a compactor, an expirer and a reader work on one table at once: nobody fails, nothing grows without end."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.spark.soak_worker import KEYS, OPTIONS, ROLES, ROWS, added, create

import lakebed
from lakebed.commit.replay import last_identifiers

ROOT = Path(__file__).parents[2]
STOP_TRIGGER = int(OPTIONS["num-sorted-run.stop-trigger"])
_START_S = PATIENCE_S
"""Spark may take so long to start on a busy machine."""


class Job:
    """A process, and how much memory it and those it started took."""

    def __init__(self, place: Path, name: str, *command: str) -> None:
        self.name = name
        self._errors = place / f"{name}.err"
        self.memory_mb: list[float] = []
        self.most_of_children_mb = 0.0
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def sample(self) -> None:
        """Notes the memory of the process, which must be alive, and of those that it started: a JVM, if any."""
        assert self._process.poll() is None, f"{self.name} ended: {self._errors.read_text()[-3000:]}"
        self.memory_mb.append(_memory_mb(self._process.pid))
        children = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        started = [int(child) for path in children for child in path.read_text().split()]
        self.most_of_children_mb = max(self.most_of_children_mb, sum(map(_memory_mb, started)))

    def end(self, number: signal.Signals | None = None) -> str:
        """What it said at the end, which must be a good one."""
        if number is not None:
            self._process.send_signal(number)
        out, _ = self._process.communicate(timeout=_START_S)
        assert self._process.returncode == 0, f"{self.name}: {self._errors.read_text()[-3000:]}"
        return out.strip().rpartition("\n")[2]

    def kill(self) -> None:
        """For tests that failed."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def growth_mb(self) -> float:
        """From the middle of its life to the end: at the beginning all processes grow."""
        third = len(self.memory_mb) // 3
        return statistics.median(self.memory_mb[-third:]) - statistics.median(self.memory_mb[third:-third])


def _memory_mb(process: int) -> float:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0  # it has just ended
    # Pages of mapped files can be given back at any time: they are not memory that is needed.
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("RssAnon")), 0.0)


def runs_of_buckets(table: lakebed.Table) -> dict[int, int]:
    """Sorted runs of each bucket: files of level 0, and levels."""
    rows = lakebed.connect(Path(table.location).parents[1]).table("t$files").to_arrow(["bucket", "level"]).to_pylist()
    runs = {(row["bucket"], row["level"] or -number) for number, row in enumerate(rows)}
    return Counter(bucket for bucket, _ in runs)


def soak(place: Path, seconds: float) -> dict[str, Any]:
    """Lets all work for so long; the jobs, and the largest number of runs that a bucket had."""
    table = create(place)
    warehouse = str(place / "warehouse")
    follow = ("lakebed", "--warehouse", warehouse, "compact", "default.t", "--follow", "--interval", "50 ms")
    jobs = {role: Job(place, role, "tests.spark.soak_worker", role, str(place)) for role in ROLES}
    jobs["compact"] = Job(place, "compact", *follow)
    most = 0
    try:
        started = time.monotonic()
        while not any((place / "checkpoint" / "commits").glob("[0-9]*")):
            assert time.monotonic() - started < _START_S, "the query does not start"
            time.sleep(0.1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for job in jobs.values():
                job.sample()
            most = max(most, *runs_of_buckets(table).values())
            time.sleep(0.25)
        said: dict[str, Any] = {}
        for role in ("write", "stream"):
            (place / f"stop {role}").touch()
        said |= {role: json.loads(jobs[role].end()) for role in ("write", "stream")}
        (place / "stop expire").touch()
        said["expire"] = json.loads(jobs["expire"].end())
        jobs["compact"].end(signal.SIGTERM)
        table.compact()  # tells of the last commits
        (place / "stop read").touch()
        said["read"] = json.loads(jobs["read"].end())
    finally:
        for job in jobs.values():
            job.kill()
    return {"table": table, "said": said, "jobs": jobs, "most": most}


def check(done: dict[str, Any]) -> None:
    """All commits are there once, the changes come to the table, and files stayed few."""
    table, said = done["table"], done["said"]
    shown = {str(row["k"]): row["v"] for row in table.to_arrow().to_pylist()}
    snapshots = table._opened.context.stores.snapshots
    batches = max(count for user, count in last_identifiers(snapshots, snapshots.latest()).items() if user != "plain")
    expected = Counter(key for number in range(said["write"]) for key in added(number))
    expected.update(value % KEYS for value in range(batches * ROWS))
    assert shown == {str(key): count for key, count in expected.items()}
    assert said["read"] == shown
    assert said["write"] > 3
    assert said["expire"] > 0
    assert batches > 3
    assert done["most"] <= STOP_TRIGGER
    assert table.check() == []


def test_all_at_once(tmp_path: Path) -> None:
    """For a short while."""
    check(soak(tmp_path, 8))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_all_at_once_for_long(tmp_path: Path) -> None:
    """For five minutes, at the end of which no process needs more memory than in the middle."""
    done = soak(tmp_path, 300)
    check(done)
    grown = {name: job.growth_mb() for name, job in done["jobs"].items()}
    assert {name: growth for name, growth in grown.items() if growth > 25} == {}
    assert done["jobs"]["stream"].most_of_children_mb < 1300  # a JVM takes what it may have, and this one may have 700
