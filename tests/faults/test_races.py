"""Interleavings that happen once in a year, made to happen: each one used to, or could, lose or double a commit."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.faults.fault_tables import (
    ROOT,
    SCHEMA,
    check_sound,
    data,
    expire_by_hand,
    fresh_disk,
    hooked,
    open_lake,
    rows_of,
    stores_of,
    take_inventory,
)

import lakebed
from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import CountingIds, FixedClock, RandomIds, SystemClock
from lakebed.errors import AlreadyExists, CommitConflict, InvalidArgument, InvalidData, StorageError
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.lake import Lake
from lakebed.metadata.entries import delta_entries
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultyFileIO


@pytest.fixture
def disk() -> MemoryFileIO:
    """An empty disk."""
    return fresh_disk()


def make(disk: FileIO, *, keyed: bool = True, partitioned: bool = False, **options: str) -> Table:
    """A table with one bucket, or without key and buckets."""
    return open_lake(disk).create_table(
        "t",
        SCHEMA,
        primary_key=["p", "id"] if keyed else [],
        partition_by=["p"] if partitioned else [],
        options={**({"bucket": "1", "write-only": "true"} if keyed else {}), **options},
    )


def opened(disk: FileIO) -> Table:
    """The table as another process would open it."""
    return open_lake(disk).table("t")


def hint(table: Table) -> str:
    """Path of the hint to the latest snapshot."""
    return stores_of(table).paths.latest_hint


# Two of the same -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [True, False])
def test_two_replays_at_once(disk: MemoryFileIO, keyed: bool) -> None:
    """Of two processes that commit the same batch of a stream, one does; the other's files go, the first one's stay."""
    make(disk, keyed=keyed)

    def commit(fileio: FileIO) -> bool:
        with opened(fileio).writer(commit_user="job", commit_identifier=1) as writer:
            writer.write(data([(1, 1, 1)]))
            return writer.commit() is not None

    made: list[bool] = []
    made.append(commit(hooked(disk, "create_exclusive", "/snapshot-", lambda: made.append(commit(disk)))))
    assert made == [True, False]
    assert rows_of(opened(disk)) == [(1, 1, 1)]
    check_sound(opened(disk))
    assert not take_inventory(opened(disk)).orphans


@pytest.mark.parametrize("identifier", [None, 1])
def test_store_that_finds_our_own_snapshot(disk: MemoryFileIO, identifier: int | None) -> None:
    """A store that repeats a request and answers "taken" is not believed: the snapshot, and its files, are ours."""
    make(disk, keyed=False)

    class RepeatingFileIO(FaultyFileIO):
        def create_exclusive(self, path: str, data: bytes) -> bool:
            super().create_exclusive(path, data)
            return super().create_exclusive(path, data)

    user = None if identifier is None else "job"
    with opened(RepeatingFileIO(disk)).writer(commit_user=user, commit_identifier=identifier) as writer:
        writer.write(data([(1, 1, 1)]))
        snapshot = writer.commit()
    assert snapshot is not None
    assert rows_of(opened(disk)) == [(1, 1, 1)]
    assert len(opened(disk).snapshots()) == 1
    check_sound(opened(disk))


def test_same_file_name_twice(disk: MemoryFileIO) -> None:
    """A writer that meets a name in use fails and leaves the other's file alone."""
    make(disk, keyed=False)

    def commit(row: tuple[int, int, int]) -> None:
        lake = Lake(FilesystemCatalog(disk, ROOT, SystemClock(), CountingIds()))
        lake.table("t").write(data([row]))

    commit((1, 1, 1))
    with pytest.raises(AlreadyExists):
        commit((2, 2, 2))
    assert rows_of(opened(disk)) == [(1, 1, 1)]
    check_sound(opened(disk))


# Overwrites ----------------------------------------------------------------------------------------------------------


def test_overwrite_during_an_append(disk: MemoryFileIO) -> None:
    """An append that comes after an overwrite adds to its rows, and wins over them."""
    table = make(disk)
    table.write(data([(1, key, 1) for key in range(50)]))
    with opened(disk).writer() as writer:
        writer.write(data([(1, 1, 3), (1, 99, 3)]))
        table.write(data([(1, 1, 2), (1, 2, 2)]), overwrite=True)
    assert rows_of(table) == [(1, 1, 3), (1, 2, 2), (1, 99, 3)]
    check_sound(table)


