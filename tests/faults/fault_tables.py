"""Tables on a disk that can be copied, and the questions that every test here asks of them afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from lakebed.catalog.filesystem import FilesystemCatalog
from lakebed.clock import RandomIds, SystemClock
from lakebed.fileio.base import FileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.lake import Lake
from lakebed.metadata.entries import all_metas, changelog_metas, live_files, read_manifests
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.table.table import Table

ROOT = "lake"
SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())]
)

Row = tuple[int, int, int]
_numbers = itertools.count()


def open_lake(fileio: FileIO, root: str = ROOT) -> Lake:
    """A lake on a file system of our own."""
    return Lake(FilesystemCatalog(fileio, root, SystemClock(), RandomIds()))


def fresh_disk() -> MemoryFileIO:
    """An empty disk."""
    return MemoryFileIO(f"faults-{next(_numbers)}")


def copy_of(disk: FileIO) -> MemoryFileIO:
    """Another disk with the same files."""
    copy = fresh_disk()
    for status in disk.list_recursive(ROOT):
        copy.write_bytes(status.path, disk.read_bytes(status.path))
    return copy


def in_turn(numbers: Sequence[int], every: int, turn: int) -> Sequence[int]:
    """One in so many of the numbers, others for each turn; at least one if there are any."""
    return numbers[turn % max(1, min(every, len(numbers))) :: every]


def wipe(disk: MemoryFileIO) -> None:
    """Free the memory of a disk that is done with."""
    disk.delete_directory(ROOT)


class _HookedFileIO:
    """Passes everything on; runs `action` once, just before the first call of `method` on a path that holds `part`."""

    def __init__(self, inner: FileIO, method: str, part: str, action: Callable[[], object]) -> None:
        self._inner = inner
        self._method = method
        self._part = part
        self._action: Callable[[], object] | None = action

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if name != self._method or self._action is None:
            return inner

        def call(path: str, *arguments: Any) -> Any:
            if self._part in path and self._action is not None:
                action, self._action = self._action, None
                action()
            return inner(path, *arguments)

        return call


def hooked(inner: FileIO, method: str, part: str, action: Callable[[], object]) -> FileIO:
    """A file system on which something happens in between."""
    return cast(FileIO, _HookedFileIO(inner, method, part, action))


def expire_by_hand(table: Table, before: int) -> None:
    """Removes the snapshots below an id, and the manifest files that only they needed, oldest first."""
    stores = stores_of(table)
    kept = [snapshot for snapshot in table.snapshots() if snapshot.id >= before]
    needed = {name for snapshot in kept for name in _metadata_files(stores, snapshot)}
    for snapshot in table.snapshots():
        if snapshot.id < before:
            names = _metadata_files(stores, snapshot)
            stores.snapshots.delete(snapshot.id)
            for name in names - needed:
                stores.fileio.delete(stores.paths.manifest_file(name))
    stores.snapshots.write_earliest_hint(before)


def _metadata_files(stores: MetadataStores, snapshot: Snapshot) -> set[str]:
    metas = {meta.file_name for meta in all_metas(stores, snapshot)}
    return metas | {snapshot.base_manifest_list, snapshot.delta_manifest_list}


def data(rows: Iterable[Row]) -> pa.Table:
    """Rows as something to write."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def rows_of(table: Table) -> list[Row]:
    """All rows of a table, ordered."""
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def stores_of(table: Table) -> MetadataStores:
    """The metadata behind a table."""
    return table._opened.context.stores


def data_paths(table: Table, snapshot_id: int) -> set[str]:
    """Paths of the data files that a snapshot shows."""
    context = table._opened.context
    entries = live_files(context.stores, context.stores.snapshots.get(snapshot_id))
    return {context.data_file_path(entry.partition, entry.bucket, entry.file.file_name) for entry in entries}


@dataclass(frozen=True)
class Inventory:
    """The files of a table, and those of them that its snapshots need."""

    present: frozenset[str]
    needed: frozenset[str]

    @property
    def missing(self) -> frozenset[str]:
        """Needed, but not there: the table is broken."""
        return self.needed - self.present

    @property
    def orphans(self) -> frozenset[str]:
        """There, but not needed: data files, index files, manifests and lists that nothing refers to."""
        return self.present - self.needed


def take_inventory(table: Table) -> Inventory:
    """Look at every file; hidden temporary files, hints and schemas are nobody's business here."""
    context, stores = table._opened.context, stores_of(table)
    root = context.paths.root
    present = {
        status.path
        for status in context.fileio.list_recursive(root)
        if not status.name.startswith(".")
        and ("/bucket-" in status.path or status.path.startswith((f"{root}/manifest/", f"{root}/index/")))
    }
    needed: set[str] = set()
    for snapshot in table.snapshots():
        lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
        metas = [*all_metas(stores, snapshot), *changelog_metas(stores, snapshot)]
        needed |= {stores.paths.manifest_file(name) for name in [*filter(None, lists), *(m.file_name for m in metas)]}
        if snapshot.index_manifest is not None:
            needed.add(stores.paths.manifest_file(snapshot.index_manifest))
            indexes = stores.index_manifests.read(snapshot.index_manifest)
            needed |= {stores.paths.index_file(entry.file_name) for entry in indexes}
        for entry in read_manifests(stores, metas):
            # A file that was deleted before the oldest snapshot is not ours to look for.
            if entry.kind == 0:
                names = (entry.file.file_name, *entry.file.extra_files)
                needed |= {context.data_file_path(entry.partition, entry.bucket, name) for name in names}
    return Inventory(frozenset(present), frozenset(needed))


def check_sound(table: Table) -> None:
    """Ids without gaps, every file of every snapshot in place, row counts right, times never going back."""
    snapshots = table.snapshots()
    ids = [snapshot.id for snapshot in snapshots]
    assert not ids or ids == list(range(ids[0], ids[-1] + 1))
    assert not take_inventory(table).missing
    for snapshot in snapshots[-2:]:
        live = live_files(stores_of(table), snapshot)
        assert sum(entry.file.row_count for entry in live) == snapshot.total_record_count
    times = [snapshot.time_millis for snapshot in snapshots]
    assert times == sorted(times)


def check_untouched(before: FileIO, after: FileIO) -> None:
    """Every file that was there is there still, with the same bytes; only hints may have moved."""
    for status in before.list_recursive(ROOT):
        if status.name not in ("LATEST", "EARLIEST"):
            assert after.read_bytes(status.path) == before.read_bytes(status.path)
