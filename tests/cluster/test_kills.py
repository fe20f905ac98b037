"""Executors, workers, the driver and the store are killed or cut off at random: nothing is lost, doubled, left behind.

LAKEBED_TEST_KILLS says how often (3), LAKEBED_TEST_SEED in which order.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.bed import Bed
from tests.cluster.database import PASSWORD_ENV, reachable_postgres, source_options
from tests.cluster.hosts import ROOT, end
from tests.cluster.kill_worker import KEYS, tables

from lakebed.testing.postgres_server import PostgresServer

KILLS = int(os.environ.get("LAKEBED_TEST_KILLS", "3"))
SEED = int(os.environ.get("LAKEBED_TEST_SEED", "20"))
_STEP_S = 900.0


@pytest.fixture
def postgres(bed: Bed) -> Iterator[PostgresServer]:
    """A database with a table that the driver changes and follows."""
    with reachable_postgres(bed) as server:
        rows = f"SELECT i, -1, repeat(md5(i::text), 5) FROM generate_series(0, {KEYS - 1}) i"
        server.execute("CREATE TABLE kept (id bigint PRIMARY KEY, step int, v text)", f"INSERT INTO kept {rows}")
        yield server


class Victim:
    """The driver, which is started again whenever it is gone."""

    def __init__(self, bed: Bed, postgres: PostgresServer, home: Path, steps: int) -> None:
        self._done = home / "done"
        self._log = home / "driver.log"
        told = {
            "master": bed.master,
            "conf": {**bed.settings(), **bed.hadoop(), f"spark.executorEnv.{PASSWORD_ENV}": postgres.password},
            "lake": bed.place("kills"),
            "options": bed.store.options,
            "done": str(self._done),
            "checkpoint": str(home / "checkpoint"),
            "cdc_checkpoint": bed.checkpoint("kills-cdc-checkpoint"),
            "database": f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}",
            "source": source_options(bed, postgres),
            "steps": steps,
        }
        self._told = json.dumps(told)
        self._environment = {**os.environ, "JAVA_HOME": bed.java_home, "SPARK_LOCAL_IP": bed.network.driver}
        self._environment["PYTHONPATH"] = f"{ROOT / 'src'}:{ROOT}"
        self._environment[PASSWORD_ENV] = postgres.password
        self.process: subprocess.Popen[bytes] | None = None
        self.steps = steps
        self.starts = 0

    @property
    def done(self) -> int:
        """How many steps are done."""
        return int(self._done.read_text() or 0) if self._done.exists() else 0

    def keep_up(self) -> None:
        """Starts it if it is not there and there is something to do."""
        if self.done < self.steps and (self.process is None or self.process.poll() is not None):
            self.starts += 1
            with self._log.open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.cluster.kill_worker", self._told],
                    stdout=log,
                    stderr=log,
                    cwd=ROOT,
                    env=self._environment,
                    start_new_session=True,
                )

    def told(self) -> str:
        """The end of what it said."""
        return self._log.read_text(errors="replace")[-3000:]


def _strike(bed: Bed, victim: Victim, chance: random.Random) -> str:
    host = chance.choice(bed.hosts)
    what = chance.choice(["executor", "worker", "driver", "store", "directory"])
    if what == "executor":
        bed.kill_executor(host)
    elif what == "worker":
        bed.end_worker(host, signal.SIGKILL)
        time.sleep(chance.uniform(0, 3))
        bed.start_worker(host)
    elif what == "driver":
        end(victim.process, signal.SIGKILL)
    elif what == "store":
        bed.store.pause()
        time.sleep(chance.choice([1, 2, 5, 10, 30, 60]))
        bed.store.go_on()
    else:
        for entry in host.temporary.iterdir():
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return what


@pytest.mark.timeout(KILLS * 400 + 2700)
def test_random_kills(bed: Bed, postgres: PostgresServer, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    victim = Victim(bed, postgres, tmp_path, steps=2 + KILLS)
    struck: Counter[str] = Counter()
    next_strike = time.monotonic() + chance.uniform(20, 60)
    moved, last = time.monotonic(), 0
    try:
        while victim.done < victim.steps:
            victim.keep_up()
            if victim.done > last:
                moved, last = time.monotonic(), victim.done
            assert time.monotonic() - moved < _STEP_S, f"no step for long after {dict(struck)}: {victim.told()}"
            if struck.total() < KILLS and time.monotonic() > next_strike:
                struck[_strike(bed, victim, chance)] += 1
                next_strike = time.monotonic() + chance.uniform(5, 40)
            time.sleep(0.2)
    finally:
        bed.store.go_on()
        end(victim.process, signal.SIGKILL)
    print(f"struck {dict(struck)}, seed {SEED}, {victim.starts} drivers")
    came, told, newest = (table.to_arrow() for table in tables(bed.lake("kills")))
    order = [("step", "ascending"), ("id", "ascending")]
    assert told.sort_by(order).equals(came.sort_by(order)), f"lost or doubled after {dict(struck)}"
    final = victim.steps - 1
    assert sorted(newest.column("id").to_pylist()) == list(range(KEYS))
    assert set(newest.column("step").to_pylist()) == {final}
    kept = bed.lake("kills").table("kept")
    rows = sorted(zip(*(kept.to_arrow().column(name).to_pylist() for name in ("id", "step", "v")), strict=True))
    assert rows == postgres.query("SELECT id, step, v FROM kept ORDER BY id"), (
        f"not the database's, after {dict(struck)}"
    )
    for table in (*tables(bed.lake("kills")), kept):
        table.remove_orphan_files(older_than=dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1))
        assert table.check() == []
        assert table.to_arrow().num_rows > 0
