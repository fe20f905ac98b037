"""What a commit sees to when it is done: tags, consumers, partitions and snapshots whose time has come.

The commit stands whatever becomes of this: failures are logged, and the next commit tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext, once_per_context
from lakebed.errors import InvalidOption, LakebedError
from lakebed.maintenance.auto_tags import create_due_tags
from lakebed.maintenance.checks import CHECKS, checks_of
from lakebed.maintenance.consumers import expire_consumers
from lakebed.maintenance.expiry import expire_quietly
from lakebed.maintenance.partitions import expire_after_commit as expire_partitions
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.table_files import table_files
from lakebed.maintenance.tags import remove_expired_tags
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    COMMIT_USER_PREFIX,
    CONSUMER_EXPIRATION_TIME,
    PARTITION_EXPIRATION_TIME,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    SNAPSHOT_TIME_RETAINED,
    TAG_AUTOMATIC_CREATION,
    TAG_TIME_EXPIRE_ENABLED,
)
from lakebed.records import dataclass
from lakebed.units import MINUTE_MS

_log = logging.getLogger(__name__)
_TAG_CHECK_INTERVAL_MS = MINUTE_MS
"""Looking at tags means reading all of them, so it is not done after every commit of a busy writer."""


def tidy_up(
    context: TableContext,
    identity: CommitIdentity | None = None,
    *,
    snapshot: Snapshot | None = None,
    goes_on: bool = False,
) -> None:
    """Makes the tags that are due, then lets go what has had its time, after a commit (of this identity).

    `snapshot` is what it made, if that is at hand. `goes_on`: more commits are to come, as of a stream.
    """
    identity = identity or CommitIdentity((context.options[COMMIT_USER_PREFIX] or "") + context.ids.new_id())
    commit = _Commit(identity, not identity.is_replayable and not goes_on, None if snapshot is None else snapshot.id)
    for what, see_to in _asked_for(context):
        try:
            see_to(context, commit)
        except LakebedError as error:
            _log.warning("table %s: no %s after the commit: %s", context.name, what, error.message)


@dataclass(frozen=True, slots=True)
class _Commit:
    """What is seen to after it."""

    identity: CommitIdentity
    is_batch: bool
    """Whether it is the last of its job."""
    snapshot_id: int | None


_Deed = Callable[[TableContext, _Commit], object]


@once_per_context
def _asked_for(context: TableContext) -> tuple[tuple[str, _Deed], ...]:
    """What the table's options ask to see to, in this order, and what did not happen if it fails."""
    options = context.options
    deeds: dict[str, tuple[Callable[[], bool], _Deed]] = {
        "tag was made": (
            lambda: options[TAG_AUTOMATIC_CREATION] != "none",
            lambda table, commit: create_due_tags(table, is_batch=commit.is_batch),
        ),
        "consumer expired": (
            lambda: options[CONSUMER_EXPIRATION_TIME] is not None,
            lambda table, _: _expire_consumers(table),
        ),
        "partition expired": (
            lambda: bool(context.schema.partition_keys) and options[PARTITION_EXPIRATION_TIME] is not None,
            lambda table, commit: expire_partitions(table, commit.identity, is_batch=commit.is_batch),
        ),
        "snapshot expired": (lambda: True, _expire_snapshots),
        "tag expired": (lambda: options[TAG_TIME_EXPIRE_ENABLED], lambda table, _: _expire_tags(table)),
    }
    return tuple((what, see_to) for what, (asks, see_to) in deeds.items() if _is_true_or_wrong(asks))


def _is_true_or_wrong(asks: Callable[[], bool]) -> bool:
    """A value that can not be read is told when it is seen to: the commit stands, and the rest is seen to as well."""
    try:
        return asks()
    except InvalidOption:
        return True


def _expire_snapshots(context: TableContext, commit: _Commit) -> None:
    """Lists the snapshots only if the oldest may have had its time: a busy writer has thousands of them."""
    if commit.snapshot_id is not None and commit.snapshot_id < context.options[SNAPSHOT_NUM_RETAINED_MIN]:
        return  # so many stay whatever their age, and a compaction after the commit makes one more at most
    now_ms, checks = context.clock.now_ms(), checks_of(context)
    kept_since_ms = now_ms - context.options[SNAPSHOT_TIME_RETAINED]
    if checks.second_snapshot_ms is not None and checks.second_snapshot_ms >= kept_since_ms and _go_by_age(context):
        return
    expire_quietly(context.name, table_files(context), lambda: RetentionRules.of(context.options, now_ms))
    if "snapshots" in checks.done_ms:  # worth to know for those who come again
        snapshots = context.stores.snapshots
        oldest = snapshots.earliest_id()
        second = None if oldest is None else snapshots.find(oldest + 1)
        checks.second_snapshot_ms = None if second is None else second.time_millis
    checks.done_ms["snapshots"] = now_ms


@once_per_context
def _go_by_age(context: TableContext) -> bool:
    """Whether nothing but its age makes a snapshot go."""
    options = context.options
    return not options.has(SNAPSHOT_NUM_RETAINED_MAX) and not RetentionRules.of(options, 0).is_decoupled


def _expire_consumers(context: TableContext) -> None:
    lifetime_ms = context.options[CONSUMER_EXPIRATION_TIME] or 0
    gone = expire_consumers(context.stores, context.clock.now_ms() - lifetime_ms)
    if gone:
        _log.info("table %s: forgot consumers %s", context.name, [consumer.id for consumer in gone])


def _expire_tags(context: TableContext) -> None:
    checks = context.memory[CHECKS] or checks_of(context)
    now_ms, checked_ms = context.clock.now_ms(), checks.done_ms
    # Asked once more: where the value can not be read, nothing is deleted.
    if not context.options[TAG_TIME_EXPIRE_ENABLED] or now_ms < checked_ms.get("tags", 0) + _TAG_CHECK_INTERVAL_MS:
        return
    checked_ms["tags"] = now_ms
    gone = remove_expired_tags(context, None)
    if gone.names:
        _log.info("table %s: tags %s expired", context.name, gone.names)
