"""What looks after a table, made to fail at every single file operation, and what has to hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.unit.maintenance.expiring_tables import SCHEMA, Workshop, rows, shown

from lakebed.fileio.base import FileIO
from lakebed.table.table import Table

State = list[tuple[int, ...]]
FAR_MS = 100 * 365 * 24 * 3600 * 1000
"""Moves the clock so far that all files in memory, which have the real time, are old."""


def history(fileio: FileIO, **options: Any) -> Table:
    """Six snapshots of upserts and compactions: files come and drop out."""
    table = Workshop(fileio).create(write_only="true", bucket=1, manifest__merge_min_count=3, **options)
    for number in range(3):
        table.write(rows((0, number), (number + 1, number)))
        table.with_options({"write-only": "false"}).compact(full=True)
    return table


def tagged(fileio: FileIO) -> Table:
    """The same with tags of two snapshots."""
    table = history(fileio)
    table.create_tag("a", 2)
    table.create_tag("b", 4)
    return table


def expired(fileio: FileIO) -> Table:
    """The same; all snapshots but the last have expired."""
    table = tagged(fileio)
    table.expire_snapshots(retain_max=1, retain_min=1)
    return table


def branched(fileio: FileIO, own: int = 2) -> Table:
    """The same with a branch that has snapshots of its own."""
    table = tagged(fileio)
    table.create_branch("x", "a")
    branch = Workshop(fileio).lake.table("t$branch_x")
    for number in range(own):
        branch.write(rows((50 + number, 1)))
    return table


def expired_under_a_branch(fileio: FileIO) -> Table:
    """The same; the table's snapshots are all newer than the branch's."""
    table = branched(fileio)
    table.expire_snapshots(retain_max=1, retain_min=1)
    return table


def littered(fileio: FileIO) -> Table:
    """The same, with files that nothing needs."""
    table = branched(fileio)
    table.rollback_to(5)
    table.delete_tag("b")
    fileio.write_bytes(f"{table.location}/bucket-0/data-dead-0.avro", b"1")
    fileio.write_bytes(f"{table.location}/bucket-3/data-dead-0.avro", b"1")
    fileio.write_bytes(f"{table.location}/snapshot/.snapshot-9.1.tmp", b"1")
    return table


def partitioned(fileio: FileIO) -> Table:
    """Three partitions."""
    lake = Workshop(fileio).lake
    table = lake.create_table("t", SCHEMA, partition_by=["k"], options={"file.format": "avro"})
    table.write(rows((1, 1), (2, 2)))
    table.write(rows((2, 3), (3, 3)))
    return table


@dataclass(frozen=True)
class UpkeepScenario:
    """A table and what is done to it. `passes` are states it may be left in besides the old and the new one."""

    name: str
    create: Callable[[FileIO], Table]
    act: Callable[[Table], object]
    passes: Callable[[Mapping[str, Any]], list[State]] = lambda seen: []
    is_old_clock: bool = False
    may_have_gap: bool = False
    """Whether a crash may leave an older snapshot beside those of the table: nobody takes it for the latest."""

    def open(self, fileio: FileIO) -> Table:
        """The table, at the time when the action takes place."""
        shop = Workshop(fileio)
        if self.is_old_clock:
            shop.clock.sleep_ms(FAR_MS)
        return shop.lake.table("t")


def _of_snapshots(*places: str) -> Callable[[Mapping[str, Any]], list[State]]:
    """The states of all snapshots that were in these branches: what a history cut short may end with."""
    return lambda seen: [state for place in places for state in seen[place].snapshots.values()]


SCENARIOS = {
    scenario.name: scenario
    for scenario in [
        UpkeepScenario("create-tag", history, lambda t: t.create_tag("new", 4, "1 d")),
        UpkeepScenario("replace-tag", tagged, lambda t: t.replace_tag("a", 5)),
        UpkeepScenario("rename-tag", tagged, lambda t: t.rename_tag("a", "c")),
        UpkeepScenario("delete-tag", tagged, lambda t: t.delete_tag("a")),
        UpkeepScenario("delete-tag-of-expired", expired, lambda t: t.delete_tag("a")),
        UpkeepScenario("delete-tags-of-expired", expired, lambda t: t.delete_tag(*t.tags())),
        UpkeepScenario("rollback", tagged, lambda t: t.rollback_to(3), _of_snapshots("main")),
        UpkeepScenario(
            "rollback-to-expired",
            expired,
            lambda t: t.rollback_to(tag="a"),
            _of_snapshots("main"),
            may_have_gap=True,
        ),
        UpkeepScenario("rollback-as-latest", tagged, lambda t: t.rollback_to_as_latest(2)),
        UpkeepScenario("rollback-as-latest-of-tag", expired, lambda t: t.rollback_to_as_latest(tag="b")),
        UpkeepScenario("create-branch", tagged, lambda t: t.create_branch("y", "b")),
        UpkeepScenario("create-empty-branch", tagged, lambda t: t.create_branch("y")),
        UpkeepScenario("delete-branch", branched, lambda t: t.delete_branch("x")),
        UpkeepScenario("rename-branch", branched, lambda t: t.rename_branch("x", "y")),
        UpkeepScenario("fast-forward", branched, lambda t: t.fast_forward("x"), _of_snapshots("main", "x")),
        UpkeepScenario(
            "fast-forward-longer",
            lambda io: branched(io, 7),
            lambda t: t.fast_forward("x"),
            _of_snapshots("main", "x"),
        ),
        UpkeepScenario(
            "fast-forward-expired",
            expired_under_a_branch,
            lambda t: t.fast_forward("x"),
            _of_snapshots("main", "x"),
            may_have_gap=True,
        ),
        UpkeepScenario("orphans", littered, lambda t: t.remove_orphan_files(), is_old_clock=True),
        UpkeepScenario("drop-partitions", partitioned, lambda t: t.drop_partitions([{"k": 1}, {"k": 3}])),
        UpkeepScenario(
            "expire-partitions",
            partitioned,
            lambda t: t.expire_partitions("1 d", expire_strategy="update-time"),
            is_old_clock=True,
        ),
        UpkeepScenario("mark-done", partitioned, lambda t: t.mark_partition_done([{"k": 1}])),
        UpkeepScenario("compact-manifest", tagged, lambda t: t.compact_manifest()),
        UpkeepScenario("analyze", tagged, lambda t: t.analyze(True)),
        UpkeepScenario("rescale", tagged, lambda t: t.rescale(2)),
    ]
}


@dataclass
class Seen:
    """All that can be read of one branch: every one of its states is read whole."""

    state: State
    snapshots: dict[int, State] = field(default_factory=dict)
    tags: dict[str, State] = field(default_factory=dict)


def look(fileio: FileIO, may_have_gap: bool = False) -> dict[str, Seen]:
    """Everything there is to be seen, by branch. Whatever has lost a file raises."""
    lake = Workshop(fileio).lake
    found = {}
    for name in ("main", *lake.table("t").branches()):
        table = lake.table("t" if name == "main" else f"t$branch_{name}")
        assert table.check() == []
        found[name] = Seen(
            shown(table),
            {snapshot.id: shown(table.at(snapshot=snapshot.id)) for snapshot in table.snapshots()},
            {tag: shown(table.at(tag=tag)) for tag in table.tags()},
        )
        numbers = list(found[name].snapshots)
        assert may_have_gap or not numbers or numbers == list(range(numbers[0], numbers[-1] + 1))
    return found
