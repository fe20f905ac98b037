"""Rollback: the latest snapshot is an earlier one again, or a new one with an earlier one's rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import TEN_O_CLOCK, Workshop, changed, ids, rows, shown, stores_of
from tests.unit.maintenance.test_tags import history

from lakebed import RenameColumn
from lakebed.errors import CommitConflict, InvalidArgument, NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import all_metas, read_manifests
from lakebed.metadata.manifest import EntryKind
from lakebed.metadata.snapshot import CommitKind
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultyFileIO


def plain(shop: Workshop, commits: int = 4, **options: object) -> Table:
    """An append table; commit n, at minute n, adds row (n, n)."""
    table = shop.create(primary_key=False, **options)
    for number in range(1, commits + 1):
        shop.at(number)
        table.write(rows((number, number)))
    return table


def up_to(number: int) -> list[tuple[int, int]]:
    """The rows of that commit's state."""
    return [(n, n) for n in range(1, number + 1)]


def test_newer_snapshots_are_gone() -> None:
    """State, history and hint are those of the target; later writes go on from it."""
    table = plain(Workshop())
    done = table.rollback_to(2)
    assert (done.previous, done.current) == (4, 2)
    assert ids(table) == [1, 2]
    assert shown(table) == up_to(2)
    assert table._opened.context.fileio.read_bytes(f"{table.location}/snapshot/LATEST") == b"2"
    table.write(rows((9, 9)))
    assert ids(table) == [1, 2, 3]
    assert shown(table) == [*up_to(2), (9, 9)]
    assert changed(table, 2) == [("+I", 9, 9)]


def test_a_tag_a_moment_or_a_snapshot_says_where_to() -> None:
    """All of them name a snapshot; exactly one of them does."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("three", 3)
    table.create_tag("two", 2)
    assert table.rollback_to(tag="three").current == 3
    assert table.tags() == ["three", "two"]
    assert table.rollback_to(timestamp=TEN_O_CLOCK + 2 * 60_000 + 5).current == 2
    assert table.tags() == ["two"]
    assert table.rollback_to(snapshot=1).previous == 2
    assert table.tags() == []
    for wrong in ({}, {"snapshot": 1, "tag": "two"}):
        with pytest.raises(InvalidArgument):
            table.rollback_to(**wrong)  # type: ignore[arg-type]
    for missing in ({"snapshot": 7}, {"tag": "x"}, {"timestamp": 1}):
        with pytest.raises(NotFound):
            table.rollback_to(**missing)  # type: ignore[arg-type]
    assert ids(table) == [1]


def test_rolling_back_to_the_latest_changes_nothing() -> None:
    """There is nothing newer."""
    table = plain(Workshop(), 2)
    table.create_tag("t")
    assert table.rollback_to(2).previous == 2
    assert ids(table) == [1, 2]
    assert table.tags() == ["t"]


def test_a_tag_brings_back_an_expired_snapshot() -> None:
    """All later snapshots go, and the tag's is there again."""
    table = plain(Workshop(), 5)
    table.create_tag("two", 2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert ids(table) == [5]
    assert table.rollback_to(2).current == 2
    assert ids(table) == [2]
    assert shown(table) == up_to(2)
    table.create_tag("again")
    table.write(rows((7, 7)))
    assert ids(table) == [2, 3]
    assert shown(table) == [*up_to(2), (7, 7)]


def test_long_lived_changelogs_of_the_future_go() -> None:
    """A changelog of a snapshot that is rolled back is gone with it."""
    table = plain(
        Workshop(), 6, snapshot__num_retained__min=1, snapshot__num_retained__max=2, changelog__num_retained__max=9
    )
    table.create_tag("x")
    stores = stores_of(table)
    assert stores.changelogs.ids() == [1, 2, 3, 4]
    table.write(rows((8, 8)))
    table.delete_tag("x")
    stores.tags.create("old", stores.changelogs.get(3))
    table.rollback_to(tag="old")
    assert stores.changelogs.ids() == [1, 2, 3]
    assert stores.changelogs.latest_id() == 3


def test_keyed_tables_go_on_with_their_sequence() -> None:
    """After a rollback of upserts and compactions, upserts win as they should."""
    table = history(Workshop(), 4)
    expected = shown(table.at(snapshot=3))
    table.rollback_to(3)
    assert shown(table) == expected
    table.write(rows((0, 77)))
    assert shown(table)[0] == (0, 77)
    assert table.check() == []


def test_what_is_about_to_expire_is_no_target() -> None:
    """An expiry that has announced itself deletes the target's files."""
    table = plain(Workshop())
    stores_of(table).snapshots.announce_expiry(3)
    with pytest.raises(CommitConflict):
        table.rollback_to(2)
    assert ids(table) == [1, 2, 3, 4]
    table.rollback_to(3)


class _Meanwhile(FaultyFileIO):
    """Something else happens before the first deletion."""

    def __init__(self, inner: FileIO, action: object) -> None:
        super().__init__(inner)
        self._action = action

    def delete(self, path: str) -> bool:
        action, self._action = self._action, None
        if callable(action):
            action()
        return super().delete(path)


def test_an_expiry_that_begins_meanwhile_makes_it_undone() -> None:
    """The snapshots come back, since the expiry took them for the future when it chose what goes."""
    shop = Workshop()
    table = plain(shop)
    snapshots = stores_of(table).snapshots
    io = _Meanwhile(shop.fileio, lambda: snapshots.announce_expiry(4))
    with pytest.raises(CommitConflict):
        Workshop(io).lake.table("t").rollback_to(2)
    assert ids(table) == [1, 2, 3, 4]
    assert shown(table) == up_to(4)


def test_a_commit_that_comes_in_between_goes_too() -> None:
    """Rolled back to 2 means that nothing after 2 is left."""
    shop = Workshop()
    table = plain(shop)
    io = _Meanwhile(shop.fileio, lambda: shop.lake.table("t").write(rows((50, 50))))
    Workshop(io).lake.table("t").rollback_to(2)
    assert ids(table) == [1, 2]
    assert shown(table) == up_to(2)


class _BeforePublishing(FaultyFileIO):
    """Something else happens just before a snapshot is published."""

    def __init__(self, inner: FileIO, action: object) -> None:
        super().__init__(inner)
        self._action = action

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if "/snapshot-" in path and callable(self._action):
            action, self._action = self._action, None
            action()
        return super().create_exclusive(path, data)


def test_a_commit_does_not_bring_back_what_is_rolled_back() -> None:
    """A writer whose base was rolled back just before it published does it again on top of the target."""
    shop = Workshop()
    table = plain(shop)
    io = _BeforePublishing(shop.fileio, lambda: table.rollback_to(2))
    Workshop(io).lake.table("t").write(rows((50, 50)))
    assert ids(table) == [1, 2, 3]
    assert shown(table) == [*up_to(2), (50, 50)]


@pytest.mark.parametrize("as_latest", [False, True])
@pytest.mark.parametrize("key", [[], ["k"]])
def test_a_state_comes_back_under_other_names_of_columns(key: list[str], as_latest: bool) -> None:
    """A column that options name, such as the bucket key, may have been renamed since: it is the same column."""
    options = {"bucket": "2"} if key else {"bucket": "2", "bucket-key": "v"}
    table = Workshop().lake.create_table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=key, options=options)
    first = pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([10, 20], pa.int32())})
    table.write(first)
    table.alter(RenameColumn("v", "w"))
    table.write(first.rename_columns(["k", "w"]).slice(0, 1).set_column(0, "k", pa.array([9], pa.int32())))
    (table.rollback_to_as_latest if as_latest else table.rollback_to)(1)
    back = {row["k"]: row["w"] for row in table.to_arrow().to_pylist()}
    assert back == {1: 10, 2: 20}
    table.write(first.rename_columns(["k", "w"]).set_column(0, "k", pa.array([3, 4], pa.int32())))
    assert table.to_arrow().num_rows == 4
    assert table.check() == []


