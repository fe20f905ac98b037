"""Every file operation of what looks after a table fails once: nothing that stays is broken, again is enough.

In the default run scenarios take turns with the operations; the nightly run fails every operation of each.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pytest
from tests.faults.fault_tables import in_turn
from tests.faults.test_expiry import Interrupted, contents
from tests.faults.upkeep_scenarios import SCENARIOS, Seen, UpkeepScenario, branched, expired, history, look, tagged
from tests.unit.maintenance.expiring_tables import ROOT, Workshop, rows, shown

from lakebed import SetOption
from lakebed.errors import AlreadyExists, CommitConflict, InvalidArgument, LakebedError, NotFound
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.table.table import Table
from lakebed.testing.faulty_io import MUTATIONS, FaultMode, FaultyFileIO, SimulatedCrash


class Prepared(NamedTuple):
    """A disk before an action, the operations it takes, and what is to be seen before and after."""

    files: dict[str, bytes]
    ops: list[tuple[str, str]]
    before: dict[str, Seen]
    after: dict[str, Seen]

    def disk(self) -> FileIO:
        """A disk of one's own."""
        return disk_with(self.files)


def disk_with(files: dict[str, bytes]) -> FileIO:
    """A disk with these files."""
    disk = Workshop().fileio
    for path, data in files.items():
        disk.write_bytes(path, data)
    return disk


@functools.cache
def prepared(name: str) -> Prepared:
    """Made once for each scenario."""
    scenario = SCENARIOS[name]
    disk = Workshop().fileio
    scenario.create(disk)
    files = contents(disk)
    done = disk_with(files)
    before = look(done)
    io = FaultyFileIO(done)
    scenario.act(scenario.open(io))
    return Prepared(files, io.ops, before, look(done))


def check(scenario: UpkeepScenario, disk: FileIO) -> None:
    """What has to hold at any moment: what is there can be read, and is what it was or is to be."""
    before, after, now = (
        prepared(scenario.name).before,
        prepared(scenario.name).after,
        look(disk, scenario.may_have_gap),
    )
    assert set(now) <= set(before) | set(after)
    assert set(now) >= set(before) & set(after)
    for name, seen in now.items():
        known = [side[name] for side in (before, after) if name in side]
        allowed = [side.state for side in known]
        if name == "main":
            allowed += scenario.passes(before)
        assert seen.state in allowed
        for tag, state in seen.tags.items():
            assert state in [side.tags[tag] for side in known if tag in side.tags]
        if len(known) == 2:
            assert set(seen.tags) >= set(known[0].tags) & set(known[1].tags)


def positions(name: str, mode: FaultMode) -> list[int]:
    """The operations to fail: for a crash, of reads in a row one will do; effects matter only where there are some."""
    changes = [method in MUTATIONS for method, _ in prepared(name).ops]
    if mode == "crash":
        chosen = [here or before for before, here in pairwise([True, *changes])]
    else:
        chosen = changes if mode != "error" else [True] * len(changes)
    return [number for number, is_chosen in enumerate(chosen, start=1) if is_chosen]


def fail(name: str, mode: FaultMode, every: int = 1, turn: int = 0) -> None:
    """Fails the operations of an action (or some of them) in this way, one run each."""
    scenario = SCENARIOS[name]

    def run(number: int, disk: FileIO) -> None:
        with contextlib.suppress(LakebedError, SimulatedCrash):
            scenario.act(scenario.open(FaultyFileIO(disk, number, mode)))
        check(scenario, disk)
        with contextlib.suppress(AlreadyExists, InvalidArgument, NotFound):
            scenario.act(scenario.open(disk))
        now, expected = look(disk), prepared(name).after
        if name == "rename-tag":
            now["main"].tags.pop("a", None)  # for a moment a tag has both names, and may keep them
        assert {branch: (seen.state, set(seen.tags)) for branch, seen in now.items()} == {
            branch: (seen.state, set(seen.tags)) for branch, seen in expected.items()
        }
        table = Workshop(disk).lake.table("t")
        if name == "rescale":
            table.alter(SetOption("bucket", "2"))
        table.write(rows((99, 99)))
        assert (99, 99) in shown(table)
        look(disk)

    each(name, in_turn(positions(name, mode), every, turn), run)


def each(name: str, numbers: list[int], run: Callable[[int, FileIO], None]) -> None:
    """Runs once for each of these operations, on a disk of its own."""
    before = prepared(name)
    for number in numbers:
        disk = before.disk()
        try:
            run(number, disk)
        except BaseException as error:
            error.add_note(f"{name}: operation {number} of {len(before.ops)}: {before.ops[number - 1]}")
            raise
        if isinstance(disk, MemoryFileIO):
            disk.delete_directory(ROOT)


