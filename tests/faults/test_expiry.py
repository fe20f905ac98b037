"""Every file operation of an expiry fails once, in every way: what stays is whole, and the next expiry finishes it.

In the default run scenarios take turns with the operations; the nightly run fails every operation of each.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import pytest
from tests.faults.expiry_scenarios import SCENARIOS, Expected
from tests.faults.fault_tables import in_turn
from tests.unit.maintenance.expiring_tables import ROOT, Workshop, ids, rows, shown

from lakebed.errors import LakebedError
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.testing.faulty_io import MUTATIONS, FaultMode, FaultyFileIO, SimulatedCrash


class Prepared(NamedTuple):
    """A disk before an expiry, the operations it takes, and what is expected of it."""

    files: dict[str, bytes]
    ops: list[tuple[str, str]]
    expected: Expected

    @property
    def first(self) -> int:
        """The first operation that is not of the commit before: those are failed elsewhere."""
        hints = [number for number, (_, path) in enumerate(self.ops, start=1) if path.endswith("/snapshot/LATEST")]
        written = [number for number in hints if self.ops[number - 1][0] == "overwrite"]
        return max(written, default=0) + 1

    def disk(self) -> FileIO:
        """A disk of one's own."""
        disk = Workshop().fileio
        for path, data in self.files.items():
            disk.write_bytes(path, data)
        return disk


def contents(disk: FileIO) -> dict[str, bytes]:
    """Every file."""
    return {status.path: disk.read_bytes(status.path) for status in disk.list_recursive(ROOT)}


@functools.cache
def prepared(name: str) -> Prepared:
    """Made once for each scenario."""
    disk = Workshop().fileio
    SCENARIOS[name].create(disk)
    files = contents(disk)
    expected = Expected.of(disk)
    done = Prepared(files, [], expected).disk()
    io = FaultyFileIO(done)
    SCENARIOS[name].expire(io)
    table = Workshop(done).lake.table("t")
    expected.snapshots = [number for number in ids(table) if number in expected.states]
    expected.changelogs = table._opened.context.stores.changelogs.ids()
    assert expected.snapshots[0] > min(expected.states) or SCENARIOS[name].leftover
    expected.check_done(done, SCENARIOS[name])
    return Prepared(files, io.ops, expected)


def each(name: str, positions: list[int], run: Callable[[int, FileIO], None]) -> None:
    """Runs once for each of these operations, on a disk of its own."""
    before = prepared(name)
    for number in positions:
        disk = before.disk()
        try:
            run(number, disk)
        except BaseException as error:
            error.add_note(f"{name}: operation {number} of {len(before.ops)}: {before.ops[number - 1]}")
            raise
        if isinstance(disk, MemoryFileIO):
            disk.delete_directory(ROOT)


def positions(name: str, mode: FaultMode) -> list[int]:
    """The operations to fail: for a crash, of reads in a row one will do; effects matter only where there are some."""
    changes = [method in MUTATIONS for method, _ in prepared(name).ops]
    if mode == "crash":
        chosen = [here or before for before, here in pairwise([True, *changes])]
    else:
        chosen = changes if mode != "error" else [True] * len(changes)
    first = prepared(name).first
    return [number for number, is_chosen in enumerate(chosen, start=1) if is_chosen and number >= first]


def fail(name: str, mode: FaultMode, every: int = 1, turn: int = 0) -> None:
    """Fails the operations of an expiry (or some of them) in this way, one run each."""
    scenario, expected = SCENARIOS[name], prepared(name).expected

    def run(number: int, disk: FileIO) -> None:
        with contextlib.suppress(LakebedError, SimulatedCrash):
            scenario.expire(FaultyFileIO(disk, number, mode))
        if contents(disk) == prepared(name).files:
            return  # failed while planning, and nothing has happened
        expected.check(disk)
        Workshop(disk).lake.table("t").expire_snapshots()
        if scenario.by_commit:
            assert (70, 70) in shown(Workshop(disk).lake.table("t"))
        expected.check_done(disk, scenario)

    each(name, in_turn(positions(name, mode), every, turn), run)


@pytest.mark.parametrize("mode", ["error", "crash"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_failure_anywhere(name: str, mode: FaultMode) -> None:
    """Whatever fails, all that is to stay is readable; expiring again ends where one without a failure ends."""
    fail(name, mode, every=8 if mode == "error" else 5, turn=list(SCENARIOS).index(name))


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["crash", "error", "error-after-effect", "short-write"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_failure_anywhere_without_shortcuts(name: str, mode: FaultMode) -> None:
    """The same for every operation, also where one took effect although it failed, or took half of it."""
    fail(name, mode)


class Interrupted(FaultyFileIO):
    """Something else happens just before the chosen operation."""

    def __init__(self, inner: FileIO, fail_at: int, action: Callable[[], object]) -> None:
        super().__init__(inner, fail_at)
        self._action = action

    def _is_due(self, method: str, path: str) -> bool:
        if super()._is_due(method, path):
            self._action()
        return False


CALLED = [name for name in SCENARIOS if not SCENARIOS[name].by_commit]


def check_two_expiries(name: str, numbers: list[int]) -> None:
    """Another expiry, start to end, just before each of these operations."""
    scenario, expected = SCENARIOS[name], prepared(name).expected

    def run(number: int, disk: FileIO) -> None:
        scenario.expire(Interrupted(disk, number, lambda: scenario.expire(disk)))
        scenario.expire(disk)  # one that was overtaken may leave the copy of a snapshot that had gone for good
        expected.check_done(disk, scenario)

    each(name, numbers, run)


@pytest.mark.parametrize("name", CALLED)
def test_two_expiries_at_once(name: str) -> None:
    """Another expiry in the midst of one: neither fails, and in the end all is as it should be."""
    check_two_expiries(name, positions(name, "error")[::5])


@pytest.mark.nightly
@pytest.mark.parametrize("name", CALLED)
def test_two_expiries_at_once_without_shortcuts(name: str) -> None:
    """The same at any moment."""
    check_two_expiries(name, positions(name, "error"))


@pytest.mark.parametrize("name", CALLED)
def test_a_commit_meanwhile(name: str) -> None:
    """A commit at any moment of an expiry is not disturbed, and what it builds on stays."""
    scenario, expected = SCENARIOS[name], prepared(name).expected
    # If it comes before the plan is made, one more of each is too many.
    expected = replace(expected, snapshots=expected.snapshots[1:], changelogs=expected.changelogs[1:])

    def run(number: int, disk: FileIO) -> None:
        scenario.expire(Interrupted(disk, number, lambda: Workshop(disk).lake.table("t").write(rows((60, 60)))))
        expected.check(disk)
        table = Workshop(disk).lake.table("t")
        assert shown(table) == sorted([*expected.states[max(expected.states)], (60, 60)])

    each(name, positions(name, "crash")[::4], run)
