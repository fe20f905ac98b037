"""Drivers are killed in the middle of whatever they do: a table is as before or as after, and no live file is gone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.spark.driver_worker import KINDS, ROWS, clean, create

import lakebed

ROOT = Path(__file__).parents[2]


def kill_a_driver(warehouse: Path, work: str, after_seconds: float) -> int:
    """Starts a driver, kills it with everything it started, and returns how many rounds it had finished."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.spark.driver_worker", str(warehouse), work],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as driver:
        try:
            assert driver.stdout is not None
            line = driver.stdout.readline()
            assert line.strip() == "ready", driver.stderr.read() if driver.stderr else line
            time.sleep(after_seconds)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
        rounds = driver.stdout.read().split()
        assert driver.poll() is None or driver.returncode == -signal.SIGKILL, driver.stderr
    return len(rounds)


def check(lake: lakebed.Lake) -> None:
    """Every snapshot and tag reads in full, each state is one that a statement leaves, and the table goes on."""
    table = lake.table("t")
    # Those before it were announced to expire: an expiry that was killed has taken some of their files already.
    first = table._opened.context.stores.snapshots.first_not_expiring()
    states = [table.at(snapshot=snapshot.id) for snapshot in table.snapshots() if snapshot.id >= first]
    assert states
    for state in [*states, table.at(tag="first"), table]:
        values = state.to_arrow(["id", "v"])
        assert values.num_rows == ROWS
        assert len(set(values["v"].to_pylist())) == 1
    assert table.check() == []


@pytest.mark.parametrize(
    ("work", "kills"),
    [
        ("everything", 1),
        pytest.param("everything", 10, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]),
        *(pytest.param(work.__name__, 20, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]) for work in KINDS),
    ],
)
def test_kill(lake: lakebed.Lake, tmp_path: Path, work: str, kills: int) -> None:
    """However often a driver dies, and wherever: the table is whole."""
    create(lake)
    moments = random.Random(work)
    for _ in range(kills):
        kill_a_driver(tmp_path / "warehouse", work, moments.uniform(0.0, 6.0))
        check(lake)
    table = lake.table("t")
    before = table.to_arrow().sort_by("id")
    clean(lake)
    assert table.to_arrow().sort_by("id").equals(before)
    check(lake)
