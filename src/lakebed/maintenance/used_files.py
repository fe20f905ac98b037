"""Which files the references of a table need, by name. What is not among them is garbage.

Every manifest is read once, however many snapshots share it. References are numbered, and a set of them is an integer
with one bit each: a file is live in those that have its ADD and not its DELETE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lakebed.errors import FileMissing
from lakebed.maintenance.references import Holds, Reference
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.entries import READ_THREADS, all_metas, changelog_metas, delta_metas, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores


def used_names(references: Iterable[Reference]) -> set[str]:
    """Names of all files that these need: data files, manifests, lists, indexes, statistics.

    Names rather than paths: they are unique, and other engines may spell or place a path in another way. Anything that
    can not be read is an error, except what a long-lived changelog has lost by its nature.
    """
    found = _Found()
    for number, reference in enumerate(references):
        found.take(reference, 1 << number)
    return found.names | _live_names(found.manifests.values())


@dataclass(slots=True)
class _Manifest:
    """A manifest, and who needs which of its files: those not deleted elsewhere, or all."""

    files: TableFiles
    meta: ManifestMeta
    states: int = 0
    is_needed_whole: bool = False

    def entries(self) -> list[ManifestEntry]:
        try:
            return read_manifests(self.files.stores, [self.meta])
        except FileMissing:
            if not self.files.is_lenient:
                raise
            return []


@dataclass(slots=True)
class _Found:
    names: set[str] = field(default_factory=set)
    manifests: dict[str, _Manifest] = field(default_factory=dict)

    def take(self, reference: Reference, bit: int) -> None:
        files, snapshot = reference.files, reference.snapshot
        self._named(files.lists(snapshot), files.statistics(snapshot))
        if reference.holds is not Holds.CHANGES:
            self._named(files.indexes(snapshot))
        for meta in _metas(files, all_metas, snapshot):
            self._manifest(files, meta).states |= 0 if reference.holds is Holds.CHANGES else bit
        if reference.holds is Holds.CHANGES:
            for meta in _metas(files, delta_metas, snapshot):
                self._manifest(files, meta).is_needed_whole = True
        if reference.holds is not Holds.STATE:
            self._named(files.changelog_list(snapshot))
            for meta in _metas(files, changelog_metas, snapshot):
                self._manifest(files, meta).is_needed_whole = True

    def _named(self, *paths: Iterable[str]) -> None:
        self.names.update(_name(path) for group in paths for path in group)

    def _manifest(self, files: TableFiles, meta: ManifestMeta) -> _Manifest:
        self.names.update((meta.file_name, *(meta.extra_files or ())))
        found = self.manifests.setdefault(meta.file_name, _Manifest(files, meta))
        if found.files.is_lenient and not files.is_lenient:
            found.files = files  # somebody else needs it for certain
        return found


def _metas(
    files: TableFiles, read: Callable[[MetadataStores, Snapshot], list[ManifestMeta]], snapshot: Snapshot
) -> list[ManifestMeta]:
    try:
        return read(files.stores, snapshot)
    except FileMissing:
        if not files.is_lenient:
            raise
        return []


def _live_names(manifests: Iterable[_Manifest]) -> set[str]:
    wanted = [manifest for manifest in manifests if manifest.states or manifest.is_needed_whole]
    added: dict[Hashable, int] = defaultdict(int)
    deleted: dict[Hashable, int] = defaultdict(int)
    names: dict[Hashable, list[str]] = {}
    live: set[str] = set()
    with ThreadPoolExecutor(READ_THREADS) as pool:
        for manifest, entries in zip(wanted, pool.map(_Manifest.entries, wanted), strict=True):
            for entry in entries:
                if entry.kind is EntryKind.DELETE:
                    deleted[entry.identity] |= manifest.states
                    continue
                of_entry = [_name(path) for path in manifest.files.paths(entry)]
                # Added twice in one state is more than this count can follow: such a file stays.
                if manifest.is_needed_whole or added[entry.identity] & manifest.states:
                    live.update(of_entry)
                added[entry.identity] |= manifest.states
                names[entry.identity] = of_entry
    for identity, states in added.items():
        if states & ~deleted.get(identity, 0):
            live.update(names[identity])
    return live


def _name(path: str) -> str:
    return path.rpartition("/")[2]
