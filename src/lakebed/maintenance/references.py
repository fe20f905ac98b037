"""Everything that keeps files from being garbage: snapshots, tags and long-lived changelogs, of all branches.

Whoever adds a reference to files that are there already (a tag, a branch, an old state made new) first adds it, then
looks whether what it was taken from still stands. Whoever deletes files first takes the old reference away, or
announces that it will go, and then reads the references that are left. One of the two always sees the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from lakebed.maintenance.table_files import TableFiles
from lakebed.metadata.branches import all_branches
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores


class Holds(Enum):
    """What a reference keeps."""

    STATE_AND_CHANGES = "snapshot"
    STATE = "tag"
    CHANGES = "changelog"


@dataclass(frozen=True, slots=True)
class Reference:
    """A snapshot, or a copy of one, in one branch."""

    files: TableFiles
    snapshot: Snapshot
    holds: Holds


def references(files: TableFiles, without_tags: Collection[str] = ()) -> list[Reference]:
    """All references of all branches, except these tags of the branch that `files` is of."""
    return list(_references(files, without_tags))


def _references(files: TableFiles, without_tags: Collection[str]) -> Iterator[Reference]:
    for stores in all_branches(files.stores):
        there = replace(files, stores=stores)
        left_out = without_tags if stores.paths.branch == files.stores.paths.branch else ()
        for snapshot_id in stores.snapshots.ids():
            snapshot = stores.snapshots.find(snapshot_id)
            if snapshot is not None:
                yield Reference(there, snapshot, Holds.STATE_AND_CHANGES)
        for tag in stores.tags.list():
            if tag.name not in left_out:
                yield Reference(there, tag.snapshot, Holds.STATE)
        for snapshot_id in stores.changelogs.ids():
            changelog = stores.changelogs.find(snapshot_id)
            if changelog is not None:
                yield Reference(there.lenient(), changelog, Holds.CHANGES)


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
