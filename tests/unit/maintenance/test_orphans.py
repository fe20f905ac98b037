"""Orphan cleaning: exactly what nothing needs goes, of all branches; nothing goes when in doubt."""

from __future__ import annotations

import pytest
from tests.unit.maintenance.expiring_tables import SCHEMA, Workshop, needed, present, rows, shown, stores_of
from tests.unit.maintenance.test_rollback import plain, up_to
from tests.unit.maintenance.test_tags import history

from lakebed.errors import CorruptFile, FileMissing, InvalidArgument, LakebedError
from lakebed.table.table import Table
from lakebed.testing.faulty_io import FaultyFileIO, InjectedFault


def later(shop: Workshop) -> Workshop:
    """The same warehouse with a clock far ahead: files in memory have the real time, so all of them are old."""
    there = Workshop(shop.fileio)
    there.clock.sleep_ms(100 * 365 * 24 * 3600 * 1000)
    return there


def paths(shop: Workshop) -> set[str]:
    """Every file."""
    return {status.path for status in shop.fileio.list_recursive("lake")}


def scattered(shop: Workshop, table: Table) -> set[str]:
    """Leaves a file that nothing needs in every place where one may be left."""
    root = table.location
    found = {
        f"{root}/bucket-0/data-dead-0.parquet",
        f"{root}/bucket-7/changelog-dead-0.avro",
        f"{root}/manifest/manifest-dead-0",
        f"{root}/manifest/manifest-list-dead-0",
        f"{root}/manifest/.manifest-dead.tmp",
        f"{root}/index/index-dead-0",
        f"{root}/statistics/stat-dead-0",
        f"{root}/snapshot/.snapshot-9.1234.tmp",
        f"{root}/schema/.schema-9.1234.tmp",
        f"{root}/tag/.tag-x.1234.tmp",
        f"{root}/consumer/.consumer-x.1234.tmp",
        f"{root}/changelog/.changelog-1.1234.tmp",
        f"{root}/branch/.tmp-1234/schema/schema-0",
    }
    for path in found:
        shop.fileio.write_bytes(path, b"12345")
    return found


def test_what_nothing_needs_goes() -> None:
    """Dead files in every directory go, all others stay; a dry run only says so."""
    shop = Workshop()
    table = history(shop)
    table.create_tag("old", 2)
    table.expire_snapshots(retain_max=2, retain_min=1)
    before, rows_before = paths(shop), shown(table)
    dead = scattered(shop, table)
    other = f"{table.location}/notes.txt"
    shop.fileio.write_bytes(other, b"mine")
    old = later(shop).lake.table("t")
    planned = old.remove_orphan_files(dry_run=True)
    assert set(planned.paths) == dead
    assert (planned.file_count, planned.size_bytes) == (13, 65)
    assert paths(shop) == before | dead | {other}
    assert old.remove_orphan_files() == planned
    assert paths(shop) == before | {other}
    assert shown(table) == rows_before
    assert old.remove_orphan_files().file_count == 0


def test_empty_directories_go() -> None:
    """A bucket that became empty goes; one with files stays."""
    shop = Workshop()
    table = plain(shop)
    scattered(shop, table)
    later(shop).lake.table("t").remove_orphan_files()
    assert not shop.fileio.exists(f"{table.location}/bucket-7")
    assert shop.fileio.exists(f"{table.location}/bucket-0")


def test_young_files_stay() -> None:
    """Without a moment a day has to pass: the files of running writers are safe."""
    shop = Workshop()
    table = plain(shop)
    before = paths(shop) | scattered(shop, table)
    there = Workshop(shop.fileio)
    there.clock.sleep_ms(-24 * 3600 * 1000)
    assert table.remove_orphan_files().file_count == 0
    assert paths(shop) == before
    with pytest.raises(InvalidArgument, match="past"):
        table.remove_orphan_files(older_than="2999-01-01")


