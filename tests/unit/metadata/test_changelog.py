"""The store of changelogs that outlive their snapshots."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from lakebed.errors import CorruptFile, NotFound
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.changelog import ChangelogStore
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import CommitKind, Snapshot

PATHS = TablePaths("t")


def snapshot(number: int) -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="base",
        delta_manifest_list="delta",
        commit_user="me",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=number,
        total_record_count=0,
        delta_record_count=0,
    )


@pytest.fixture
def fileio() -> MemoryFileIO:
    return MemoryFileIO(f"changelogs-{uuid4()}")


@pytest.fixture
def store(fileio: MemoryFileIO) -> ChangelogStore:
    return ChangelogStore(fileio, PATHS)


def test_empty(store: ChangelogStore) -> None:
    """Without changelogs there is no earliest, no latest, and asking for one says so."""
    assert store.ids() == []
    assert store.earliest_id() is None
    assert store.latest_id() is None
    assert store.find(1) is None
    with pytest.raises(NotFound, match="changelog 1 of t does not exist"):
        store.get(1)


def test_round_trip(store: ChangelogStore, fileio: MemoryFileIO) -> None:
    """A changelog is the snapshot's own file; put twice, it is there once."""
    for number in (9, 10, 11):
        store.put(snapshot(number))
    store.put(snapshot(9))
    assert store.get(9) == snapshot(9)
    assert fileio.read_bytes("t/changelog/changelog-9") == snapshot(9).to_file()
    assert store.ids() == [9, 10, 11]
    assert (store.earliest_id(), store.latest_id()) == (9, 11)
    with pytest.raises(NotFound, match="does not exist") as raised:
        store.get(12)
    assert "9 to 11" in raised.value.hint
    assert store.delete(9)
    assert not store.delete(9)
    assert store.ids() == [10, 11]


def test_copy_of_a_snapshot_that_was_rolled_back_is_replaced(store: ChangelogStore) -> None:
    """An id that was given a second time gets the changelog of its second snapshot."""
    store.put(snapshot(4))
    second = replace(snapshot(4), commit_user="somebody else")
    store.put(second)
    assert store.get(4) == second


@pytest.mark.parametrize("hint", [b"10", b"3", b"99", b"garbage", b""])
def test_hints_are_believed_only_if_files_bear_them_out(
    store: ChangelogStore, fileio: MemoryFileIO, hint: bytes
) -> None:
    """Whatever the hints say, earliest and latest are those of the files, or at least exist."""
    for number in (10, 11, 12):
        store.put(snapshot(number))
    fileio.overwrite(PATHS.changelog_latest_hint, hint)
    fileio.overwrite(PATHS.changelog_earliest_hint, hint)
    assert (store.earliest_id(), store.latest_id()) == (10, 12)


def test_hints_are_plain_numbers(store: ChangelogStore, fileio: MemoryFileIO) -> None:
    """Other engines read the hints: decimal text, gone when no changelog is left."""
    store.put(snapshot(3))
    store.write_latest_hint(3)
    store.write_earliest_hint(3)
    assert fileio.read_bytes("t/changelog/LATEST") == b"3"
    assert fileio.read_bytes("t/changelog/EARLIEST") == b"3"
    assert (store.earliest_id(), store.latest_id()) == (3, 3)
    store.delete_hints()
    assert not fileio.exists("t/changelog/LATEST")


def test_damage_is_an_error(store: ChangelogStore, fileio: MemoryFileIO) -> None:
    """A changelog file that is no snapshot is named."""
    fileio.write_bytes(PATHS.changelog_file(1), b"{}")
    with pytest.raises(CorruptFile, match="changelog-1"):
        store.get(1)
