"""Return to an earlier state: by taking the later snapshots away, or by a new snapshot that has the old state."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from lakebed.commit.committer import Changes, CommitIdentity
from lakebed.errors import CommitConflict, FileMissing, InvalidArgument, NotFound
from lakebed.maintenance.references import is_kept
from lakebed.maintenance.rollback import RolledBack, roll_back
from lakebed.maintenance.tags import find_snapshot
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.operation import ROLLBACK
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.arguments import snapshot_argument, tag_argument
from lakebed.table.branching import forget_writes
from lakebed.table.context import TableContext
from lakebed.table.fold_first import check_may_return
from lakebed.table.postpone_compact import WaitingRows
from lakebed.table.replacing import refuse_replaced
from lakebed.table.time_travel import snapshot_at_time, snapshot_of_tag, snapshot_of_watermark, to_millis
from lakebed.table.told_replacements import commit_telling


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
    return snapshot_of_watermark(stores, watermark, context.name)


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
        return Changes([*gone, *back], index_entries=index, rewrites_manifests=True, restated=restated)

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