@pytest.mark.parametrize("mode", ["error", "crash"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_failure_anywhere(name: str, mode: FaultMode) -> None:
    """Whatever fails, the table is the old or the new one and no file that it needs is gone; again is enough."""
    fail(name, mode, every=11 if mode == "error" else 5, turn=list(SCENARIOS).index(name))


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["crash", "error", "error-after-effect", "unknown", "short-write"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_failure_anywhere_without_shortcuts(name: str, mode: FaultMode) -> None:
    """The same for every operation, also where one took effect although it failed, or took half of it."""
    fail(name, mode)


# --- two at once -----------------------------------------------------------------------------------------------------


def _expire(table: Table) -> None:
    table.expire_snapshots(retain_max=1, retain_min=1)


PAIRS: dict[str, tuple[Callable[[FileIO], Table], Callable[[Table], object], Callable[[Table], object]]] = {
    "expiry-and-tag": (history, _expire, lambda t: t.create_tag("new", 4)),
    "tag-and-expiry": (history, lambda t: t.create_tag("new", 4), _expire),
    "expiry-and-replaced-tag": (tagged, _expire, lambda t: t.replace_tag("a", 3)),
    "expiry-and-rollback": (tagged, _expire, lambda t: t.rollback_to(3)),
    "rollback-and-expiry": (tagged, lambda t: t.rollback_to(3), _expire),
    "expiry-and-revival": (tagged, _expire, lambda t: t.rollback_to_as_latest(3)),
    "revival-and-expiry": (tagged, lambda t: t.rollback_to_as_latest(3), _expire),
    "expiry-and-branch": (tagged, _expire, lambda t: t.create_branch("y", "a")),
    "deleted-tag-and-branch": (expired, lambda t: t.delete_tag("a"), lambda t: t.create_branch("y", "a")),
    "branch-and-deleted-tag": (expired, lambda t: t.create_branch("y", "a"), lambda t: t.delete_tag("a")),
    "deleted-tag-and-tag": (expired, lambda t: t.delete_tag("a"), lambda t: t.create_tag("new", 2)),
    "tag-and-deleted-tag": (expired, lambda t: t.create_tag("new", 2), lambda t: t.delete_tag("a")),
    "deleted-tag-and-revival": (expired, lambda t: t.delete_tag("a"), lambda t: t.rollback_to_as_latest(tag="a")),
    "revival-and-deleted-tag": (expired, lambda t: t.rollback_to_as_latest(tag="a"), lambda t: t.delete_tag("a")),
    "rollback-and-commit": (tagged, lambda t: t.rollback_to(3), lambda t: t.write(rows((60, 60)))),
    "commit-and-rollback": (tagged, lambda t: t.write(rows((60, 60))), lambda t: t.rollback_to(3)),
    "commit-and-fast-forward": (branched, lambda t: t.write(rows((60, 60))), lambda t: t.fast_forward("x")),
}


@functools.cache
def pair(name: str) -> tuple[dict[str, bytes], list[tuple[str, str]]]:
    """A disk, and the operations of the first action."""
    create, first, _ = PAIRS[name]
    disk = Workshop().fileio
    create(disk)
    files = contents(disk)
    io = FaultyFileIO(disk_with(files))
    first(Workshop(io).lake.table("t"))
    return files, io.ops


def check_pair(name: str, every: int) -> None:
    """The second action, start to end, just before an operation of the first."""
    _, first, second = PAIRS[name]
    files, ops = pair(name)
    for number in range(1, len(ops) + 1, every):
        disk = disk_with(files)
        table = Workshop(disk).lake.table("t")

        def meanwhile(table: Table = table) -> None:
            with contextlib.suppress(CommitConflict, NotFound):
                second(table)

        try:
            with contextlib.suppress(CommitConflict, NotFound):
                first(Workshop(Interrupted(disk, number, meanwhile)).lake.table("t"))
            look(disk)
            table = Workshop(disk).lake.table("t")
            table.write(rows((99, 99)))
            assert (99, 99) in shown(table)
            look(disk)
        except BaseException as error:
            error.add_note(f"{name}: before operation {number} of {len(ops)}: {ops[number - 1]}")
            raise
        if isinstance(disk, MemoryFileIO):
            disk.delete_directory(ROOT)


@pytest.mark.parametrize("name", PAIRS)
def test_two_at_once(name: str) -> None:
    """Another action in the midst of one: whatever of the two comes about, nothing that stays has lost a file."""
    check_pair(name, every=7)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAIRS)
def test_two_at_once_without_shortcuts(name: str) -> None:
    """The same at any moment."""
    check_pair(name, every=1)
