"""Processes are killed in the middle of whatever they do: acknowledged commits stay, the table goes on."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

from tests.faults.commit_worker import COLUMNS, Task, value_rows
from tests.faults.fault_tables import open_lake, take_inventory
from tests.faults.worker_pool import start_worker
from tests.patience import PATIENCE_S

from lakebed.fileio.local import LocalFileIO

ROUNDS = 15
WORKERS = 2


def kill_some(directory: Path, number: int, moments: random.Random) -> list[Task]:
    """Lets workers commit, and kills them one after the other."""
    tasks = [Task(directory, 1 + number * WORKERS + worker, commits=None) for worker in range(WORKERS)]
    processes = [start_worker(task) for task in tasks]
    deadline = time.monotonic() + PATIENCE_S
    while not all(task.acknowledged() for task in tasks):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    for process in processes:
        time.sleep(moments.uniform(0.0, 0.03))
        process.kill()
        process.join()
    return tasks


def test_kill_thirty_processes(shared_directory: Path) -> None:
    """What was acknowledged is there once, at most the commit in the making came in as well, and the next one works."""
    moments = random.Random(20)
    table = open_lake(LocalFileIO(), str(shared_directory)).create_table("t", COLUMNS)
    acknowledged: list[int] = []
    for number in range(ROUNDS):
        tasks = kill_some(shared_directory, number, moments)
        acknowledged += [value for task in tasks for _, value in task.acknowledged()]
        table = open_lake(LocalFileIO(), str(shared_directory)).table("t")
        snapshot = table.write(value_rows(-1 - number))
        acknowledged.append(-1 - number)
        assert snapshot is not None
        assert snapshot.id == len(table.snapshots())
        counts = Counter(table.to_arrow()["v"].to_pylist())
        assert set(counts.values()) == {2}
        extra = counts.keys() - set(acknowledged)
        assert set(acknowledged) <= counts.keys()
        assert len(extra) <= WORKERS  # published, and killed before it could be written down
        acknowledged += extra
    assert not take_inventory(table).missing


def test_kill_while_others_wait(shared_directory: Path) -> None:
    """A process that dies with the lock does not stop the others, on a table where they all write one key."""
    moments = random.Random(21)
    lake = open_lake(LocalFileIO(), str(shared_directory))
    table = lake.create_table("t", COLUMNS, primary_key=["id"], options={"bucket": "1"})
    for number in range(3):
        tasks = kill_some(shared_directory, number, moments)
        acknowledged = dict(pair for task in tasks for pair in task.acknowledged())
        snapshot = table.write(value_rows(-1))
        assert snapshot is not None
        for snapshot_id, value in acknowledged.items():
            shown = table.at(snapshot=snapshot_id).to_arrow(filter=[("id", "=", 0)])
            assert shown["v"].to_pylist() == [value]
        assert table.to_arrow(filter=[("id", "=", 0)])["v"].to_pylist() == [-1]
    assert not take_inventory(table).missing
