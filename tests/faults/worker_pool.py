"""Starts processes that commit to one table, and collects what they say they have committed."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.faults.commit_worker import Task, work

_context = multiprocessing.get_context("forkserver")
# Loaded once in the process that all workers are forked off from.
_context.set_forkserver_preload(["pytest", "tests.faults.commit_worker"])


def start_worker(task: Task) -> ForkServerProcess:
    """A worker that begins at once."""
    process = _context.Process(target=work, args=(task,))
    process.start()
    return process


def run_workers(directory: Path, count: int, commits: int, *, uses_lock: bool = True) -> dict[int, int]:
    """Lets workers commit at the same time; the value of each snapshot as they report it."""
    tasks = [Task(directory, number, commits, uses_lock) for number in range(count)]
    start = _context.Barrier(count)
    processes = [_context.Process(target=work, args=(task, start)) for task in tasks]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * count
    pairs = [pair for task in tasks for pair in task.acknowledged()]
    assert len(pairs) == count * commits
    assert len({snapshot for snapshot, _ in pairs}) == len(pairs)  # no two were told the same snapshot
    return dict(pairs)