def test_append_during_an_overwrite(disk: MemoryFileIO) -> None:
    """An overwrite replaces what is there when it is committed, partition by partition."""
    table = make(disk, partitioned=True)
    table.write(data([(1, 1, 1), (2, 1, 1)]))
    meddled = hooked(disk, "create_exclusive", "/snapshot-", lambda: table.write(data([(1, 2, 2), (2, 2, 2)])))
    opened(meddled).write(data([(1, 9, 9)]), overwrite=True)
    assert rows_of(table) == [(1, 9, 9), (2, 1, 1), (2, 2, 2)]
    check_sound(table)


# The table changes its shape, or goes --------------------------------------------------------------------------------


def test_schema_changes_during_a_write(disk: MemoryFileIO) -> None:
    """Rows written under the old schema are read under the new one, which the snapshot names."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))
    with opened(disk).writer() as writer:
        writer.write(data([(1, 2, 2)]))
        table.alter(lakebed.RenameColumn("v", "w"), lakebed.AddColumn("x", "STRING"))
    found = opened(disk).to_arrow().sort_by("id").to_pylist()
    assert found == [{"p": 1, "id": 1, "w": 1, "x": None}, {"p": 1, "id": 2, "w": 2, "x": None}]
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.schema_id == 1
    # A schema that this very handle has just made is the same as the one on disk.
    table.write(pa.table({"p": [1], "id": [3], "w": [3], "x": ["x"]}))
    assert opened(disk).to_arrow().num_rows == 3


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_table_is_dropped_during_a_write(disk: MemoryFileIO, is_made_anew: bool) -> None:
    """A commit to a table that is gone fails; a table of the same name is another one."""
    make(disk)
    writer = opened(disk).writer()
    writer.write(data([(1, 1, 1)]))
    lake = open_lake(disk)
    lake.drop_table("t")
    if is_made_anew:
        lake.create_table("t", {"id": "STRING"})
    with pytest.raises(CommitConflict, match="dropped"):
        writer.commit()
    if is_made_anew:
        assert opened(disk).snapshots() == []
    assert not [status for status in disk.list_recursive(ROOT) if "bucket-" in status.path]


# Hints and clocks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, b"", b"1", b"2", b"99", b"-1", b"three", b"9" * 30])
def test_hint_is_wrong(disk: MemoryFileIO, text: bytes | None) -> None:
    """Whatever the hint says, the next commit comes after the newest snapshot."""
    table = make(disk)
    for number in range(3):
        table.write(data([(1, number, number)]))
    disk.delete(hint(table))
    if text is not None:
        disk.write_bytes(hint(table), text)
    snapshot = opened(disk).write(data([(1, 9, 9)]))
    assert snapshot is not None
    assert snapshot.id == 4
    assert len(rows_of(opened(disk))) == 4
    assert disk.read_bytes(hint(table)) == b"4"


def test_hint_is_written_late(disk: MemoryFileIO) -> None:
    """A committer that is overtaken before it writes its hint takes the hint back, which misleads nobody."""
    table = make(disk)
    slow = hooked(disk, "overwrite", "LATEST", lambda: table.write(data([(2, 2, 2)])))
    opened(slow).write(data([(1, 1, 1)]))
    assert disk.read_bytes(hint(table)) == b"1"
    assert rows_of(opened(disk)) == [(1, 1, 1), (2, 2, 2)]
    snapshot = opened(disk).write(data([(3, 3, 3)]))
    assert snapshot is not None
    assert snapshot.id == 3


def test_first_commits_at_once(disk: MemoryFileIO) -> None:
    """A hint that appears while the first commit looks for snapshots is no sign of damage."""
    table = make(disk)
    slow = hooked(disk, "exists", "LATEST", lambda: table.write(data([(2, 2, 2)])))
    opened(slow).write(data([(1, 1, 1)]))
    assert rows_of(table) == [(1, 1, 1), (2, 2, 2)]


def test_clock_goes_back(disk: MemoryFileIO) -> None:
    """Commit times never decrease, whatever the clocks of the writers say, and time travel finds every snapshot."""
    table = make(disk)
    for now_ms in (5_000, 3_000, 9_000, 1_000):
        lake = Lake(FilesystemCatalog(disk, ROOT, FixedClock(now_ms), RandomIds()))
        lake.table("t").write(data([(1, now_ms, 1)]))
    assert [snapshot.time_millis for snapshot in table.snapshots()] == [5_000, 5_000, 9_000, 9_000]
    assert len(rows_of(table.at(timestamp=8_999))) == 2


# Expiry and rollback -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("commits", "kept_from"), [(1, 3), (2, 3), (2, 4), (6, 3), (6, 5), (6, 8)])
def test_id_is_free_again(disk: MemoryFileIO, commits: int, kept_from: int) -> None:
    """A committer that slept while its id was used and expired does not publish under it, unseen by everybody."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))
    table.write(data([(1, 2, 2)]))

    def meanwhile() -> None:
        for number in range(commits):
            table.write(data([(2, number, number)]))
        expire_by_hand(table, before=kept_from)

    snapshot = opened(hooked(disk, "create_exclusive", "/snapshot-3", meanwhile)).write(data([(3, 3, 3)]))
    assert snapshot is not None
    assert snapshot.id == 3 + commits
    assert rows_of(opened(disk)) == [(1, 1, 1), (1, 2, 2), *((2, n, n) for n in range(commits)), (3, 3, 3)]
    check_sound(opened(disk))
    assert [found.id for found in table.snapshots()] == list(range(kept_from, 4 + commits))


