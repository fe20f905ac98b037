"""All metadata of one table (or of one of its branches) behind one handle."""

from __future__ import annotations

from functools import cached_property

from lakebed.fileio.base import FileIO
from lakebed.fileio.together import answers_late
from lakebed.metadata.changelog import ChangelogStore
from lakebed.metadata.consumer import ConsumerStore
from lakebed.metadata.index_manifest import IndexManifestStore
from lakebed.metadata.manifest import ManifestEntry, ManifestStore
from lakebed.metadata.manifest_list import ManifestListStore, ManifestMeta, MetadataCache
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import SnapshotStore
from lakebed.metadata.tag import TagStore


class ManifestCache:
    """What manifests and lists of them say that were read or written lately."""

    def __init__(self) -> None:
        self.entries: MetadataCache[ManifestEntry] = MetadataCache()
        self.lists: MetadataCache[ManifestMeta] | None = MetadataCache()

    def for_upkeep(self) -> ManifestCache:
        """For those who decide what goes, or whether all is well: lists and large manifests are read, or missed."""
        made = ManifestCache()
        made.entries, made.lists = self.entries.without_large(), None
        return made


class MetadataStores:
    """One store for each kind of metadata file, opened when it is first asked for."""

    def __init__(
        self, fileio: FileIO, paths: TablePaths, compression: str, manifest_cache: ManifestCache | None
    ) -> None:
        self.fileio = fileio
        self.paths = paths
        self.compression = compression
        self.manifest_cache = manifest_cache

    @staticmethod
    def open(
        fileio: FileIO, paths: TablePaths, compression: str = "zstd", cache: ManifestCache | None = None
    ) -> MetadataStores:
        """The stores of the table at `paths`; new manifests are compressed as asked."""
        return MetadataStores(fileio, paths, compression, cache)

    @cached_property
    def snapshots(self) -> SnapshotStore:
        """Snapshots, by number."""
        return SnapshotStore(self.fileio, self.paths)

    @cached_property
    def manifests(self) -> ManifestStore:
        """Manifests: entries of data files."""
        cache = None if self.manifest_cache is None else self.manifest_cache.entries
        return ManifestStore(self.fileio, self.paths, self.compression, cache=cache)

    @cached_property
    def manifest_lists(self) -> ManifestListStore:
        """Lists of manifests."""
        # A disk gives a list sooner than it is worth remembering.
        is_kept = self.manifest_cache is not None and answers_late(self.fileio)
        cache = self.manifest_cache.lists if self.manifest_cache is not None and is_kept else None
        return ManifestListStore(self.fileio, self.paths, self.compression, cache=cache)

    @cached_property
    def index_manifests(self) -> IndexManifestStore:
        """Entries of index files."""
        return IndexManifestStore(self.fileio, self.paths, self.compression)

    @cached_property
    def tags(self) -> TagStore:
        """Tags, by name."""
        return TagStore(self.fileio, self.paths)

    @cached_property
    def consumers(self) -> ConsumerStore:
        """Progress of readers, by their name."""
        return ConsumerStore(self.fileio, self.paths)

    @cached_property
    def changelogs(self) -> ChangelogStore:
        """Changelogs that outlive their snapshots."""
        return ChangelogStore(self.fileio, self.paths)
