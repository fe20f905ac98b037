"""Which concurrent commits go together and which do not, and that a repeated commit changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.faults.fault_tables import (
    SCHEMA,
    Row,
    check_sound,
    data,
    expire_by_hand,
    fresh_disk,
    open_lake,
    rows_of,
    stores_of,
    take_inventory,
)

import lakebed
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.replay import LAST_IDENTIFIER_PREFIX
from lakebed.errors import CommitConflict
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.data_file import EMPTY_STATS, DataFile
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.table.table import Table
from lakebed.types.binary_row import EMPTY_ROW

LOW, HIGH = range(0, 10), range(10, 20)


@pytest.fixture
def disk() -> MemoryFileIO:
    """An empty disk."""
    return fresh_disk()


def keyed(disk: MemoryFileIO, buckets: int = 1, *, partitioned: bool = False) -> Table:
    """A primary-key table."""
    return open_lake(disk).create_table(
        "t",
        SCHEMA,
        primary_key=["p", "id"],
        partition_by=["p"] if partitioned else [],
        options={"bucket": str(buckets), "write-only": "true"},
    )


# Files as compaction would commit them -------------------------------------------------------------------------------


def entry(kind: EntryKind, name: str, level: int, keys: range, total_buckets: int = 1) -> ManifestEntry:
    """A file that holds these keys (kept in the sequence numbers, where `bounds` finds them)."""
    file = DataFile(name, 1, len(keys), b"", b"", EMPTY_STATS, EMPTY_STATS, keys[0], keys[-1], 0, level)
    return ManifestEntry(kind, EMPTY_ROW, 0, total_buckets, file)


def added(name: str, level: int, keys: range, total_buckets: int = 1) -> ManifestEntry:
    """A new file."""
    return entry(EntryKind.ADD, name, level, keys, total_buckets)


def deleted(name: str, level: int, keys: range) -> ManifestEntry:
    """A file that a compaction replaced."""
    return entry(EntryKind.DELETE, name, level, keys)


def bounds(files: list[DataFile]) -> tuple[list[int], list[int]]:
    """First and last key of files."""
    return [file.min_sequence_number for file in files], [file.max_sequence_number for file in files]


def apply(live: list[ManifestEntry], *delta: ManifestEntry) -> list[ManifestEntry]:
    """The live files after a commit that passed the check."""
    check_conflicts(live, delta, table="t", key_bounds=bounds, may_change_bucket_count=False)
    gone = {one.identity for one in delta if one.kind == EntryKind.DELETE}
    return [one for one in live if one.identity not in gone] + [one for one in delta if one.kind == EntryKind.ADD]


def test_two_compactions_of_one_bucket() -> None:
    """S-02: the second one replaces a file that is gone, and is refused."""
    live = apply([], added("a", 0, LOW), added("b", 0, LOW))
    live = apply(live, deleted("a", 0, LOW), deleted("b", 0, LOW), added("first", 5, LOW))
    with pytest.raises(CommitConflict, match="no longer there"):
        apply(live, deleted("a", 0, LOW), deleted("b", 0, LOW), added("second", 5, LOW))


def test_append_during_a_compaction() -> None:
    """S-03: a new file on level 0 does not disturb a compaction, nor the other way round."""
    live = apply([], added("a", 0, LOW), added("b", 0, LOW))
    live = apply(live, added("new", 0, LOW))
    live = apply(live, deleted("a", 0, LOW), deleted("b", 0, LOW), added("compacted", 5, LOW))
    assert {one.file.file_name for one in live} == {"new", "compacted"}


def test_overlapping_results_of_two_compactions() -> None:
    """S-05: two compactions of different files into overlapping files of one level do not go together."""
    live = apply([], added("a", 0, LOW), added("b", 0, range(5, 15)))
    live = apply(live, deleted("a", 0, LOW), added("first", 1, LOW))
    with pytest.raises(CommitConflict, match="overlapping"):
        apply(live, deleted("b", 0, range(5, 15)), added("second", 1, range(5, 15)))
    apply(live, deleted("b", 0, range(5, 15)), added("second", 2, range(5, 15)))


def test_neighbours_on_a_level() -> None:
    """Files of one level may touch, but not share a key; other buckets and partitions do not matter."""
    live = apply([], added("a", 3, LOW), added("b", 3, HIGH))
    with pytest.raises(CommitConflict, match="overlapping"):
        apply(live, added("c", 3, range(19, 25)))
    apply(live, added("c", 3, range(20, 25)))
    apply(live, replace(added("c", 3, LOW), bucket=1))
    apply(live, replace(added("c", 3, LOW), partition=b"other"))


def test_upgrade_without_rewriting() -> None:
    """A file may move up a level under its own name; the same file twice on one level may not be."""
    live = apply([], added("a", 0, LOW))
    live = apply(live, deleted("a", 0, LOW), added("a", 5, LOW))
    with pytest.raises(CommitConflict, match="committed already"):
        apply(live, added("a", 5, LOW))


def test_file_added_and_deleted_at_once() -> None:
    """A commit that deletes what it adds contradicts itself."""
    with pytest.raises(CommitConflict, match="no longer there"):
        apply([], added("a", 0, LOW), deleted("a", 0, LOW))


def test_bucket_counts_do_not_mix() -> None:
    """Within a partition all files are hashed into the same number of buckets, unless all of them are replaced."""
    live = apply([], added("a", 0, LOW, total_buckets=2))
    with pytest.raises(CommitConflict, match="2 buckets"):
        apply(live, added("b", 0, LOW, total_buckets=4))
    apply(live, replace(live[0], kind=EntryKind.DELETE), added("b", 0, LOW, total_buckets=4))
    apply(live, replace(added("b", 0, LOW, total_buckets=4), partition=b"other"))


# Writers -------------------------------------------------------------------------------------------------------------


def test_appends_to_different_partitions(disk: MemoryFileIO) -> None:
    """S-01: both go in, one after the other, and nothing is written twice."""
    keyed(disk, partitioned=True)
    first, second = (open_lake(disk).table("t").writer() for _ in range(2))
    first.write(data([(1, 1, 1)]))
    second.write(data([(2, 1, 2)]))
    made = [writer.commit() for writer in (second, first)]
    table = open_lake(disk).table("t")
    assert [snapshot.id for snapshot in made if snapshot] == [1, 2]
    assert rows_of(table) == [(1, 1, 1), (2, 1, 2)]
    assert not take_inventory(table).orphans


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_later_commit_wins(disk: MemoryFileIO, order: tuple[int, ...]) -> None:
    """The order of commits decides between rows of one key, whatever order they were written in."""
    table = keyed(disk)
    writers = [open_lake(disk).table("t").writer() for _ in order]
    for number, writer in enumerate(writers):
        writer.write(data([(1, other, number) for other in range(10 * (number + 1))]))
        writer.write(data([(1, 0, 100 + number)]))
    for number in order:
        writers[number].commit()
        assert (1, 0, 100 + number) in rows_of(table)
    check_sound(table)
    assert not take_inventory(table).orphans


def test_write_with_another_bucket_count(disk: MemoryFileIO) -> None:
    """A changed bucket number takes effect by overwriting; appending to old files, or by it, is refused."""
    table = keyed(disk, 2)
    table.write(data([(1, key, 1) for key in range(8)]))
    late = open_lake(disk).table("t").writer()
    late.write(data([(1, 1, 9)]))
    table.alter(lakebed.SetOption("bucket", "4"))
    with pytest.raises(CommitConflict, match="buckets"):
        table.write(data([(1, 1, 2)]))
    new = [(1, key, 3) for key in range(8)]
    table.write(data(new), overwrite=True)
    with pytest.raises(CommitConflict, match="buckets"):
        late.commit()
    assert rows_of(table) == new
    table.write(data([(1, 1, 4)]))
    assert (1, 1, 4) in rows_of(table)
    check_sound(table)


# Replays -------------------------------------------------------------------------------------------------------------


def commit(table: Table, user: str, identifier: int | None, row: Row) -> bool:
    """Commits one row; whether a snapshot was made."""
    with table.writer(commit_user=user, commit_identifier=identifier) as writer:
        writer.write(data([row]))
        return writer.commit() is not None


def test_replay_changes_nothing(disk: MemoryFileIO) -> None:
    """S-04: the same or a smaller identifier of a user is in already; others are not concerned."""
    table = keyed(disk)
    assert commit(table, "job", 5, (1, 5, 5))
    assert not commit(table, "job", 5, (1, 5, 5))
    assert not commit(table, "job", 4, (1, 4, 4))
    assert commit(table, "another", 4, (1, 40, 40))
    assert commit(table, "job", 6, (1, 6, 6))
    assert rows_of(table) == [(1, 5, 5), (1, 6, 6), (1, 40, 40)]
    assert not take_inventory(table).orphans
    check_sound(table)


def test_replay_after_expiry(disk: MemoryFileIO) -> None:
    """A stream's last commit is known after all of its snapshots have gone."""
    table = keyed(disk)
    commit(table, "job", 5, (1, 5, 5))
    for number in range(3):
        table.write(data([(2, number, number)]))
    commit(table, "another", 1, (3, 1, 1))
    expire_by_hand(table, before=5)
    assert [snapshot.commit_user for snapshot in table.snapshots()] == ["another"]
    before = rows_of(table)
    assert not commit(table, "job", 5, (1, 5, 5))
    assert rows_of(table) == before
    assert commit(table, "job", 6, (1, 6, 6))


