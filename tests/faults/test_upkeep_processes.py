"""Processes look after one table at once, or are killed while they do: whatever is there in the end can be read."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path

import pytest
from tests.faults.upkeep_worker import check, create, open_table, some_rows, work

from lakebed.metadata.branches import branch_names

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["pytest", "tests.faults.commit_worker", "tests.faults.upkeep_worker"])

TOGETHER = (
    *("write", "overwrite", "compact", "tag", "retag", "untag", "expire", "revive", "revive-tag", "branch", "unbranch"),
    *("write-branch", "expire-branch", "manifests", "analyze", "rollback", "rollback-to-tag", "fast-forward"),
)
"""What several may do at once. Cleaning of orphans takes all files for old here, so it is for one alone."""
ALONE = (*TOGETHER, "orphans")


def at_once(directory: Path, count: int, steps: int, seed: int) -> None:
    """Lets processes act at the same time, so many times each."""
    create(directory)
    processes = [
        _context.Process(target=work, args=(directory, seed * 10 + number, steps, TOGETHER)) for number in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * count
    finish(directory)


def finish(directory: Path) -> None:
    """All is whole, and goes on."""
    check(directory)
    table = open_table(directory)
    context = table._opened.context
    for name in set(branch_names(context.fileio, context.paths)) - set(table.branches()):
        table.delete_branch(name)  # somebody committed to it just when it was deleted
    table.write(some_rows(99))
    assert table.to_arrow(filter=[("id", "=", 99)]).num_rows == 1
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.remove_orphan_files(older_than=table._opened.context.clock.now_ms() - 1)
    check(directory)


def kill(directory: Path, times: int, seed: int) -> None:
    """Kills one process after the other while it acts."""
    create(directory)
    moments = random.Random(seed)
    for number in range(times):
        process = _context.Process(target=work, args=(directory, seed * 1000 + number, None, ALONE))
        process.start()
        time.sleep(moments.uniform(0.05, 0.4))
        process.kill()
        process.join()
        check(directory)
        open_table(directory).write(some_rows(number))
    finish(directory)


def test_two_processes_at_once(shared_directory: Path) -> None:
    """Tags, branches, rollbacks, expiries and commits of two processes: none is told a lie, none breaks a file."""
    at_once(shared_directory, 2, 25, seed=1)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_four_processes_at_once(shared_directory: Path, seed: int) -> None:
    """The same with more of them, for longer."""
    at_once(shared_directory, 4, 60, seed=100 + seed)


def test_killed_processes(shared_directory: Path) -> None:
    """A process that is killed while it looks after a table leaves one that can be read and written."""
    kill(shared_directory, 8, seed=2)


@pytest.mark.nightly
def test_a_hundred_killed_processes(shared_directory: Path) -> None:
    """The same for longer."""
    kill(shared_directory, 100, seed=3)