# --- as a new snapshot -----------------------------------------------------------------------------------------------


def test_an_old_state_becomes_the_latest() -> None:
    """A new OVERWRITE snapshot has the rows of the old one; all others stay."""
    table = plain(Workshop(), 3)
    done = table.rollback_to_as_latest(1)
    assert (done.previous, done.revived, done.current) == (3, 1, 4)
    assert shown(table) == up_to(1)
    done = table.rollback_to_as_latest(3)
    assert (done.previous, done.revived, done.current) == (4, 3, 5)
    assert shown(table) == up_to(3)
    table.write(rows((4, 4)))
    assert shown(table) == up_to(4)
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    latest = table.at(snapshot=5).snapshots()[4]
    assert latest.commit_kind == CommitKind.OVERWRITE
    assert latest.total_record_count == 3
    assert [shown(table.at(snapshot=n)) for n in (1, 2, 3)] == [up_to(1), up_to(2), up_to(3)]


def test_a_state_that_came_back_survives_expiry_and_manifest_merging() -> None:
    """Files that were dropped and added again are live, whatever merges manifests or expires snapshots."""
    table = history(Workshop(), 4, manifest__merge_min_count=2, manifest__full_compaction_threshold_size="1 b")
    expected = shown(table.at(snapshot=2))
    table.rollback_to_as_latest(2)
    assert shown(table) == expected
    table.rollback_to_as_latest(8)
    table.rollback_to_as_latest(2)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(table) == expected
    table.write(rows((40, 40)))
    assert shown(table) == [*expected, (40, 40)]
    stores = stores_of(table)
    for meta in all_metas(stores, table.latest_snapshot()):
        stores.manifests.read(meta.file_name, meta.size_bytes)


def test_an_expired_tag_state_becomes_the_latest() -> None:
    """A tag is as good as a snapshot; the state stands by itself when the tag goes."""
    table = history(Workshop(), 4)
    table.create_tag("a", 2)
    expected = shown(table.at(tag="a"))
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.rollback_to_as_latest(tag="a")
    table.delete_tag("a")
    assert shown(table) == expected


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "first-row"])
@pytest.mark.parametrize("merging", [{}, {"manifest__merge_min_count": 2}], ids=["", "merging manifests"])
def test_a_state_that_came_back_survives_compactions(engine: str, merging: dict[str, object]) -> None:
    """A file is lifted, brought back to where it was, and lifted again: it lives, for readers without order too."""
    table = Workshop().create(merge_engine=engine, **merging)
    table.write(rows((1, 1), (2, 2)))
    expected = shown(table)
    first = table.latest_snapshot()
    assert first is not None
    table.compact(full=True)
    for number in range(6):
        table.rollback_to_as_latest(first.id)
        table.compact(full=True)
        assert shown(table) == expected
        assert table.check() == []
        assert _live_without_order(table) == 1
        if number % 2:
            table.write(rows((3, 3)))


def _live_without_order(table: Table) -> int:
    """How many files a reader sees for which a file that any manifest deletes is gone."""
    stores = stores_of(table)
    entries = read_manifests(stores, all_metas(stores, table.latest_snapshot()))
    gone = {entry.identity for entry in entries if entry.kind == EntryKind.DELETE}
    return sum(entry.identity not in gone for entry in entries if entry.kind == EntryKind.ADD)
