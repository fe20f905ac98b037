"""A process that looks after a table in every way, in random order, until it is told to stop or killed."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.faults.fault_tables import open_lake

from lakebed.errors import AlreadyExists, CommitConflict, FileMissing, InvalidArgument, NotFound
from lakebed.fileio.local import LocalFileIO
from lakebed.table.table import Table

COLUMNS = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
NAMES = ("a", "b", "c")
EXPECTED = (AlreadyExists, CommitConflict, FileMissing, InvalidArgument, NotFound)
"""What one of two who are at it at once may be told; the other's work is done, and nothing is broken."""


def open_table(directory: Path, branch: str = "main") -> Table:
    """The table, or a branch of it."""
    return open_lake(LocalFileIO(), str(directory)).table("t" if branch == "main" else f"t$branch_{branch}")


def create(directory: Path) -> Table:
    """The table, with some rows."""
    options = {"bucket": "1", "file.format": "avro", "num-sorted-run.compaction-trigger": "3"}
    table = open_lake(LocalFileIO(), str(directory)).create_table("t", COLUMNS, primary_key=["id"], options=options)
    for number in range(4):
        table.write(some_rows(number))
    return table


def some_rows(number: int) -> pa.Table:
    """Rows of one commit: one replaces an old one, one is new."""
    return pa.table({"id": [0, number], "v": [number, number]})


def work(directory: Path, seed: int, steps: int | None, acts: tuple[str, ...]) -> None:
    """Acts at random, so many times or for ever."""
    chance = random.Random(seed)
    number = 0
    while steps is None or number < steps:
        number += 1
        with contextlib.suppress(*EXPECTED):
            act(open_table(directory), chance, chance.choice(acts), seed * 100_000 + number)


def act(table: Table, chance: random.Random, how: str, number: int) -> None:
    """One of the things that a table is looked after with."""
    name, other = chance.choice(NAMES), chance.choice(NAMES)
    some = chance.choice(table.snapshots()).id
    doing: dict[str, Any] = {
        "write": lambda: table.write(some_rows(number)),
        "overwrite": lambda: table.write(some_rows(number), overwrite=True),
        "compact": lambda: table.compact(full=True),
        "tag": lambda: table.create_tag(name, some),
        "retag": lambda: table.replace_tag(name, some),
        "untag": lambda: table.delete_tag(name),
        "expire": lambda: table.expire_snapshots(retain_max=chance.randint(1, 4), retain_min=1),
        "rollback": lambda: table.rollback_to(some),
        "rollback-to-tag": lambda: table.rollback_to(tag=name),
        "revive": lambda: table.rollback_to_as_latest(some),
        "revive-tag": lambda: table.rollback_to_as_latest(tag=name),
        "branch": lambda: table.create_branch(name, other),
        "unbranch": lambda: table.delete_branch(name),
        "write-branch": lambda: table.on_branch(name).write(some_rows(number)),
        "expire-branch": lambda: table.on_branch(name).expire_snapshots(retain_max=1, retain_min=1),
        "fast-forward": lambda: table.fast_forward(name),
        "manifests": table.compact_manifest,
        "analyze": lambda: table.analyze(True),
        "orphans": lambda: table.remove_orphan_files(older_than=table._opened.context.clock.now_ms() - 1),
    }
    doing[how]()


def check(directory: Path) -> None:
    """Everything there is can be read: all snapshots and tags of all branches."""
    table = open_table(directory)
    for branch in ("main", *table.branches()):
        there = open_table(directory, branch)
        assert there.check() == []
        there.to_arrow()
        first_kept = there._opened.context.stores.snapshots.first_not_expiring()
        for snapshot in there.snapshots():
            if snapshot.id >= first_kept:
                there.at(snapshot=snapshot.id).to_arrow()
        for tag in there.tags():
            there.at(tag=tag).to_arrow()
