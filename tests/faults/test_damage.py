"""A commit on top of a damaged table fails, changes nothing and deletes nothing."""

from __future__ import annotations

import json

import pytest
from tests.faults.fault_tables import ROOT, SCHEMA, data, fresh_disk, open_lake, stores_of

from lakebed.checksums import unsealed
from lakebed.errors import CorruptFile, LakebedError
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.table import Table

ROWS = [(1, 1, 1), (2, 2, 2)]


@pytest.fixture
def disk() -> MemoryFileIO:
    """An empty disk."""
    return fresh_disk()


@pytest.fixture
def table(disk: MemoryFileIO) -> Table:
    """A table with two snapshots."""
    made = open_lake(disk).create_table("t", SCHEMA, primary_key=["p", "id"], options={"bucket": "1"})
    made.write(data(ROWS))
    made.write(data(ROWS))
    return open_lake(disk).table("t")


def content(disk: MemoryFileIO) -> dict[str, bytes]:
    """All files."""
    return {status.path: disk.read_bytes(status.path) for status in disk.list_recursive(ROOT)}


def latest_of(table: Table) -> Snapshot:
    """The newest snapshot."""
    latest = table.latest_snapshot()
    assert latest is not None
    return latest


def refuses(disk: MemoryFileIO) -> None:
    """Neither an append, an overwrite nor a stream gets through, and the disk stays as it is."""
    before = content(disk)
    for arguments in ({}, {"overwrite": True}, {"commit_user": "job", "commit_identifier": 1}):
        with pytest.raises(LakebedError), open_lake(disk).table("t").writer(**arguments) as writer:
            writer.write(data(ROWS))
        assert content(disk) == before


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"null"])
def test_latest_snapshot_is_garbage(disk: MemoryFileIO, table: Table, text: bytes) -> None:
    """The newest snapshot can not be skipped: committing over its predecessor would undo it."""
    disk.overwrite(stores_of(table).paths.snapshot_file(2), text)
    refuses(disk)


def test_all_snapshots_are_gone(disk: MemoryFileIO, table: Table) -> None:
    """A table whose hint says that it had snapshots does not begin at 1 again."""
    for snapshot_id in (1, 2):
        stores_of(table).snapshots.delete(snapshot_id)
    refuses(disk)


@pytest.mark.parametrize("kind", ["base", "delta"])
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_manifest_list_is_damaged(disk: MemoryFileIO, table: Table, kind: str, damage: str) -> None:
    """Without its lists nobody knows what the table holds."""
    latest = latest_of(table)
    name = latest.base_manifest_list if kind == "base" else latest.delta_manifest_list
    spoil(disk, stores_of(table).paths.manifest_file(name), damage)
    refuses(disk)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_manifest_is_damaged(disk: MemoryFileIO, table: Table, damage: str) -> None:
    """Without a manifest the next sequence number is unknown, and so is what an overwrite replaces."""
    stores = stores_of(table)
    (meta,) = stores.manifest_lists.read(latest_of(table).delta_manifest_list)
    spoil(disk, stores.paths.manifest_file(meta.file_name), damage)
    refuses(disk)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_manifest_to_merge_is_damaged(disk: MemoryFileIO, damage: str) -> None:
    """A manifest that is to be merged is never left out because it can not be read."""
    table = open_lake(disk).create_table("t", SCHEMA, options={"manifest.merge-min-count": "2"})
    table.write(data(ROWS))
    table.write(data(ROWS))
    stores = stores_of(table)
    (meta,) = stores.manifest_lists.read(latest_of(table).delta_manifest_list)
    spoil(disk, stores.paths.manifest_file(meta.file_name), damage)
    refuses(disk)


def spoil(disk: MemoryFileIO, path: str, damage: str) -> None:
    """Removes a file or its second half."""
    content = disk.read_bytes(path)
    disk.delete(path)
    if damage == "cut":
        disk.write_bytes(path, content[: len(content) // 2])


def test_schema_is_gone(disk: MemoryFileIO, table: Table) -> None:
    """A writer whose table vanishes under its hands does not bring half of it back."""
    writer = table.writer()
    writer.write(data(ROWS))
    disk.delete(table._opened.context.schemas.path_of(0))
    with pytest.raises(LakebedError):
        writer.commit()
    assert latest_of(table).id == 2


def test_memory_of_streams_is_garbage(disk: MemoryFileIO, table: Table) -> None:
    """Where it can not be told which commits are in, none is made."""
    path = stores_of(table).paths.snapshot_file(2)
    members = unsealed(json.loads(disk.read_bytes(path)))
    members["properties"] = {"lakebed.last-identifier.job": "x"}
    disk.overwrite(path, json.dumps(members).encode())
    with pytest.raises(CorruptFile, match="last-identifier"):
        table.write(data(ROWS))
    refuses(disk)
