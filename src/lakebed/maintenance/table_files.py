"""Which files a snapshot stands on, as paths: the common language of all who ask whether a file is still needed.

Paths are compared, not manifest entries: a file that moved to another level is the same file. Who deletes very many of
them is told here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace
from functools import partial

from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import deleted_elsewhere
from lakebed.errors import FileMissing
from lakebed.metadata.entries import all_metas, changelog_metas, delta_entries, live_files, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass

DataPath = Callable[[bytes, int, str], str]
"""Where a data file of a partition and bucket lies."""


def _not_elsewhere(_: Sequence[str]) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one branch of a table.

    `is_lenient` reads what is left of something that an interrupted expiry has begun to delete: what is gone is gone.
    """

    stores: MetadataStores
    data_path: DataPath
    is_lenient: bool = False
    delete_elsewhere: Callable[[Sequence[str]], bool] = field(default=_not_elsewhere, compare=False)
    """Deletes very many files in tasks, in any order, or says that it did not."""

    def lenient(self) -> TableFiles:
        """The same, passing over what is missing."""
        return replace(self, is_lenient=True)

    # Data files

    def path(self, entry: ManifestEntry) -> str:
        """Where an entry's file lies."""
        file = entry.file
        return file.external_path or self.data_path(entry.partition, entry.bucket, file.file_name)

    def paths(self, entry: ManifestEntry) -> list[str]:
        """An entry's file and those that go with it."""
        path = self.path(entry)
        directory = path.rpartition("/")[0]
        return [path, *(f"{directory}/{name}" for name in entry.file.extra_files)]

    def added(self, snapshot: Snapshot) -> set[str]:
        """Files that the snapshot added."""
        try:
            entries = delta_entries(self.stores, snapshot)
        except FileMissing:
            if not self.is_lenient:
                raise
            return set()
        return {self.path(entry) for entry in entries if entry.kind == EntryKind.ADD}

    def dropped(self, snapshot: Snapshot) -> list[ManifestEntry]:
        """Files that were there before the snapshot, and are not with it."""
        entries = delta_entries(self.stores, snapshot)
        added = {self.path(entry) for entry in entries if entry.kind == EntryKind.ADD}
        return [entry for entry in entries if entry.kind == EntryKind.DELETE and self.path(entry) not in added]

    def live(self, snapshot: Snapshot, names: Collection[str]) -> set[str]:
        """Files of the snapshot's state, as far as they have one of these names."""

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            return [entry for entry in entries if entry.file.file_name in names]

        return {self.path(entry) for entry in live_files(self.stores, snapshot, keep_entries=keep)}

    def changelog_files(self, snapshot: Snapshot) -> list[str]:
        """The snapshot's changelog files."""
        return [
            path
            for meta in self._metas(changelog_metas, snapshot)
            for entry in self._entries(meta)
            for path in self.paths(entry)
        ]

    # Metadata files, in the order in which they may go: what names others last

    def manifests(self, snapshot: Snapshot) -> list[str]:
        """Manifests of the snapshot's state."""
        return self._manifest_paths(self._metas(all_metas, snapshot))

    def lists(self, snapshot: Snapshot) -> list[str]:
        """Manifest lists of the snapshot's state."""
        return [
            self.stores.paths.manifest_file(name)
            for name in (snapshot.delta_manifest_list, snapshot.base_manifest_list)
        ]

    def indexes(self, snapshot: Snapshot) -> list[str]:
        """Index files of the snapshot, and their manifest."""
        name, paths = snapshot.index_manifest, self.stores.paths
        if name is None:
            return []
        try:
            entries = self.stores.index_manifests.read(name)
        except FileMissing:
            if not self.is_lenient:
                raise
            entries = []
        files = [entry.external_path or paths.index_file(entry.file_name) for entry in entries]
        return [*files, paths.manifest_file(name)]

    def statistics(self, snapshot: Snapshot) -> list[str]:
        """The snapshot's statistics."""
        return [] if snapshot.statistics is None else [self.stores.paths.statistics_file(snapshot.statistics)]

    def changelog_manifests(self, snapshot: Snapshot) -> list[str]:
        """Manifests of the snapshot's changelog."""
        return self._manifest_paths(self._metas(changelog_metas, snapshot))

    def changelog_list(self, snapshot: Snapshot) -> list[str]:
        """Manifest list of the snapshot's changelog, if it has one."""
        name = snapshot.changelog_manifest_list
        return [] if name is None else [self.stores.paths.manifest_file(name)]

    # Private

    def _manifest_paths(self, metas: Iterable[ManifestMeta]) -> list[str]:
        names = (name for meta in metas for name in (meta.file_name, *(meta.extra_files or ())))
        return [self.stores.paths.manifest_file(name) for name in names]

    def _metas(
        self, read: Callable[[MetadataStores, Snapshot], list[ManifestMeta]], snapshot: Snapshot
    ) -> list[ManifestMeta]:
        try:
            return read(self.stores, snapshot)
        except FileMissing:
            if not self.is_lenient:
                raise
            return []

    def _entries(self, meta: ManifestMeta) -> list[ManifestEntry]:
        try:
            return read_manifests(self.stores, [meta])
        except FileMissing:
            if not self.is_lenient:
                raise
            return []


# --- A table's files as those see them who decide what goes: by path ----------------------------------------------


def table_files(context: TableContext) -> TableFiles:
    """The files of the table, on the branch that is open."""
    known = context.stores
    cache = context.memory.manifests.for_upkeep()
    stores = MetadataStores.open(known.fileio, known.paths, known.compression, cache)
    return TableFiles(stores, context.data_file_path, delete_elsewhere=partial(deleted_elsewhere, context))
