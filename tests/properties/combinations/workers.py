"""Histories run by several processes, none of which can be lost in silence.

A process that dies, or that does not come back from a history, is a finding of that history; the next ones go to a new
process. Nothing here waits for ever: every wait ends with an answer, with a death or with the time that was given.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.runs import Outcome, run_history

SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 600.0
"""Seconds after which a history is told to hang."""
HISTORIES = 200
"""After so many a process makes place for a new one: what leaks is forgotten."""

Work = tuple[Any, ...]
"""The arguments of `run_history`."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    work: Work
    since: float
    done: int = 0
    has_started: bool = False

    def give(self, work: Work) -> None:
        self.work, self.since = work, time.monotonic()
        self.connection.send(work)

    def receive(self) -> Outcome | None:
        """What it says: first that it has started, then what became of its histories."""
        said: Outcome | None = self.connection.recv()
        if said is None:
            self.has_started, self.since = True, time.monotonic()
        return said

    def end(self) -> None:
        """Its own children end as they lose their connection."""
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(5)
        self.connection.close()


def outcomes(
    work: Sequence[Work], jobs: int, seconds: float, *, run: Any = run_history, patience: float = PATIENCE
) -> Iterator[Outcome]:
    """What became of each history, as they end; those that are under way when the time is over are left out."""
    deadline = time.monotonic() + seconds
    left = list(reversed(work))
    workers: list[_Worker] = []
    try:
        while left or workers:
            while left and len(workers) < jobs:
                workers.append(_started(left.pop(), run))
            if time.monotonic() > deadline:
                return
            ready = wait([worker.connection for worker in workers], timeout=min(5.0, seconds))
            for worker in list(workers):
                outcome = _answer(worker, worker.connection in ready, patience)
                if outcome is None:
                    continue
                worker.done += 1
                is_fresh = worker.work[2] or worker.done < HISTORIES  # with Spark a process is dear
                if left and is_fresh and worker.process.is_alive():
                    worker.give(left.pop())
                else:
                    worker.end()
                    workers.remove(worker)
                yield outcome
    finally:
        for worker in workers:
            worker.end()


def _started(work: Work, run: Any) -> _Worker:
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=_serve, args=(there, run))
    process.start()
    there.close()  # so that its death is the end of the connection
    worker = _Worker(process, here, work, 0.0)
    worker.give(work)
    return worker


def _answer(worker: _Worker, is_ready: bool, patience: float) -> Outcome | None:
    seed = worker.work[0]
    if is_ready:
        try:
            return worker.receive()
        except (EOFError, OSError):
            worker.end()
            return _failed(seed, "the process dies", f"exit code {worker.process.exitcode}")
    if time.monotonic() - worker.since > (patience if worker.has_started else PATIENCE):
        worker.end()
        return _failed(seed, "the history hangs", f"no answer after {patience:.0f} s")
    return None


def _failed(seed: int, oracle: str, detail: str) -> Outcome:
    return Outcome(seed, Configuration({}), finding=Finding(oracle, detail))


def _serve(connection: Connection, run: Any) -> None:
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that a history takes its files away
    connection.send(None)
    while True:
        try:
            work = connection.recv()
        except EOFError:
            return
        connection.send(run(*work))


__all__ = ["outcomes"]
