"""Ctrl-C at any moment of a commit: nothing visible and nothing left behind, or all of it, and no file is missing."""

from __future__ import annotations

import pytest
from tests.faults.fault_scenarios import SCENARIOS, Scenario
from tests.faults.fault_tables import (
    check_sound,
    copy_of,
    data,
    fresh_disk,
    open_lake,
    rows_of,
    stores_of,
    take_inventory,
)

from lakebed.testing.faulty_io import MUTATIONS, FaultMode, FaultyFileIO

NAMES = ["first-commit", "append", "keyed-buckets", "merge-manifests", "overwrite-static"]


class InterruptedFileIO(FaultyFileIO):
    """The user presses Ctrl-C at the chosen operation: before it, or (`error-after-effect`) after it."""

    def _fault(self, method: str, path: str) -> KeyboardInterrupt:  # type: ignore[override]
        return KeyboardInterrupt(f"{method} {path}")


def interrupt(scenario: Scenario, number: int, mode: FaultMode, ops: list[tuple[str, str]]) -> None:
    """One interrupted commit, and all that has to hold afterwards."""
    disk = fresh_disk()
    scenario.create(open_lake(disk))
    publishing = [method for method, _ in ops].index("create_exclusive") + 1
    with pytest.raises(KeyboardInterrupt):
        scenario.commit(open_lake(InterruptedFileIO(disk, number, mode)).table("t"))
    table = open_lake(disk).table("t")
    is_published = number > publishing or (number == publishing and mode == "error-after-effect")
    old = scenario.initial()
    found = scenario.applied(old) if is_published else old
    assert rows_of(table) == found
    if number != publishing:  # there it can not be told, so nothing may be deleted
        assert not take_inventory(table).orphans
    check_sound(table)
    table.write(data([(3, 99, 99)]))
    assert rows_of(table) == scenario.add(found, [(3, 99, 99)])


@pytest.mark.parametrize("mode", ["error", "error-after-effect"])
@pytest.mark.parametrize("name", NAMES)
def test_interrupt_anywhere(name: str, mode: FaultMode) -> None:
    """Before the snapshot is created the files go, from then on they stay; the exception always comes out."""
    scenario = SCENARIOS[name]
    disk = fresh_disk()
    scenario.create(open_lake(disk))
    fileio = FaultyFileIO(copy_of(disk))
    scenario.commit(open_lake(fileio).table("t"))
    for number, (method, path) in enumerate(fileio.ops, start=1):
        if mode == "error-after-effect" and method not in MUTATIONS:
            continue  # the same as before the next operation
        try:
            interrupt(scenario, number, mode, fileio.ops)
        except BaseException as error:
            error.add_note(f"{name}: interrupted at {number} of {len(fileio.ops)}: {method} {path}")
            raise


def test_interrupt_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt in the last moment, when nothing but the hint is missing, leaves a commit that stands."""
    disk = fresh_disk()
    table = SCENARIOS["append"].create(open_lake(disk))

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lakebed.metadata.snapshot.SnapshotStore.write_latest_hint", pressed)
        with pytest.raises(KeyboardInterrupt):
            table.write(data([(5, 5, 5)]))
    assert (5, 5, 5) in rows_of(table)
    assert stores_of(table).snapshots.latest_id() == 3
    check_sound(table)


def test_interrupt_between_commit_and_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even an interrupt after the committer has returned deletes nothing."""
    disk = fresh_disk()
    table = SCENARIOS["append"].create(open_lake(disk))

    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lakebed.commit.attempt.WrittenFiles.take_back", pressed)
        with pytest.raises(KeyboardInterrupt):
            table.write(data([(5, 5, 5)]))
    assert (5, 5, 5) in rows_of(table)
    check_sound(table)


def test_interrupt_in_the_users_code() -> None:
    """An interrupt in a `with` block takes back what was written so far."""
    disk = fresh_disk()
    table = SCENARIOS["append"].create(open_lake(disk))
    before = rows_of(table)

    def stopped() -> None:
        with table.writer() as writer:
            writer.write(data([(5, 5, 5)]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert rows_of(table) == before
    assert not take_inventory(table).orphans
