"""Takes the newest snapshots of a branch away, so that an older one is the latest again.

    hint → snapshots, newest first → long-lived changelogs → tags of what is gone

INVARIANT: newest first, so that at every moment the snapshots left are a history without gaps, and the next commit
continues it: a crash leaves a table that is rolled back part of the way. Data files stay; orphan cleaning finds those
nobody needs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.definition.arguments import snapshot_argument, tag_argument
from lakebed.definition.branch import forget_writes
from lakebed.definition.context import TableContext
from lakebed.definition.moments import snapshot_at_time, snapshot_before_watermark, snapshot_of_tag, to_millis
from lakebed.errors import CommitConflict, FileMissing, InvalidArgument, NotFound
from lakebed.maintenance.references import is_kept
from lakebed.maintenance.tags import find_snapshot
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.operation import ROLLBACK
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass
from lakebed.rewrite.fold_first import check_may_return
from lakebed.rewrite.replace_table import refuse_replaced
from lakebed.write.told_replacements import commit_telling
from lakebed.write.waiting_rows import WaitingRows

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


# --- Return to an earlier state: by taking the later snapshots away, or by a new snapshot that has the old state --


@dataclass(frozen=True, slots=True)
class Revived:
    """Ids of the latest snapshot before, of the one whose state came back, and of the new one that has it."""

    previous: int
    revived: int
    current: int


def target_snapshot(
    context: TableContext,
    snapshot: int | None,
    tag: str | None,
    timestamp: int | str | dt.datetime | dt.date | None,
    watermark: int | None,
) -> Snapshot:
    """The one snapshot that exactly one of the arguments names, if its state can be that of the table now."""
    found = _named(context, snapshot, tag, timestamp, watermark)
    refuse_replaced(context, found)
    check_may_return(context, found)
    return found


def _named(
    context: TableContext,
    snapshot: int | None,
    tag: str | None,
    timestamp: int | str | dt.datetime | dt.date | None,
    watermark: int | None,
) -> Snapshot:
    given = [value for value in (snapshot, tag, timestamp, watermark) if value is not None]
    if len(given) != 1:
        raise InvalidArgument(
            f"exactly one of snapshot, tag, timestamp and watermark says where to, not {len(given)}",
            hint="name one point",
        )
    stores = context.stores
    if snapshot is not None:
        return find_snapshot(stores, snapshot_argument(snapshot))
    if tag is not None:
        return snapshot_of_tag(stores, tag_argument(tag), context.name)
    if timestamp is not None:
        return snapshot_at_time(stores, to_millis(timestamp), context.name)
    assert watermark is not None
    return snapshot_before_watermark(stores, watermark, context.name)


def roll_back_table(context: TableContext, target: Snapshot) -> RolledBack:
    """Takes away what is newer than the target."""
    done = roll_back(context.stores, target)
    forget_writes(context)
    return done


def _state(context: TableContext, target: Snapshot) -> list[ManifestEntry]:
    try:
        return live_files(context.stores, target)
    except FileMissing as error:
        raise NotFound(
            f"table `{context.name}`: snapshot {target.id} has expired", hint="choose a later snapshot, or a tag"
        ) from error


class _OutOfOrder(Exception):
    """Files that wait now would come before older ones that come back: all of them have to come back together."""


def _is_out_of_order(now: Collection[Hashable], then: Sequence[ManifestEntry]) -> bool:
    """Whether a file waits, and waited after one of its partition that does not wait now. Rows are placed in the order
    of the manifests, and what is added comes after what is there."""
    returning = set()
    for entry in then:
        if entry.bucket == POSTPONE_BUCKET and entry.identity not in now:
            returning.add(entry.partition)
        elif entry.bucket == POSTPONE_BUCKET and entry.partition in returning:
            return True
    return False


def revive(context: TableContext, target: Snapshot, identity: CommitIdentity) -> Revived:
    """Commits the target's state on top of the latest snapshot. Nothing is deleted."""
    stores, previous = context.stores, 0

    def prepare(latest: Snapshot | None) -> Changes:
        nonlocal previous
        if latest is None:
            raise NotFound(f"table `{context.name}` has no snapshots", hint="write to the table first")
        previous = latest.id
        now = {entry.identity: entry for entry in live_files(stores, latest)}
        then = {entry.identity: entry for entry in _state(context, target)}
        gone = [replace(entry, kind=EntryKind.DELETE) for key, entry in now.items() if key not in then]
        back = [entry for key, entry in then.items() if key not in now]
        if _is_out_of_order(now.keys(), list(then.values())):
            raise _OutOfOrder
        index = stores.index_manifests.read(target.index_manifest) if target.index_manifest else ()
        # Rows of files that stayed may have got other ids since: files that come back have columns of the old ones.
        same = [then.get(key, entry) for key, entry in now.items()]
        restated = same if same != list(now.values()) else None
        # No manifest may say of a file that it was deleted earlier: readers would not see it come back.
        return Changes([*gone, *back], index_entries=index, rewrites_manifests=True, restated=restated, rows_of=target)

    committed = None
    while committed is None:
        try:
            committed = commit_telling(context, identity, prepare, operation=ROLLBACK, meant_in=target)
        except _OutOfOrder:
            WaitingRows(context).place(CommitIdentity(context.ids.new_id()))
    if not is_kept(stores, target) and not any(tag.snapshot == target for tag in stores.tags.list()):
        roll_back_table(context, stores.snapshots.get(previous))
        raise CommitConflict(
            f"table `{context.name}`: snapshot {target.id} expired while its state was being brought back",
            hint="choose a later snapshot, or a tag; nothing was changed",
        )
    return Revived(previous, target.id, committed.id)
