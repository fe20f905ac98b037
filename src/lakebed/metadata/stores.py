"""All metadata of one table (or of one of its branches) behind one handle."""

from __future__ import annotations

from dataclasses import dataclass

from lakebed.fileio.base import FileIO
from lakebed.metadata.changelog import ChangelogStore
from lakebed.metadata.consumer import ConsumerStore
from lakebed.metadata.index_manifest import IndexManifestStore
from lakebed.metadata.manifest import ManifestCache, ManifestStore
from lakebed.metadata.manifest_list import ManifestListStore
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import SnapshotStore
from lakebed.metadata.tag import TagStore


@dataclass(frozen=True, slots=True)
class MetadataStores:
    """One store for each kind of metadata file."""

    fileio: FileIO
    paths: TablePaths
    snapshots: SnapshotStore
    manifests: ManifestStore
    manifest_lists: ManifestListStore
    index_manifests: IndexManifestStore
    tags: TagStore
    consumers: ConsumerStore
    changelogs: ChangelogStore
    compression: str
    manifest_cache: ManifestCache | None = None

    @staticmethod
    def open(
        fileio: FileIO, paths: TablePaths, compression: str = "zstd", cache: ManifestCache | None = None
    ) -> MetadataStores:
        """The stores of the table at `paths`; new manifests are compressed as asked."""
        return MetadataStores(
            fileio,
            paths,
            SnapshotStore(fileio, paths),
            ManifestStore(fileio, paths, compression, cache=cache),
            ManifestListStore(fileio, paths, compression),
            IndexManifestStore(fileio, paths, compression),
            TagStore(fileio, paths),
            ConsumerStore(fileio, paths),
            ChangelogStore(fileio, paths),
            compression,
            cache,
        )
