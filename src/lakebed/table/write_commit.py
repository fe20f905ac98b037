"""Makes new files part of a table: one snapshot from the messages of one writer, or of all tasks of a job.

Between writing and committing, others may have committed: the new rows are then moved behind theirs, so that the later
commit wins. Afterwards comes what a commit makes due: compaction, expiry.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from lakebed.commit.committer import Changes, Committer, Progress
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity, is_replay
from lakebed.commit.written_files import WrittenFiles
from lakebed.datafiles.restamp import restamp
from lakebed.errors import CommitConflict
from lakebed.fileio.base import FileIO
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    COMMIT_FORCE_COMPACT,
    COMMIT_FORCE_CREATE_SNAPSHOT,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
    WRITE_ONLY,
)
from lakebed.schema.store import SchemaStore
from lakebed.table.bucket_state import BucketStates
from lakebed.table.compact import Compactor, in_buckets, looks_for_more
from lakebed.table.context import TableContext
from lakebed.table.expire import expire_after_commit
from lakebed.table.overwrite import Overwrite
from lakebed.table.producers import event_rules, full_compaction_every
from lakebed.table.write_files import file_layout
from lakebed.table.write_rules import committer_for, write_rules


class WriteCommit:
    """One commit of one user. `written` notes the files behind the messages, which go if nothing comes of them."""

    def __init__(
        self,
        context: TableContext,
        *,
        overwrite: Overwrite | None,
        identity: CommitIdentity,
        fileio: FileIO,
        written: WrittenFiles,
        watermark: int | None = None,
    ) -> None:
        self._context = context
        self._overwrite = overwrite
        self._identity = identity
        self._fileio = fileio
        self._written = written
        self._watermark = watermark
        self._committer: Committer = committer_for(context)
        self._states: BucketStates | None = None
        self._progress = Progress()
        self._moved_files = itertools.count()
        self._prefix = context.new_data_file_prefix()

    def states(self) -> BucketStates:
        """Where sequence numbers stand now: from what the last write of this handle knew, if there was one."""
        if self._states is None:
            stores = self._context.stores
            latest = stores.snapshots.latest()
            remembered = self._context.memory.bucket_states
            if remembered is None:
                self._states = BucketStates.load(stores, latest)
            else:
                self._states = remembered.advanced_to(stores, latest)
        return self._states

    def is_committed(self) -> bool:
        """Whether a commit with this identity, or a later one of its user, is in the table."""
        return self._committer.is_committed(self._identity)

    @property
    def may_be_visible(self) -> bool:
        """Whether the files may be part of the table: then they must stay."""
        return self._progress.may_be_visible

    def run(self, messages: list[CommitMessage]) -> Snapshot | None:
        """Makes the files visible as one snapshot; None when there was nothing to commit."""
        final = messages
        kind = CommitKind.APPEND if self._overwrite is None else CommitKind.OVERWRITE

        def prepare(latest: Snapshot | None) -> Changes | None:
            nonlocal final
            if is_replay(self._context.stores.snapshots, latest, self._identity):
                return None
            if self._overwrite is not None:
                return self._replacing(self._overwrite, messages, latest)
            if not messages and not self._wants_empty_snapshot():
                return None
            final = [self._rebased(message, latest) for message in final]
            return Changes(_added(final), _recorded(final))

        snapshot = self._committer.commit(
            kind,
            self._identity,
            self._latest_schema_id,
            prepare,
            progress=self._progress,
            watermark=self._watermark,
            operation="WRITE" if self._overwrite is None else "OVERWRITE",
        )
        self._context.memory.bucket_states = self._states
        committed = final if snapshot is not None else []
        kept_changelogs = self._overwrite is None
        self._written.take_back(
            keep={
                self._context.data_file_path(message.partition, message.bucket, file.file_name)
                for message in committed
                for file in (*message.new_files, *(message.changelog_files if kept_changelogs else ()))
            }
        )
        return snapshot

    def follow_up(self, messages: list[CommitMessage]) -> None:
        """Compacts what this commit made due, and expires. The commit stands, whatever becomes of this."""
        self._compact_after(messages)
        if not self._context.options[WRITE_ONLY]:
            expire_after_commit(self._context)

    def catch_up(self) -> None:
        """Of a commit that is in already, the compaction that tells its changes may still be missing."""
        options = self._context.options
        if event_rules(options) is not None and not options[WRITE_ONLY]:
            Compactor(self._context, self._is_full_due()).run_quietly(self._compaction_identity)

    # --- inside --------------------------------------------------------------------------------------------------

    def _compact_after(self, messages: list[CommitMessage]) -> None:
        """Compacts the buckets that this commit made due."""
        options = self._context.options
        if not self._context.has_key or options[WRITE_ONLY]:
            return
        is_full = self._is_full_due()
        if is_full:
            keep = None  # also buckets that earlier commits wrote to: they wait for this one
        elif options[COMMIT_FORCE_COMPACT] or looks_for_more(options):
            keep = in_buckets({(message.partition, message.bucket) for message in messages})
        else:
            due = {(message.partition, message.bucket) for message in messages if self._has_many_runs(message)}
            if not due:
                return
            keep = in_buckets(due)
        Compactor(self._context, is_full, keep).run_quietly(self._compaction_identity)

    def _is_full_due(self) -> bool:
        every = full_compaction_every(self._context.options)
        return every is not None and (not self._identity.is_replayable or self._identity.identifier % every == 0)

    @property
    def _compaction_identity(self) -> CommitIdentity:
        return CommitIdentity(self._identity.user, self._identity.identifier)

    def _has_many_runs(self, message: CommitMessage) -> bool:
        before = self._states.run_count(message.partition, message.bucket) if self._states else 0
        return before + len(message.new_files) >= self._context.options[NUM_SORTED_RUN_COMPACTION_TRIGGER]

    def _latest_schema_id(self) -> int:
        """Read afresh: our files fit the table only as long as the schema they were written with is part of it."""
        schemas = SchemaStore(self._context.fileio, self._context.paths.schema_directory)
        ids, ours = schemas.ids(), self._context.schema
        if ours.id not in ids or schemas.get(ours.id) != ours:
            raise CommitConflict(
                f"table `{self._context.name}` was dropped, or made anew, since this write began",
                hint="open the table again and redo the write",
            )
        return ids[-1]

    def _wants_empty_snapshot(self) -> bool:
        options = self._context.options
        return options[COMMIT_FORCE_CREATE_SNAPSHOT] or options[SNAPSHOT_IGNORE_EMPTY_COMMIT] is False

    def _replacing(
        self, overwrite: Overwrite, messages: list[CommitMessage], latest: Snapshot | None
    ) -> Changes | None:
        live = live_files(self._context.stores, latest)
        gone = overwrite.replaced(live, {message.partition for message in messages})
        delta = [replace(entry, kind=EntryKind.DELETE) for entry in gone] + _added(messages)
        if not delta and not self._wants_empty_snapshot():
            return None
        check_conflicts(live, delta, table=self._context.name, key_bounds=None, may_change_bucket_count=False)
        return Changes(delta)

    def _rebased(self, message: CommitMessage, latest: Snapshot | None) -> CommitMessage:
        """The message on top of the latest snapshot: sequence numbers go on from what is there now."""
        if self._states is None:
            return message
        self._states = self._states.advanced_to(self._context.stores, latest)
        self._states.check_bucket_count(self._context.name, message.partition, message.total_buckets)
        start = self._states.next_sequence_number(message.partition, message.bucket)
        shift = start - min(file.min_sequence_number for file in message.new_files)
        if shift <= 0:
            return replace(message, base_snapshot_id=self._states.snapshot_id)
        files = tuple(self._moved(message, file, shift) for file in message.new_files)
        return replace(message, new_files=files, base_snapshot_id=self._states.snapshot_id)

    def _moved(self, message: CommitMessage, file: DataFile, shift: int) -> DataFile:
        if not self._context.has_key:
            # Without a key the numbers stand in the manifest only.
            return replace(
                file,
                min_sequence_number=file.min_sequence_number + shift,
                max_sequence_number=file.max_sequence_number + shift,
            )
        layout, rules = file_layout(self._context), write_rules(self._context)
        new_name = f"{self._prefix}-{next(self._moved_files)}.{rules.format.name}"
        old, new = (
            self._context.data_file_path(message.partition, message.bucket, name) for name in (file.file_name, new_name)
        )
        return restamp(self._fileio, old, new, file, layout, rules, shift)


def _added(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.new_files)]


def _recorded(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.changelog_files)]
