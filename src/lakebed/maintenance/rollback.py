"""Takes the newest snapshots of a branch away, so that an older one is the latest again.

    hint → snapshots, newest first → long-lived changelogs → tags of what is gone

Newest first, so that at every moment the snapshots left are a history without gaps, and the next commit continues it:
a crash leaves a table that is rolled back part of the way. Data files stay; orphan cleaning finds those nobody needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.errors import CommitConflict, NotFound
from lakebed.maintenance.references import is_kept
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores

_ROUNDS = 10
"""How often commits that come in between are taken away as well."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Ids of the latest snapshot before and after."""

    previous: int
    current: int


def roll_back(stores: MetadataStores, target: Snapshot) -> RolledBack:
    """Makes `target`, a snapshot or the content of a tag, the latest snapshot."""
    previous = stores.snapshots.latest_id()
    if previous is None:
        raise NotFound(f"{stores.paths.branch_root} has no snapshots to roll back", hint="write to the table first")
    with stores.fileio.advisory_lock(stores.paths.snapshot_directory):
        if not is_kept(stores, target):
            _bring_back(stores, target)
        _take_away_newer(stores, target)
        stores.snapshots.publish(target)  # there already, unless an expiry was about to delete it before all this
        _forget_newer(stores, target.id)
    return RolledBack(previous, target.id)


def _bring_back(stores: MetadataStores, target: Snapshot) -> None:
    """Puts the snapshot of a tag in its place again. Newer ones are there still, so nobody takes it for the latest."""
    if not _is_tagged(stores, target):
        raise _expiring(stores, target)
    if not stores.snapshots.publish(target) and stores.snapshots.find(target.id) != target:
        raise CommitConflict(
            f"snapshot {target.id} of {stores.paths.branch_root} is not the one that the tag was made of",
            hint="roll back to a snapshot, or read the tag's state and overwrite the table with it",
        )
    if not _is_tagged(stores, target):
        stores.snapshots.delete(target.id)
        raise _expiring(stores, target)
    stores.snapshots.withdraw_expiry(target.id)
    stores.snapshots.write_earliest_hint(target.id)


def _take_away_newer(stores: MetadataStores, target: Snapshot) -> None:
    taken: list[Snapshot] = []
    stores.snapshots.write_latest_hint(target.id)  # first: other engines trust it without looking
    for _ in range(_ROUNDS):
        newer = _newer(stores, target.id)
        if not newer:
            break
        # Noted only if it was this call that removed it: an expiry may be doing the same.
        taken = [snapshot for snapshot in reversed(newer) if stores.snapshots.delete(snapshot.id)][::-1] + taken
    if stores.snapshots.first_not_expiring() > target.id:
        # An expiry began meanwhile, and took the snapshots that are gone now for the table's future.
        for snapshot in taken:
            stores.snapshots.publish(snapshot)
        raise _expiring(stores, target)


def _is_tagged(stores: MetadataStores, snapshot: Snapshot) -> bool:
    return any(tag.snapshot == snapshot for tag in stores.tags.list())


def _newer(stores: MetadataStores, snapshot_id: int) -> list[Snapshot]:
    found = (stores.snapshots.find(number) for number in stores.snapshots.ids() if number > snapshot_id)
    return [snapshot for snapshot in found if snapshot is not None]


def _forget_newer(stores: MetadataStores, snapshot_id: int) -> None:
    """Removes the long-lived changelogs and the tags of snapshots after this one."""
    forget_changelogs(stores, [number for number in stores.changelogs.ids() if number > snapshot_id])
    for tag in reversed(stores.tags.list()):
        if tag.snapshot.id > snapshot_id:
            stores.tags.delete(tag.name)


def forget_changelogs(stores: MetadataStores, ids: Sequence[int]) -> None:
    """Removes the newest long-lived changelogs. The hint goes back first: other engines trust it."""
    if not ids:
        return
    kept = [number for number in stores.changelogs.ids() if number < ids[0]]
    if kept:
        stores.changelogs.write_latest_hint(kept[-1])
    else:
        stores.changelogs.delete_hints()
    for number in reversed(ids):
        stores.changelogs.delete(number)


def _expiring(stores: MetadataStores, target: Snapshot) -> CommitConflict:
    return CommitConflict(
        f"snapshot {target.id} of {stores.paths.branch_root} is about to expire",
        hint="roll back to a later snapshot, or to a tag; nothing was changed",
    )
