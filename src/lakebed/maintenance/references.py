"""Everything that keeps files from being garbage: snapshots, tags and long-lived changelogs, of all branches.

INVARIANT: whoever adds a reference to files that are there already (a tag, a branch, an old state made new) first adds
it, then looks whether what it was taken from still stands. Whoever deletes files first takes the old reference away, or
announces that it will go, and then reads the references that are left. One of the two always sees the other. In any
other order both may go ahead, and a tag or branch stands on files that are gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from enum import Enum
from functools import partial
from itertools import islice

from lakebed.errors import FileMissing
from lakebed.fileio.together import answers_late, ask_together
from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.branches import all_branches
from lakebed.metadata.entries import READ_THREADS, all_metas, changelog_metas, delta_metas, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass

_REFERENCES_AT_ONCE = 4096
_ASKED_AT_ONCE = 32


class Holds(Enum):
    """What a reference keeps."""

    STATE_AND_CHANGES = "snapshot"
    STATE_AND_CHANGES_LEFT = "oldest snapshot"
    """Made from a tag, by a branch or a rollback, its changes may have expired before: tags keep the state alone."""
    STATE = "tag"
    CHANGES = "changelog"


@dataclass(frozen=True, slots=True)
class Reference:
    """A snapshot, or a copy of one, in one branch."""

    files: TableFiles
    snapshot: Snapshot
    holds: Holds


def references(files: TableFiles, without_tags: Collection[str] = ()) -> Iterator[Reference]:
    """All references of all branches, except these tags of the branch that `files` is of, one after the other."""
    for stores in all_branches(files.stores):
        there = replace(files, stores=stores)
        left_out = without_tags if stores.paths.branch == files.stores.paths.branch else ()
        holds = Holds.STATE_AND_CHANGES_LEFT
        for snapshot in _found_in_turn(stores, stores.snapshots.ids()):
            yield Reference(there, snapshot, holds)
            holds = Holds.STATE_AND_CHANGES
        for tag in stores.tags.list():
            if tag.name not in left_out:
                yield Reference(there, tag.snapshot, Holds.STATE)
        for snapshot_id in stores.changelogs.ids():
            changelog = stores.changelogs.find(snapshot_id)
            if changelog is not None:
                yield Reference(there.lenient(), changelog, Holds.CHANGES)


def _found_in_turn(stores: MetadataStores, ids: Sequence[int]) -> Iterator[Snapshot]:
    """Those of the snapshots that are still there; asked for together where answers are late."""
    for start in range(0, len(ids), _ASKED_AT_ONCE):
        part = ids[start : start + _ASKED_AT_ONCE]
        asked = [partial(stores.snapshots.find, snapshot_id) for snapshot_id in part]
        yield from (snapshot for snapshot in ask_together(stores.fileio, asked) if snapshot is not None)


def reviving_names(files: TableFiles, since: int | None = None) -> frozenset[tuple[str, str, int]]:
    """Names of all references that can bring an old file back, of the branch's own snapshots those after `since`.

    Plain commits of the branch itself are left out: they add only files that are new.
    """
    return frozenset(_reviving_names(files.stores, since))


def _reviving_names(own: MetadataStores, since: int | None) -> Iterator[tuple[str, str, int]]:
    for stores in all_branches(own):
        branch = stores.paths.branch
        yield from ((branch, f"tag {tag.name}", tag.snapshot.id) for tag in stores.tags.list())
        if branch != own.paths.branch:
            yield from ((branch, "snapshot", number) for number in stores.snapshots.ids())
    for number in [] if since is None else own.snapshots.ids():
        snapshot = own.snapshots.find(number) if since is not None and number > since else None
        if snapshot is not None and snapshot.commit_kind == CommitKind.OVERWRITE:
            yield own.paths.branch, "overwrite", number


def is_kept(stores: MetadataStores, snapshot: Snapshot) -> bool:
    """Whether a snapshot stands and is not about to expire: what was taken from it before this was asked is safe."""
    return stores.snapshots.first_not_expiring() <= snapshot.id and stores.snapshots.find(snapshot.id) == snapshot


# ------------------------------------------------------------------------------------------------------------------
# What stays and therefore protects files: tags, the other branches, and later snapshots that may reuse old files.
#
# INVARIANT: all of it is read strictly. A survivor that can not be read stops the expiry: what it needs can not be
# known.


_FEW = 16
"""Up to this many small files, starting threads takes longer than reading."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A snapshot, or a copy of one, whose files must stay.

    `is_whole`: its whole state is meant. If not, only what it added, because an older survivor covers the rest.
    `is_oldest`: of its changes only what is left; see `Holds.STATE_AND_CHANGES_LEFT`.
    """

    files: TableFiles
    snapshot: Snapshot
    is_whole: bool = True
    has_changelog: bool = False
    is_oldest: bool = False

    @property
    def _changes(self) -> TableFiles:
        return self.files.lenient() if self.is_oldest else self.files

    def data(self, names: Collection[str]) -> set[str]:
        """Its data files, as far as they have one of these names."""
        found = self.files.live(self.snapshot, names) if self.is_whole else self.files.added(self.snapshot)
        return found | set(self._changes.changelog_files(self.snapshot)) if self.has_changelog else found

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
            found.update(self._changes.changelog_manifests(self.snapshot))
        return found | self.named_metadata()


def reusing(files: TableFiles, snapshots: Sequence[Snapshot]) -> list[Survivor]:
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
    if answers_late(stores.fileio):
        return ask_together(stores.fileio, [partial(stores.snapshots.get, snapshot_id) for snapshot_id in ids])
    with ThreadPoolExecutor(READ_THREADS) as pool:
        return list(pool.map(stores.snapshots.get, ids))


def _other_branches(stores: MetadataStores) -> Iterator[MetadataStores]:
    return (found for found in all_branches(stores) if found.paths.branch != stores.paths.branch)


def _branch(files: TableFiles, stores: MetadataStores) -> Iterator[Survivor]:
    there = replace(files, stores=stores)
    before = 0
    for snapshot in read_snapshots(stores, stores.snapshots.ids()):
        # What follows on the one before adds to it; after a gap nothing is known.
        is_oldest = before == 0
        is_whole = snapshot.id != before + 1 or is_oldest
        yield Survivor(there, snapshot, is_whole=is_whole, has_changelog=True, is_oldest=is_oldest)
        before = snapshot.id
    for tag in stores.tags.list():
        yield Survivor(there, tag.snapshot)
    for snapshot_id in stores.changelogs.ids():
        # Of a changelog without a producer the state's manifests are left, of one with a producer they are not.
        yield Survivor(there.lenient(), stores.changelogs.get(snapshot_id), is_whole=False, has_changelog=True)


# --- Which files the references of a table need, by name. What is not among them is garbage -----------------------
#
# Every manifest is read once, however many snapshots share it. References are numbered, and a set of them is an
# integer with one bit each: a file is live in those that have its ADD and not its DELETE.


def used_names(references: Iterable[Reference]) -> set[str]:
    """Names of all files that these need: data files, manifests, lists, indexes, statistics.

    Names rather than paths: they are unique, and other engines may spell or place a path in another way. Anything that
    can not be read is an error, except what a long-lived changelog has lost by its nature.
    """
    names: set[str] = set()
    left = iter(references)
    # So many at a time: the sets of them that are kept for each file grow with their number, and the files do too.
    while part := list(islice(left, _REFERENCES_AT_ONCE)):
        found = _Found()
        for number, reference in enumerate(part):
            found.take(reference, 1 << number)
        names |= found.names | _live_names(found.manifests.values())
    return names


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
            changes = files.lenient() if reference.holds is Holds.STATE_AND_CHANGES_LEFT else files
            self._named(changes.changelog_list(snapshot))
            for meta in _metas(changes, changelog_metas, snapshot):
                self._manifest(changes, meta).is_needed_whole = True

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
