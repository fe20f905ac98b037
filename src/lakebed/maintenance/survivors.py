"""What stays and therefore protects files: tags, the other branches, and later snapshots that may reuse old files.

All of it is read strictly. A survivor that can not be read stops the expiry: what it needs can not be known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.branches import all_branches
from lakebed.metadata.entries import READ_THREADS
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores

_FEW = 16
"""Up to this many small files, starting threads takes longer than reading."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A snapshot, or a copy of one, whose files must stay.

    `is_whole`: its whole state is meant. If not, only what it added, because an older survivor covers the rest.
    """

    files: TableFiles
    snapshot: Snapshot
    is_whole: bool = True
    has_changelog: bool = False

    def data(self, names: Collection[str]) -> set[str]:
        """Its data files, as far as they have one of these names."""
        found = self.files.live(self.snapshot, names) if self.is_whole else self.files.added(self.snapshot)
        return found | set(self.files.changelog_files(self.snapshot)) if self.has_changelog else found

    def named_metadata(self) -> set[str]:
        """Metadata files that the snapshot itself names: known without reading any of them."""
        files, snapshot = self.files, self.snapshot
        index = () if snapshot.index_manifest is None else (files.stores.paths.manifest_file(snapshot.index_manifest),)
        log = files.changelog_list(snapshot) if self.has_changelog else ()
        return {*index, *log, *files.lists(snapshot), *files.statistics(snapshot)}

    def metadata(self) -> set[str]:
        """All its metadata files."""
        found = {*self.files.manifests(self.snapshot), *self.files.indexes(self.snapshot)}
        if self.has_changelog:
            found.update(self.files.changelog_manifests(self.snapshot))
        return found | self.named_metadata()


def reusing(files: TableFiles, snapshots: list[Snapshot]) -> list[Survivor]:
    """The snapshots that may hold files which earlier ones had dropped: overwrites that bring back an old state."""
    return [
        Survivor(files, snapshot, is_whole=False)
        for snapshot in snapshots
        if snapshot.commit_kind == CommitKind.OVERWRITE
    ]


def outsiders(files: TableFiles, kept: range) -> list[Survivor]:
    """Tags of snapshots that are not kept, and all that the other branches have."""
    tags = [Survivor(files, tag.snapshot) for tag in files.stores.tags.list() if tag.snapshot.id not in kept]
    return [*tags, *(survivor for stores in _other_branches(files.stores) for survivor in _branch(files, stores))]


def read_snapshots(stores: MetadataStores, ids: Collection[int]) -> list[Snapshot]:
    """Many snapshots, in the order of their ids."""
    if len(ids) <= _FEW:
        return [stores.snapshots.get(snapshot_id) for snapshot_id in ids]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        return list(pool.map(stores.snapshots.get, ids))


def _other_branches(stores: MetadataStores) -> Iterator[MetadataStores]:
    return (found for found in all_branches(stores) if found.paths.branch != stores.paths.branch)


def _branch(files: TableFiles, stores: MetadataStores) -> Iterator[Survivor]:
    there = replace(files, stores=stores)
    before = 0
    for snapshot in read_snapshots(stores, stores.snapshots.ids()):
        # What follows on the one before adds to it; after a gap nothing is known.
        yield Survivor(there, snapshot, is_whole=snapshot.id != before + 1 or before == 0, has_changelog=True)
        before = snapshot.id
    for tag in stores.tags.list():
        yield Survivor(there, tag.snapshot)
    for snapshot_id in stores.changelogs.ids():
        # Of a changelog without a producer the state's manifests are left, of one with a producer they are not.
        yield Survivor(there.lenient(), stores.changelogs.get(snapshot_id), is_whole=False, has_changelog=True)
