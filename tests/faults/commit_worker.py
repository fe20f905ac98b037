"""A process that commits over and over, and writes down each commit that it was told has succeeded.

Each commit holds a row under a key that all workers share, and one under a key of its own; both with the same value.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
from tests.faults.fault_tables import ROOT, open_lake

from lakebed.errors import CommitConflict
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.table.table import Table

SHARED_KEY = 0
COLUMNS = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
_VALUES_PER_WORKER = 1_000_000


@dataclass(frozen=True)
class Task:
    """What one worker does. Without `commits` it goes on until it is killed."""

    directory: Path
    worker: int
    commits: int | None
    uses_lock: bool = True

    @property
    def log(self) -> Path:
        """Where acknowledged commits are written down, one JSON line each."""
        return self.directory / f"log-{self.worker}"

    def values(self) -> Iterator[int]:
        """A value for each commit, also the key of its own row; unlike those of all other workers."""
        number = self.worker * _VALUES_PER_WORKER
        while self.commits is None or number < self.worker * _VALUES_PER_WORKER + self.commits:
            number += 1
            yield number

    def acknowledged(self) -> list[tuple[int, int]]:
        """(snapshot id, value) of each acknowledged commit; a line torn by a kill is none."""
        lines = self.log.read_text().splitlines(keepends=True) if self.log.exists() else []
        return [tuple(json.loads(line)) for line in lines if line.endswith("]\n")]


def value_rows(value: int) -> pa.Table:
    """What one commit writes."""
    return pa.table({"id": [SHARED_KEY, value], "v": [value, value]})


def work(task: Task, start: Barrier | None = None) -> None:
    """What the process does."""
    if not task.uses_lock:
        LocalFileIO.advisory_lock = lambda self, directory: contextlib.nullcontext()  # type: ignore[method-assign]
    table = open_lake(LocalFileIO(), str(task.directory)).table("t")
    log = os.open(task.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    if start is not None:
        start.wait()
    for value in task.values():
        line = json.dumps([_commit(table, value), value]) + "\n"
        os.write(log, line.encode())


def _commit(table: Table, value: int) -> int:
    """Commits, as often as it takes; the snapshot's id."""
    while True:
        try:
            snapshot = table.write(value_rows(value))
        except CommitConflict:
            continue
        assert snapshot is not None
        return snapshot.id


def _warm_up() -> None:
    """Loads what a commit needs before the process is forked off, instead of in each one."""
    disk = MemoryFileIO("warm-up")
    for key in ([], ["id"]):
        table = open_lake(disk).create_table("t", COLUMNS, primary_key=key, options={"bucket": "1"} if key else {})
        _commit(table, 1)
        disk.delete_directory(ROOT)


_warm_up()