def test_leftovers_of_a_rollback_go() -> None:
    """The files of snapshots that were rolled back, and of a branch that was deleted."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("fork", 2)
    table.create_branch("b", "fork")
    shop.lake.table("t$branch_b").write(rows((20, 20)))
    table.rollback_to(2)
    old = later(shop).lake.table("t")
    assert present(table) > needed(table)
    old.remove_orphan_files()
    assert shown(shop.lake.table("t$branch_b")) == [*up_to(2), (20, 20)]
    table.delete_branch("b")
    old.remove_orphan_files()
    assert present(table) == needed(table)
    assert shown(table) == up_to(2)


def test_branches_keep_their_files() -> None:
    """Snapshots, tags and empty branches of all branches count, from whichever the cleaning is called."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("fork", 2)
    table.create_branch("b", "fork")
    table.create_branch("e")
    branch = shop.lake.table("t$branch_b")
    branch.write(rows((20, 20)))
    branch.create_tag("two")
    branch.write(rows((1, 1)), overwrite=True)
    branch.expire_snapshots(retain_max=1, retain_min=1)
    table.delete_tag("fork")
    table.write(rows((9, 9)), overwrite=True)
    before = paths(shop)
    for name in ("t", "t$branch_b", "t$branch_e"):
        assert later(shop).lake.table(name).remove_orphan_files().paths == ()
    assert paths(shop) == before
    assert shown(branch.at(tag="two")) == [*up_to(2), (20, 20)]


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_changelogs_keep_their_files(producer: str) -> None:
    """Changelog files of snapshots, and what long-lived changelogs tell, stay."""
    shop = Workshop()
    table = shop.create(
        changelog_producer=producer,
        snapshot__num_retained__min=1,
        snapshot__num_retained__max=2,
        changelog__num_retained__max=4,
    )
    for number in range(6):
        table.write(rows((0, number), (number + 1, number)))
    log_ids = stores_of(table).changelogs.ids()
    assert log_ids
    told = table.changes(since=log_ids[0] - 1)
    later(shop).lake.table("t").remove_orphan_files()
    assert table.changes(since=log_ids[0] - 1) == told


def test_partitions_are_searched() -> None:
    """Dead files of partitions go, deep ones too, with their empty directories; other directories are not touched."""
    shop = Workshop()
    table = shop.lake.create_table("t", SCHEMA, partition_by=["k"])
    table.write(rows((1, 1), (2, 2)))
    table.write(rows((1, 5)), overwrite={"k": 1})
    dead = {f"{table.location}/k=1/bucket-0/data-dead", f"{table.location}/k=9/bucket-0/data-dead"}
    kept = {f"{table.location}/other/bucket-0/data-dead", f"{table.location}/k=1/_SUCCESS"}
    for path in dead | kept:
        shop.fileio.write_bytes(path, b"1")
    assert set(later(shop).lake.table("t").remove_orphan_files().paths) == dead
    assert kept < paths(shop)
    assert not shop.fileio.exists(f"{table.location}/k=9")
    assert shown(table) == [(1, 5), (2, 2)]
    assert shown(table.at(snapshot=1)) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("what", ["snapshot", "manifest", "list", "tag", "schema", "branch"])
def test_in_doubt_nothing_goes(what: str) -> None:
    """Something unreadable that may need files: an error, and all files stay."""
    shop = Workshop()
    table = plain(shop)
    table.create_tag("two", 2)
    table.create_branch("b", "two")
    scattered(shop, table)
    stores = stores_of(table)
    snapshot = table.snapshots()[1]
    path = {
        "snapshot": stores.paths.snapshot_file(2),
        "manifest": stores.paths.manifest_file(stores.manifest_lists.read(snapshot.delta_manifest_list)[0].file_name),
        "list": stores.paths.manifest_file(snapshot.base_manifest_list),
        "tag": stores.paths.tag_file("two"),
        "schema": f"{table.location}/branch/branch-b/schema/schema-0",
        "branch": f"{table.location}/branch/branch-b/snapshot/snapshot-2",
    }[what]
    shop.fileio.delete(path)
    if what != "schema":
        shop.fileio.write_bytes(path, b"{")
    before = paths(shop)
    with pytest.raises((CorruptFile, FileMissing)):
        later(shop).lake.table("t").remove_orphan_files()
    assert paths(shop) == before


def test_whichever_read_fails_nothing_goes() -> None:
    """A failing file system is no empty one."""
    shop = Workshop()
    table = plain(shop, 3)
    table.create_tag("two", 2)
    table.create_branch("b", "two")
    scattered(shop, table)
    before = paths(shop)
    good = FaultyFileIO(shop.fileio)
    later(Workshop(good)).lake.table("t").remove_orphan_files(dry_run=True)
    for number in range(1, len(good.ops) + 1):
        with pytest.raises(InjectedFault):
            later(Workshop(FaultyFileIO(shop.fileio, number))).lake.table("t").remove_orphan_files()
        assert paths(shop) == before


def test_a_failed_delete_leaves_a_table_that_can_be_cleaned_again() -> None:
    """Any deletion may fail: what is needed stays, and the next run removes the rest."""
    shop = Workshop()
    table = plain(shop, 3)
    expected = shown(table)
    before = paths(shop)
    scattered(shop, table)
    good = FaultyFileIO(shop.fileio, only={"delete", "delete_empty_directory"})
    later(Workshop(good)).lake.table("t").remove_orphan_files()
    for number in range(1, len(good.ops) + 1):
        scattered(shop, table)
        io = FaultyFileIO(shop.fileio, number, only={"delete", "delete_empty_directory"})
        with pytest.raises(LakebedError):
            later(Workshop(io)).lake.table("t").remove_orphan_files()
        assert before <= paths(shop)
        later(shop).lake.table("t").remove_orphan_files()
        assert paths(shop) == before
        assert shown(table) == expected