def test_first_id_is_free_again(disk: MemoryFileIO) -> None:
    """The same for the very first commit of a table."""
    table = make(disk, keyed=False)

    def meanwhile() -> None:
        table.write(data([(1, 1, 1)]))
        table.write(data([(2, 2, 2)]))
        expire_by_hand(table, before=2)

    snapshot = opened(hooked(disk, "create_exclusive", "/snapshot-1", meanwhile)).write(data([(3, 3, 3)]))
    assert snapshot is not None
    assert snapshot.id == 3
    assert rows_of(opened(disk)) == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_base_expires_right_after_the_commit(disk: MemoryFileIO) -> None:
    """A commit whose base is gone a moment later, with others on top, is recognised as part of the history."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))

    def meanwhile() -> None:
        table.write(data([(2, 2, 2)]))
        expire_by_hand(table, before=2)

    class LateFileIO(FaultyFileIO):
        def create_exclusive(self, path: str, data: bytes) -> bool:
            done = super().create_exclusive(path, data)
            meanwhile()
            return done

    snapshot = opened(LateFileIO(disk)).write(data([(3, 3, 3)]))
    assert snapshot is not None
    assert snapshot.id == 2
    assert rows_of(opened(disk)) == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    assert [found.id for found in table.snapshots()] == [2, 3]


def test_base_expires_during_the_commit(disk: MemoryFileIO) -> None:
    """When the manifests of the base vanish because others went on, the commit goes on from there."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))
    first = table.latest_snapshot()
    assert first is not None
    reads: list[str] = []

    class CountingFileIO(FaultyFileIO):
        """The writer reads the list for its own needs; the second time it is read to build the new snapshot on it."""

        def read_bytes(self, path: str) -> bytes:
            if first.base_manifest_list in path:
                reads.append(path)
                if len(reads) == 2:
                    meanwhile()
            return super().read_bytes(path)

    def meanwhile() -> None:
        for number in range(3):
            table.write(data([(2, number, number)]))
        expire_by_hand(table, before=4)

    snapshot = opened(CountingFileIO(disk)).write(data([(3, 3, 3)]))
    assert len(reads) == 2
    assert snapshot is not None
    assert snapshot.id == 5
    assert rows_of(opened(disk)) == [(1, 1, 1), *((2, number, number) for number in range(3)), (3, 3, 3)]
    check_sound(opened(disk))


