"""What a commit makes due. It stands whatever becomes of this: failures are logged, and the next commit tries again.

A commit does not compact, tag or expire. Whoever commits for a user asks for it here, right away or beside the next.
"""

from __future__ import annotations

from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.maintenance.mark_done import mark_done_after_commit
from lakebed.maintenance.tidy_up import tidy_up
from lakebed.metadata.entries import in_buckets
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    COMPACTION_MIN_FILE_NUM,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    PARTITION_END_INPUT_TO_DONE,
    WRITE_ONLY,
)
from lakebed.rewrite.bucket import Compactor
from lakebed.rewrite.clustering import keyless_compactor
from lakebed.rewrite.due import has_many_runs, is_full_due, looks_at_buckets
from lakebed.write.clustering import stepwise_clustering_of
from lakebed.write.commit import Committed


class FollowUp:
    """Of one commit."""

    def __init__(self, commit: Committed) -> None:
        self._commit = commit
        self._context = commit.context
        self._options = commit.context.options
        self._identity = commit.identity

    def run(self, elsewhere: Elsewhere | None = None) -> None:
        """All of it, in this order: large compactions run elsewhere, if there is such a place."""
        if not self._options[WRITE_ONLY]:
            self._compact(elsewhere)
            # Tags, consumers, partitions, snapshots.
            tidy_up(self._context, self._identity, snapshot=self._commit.snapshot)
        if self._options[PARTITION_END_INPUT_TO_DONE] and not self._identity.is_replayable:
            mark_done_after_commit(self._context, {message.partition for message in self._commit.messages})

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the compaction: it tells of changes, or was asked for by number."""
        return _is_full_due(self._context, self._identity) or looks_at_buckets(self._context)

    @property
    def may_wait(self) -> bool:
        """Whether more may be written before the buckets of this commit are compacted."""
        limit = self._options[NUM_SORTED_RUN_STOP_TRIGGER] or self._options[NUM_SORTED_RUN_COMPACTION_TRIGGER] + 3
        return not self.is_awaited and all(self._commit.run_count(each) < limit for each in self._commit.messages)

    def _compact(self, elsewhere: Elsewhere | None) -> None:
        """Compacts the buckets that this commit made due."""
        messages = self._commit.messages
        if not self._context.has_key:
            self._join_small_files(elsewhere)
            return
        is_full = _is_full_due(self._context, self._identity)
        if is_full:
            keep = None  # also buckets that earlier commits wrote to: they wait for this one
        elif looks_at_buckets(self._context):
            keep = in_buckets({(message.partition, message.bucket) for message in messages})
        else:
            due = {(message.partition, message.bucket) for message in messages if self._has_many_runs(message)}
            if not due:
                return
            keep = in_buckets(due)
        is_in_stream = self._identity.is_replayable
        compactor = Compactor(self._context, is_full, keep, elsewhere, is_in_stream=is_in_stream)
        compactor.run_quietly(_of_compaction(self._identity))

    def _join_small_files(self, elsewhere: Elsewhere | None) -> None:
        """Joins files of buckets without a key. Without buckets that is left to whoever compacts the table."""
        steps = stepwise_clustering_of(self._context) is not None
        enough = self._options[NUM_SORTED_RUN_COMPACTION_TRIGGER if steps else COMPACTION_MIN_FILE_NUM]
        run_count = self._commit.run_count
        due = {
            (message.partition, message.bucket)
            for message in self._commit.messages
            if message.total_buckets > 0 and run_count(message) >= enough
        }
        if due:
            compactor = keyless_compactor(self._context, keep=in_buckets(due), run_pieces=elsewhere)
            compactor.run_quietly(_of_compaction(self._identity))

    def _has_many_runs(self, message: CommitMessage) -> bool:
        return has_many_runs(self._options, self._commit.run_count(message))


def catch_up(context: TableContext, identity: CommitIdentity) -> None:
    """Of a commit that is in already, the compaction may still be missing: only that is done again."""
    if context.has_key and not context.options[WRITE_ONLY] and not _is_followed(context, identity):
        Compactor(context, _is_full_due(context, identity)).run_quietly(_of_compaction(identity))


def after_rows_changed(context: TableContext, snapshot: Snapshot | None) -> Snapshot | None:
    """To be called with what changing rows in their places made, if anything: nothing is due but what time brings."""
    if snapshot is not None and not context.options[WRITE_ONLY]:
        tidy_up(context)
    return snapshot


def _is_followed(context: TableContext, identity: CommitIdentity) -> bool:
    """Whether the commit of this identity has had its compaction, or is so old that later ones saw to it."""
    for snapshot in context.stores.snapshots.newest_first():
        if (snapshot.commit_user, snapshot.commit_identifier) == (identity.user, identity.identifier):
            return snapshot.commit_kind == CommitKind.COMPACT
    return True


def _is_full_due(context: TableContext, identity: CommitIdentity) -> bool:
    return is_full_due(context.options, identity.identifier, is_replayable=identity.is_replayable)


def _of_compaction(identity: CommitIdentity) -> CommitIdentity:
    """Its own identity: the same user and number, another commit."""
    return CommitIdentity(identity.user, identity.identifier)


__all__ = ["FollowUp", "after_rows_changed", "catch_up"]
