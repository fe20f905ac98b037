"""Operations that Paimon does not know: never written, read where older versions wrote them, and repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.maintenance.expiring_tables import ROOT, Workshop, rows, shown, stores_of

from lakebed.checksums import unsealed
from lakebed.errors import CorruptFile
from lakebed.fileio.base import FileIO
from lakebed.maintenance.repair import mend_operations
from lakebed.metadata.operation import OWN_OPERATION, SHARED_OPERATIONS
from lakebed.table.table import Table


def snapshot_files(fileio: FileIO) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every file that is a snapshot or a copy of one, in any branch, with its members."""
    for status in fileio.list_recursive(ROOT):
        if status.name.partition("-")[0] in ("snapshot", "tag", "changelog") and status.path.count("/bucket-") == 0:
            yield status.path, json.loads(fileio.read_bytes(status.path))


def as_older_versions_wrote(fileio: FileIO) -> set[str]:
    """Puts the words of ours where they stood before; the files that this changed."""
    changed = set()
    for path, members in snapshot_files(fileio):
        properties = members.get("properties") or {}
        if OWN_OPERATION in properties:
            members["operation"] = properties.pop(OWN_OPERATION)
            if not properties:
                del members["properties"]
            fileio.overwrite(path, json.dumps(unsealed(members)).encode())
            changed.add(path)
    return changed


def foreign(fileio: FileIO) -> set[str]:
    """The files that Paimon can not read."""
    known = {None, *SHARED_OPERATIONS}
    return {path for path, members in snapshot_files(fileio) if members.get("operation") not in known}


def busy_table(shop: Workshop) -> Table:
    """A table with every word of ours in snapshots, a tag, a branch with a tag, and changelogs of expired snapshots."""
    table = shop.create(
        changelog_producer="input", changelog__num_retained__min=20, changelog__num_retained__max=20, write_only="true"
    )
    table.write(rows((1, 1), (2, 1)))
    table.write(rows((1, 2), (3, 1)))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)  # the compaction stays
    table.create_tag("compacted", time_retained="1 d")
    table.create_branch("b", "compacted")
    table.analyze()
    table.write(rows((4, 1)))
    table.rollback_to_as_latest(3)
    table.write(rows((5, 1)))
    table.expire_snapshots(retain_max=2, retain_min=2)  # leaves changelogs of all of these
    return table


def test_only_known_words_are_written() -> None:
    """No file of a table with all kinds of commits says an operation that Paimon does not know."""
    shop = Workshop()
    table = busy_table(shop)
    assert foreign(shop.fileio) == set()
    assert table.check() == []
    assert table.repair_metadata() == []


def test_users_see_the_word_all_the_same() -> None:
    """`t$snapshots` and `snapshots()` show what each commit was, as they always did."""
    shop = Workshop()
    table = shop.create(write_only="true")
    table.write(rows((1, 1)))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.analyze()
    table.rollback_to_as_latest(1)
    words = ["WRITE", "COMPACT", "ANALYZE", "ROLLBACK"]
    assert [snapshot.operation for snapshot in table.snapshots()] == words
    assert shop.lake.table("t$snapshots").to_arrow().column("operation").to_pylist() == words
    assert all("lakebed.operation" not in (snapshot.properties or {}) for snapshot in table.snapshots())


def test_a_table_of_an_older_version_is_read_found_and_repaired() -> None:
    """Snapshots, tags and changelogs of all branches are mended, and nothing that they say here is another."""
    shop = Workshop()
    table = busy_table(shop)
    before = (table.snapshots(), table.tags(detail=True), shown(table))
    old = as_older_versions_wrote(shop.fileio)
    kinds = {path.split("/")[-2] for path in old}
    assert kinds == {"snapshot", "tag", "changelog"}
    assert any("branch-b" in path for path in old)
    assert foreign(shop.fileio) == old

    table = shop.lake.table("t")
    assert (table.snapshots(), table.tags(detail=True), shown(table)) == before
    findings = table.check()
    assert len(findings) == len(old)
    assert any(
        f.startswith("tag `compacted` of branch `b` says operation COMPACT") and "`lakebed repair`" in f
        for f in findings
    )
    named = table.repair_metadata(dry_run=True)
    assert foreign(shop.fileio) == old

    assert table.repair_metadata() == named
    assert len(named) == len(old)
    assert {"snapshot 3 of branch `b`", "tag `compacted`", "changelog 3"} <= set(named)
    assert foreign(shop.fileio) == set()
    assert (table.snapshots(), table.tags(detail=True), shown(table)) == before
    assert table.check() == []
    assert table.repair_metadata() == []


def test_members_of_newer_writers_survive() -> None:
    """A repair changes the word and nothing else, so that what this version does not know is not lost."""
    shop = Workshop()
    table = busy_table(shop)
    path = stores_of(table).paths.tag_file("compacted")
    assert path in as_older_versions_wrote(shop.fileio)
    members = json.loads(shop.fileio.read_bytes(path)) | {"future": [1, {"a": None}], "properties": {"k": "v"}}
    shop.fileio.overwrite(path, json.dumps(unsealed(members)).encode())
    table.repair_metadata()
    del members["operation"]
    members["properties"] = {"k": "v", OWN_OPERATION: "COMPACT"}
    assert json.loads(shop.fileio.read_bytes(path)) == members


def test_an_unreadable_snapshot_is_a_finding_and_stops_a_repair() -> None:
    """`check` names the file, `repair_metadata` raises."""
    shop = Workshop()
    table = busy_table(shop)
    path = stores_of(table).paths.tag_file("compacted")
    shop.fileio.overwrite(path, b"{")
    assert [finding for finding in table.check() if path in finding]
    with pytest.raises(CorruptFile, match="tag-compacted"):
        table.repair_metadata()


def test_what_is_about_to_expire_does_not_come_back() -> None:
    """Snapshots that an expiry has announced to delete are left alone, also if it does so in the middle of a repair."""
    shop = Workshop()
    table = shop.create(write_only="true")
    stores = stores_of(table)
    for number in range(3):
        table.write(rows((number, 1)))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.with_options({"write-only": "false"}).analyze()
    as_older_versions_wrote(shop.fileio)
    assert table.repair_metadata(dry_run=True) == ["snapshot 4", "snapshot 5"]
    stores.snapshots.announce_expiry(5)
    assert table.repair_metadata(dry_run=True) == ["snapshot 5"]
    stores.snapshots.withdraw_expiry(0)

    class ExpiringMeanwhile:
        """Where there are no locks, another process expires just before the rewritten file appears."""

        def __init__(self, inner: FileIO) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def overwrite(self, path: str, data: bytes) -> None:
            if path == stores.paths.snapshot_file(4):
                stores.snapshots.announce_expiry(5)
                stores.snapshots.delete(4)
            self._inner.overwrite(path, data)

    racing = type(stores).open(ExpiringMeanwhile(shop.fileio), stores.paths)  # type: ignore[arg-type]
    mend_operations(racing)
    assert stores.snapshots.find(4) is None
    assert foreign(shop.fileio) == set()
    stores.snapshots.announce_expiry(99)  # of a history that was rolled back
    as_older_versions_wrote(shop.fileio)
    assert table.repair_metadata(dry_run=True) == ["snapshot 5"]