def test_snapshots_in_between_expire(disk: MemoryFileIO) -> None:
    """A writer whose base is long gone reads the newest state, and its rows still come last."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))
    with opened(disk).writer() as writer:
        writer.write(data([(1, 1, 9)]))
        for number in range(5):
            table.write(data([(1, key, number) for key in range(5)]))
        expire_by_hand(table, before=5)
    assert (1, 1, 9) in rows_of(table)
    check_sound(table)


def test_rollback_during_a_write(disk: MemoryFileIO) -> None:
    """A snapshot that was rolled back and made again is another one: its sequence numbers count, not the old ones."""
    table = make(disk)
    table.write(data([(1, 1, 1)]))
    table.write(data([(1, 2, 2)]))
    with opened(disk).writer() as writer:
        writer.write(data([(1, 1, 9)]))
        stores_of(table).snapshots.write_latest_hint(1)
        stores_of(table).snapshots.delete(2)
        table.write(data([(1, key, 3) for key in range(20)]))
    assert (1, 1, 9) in rows_of(table)
    numbers = [
        (entry.file.min_sequence_number, entry.file.max_sequence_number)
        for snapshot in table.snapshots()
        for entry in delta_entries(stores_of(table), snapshot)
    ]
    assert numbers == [(0, 0), (1, 20), (21, 21)]


# Giving up -----------------------------------------------------------------------------------------------------------


def test_others_are_always_faster(disk: MemoryFileIO) -> None:
    """After the last try the commit fails with a conflict, and leaves nothing behind."""
    table = make(disk, **{"commit.max-retries": "2", "commit.min-retry-wait": "1 ms"})

    class OvertakenFileIO(FaultyFileIO):
        overtaken = 0

        def create_exclusive(self, path: str, data_: bytes) -> bool:
            self.overtaken += 1
            table.write(data([(2, self.overtaken, 0)]))
            return super().create_exclusive(path, data_)

    fileio = OvertakenFileIO(disk)
    with pytest.raises(CommitConflict, match="3 times"):
        opened(fileio).write(data([(1, 1, 1)]))
    assert fileio.overtaken == 3
    assert rows_of(table) == [(2, 1, 0), (2, 2, 0), (2, 3, 0)]
    assert not take_inventory(table).orphans


def test_writer_is_done_after_a_failure(disk: MemoryFileIO) -> None:
    """A writer that lost rows to an error does not commit the rest."""
    make(disk, keyed=False)
    writes = FaultyFileIO(disk, fail_at=1, only={"output.write"})
    writer = opened(writes).writer()
    writer.write(data([(1, 1, 1)]))
    with pytest.raises(StorageError):
        writer.commit()
    with pytest.raises(InvalidArgument, match="done"):
        writer.write(data([(2, 2, 2)]))
    with pytest.raises(InvalidArgument, match="done"):
        writer.commit()
    assert rows_of(opened(disk)) == []
    assert not take_inventory(opened(disk)).orphans


def test_rows_are_lost_while_writing(disk: MemoryFileIO) -> None:
    """The same when the error comes in the middle of writing and the caller goes on regardless."""
    make(disk, **{"write-buffer-size": "1 b", "write-buffer-spillable": "false"})
    writer = opened(FaultyFileIO(disk, fail_at=2, only={"open_output"})).writer()
    writer.write(data([(1, 1, 1)]))
    with pytest.raises(StorageError):
        writer.write(data([(2, 2, 2)]))
    with pytest.raises(InvalidArgument, match="done"):
        writer.write(data([(3, 3, 3)]))
    assert not take_inventory(opened(disk)).orphans


def test_refused_rows_are_not_half_taken(disk: MemoryFileIO) -> None:
    """A batch with one row outside the overwritten partition leaves no row of it in the writer."""
    table = make(disk, partitioned=True)
    with table.writer(overwrite={"p": 1}) as writer:
        with pytest.raises(InvalidData, match="p=2"):
            writer.write(data([(1, 1, 1), (2, 2, 2)]))
        writer.write(data([(1, 5, 5)]))
    assert rows_of(table) == [(1, 5, 5)]