def foreign_commit(table: Table) -> None:
    """A snapshot as another engine makes it: without our properties, our name and our uuid."""
    stores = stores_of(table)
    latest = stores.snapshots.latest()
    assert latest is not None
    base, base_size = stores.manifest_lists.write([])
    delta, delta_size = stores.manifest_lists.write(
        [
            *stores.manifest_lists.read(latest.base_manifest_list),
            *stores.manifest_lists.read(latest.delta_manifest_list),
        ]
    )
    made = replace(
        latest,
        id=latest.id + 1,
        commit_user="foreign",
        base_manifest_list=base,
        base_manifest_list_size=base_size,
        delta_manifest_list=delta,
        delta_manifest_list_size=delta_size,
        properties=None,
        writer_version=None,
        uuid=None,
    )
    assert stores.snapshots.publish(made)


def test_replay_after_a_commit_of_another_engine(disk: MemoryFileIO) -> None:
    """Others do not carry our memory on; we look behind their snapshots, and carry it on ourselves."""
    table = keyed(disk)
    commit(table, "job", 5, (1, 5, 5))
    foreign_commit(table)
    foreign_commit(table)
    assert not commit(table, "job", 5, (1, 5, 5))
    table.write(data([(2, 2, 2)]))
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.properties or {})[LAST_IDENTIFIER_PREFIX + "job"] == "5"
    expire_by_hand(table, before=4)
    assert not commit(table, "job", 5, (1, 5, 5))


def test_batch_commits_are_no_replays(disk: MemoryFileIO) -> None:
    """Commits without an identifier always go in, and do not hide those with one, under the same name."""
    table = keyed(disk)
    assert commit(table, "job", None, (1, 1, 1))
    assert commit(table, "job", 3, (1, 3, 3))
    assert commit(table, "job", None, (1, 2, 2))
    assert commit(table, "job", 4, (1, 4, 4))
    assert not commit(table, "job", 4, (1, 4, 4))
    assert len(rows_of(table)) == 4


def test_replayed_overwrite(disk: MemoryFileIO) -> None:
    """A replayed overwrite does not wipe out what came after it."""
    table = keyed(disk)
    for _ in range(2):
        with table.writer(overwrite=True, commit_user="job", commit_identifier=1) as writer:
            writer.write(data([(1, 1, 1)]))
        table.write(data([(2, 2, 2)]))
    assert rows_of(table) == [(1, 1, 1), (2, 2, 2)]
