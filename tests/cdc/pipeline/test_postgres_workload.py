"""A random workload in a real PostgreSQL, followed by a sync: at every quiet point the lake equals the database."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.workload import Workload

import lakebed
import lakebed.cdc
from lakebed.errors import LakebedError

pytestmark = pytest.mark.spark

_PATIENCE_S = 300
_CONF = {"bucket": "2", "changelog-producer": "input", "snapshot.num-retained.min": "10000"}


def differences(lake: lakebed.Lake, workload: Workload) -> list[str]:
    """What differs between lake and database, table by table."""
    found = []
    for table in workload.tables:
        names, rows = workload.expected(table)
        try:
            stored = lake.table(f"`lk`.`{lake_name(table.name)}`")
            have = stored.to_arrow()
        except LakebedError as error:
            found.append(f"{table.name}: {error.message}")
            continue
        if sorted(have.schema.names) != sorted(names):
            found.append(f"{table.name}: columns {have.schema.names} instead of {names}")
            continue
        columns = [have.column(name).to_pylist() for name in names]
        mine = sorted(zip(*columns, strict=True), key=lambda row: row[0])
        if mine != rows:
            wrong = [(a, b) for a, b in zip(mine, rows, strict=False) if a != b][:2]
            found.append(f"{table.name}: {len(mine)} rows instead of {len(rows)}, {wrong}")
    return found


def lake_name(table: str) -> str:
    return "odd" if table.startswith("Odd") else table


def wait_until_equal(lake: lakebed.Lake, workload: Workload, check: Any) -> None:
    """Waits for a quiet point, or says what differs."""
    deadline = time.monotonic() + _PATIENCE_S
    wrong = ["nothing was looked at"]
    while wrong and time.monotonic() < deadline:
        check()
        wrong = differences(lake, workload)
        if wrong:
            time.sleep(0.5)
    assert not wrong, wrong


def replays(lake: lakebed.Lake, workload: Workload) -> None:
    """The changelog of each table, played back, gives its keys."""
    for table in workload.tables:
        stored = lake.table(f"`lk`.`{lake_name(table.name)}`")
        keys: set[int] = set()
        changes = stored.changes()
        for kind, key in zip(changes["rowkind"].to_pylist(), changes["id"].to_pylist(), strict=True):
            keys = keys | {key} if kind in ("+I", "+U") else keys - {key}
        assert keys == set(stored.to_arrow(["id"])["id"].to_pylist()), table.name


def sync_arguments(url: str, name: str, checkpoint: Path) -> dict[str, Any]:
    return {
        "source_options": {"url": url, "slot": name, "discovery_ms": 500},
        "checkpoint": str(checkpoint),
        "mapping": {'Odd "name" ü': "odd"},
        "rename": "follow",
        "drop": "follow",
        "table_conf": _CONF,
    }


def run_workload(database: Any, lake: lakebed.Lake, tmp_path: Path, seed: int, rounds: int, steps: int) -> None:
    with database.connect() as connection:
        workload = Workload(connection, seed)
        arguments = sync_arguments(database.url, database.name, tmp_path / "checkpoint")
        run = lakebed.cdc.sync(lake, "postgres", "lk", trigger="200 milliseconds", **arguments)
        try:
            wait_until_equal(lake, workload, run.check)
            for _ in range(rounds):
                workload.round(steps)
                wait_until_equal(lake, workload, run.check)
        finally:
            run.stop()
        replays(lake, workload)


def test_the_lake_equals_the_database(database: Any, spark: Any, tmp_path: Path) -> None:
    """Random rows, transactions and schema changes: equal at every quiet point, and the changelog replays to it."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    run_workload(database, lake, tmp_path, seed=1, rounds=2, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10, 16))
def test_the_lake_equals_any_database_for_long(any_database: Any, spark: Any, tmp_path: Path, seed: int) -> None:
    """The same for every version of PostgreSQL, with more of everything."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    run_workload(any_database, lake, tmp_path, seed, rounds=8, steps=30)


_DRIVER = """
import json, sys
import lakebed, lakebed.cdc
given = json.loads(sys.argv[1])
lake = lakebed.connect(given.pop("warehouse"))
run = lakebed.cdc.sync(lake, "postgres", "lk", trigger="200 milliseconds", **given)
print("started", flush=True)
run.wait()
"""


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Ends a process with all that it has started, without a chance to say goodbye."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sync_that_is_killed_loses_and_doubles_nothing(database: Any, tmp_path: Path, seed: int) -> None:
    """`kill -9` of the whole application at random moments; the next one goes on."""
    import json

    rng = random.Random(seed)
    lake = lakebed.connect(tmp_path / "warehouse")
    given = sync_arguments(database.url, database.name, tmp_path / "checkpoint")
    text = json.dumps({**given, "warehouse": str(tmp_path / "warehouse")})

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", _DRIVER, text]
        return subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)

    with database.connect() as connection:
        workload = Workload(connection, seed)
        for kill in range(int(os.environ.get("LAKEBED_TEST_KILLS", "10"))):
            process = start()
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"started\n"
                deadline = time.monotonic() + rng.uniform(0, 25)
                while time.monotonic() < deadline and process.poll() is None:
                    workload.round(3, with_ddl=kill % 2 == 0)
                    time.sleep(0.3)
                assert process.poll() is None, "the sync ended by itself"
            finally:
                kill_all(process)
        process = start()
        try:
            wait_until_equal(lake, workload, lambda: None)
        finally:
            kill_all(process)
    replays(lake, workload)
