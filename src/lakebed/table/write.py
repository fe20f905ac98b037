"""Writes rows into a table: many batches, one commit.

Rows are fitted to the schema, routed to partitions and buckets, and written to files as they come. Nothing is visible
until `commit`; an error or `abort` removes every file made. Between writing and committing, others may have committed:
the new rows are then moved behind theirs, so that the later commit wins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from lakebed.commit.committer import Changes, Committer, Progress
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity, is_replay
from lakebed.commit.written_files import WrittenFiles
from lakebed.datafiles.restamp import restamp
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.errors import CommitConflict, InvalidArgument
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    COMMIT_FORCE_COMPACT,
    COMMIT_FORCE_CREATE_SNAPSHOT,
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    LAKEBED_COUNT_FIELDS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    ROWKIND_FIELD,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
    WRITE_ONLY,
)
from lakebed.schema.store import SchemaStore
from lakebed.table.bucket_state import BucketStates
from lakebed.table.bucket_writers import Bucket, BucketWriters
from lakebed.table.compact import Compactor, in_buckets, looks_for_more
from lakebed.table.conform import Conformer, to_batches
from lakebed.table.context import TableContext
from lakebed.table.expire import expire_after_commit
from lakebed.table.overwrite import Overwrite
from lakebed.table.producers import event_rules, full_compaction_every
from lakebed.table.routing import Router
from lakebed.table.write_rules import changelog_write_rules, committer_for, write_rules
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text


class TableWriter:
    """One commit in the making. Use it in a `with` block: committed at its end, nothing left behind on an error."""

    def __init__(
        self,
        context: TableContext,
        *,
        row_kind: str | None = None,
        overwrite: bool | Mapping[str, Any] | None = None,
        identity: CommitIdentity,
    ) -> None:
        self._context = context
        self._identity = identity
        self._row_kind = row_kind
        self._overwrite = None if overwrite is None else Overwrite.parse(context, overwrite)
        self._check_row_kind()
        counting = frozenset(context.options[LAKEBED_COUNT_FIELDS])
        self._conformer = Conformer(context.name, context.schema.fields, extra=row_kind, counting=counting)
        self._router = Router(context)
        self._rules = write_rules(context)
        key = context.key_fields if context.has_key else ()
        self._layout = FileLayout(context.schema.id, context.schema.fields, key)
        self._committer: Committer = committer_for(context)
        self._states: BucketStates | None = None
        self._buckets = BucketWriters(context, self._new_writer, self._next_sequence_number, self._new_changelog_writer)
        self._fileio, self._written = WrittenFiles.watch(context.fileio)
        self._counter = itertools.count()
        self._prefix = context.new_data_file_prefix()
        self._changelog_prefix = context.new_changelog_file_prefix()
        self._changelog_rules = changelog_write_rules(context)
        self._progress = Progress()
        self._is_open = True

    def write(self, data: Any) -> None:
        """Adds rows. A row that does not fit raises before any row of its batch is taken."""
        self._check_open()
        for batch in to_batches(data):
            rows, kind_column = self._conformer.conform(batch)
            rows, kinds = self._with_kinds(rows, kind_column)
            groups = list(self._router.route(rows, kinds))
            if self._overwrite is not None:
                for routed in groups:
                    self._overwrite.check(routed.partition)
            try:
                for routed in groups:
                    self._buckets.take(routed)
            except BaseException:
                self.abort()  # some rows are taken, others are not: nothing good can come of a commit now
                raise

    def commit(self) -> Snapshot | None:
        """Makes the rows visible as one snapshot; None when there was nothing to commit."""
        self._check_open()
        try:
            if self._committer.is_committed(self._identity):
                self.abort()
                self._catch_up()
                return None
            messages = self._finish_files()
            snapshot = self._commit(messages)
        except BaseException:
            self.abort()
            raise
        self._is_open = False
        if snapshot is not None:
            self._compact_after(messages)
            if not self._context.options[WRITE_ONLY]:
                expire_after_commit(self._context)
        return snapshot

    def abort(self) -> None:
        """Gives everything up and removes the files, unless they may be part of the table. Nothing after a commit."""
        if not self._is_open:
            return
        self._is_open = False
        self._buckets.abort()
        if not self._progress.may_be_visible:
            self._written.take_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            if self._is_open:
                self.commit()
        else:
            self.abort()

    # --- taking rows ---------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidArgument(
                f"this writer of table `{self._context.name}` is done", hint="open another one with t.writer()"
            )

    def _check_row_kind(self) -> None:
        context = self._context
        if self._row_kind is None:
            return
        if not context.has_key:
            raise InvalidArgument(
                f"table `{context.name}` has no primary key, so its rows have no kinds",
                hint="write without row_kind, or create the table with a primary key",
            )
        if self._row_kind in context.schema.field_names:
            raise InvalidArgument(
                f"row_kind names column `{self._row_kind}` of table `{context.name}` itself",
                hint="use a column that is not in the table, or set the option `rowkind.field`",
            )

    def _with_kinds(self, rows: pa.RecordBatch, given: pa.Array | None) -> tuple[pa.RecordBatch, pa.Array]:
        """Kinds of all rows, and the rows that the table's options let through."""
        options = self._context.options
        kind_field = options[ROWKIND_FIELD]
        if kind_field is not None and self._context.has_key:
            kinds = kinds_from_text(rows.column(kind_field), kind_field)
        elif given is not None and self._row_kind is not None:
            kinds = kinds_from_text(given, self._row_kind)
        else:
            return rows, pa.array(np.zeros(rows.num_rows, dtype=np.int8))
        numbers = np.asarray(kinds)
        drop = np.zeros(len(numbers), dtype=np.bool_)
        if options[IGNORE_DELETE]:
            drop |= is_retract(numbers)
        if options[IGNORE_UPDATE_BEFORE]:
            drop |= numbers == RowKind.UPDATE_BEFORE
        if self._context.is_first_row:
            FirstRow.refuse_retracts(is_retract(numbers) & ~drop)
        if np.any(drop):
            keep = pa.array(~drop)
            return rows.filter(keep), kinds.filter(keep)
        return rows, kinds

    def _next_sequence_number(self, bucket: Bucket) -> int:
        if self._overwrite is not None or self._router.total_buckets < 0:
            return 0
        if self._states is None:
            self._states = self._current_states()
        self._states.check_bucket_count(self._context.name, bucket[0], self._router.total_buckets)
        return self._states.next_sequence_number(*bucket)

    def _current_states(self) -> BucketStates:
        """Where sequence numbers stand now: from what the last write of this handle knew, if there was one."""
        stores = self._context.stores
        latest = stores.snapshots.latest()
        remembered = self._context.memory.bucket_states
        return BucketStates.load(stores, latest) if remembered is None else remembered.advanced_to(stores, latest)

    # --- files ---------------------------------------------------------------------------------------------------

    def _new_file_name(self) -> str:
        return f"{self._prefix}-{next(self._counter)}.{self._rules.format.name}"

    def _path_in(self, bucket: Bucket) -> Callable[[str], str]:
        return lambda name: self._context.data_file_path(*bucket, name)

    def _new_writer(self, bucket: Bucket) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            self._new_file_name,
            self._layout,
            self._rules,
            self._context.clock,
            first_sequence_number=0 if self._context.has_key else self._next_sequence_number(bucket),
        )

    def _new_changelog_writer(self, bucket: Bucket) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            self._path_in(bucket),
            lambda: f"{self._changelog_prefix}-{next(self._counter)}.{self._changelog_rules.format.name}",
            self._layout,
            self._changelog_rules,
            self._context.clock,
        )

    def _finish_files(self) -> list[CommitMessage]:
        written = self._buckets.finish()
        base = self._states.snapshot_id if self._states else 0
        return [
            CommitMessage(partition, bucket, self._router.total_buckets, base, files.data, files.changelog)
            for (partition, bucket), files in written.items()
        ]

    # --- committing ----------------------------------------------------------------------------------------------

    def _commit(self, messages: list[CommitMessage]) -> Snapshot | None:
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
            operation="WRITE" if self._overwrite is None else "OVERWRITE",
        )
        self._context.memory.bucket_states = self._states
        committed = final if snapshot is not None else []
        kept_changelogs = self._overwrite is None
        self._written.take_back(
            keep={
                self._path_in((message.partition, message.bucket))(file.file_name)
                for message in committed
                for file in (*message.new_files, *(message.changelog_files if kept_changelogs else ()))
            }
        )
        return snapshot

    def _compact_after(self, messages: list[CommitMessage]) -> None:
        """Compacts the buckets that this commit made due. The commit stands, whatever becomes of this."""
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

    def _catch_up(self) -> None:
        """Of a commit that is in already, the compaction that tells its changes may still be missing."""
        options = self._context.options
        if event_rules(options) is not None and not options[WRITE_ONLY]:
            Compactor(self._context, self._is_full_due()).run_quietly(self._compaction_identity)

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
        path_of = self._path_in((message.partition, message.bucket))
        old, new = path_of(file.file_name), path_of(self._new_file_name())
        return restamp(self._fileio, old, new, file, self._layout, self._rules, shift)


def _added(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.new_files)]


def _recorded(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.changelog_files)]
