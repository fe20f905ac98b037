"""Tables with a clock of their own, and the questions that tests of expiry ask of them."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa

from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import FixedClock, RandomIds
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.lake import Lake
from lakebed.metadata.entries import all_metas, changelog_metas, delta_metas, live_files, read_manifests
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.table.table import Table

MINUTE_MS = 60_000
TEN_O_CLOCK = 1_700_000_000_000
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
ROOT = "lake"
_numbers = itertools.count()


class Workshop:
    """A warehouse in memory whose time stands still until it is moved."""

    def __init__(self, fileio: FileIO | None = None) -> None:
        self.fileio = fileio if fileio is not None else MemoryFileIO(f"expiry-{next(_numbers)}")
        self.clock = FixedClock(TEN_O_CLOCK)
        self.lake = Lake(FilesystemCatalog(self.fileio, ROOT, self.clock, RandomIds()))

    def create(self, primary_key: bool = True, **options: Any) -> Table:
        """A table of one bucket; options with `_` for `-` and `__` for `.`."""
        given = {key.replace("__", ".").replace("_", "-"): str(value) for key, value in options.items()}
        keyed: dict[str, Any] = {"primary_key": ["k"], "options": {"bucket": "1", "file.format": "avro", **given}}
        plain: dict[str, Any] = {"options": {"file.format": "avro", **given}}
        return self.lake.create_table("t", SCHEMA, **(keyed if primary_key else plain))

    def at(self, minutes: int) -> None:
        """Moves the clock to that many minutes after ten."""
        self.clock.sleep_ms(TEN_O_CLOCK + minutes * MINUTE_MS - self.clock.now_ms())


def rows(*pairs: tuple[int, int]) -> pa.Table:
    """Rows to write."""
    return pa.table([pa.array(column, pa.int64()) for column in zip(*pairs, strict=True)], schema=SCHEMA)


def ids(table: Table) -> list[int]:
    """Ids of the snapshots that are there."""
    return [snapshot.id for snapshot in table.snapshots()]


def shown(table: Table) -> list[tuple[int, ...]]:
    """All rows."""
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def changed(table: Table, since: int, until: int | None = None) -> list[tuple[Any, ...]]:
    """All changes."""
    return [tuple(row.values()) for row in table.changes(since, until).to_pylist()]


def stores_of(table: Table) -> MetadataStores:
    """The metadata behind a table."""
    return table._opened.context.stores


def present(table: Table) -> set[str]:
    """Data files, changelog files and manifests that are there."""
    root = table.location
    return {
        status.path
        for status in table._opened.context.fileio.list_recursive(root)
        if not status.name.startswith(".")
        and ("/bucket-" in status.path or status.path.startswith((f"{root}/manifest/", f"{root}/index/")))
    }


def needed(table: Table) -> set[str]:
    """Files that snapshots, tags and changelogs need."""
    stores = stores_of(table)
    found: set[str] = set()
    for snapshot in (*table.snapshots(), *(tag.snapshot for tag in stores.tags.list())):
        found |= needed_by(table, snapshot)
    for number in stores.changelogs.ids():
        found |= needed_by_changelog(table, stores.changelogs.get(number))
    for snapshot in table.snapshots():
        found |= _changelog(table, snapshot)
    return found


def needed_by(table: Table, snapshot: Snapshot) -> set[str]:
    """Files of a state."""
    stores = stores_of(table)
    metas = {stores.paths.manifest_file(meta.file_name) for meta in all_metas(stores, snapshot)}
    lists = {stores.paths.manifest_file(name) for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list)}
    return metas | lists | _paths(table, live_files(stores, snapshot))


def needed_by_changelog(table: Table, snapshot: Snapshot) -> set[str]:
    """Files that tell the changes of a commit."""
    stores = stores_of(table)
    if table.options.get("changelog-producer", "none") != "none":
        return _changelog(table, snapshot)
    metas = delta_metas(stores, snapshot)
    found = {stores.paths.manifest_file(meta.file_name) for meta in metas}
    added = [entry for entry in read_manifests(stores, metas) if entry.kind == 0]
    is_told = snapshot.commit_kind == "APPEND"
    return (
        found
        | {stores.paths.manifest_file(snapshot.delta_manifest_list)}
        | (_paths(table, added) if is_told else set())
    )


def _changelog(table: Table, snapshot: Snapshot) -> set[str]:
    stores = stores_of(table)
    if snapshot.changelog_manifest_list is None:
        return set()
    metas = changelog_metas(stores, snapshot)
    found = {stores.paths.manifest_file(meta.file_name) for meta in metas}
    return (
        found
        | {stores.paths.manifest_file(snapshot.changelog_manifest_list)}
        | _paths(table, read_manifests(stores, metas))
    )


def _paths(table: Table, entries: Any) -> set[str]:
    context = table._opened.context
    return {context.data_file_path(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}
