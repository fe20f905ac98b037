"""Makes new files part of a table: one snapshot from the messages of one writer, or of all tasks of a job.

Between writing and committing, others may have committed: the new rows are then moved behind theirs, so that the later
commit wins. What a commit makes due is `follow_up`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes, Committer
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.index_changes import current_entries, replace_entries, without_partitions, without_vectors
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity, is_replay
from lakebed.commit.sequence_state import kept_number, stamped
from lakebed.datafiles.restamp import restamp
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import committer_for, latest_schema_id, write_rules
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import CommitConflict
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import in_partitions, live_files
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metrics.families import WRITE_DURATION, WRITE_FILE_SIZE, WRITE_FILES, WRITE_ROWS
from lakebed.metrics.instruments import NOTHING, is_heard
from lakebed.options import (
    COMMIT_FORCE_CREATE_SNAPSHOT,
    END_INPUT_WATERMARK,
    PRECOMMIT_COMPACT,
    SNAPSHOT_IGNORE_EMPTY_COMMIT,
    WRITE_ONLY,
    WRITE_SEQUENCE_NUMBER_INIT_MODE,
)
from lakebed.records import dataclass
from lakebed.write.files import file_layout
from lakebed.write.overwrite_upgrade import upgraded
from lakebed.write.pieces import PieceWork
from lakebed.write.placement import placement_of
from lakebed.write.precommit import joined_before_commit
from lakebed.write.read_state import ReadState
from lakebed.write.sequence import BUCKET_STATES, BucketStates
from lakebed.write.told_input import InputNormaliser
from lakebed.write.told_replacements import ToldReplacements, changelog_paths
from lakebed.write.waiting_rows import WaitingRows

_MOST_PLACINGS = 10


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit of rows that stands, for who sees to what it makes due."""

    snapshot: Snapshot
    context: TableContext
    identity: CommitIdentity
    messages: Sequence[CommitMessage]
    states: BucketStates | None
    """What its sequence numbers continued from; None if rows are not numbered, or replaced others."""

    def run_count(self, message: CommitMessage) -> int:
        """About how many sorted runs the bucket of a message has now."""
        before = self.states.run_count(message.partition, message.bucket) if self.states else 0
        return before + len(message.new_files)


class WriteCommit:
    """One commit of one user. `attempt` has the files behind the messages, which go if nothing comes of them.

    `states` is what the sequence numbers of the rows continue from, if somebody else has numbered them. `read` is what
    the rows were computed from, if they were: the commit is refused if others have changed that. `run_pieces` joins
    files before the commit elsewhere, if the table asks for that and there is much to join.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        overwrite: Overwrite | None,
        identity: CommitIdentity,
        attempt: Attempt,
        watermark: int | None = None,
        states: BucketStates | None = None,
        read: ReadState | None = None,
        run_pieces: Elsewhere | None = None,
    ) -> None:
        self._context = context
        self._overwrite = overwrite
        self._identity = identity
        self._attempt = attempt
        self.watermark = watermark if watermark is not None else context.options[END_INPUT_WATERMARK]
        """Of the rows; it may become known as late as they do."""
        self.properties: dict[str, str] = {}
        """What the snapshot is to say beside, such as how far a source was read."""
        self._committer: Committer = committer_for(context)
        self._states = states
        self._base = states.snapshot if states is not None else None
        """What places and numbers of the rows start from."""
        self._read = read
        self._run_pieces = run_pieces
        self._moved_files = itertools.count()
        self._prefix = context.new_data_file_prefix()
        self._telling = ToldReplacements(context, attempt, run_pieces)
        self._timing = WRITE_DURATION.timed(context.name)
        self._told: list[ManifestEntry] = []
        """Changelog files of what an overwrite changes."""

    def states(self) -> BucketStates:
        """Where sequence numbers stand now: from what the last write of this handle knew, if there was one."""
        if self._states is None:
            stores = self._context.stores
            latest = stores.snapshots.latest()
            remembered = self._context.memory[BUCKET_STATES]
            if self._trusts_snapshots and kept_number(latest) is not None:
                self._states = BucketStates.kept_by(latest)
            elif remembered is None:
                self._states = BucketStates.load(stores, latest)
            else:
                self._states = remembered.advanced_to(stores, latest)
            self._base = self._states.snapshot
        return self._states

    def is_committed(self) -> bool:
        """Whether a commit with this identity, or a later one of its user, is in the table."""
        return self._committer.is_committed(self._identity)

    def run(self, messages: list[CommitMessage]) -> Committed | None:
        """Makes the files visible as one snapshot; None when there was nothing to commit."""
        with self._timing as timing:
            committed = self._run(messages)
            if committed is None:
                timing.ended(NOTHING)
            return committed

    def _run(self, messages: list[CommitMessage]) -> Committed | None:
        made = messages
        work = PieceWork(self._context, self._attempt, self._run_pieces)
        if self._context.options[PRECOMMIT_COMPACT]:
            messages = joined_before_commit(work, messages)
        self._attempt.make_durable()
        final = messages
        kind = CommitKind.APPEND if self._overwrite is None else CommitKind.OVERWRITE

        def prepare(latest: Snapshot | None) -> Changes | None:
            nonlocal final
            if is_replay(self._context.stores.snapshots, latest, self._identity):
                return None
            if self._overwrite is not None:
                if self._read is not None:
                    self._read.check_unchanged(self._context, latest)
                return self._replacing(self._overwrite, messages, latest)
            if self._read is not None:
                self._read.check(self._context, messages, latest)
            if not messages and not self._wants_empty_snapshot():
                return None
            if self._goes_past_waiting(messages, latest):
                self._check_counts(messages, latest)  # who is refused anyway places nothing before
                raise _RowsWait
            self._check_base()
            placement_of(self._context).check_commit(self._context, final, latest)
            final = self._told_anew(final, latest)
            final = [self._rebased(message, latest) for message in final]
            self._attempt.make_durable()
            self._check_unknown_counts(final, latest)
            return Changes(
                self._numbered(_added(final), latest),
                self._numbered(_recorded(final), latest),
                self._indexed(final, latest),
            )

        if self._overwrite is not None and self._telling.is_needed:
            self._telling.beforehand(prepare)
        snapshot = self._placing_first(
            messages,
            lambda: self._committer.commit(
                kind,
                self._identity,
                lambda: latest_schema_id(self._context),
                prepare,
                attempt=self._attempt,
                watermark=self.watermark,
                operation="WRITE" if self._overwrite is None else "OVERWRITE" if messages else "TRUNCATE",
                properties=self.properties,
            ),
        )
        self._context.memory[BUCKET_STATES] = self._states
        committed = final if snapshot is not None else []
        kept_changelogs = self._overwrite is None
        paths = self._context.paths
        self._attempt.keep_only(
            {
                self._context.data_file_path(message.partition, message.bucket, file.file_name)
                for message in committed
                for file in (*message.new_files, *(message.changelog_files if kept_changelogs else ()))
            }
            | {paths.index_file(entry.file_name) for message in committed for entry in message.new_index_files}
            | (changelog_paths(self._context, self._told) if snapshot is not None and self._told else set())
        )
        _count("data", (file for message in committed for file in message.new_files), self._context.name)
        if kept_changelogs:
            _count("changelog", (file for message in committed for file in message.changelog_files), self._context.name)
        return None if snapshot is None else Committed(snapshot, self._context, self._identity, made, self._states)

    # --- inside --------------------------------------------------------------------------------------------------

    @property
    def _trusts_snapshots(self) -> bool:
        """Whether the highest number that a snapshot keeps stands for those of all files."""
        options = self._context.options
        return options[WRITE_ONLY] and options[WRITE_SEQUENCE_NUMBER_INIT_MODE] == "snapshot"

    def _wants_empty_snapshot(self) -> bool:
        options = self._context.options
        return options[COMMIT_FORCE_CREATE_SNAPSHOT] or options[SNAPSHOT_IGNORE_EMPTY_COMMIT] is False

    def _replacing(
        self, overwrite: Overwrite, messages: list[CommitMessage], latest: Snapshot | None
    ) -> Changes | None:
        if overwrite.spec != {}:
            placement_of(self._context).check_overwrite(self._context, messages, latest)
        live = live_files(self._context.stores, latest)
        gone = overwrite.replaced(live, {message.partition for message in messages})
        replaced = {entry.identity for entry in gone}
        messages = upgraded(self._context, messages, [entry for entry in live if entry.identity not in replaced])
        added = self._numbered(_added(messages), latest)
        delta = [replace(entry, kind=EntryKind.DELETE) for entry in gone] + added
        if not delta and not self._wants_empty_snapshot():
            return None
        check_conflicts(live, delta, table=self._context.name, key_bounds=None, may_change_bucket_count=False)
        current = current_entries(self._context.stores, latest)
        partitions = {entry.partition for entry in gone} | {message.partition for message in messages}
        emptied = overwrite.emptied({entry.partition for entry in current}, partitions)
        kept = without_partitions(current, emptied)
        names = {entry.file.file_name for entry in gone} - {entry.file.file_name for entry in added}
        kept = without_vectors(kept, names)
        has_indexes = kept != current or any(message.new_index_files for message in messages)
        indexes = self._indexed(messages, latest, kept) if has_indexes else None
        self._told = self._telling.entries(latest, delta, indexes)
        self._attempt.make_durable()
        return Changes(delta, self._told, indexes)

    def _check_base(self) -> None:
        """INVARIANT: where an index remembers keys, rows are placed by the index of a snapshot of this table's history.

        After a rollback another snapshot may have the same id. Keys that only the one before knew would be in files,
        but in no index: nobody would find them, and their next rows would come to another bucket.
        """
        base = self._base
        if base is None or not self._context.bucket_mode.indexes_keys:
            return
        if self._context.stores.snapshots.find(base.id) != base:
            raise CommitConflict(
                f"table `{self._context.name}`: snapshot {base.id}, which this write began with, is no longer there",
                hint="the table was rolled back, or the snapshot has expired: write again",
            )

    def _indexed(
        self, messages: list[CommitMessage], latest: Snapshot | None, kept: list[IndexEntry] | None = None
    ) -> list[IndexEntry] | None:
        """All index files after the commit, given those that it keeps; None when it changes none."""
        added = [entry for message in messages for entry in message.new_index_files]
        removed = [entry for message in messages for entry in message.removed_index_files]
        if kept is None and not added and not removed:
            return None
        current = current_entries(self._context.stores, latest) if kept is None else kept
        return replace_entries(current, removed, added, table=self._context.name)

    def _rebased(self, message: CommitMessage, latest: Snapshot | None) -> CommitMessage:
        """The message on top of the latest snapshot: sequence numbers go on from what is there now."""
        if self._states is None or message.bucket == POSTPONE_BUCKET:
            return message
        self._states = self._states.advanced_to(self._context.stores, latest)
        self._states.check_bucket_count(self._context.name, message.partition, message.total_buckets)
        if self._context.orders_by_snapshot:
            return replace(message, base_snapshot_id=self._states.snapshot_id)
        # INVARIANT: rows are numbered after all that the snapshot below them has, whoever was faster: the later commit
        # wins the merge. So files that were numbered too low are written again before anybody sees them.
        start = self._states.next_sequence_number(message.partition, message.bucket)
        shift = start - min(file.min_sequence_number for file in message.new_files)
        if shift <= 0:
            return replace(message, base_snapshot_id=self._states.snapshot_id)
        files = tuple(self._moved(message, file, shift) for file in message.new_files)
        return replace(message, new_files=files, base_snapshot_id=self._states.snapshot_id)

    def _placing_first(self, messages: list[CommitMessage], commit: Callable[[], Snapshot | None]) -> Snapshot | None:
        """Commits, once no rows wait that are older than these and would be numbered after them."""
        counts = {message.partition: message.total_buckets for message in messages}
        for _ in range(_MOST_PLACINGS):
            try:
                return commit()
            except _RowsWait:
                waiting = WaitingRows(self._context, in_partitions(counts), self._run_pieces, counts)
                waiting.place(CommitIdentity(self._context.ids.new_id()))
        raise CommitConflict(
            f"table `{self._context.name}`: other jobs kept adding rows that wait for their buckets",
            hint="commit again when fewer jobs write to these partitions; nothing was changed",
        )

    def _goes_past_waiting(self, messages: list[CommitMessage], latest: Snapshot | None) -> bool:
        """Whether rows wait in the partitions of rows that do not: what waits came before them."""
        partitions = {message.partition for message in messages if message.bucket != POSTPONE_BUCKET}
        # INVARIANT: what waits is placed before newer rows of its partition are written to real buckets. Placed later
        # it would be numbered after them, and old rows would replace new ones.
        if not partitions or not self._context.bucket_mode.postpones:
            return False
        return bool(WaitingRows(self._context, in_partitions(partitions)).files(latest))

    def _told_anew(self, messages: list[CommitMessage], latest: Snapshot | None) -> list[CommitMessage]:
        """The messages with what their rows change on top of the latest snapshot, and of each other."""
        recorded: dict[tuple[bytes, int], list[CommitMessage]] = {}
        for message in messages:
            if message.recorded_files:
                recorded.setdefault((message.partition, message.bucket), []).append(message)
        if not recorded:
            return messages
        is_current = self._states is not None and self._states.snapshot == latest
        normaliser = InputNormaliser(self._context, self._attempt.fileio, self._context.new_changelog_file_prefix())
        told = []
        for message in messages:
            bucket = (message.partition, message.bucket)
            together = recorded.get(bucket, []) if message.recorded_files else []
            if together and not (is_current and len(together) == 1):
                # Tasks that share a bucket know nothing of each other's rows: all are told with the first of them.
                files = [file for each in together for file in each.recorded_files]
                events = normaliser.told(bucket, files, latest) if message is together[0] else ()
                message = replace(message, changelog_files=events)
            told.append(message)
        return told

    def _check_unknown_counts(self, messages: list[CommitMessage], latest: Snapshot | None) -> None:
        """Numbers that snapshots keep say nothing of buckets: how many a partition has is known from its files."""
        if self._states is not None and not self._states.knows_files:
            self._check_counts(messages, latest)

    def _check_counts(self, messages: list[CommitMessage], latest: Snapshot | None) -> None:
        partitions = {message.partition for message in messages}
        counts = BucketStates.load(self._context.stores, latest, partitions)
        for message in messages:
            counts.check_bucket_count(self._context.name, message.partition, message.total_buckets)

    def _numbered(self, added: list[ManifestEntry], latest: Snapshot | None) -> list[ManifestEntry]:
        """New files, with the numbers that the manifest shall give them."""
        return stamped(added, latest.id + 1 if latest else 1) if self._context.orders_by_snapshot else added

    def _moved(self, message: CommitMessage, file: DataFile, shift: int) -> DataFile:
        if not self._context.has_key:
            # Without a key the numbers stand in the manifest only.
            return replace(
                file,
                min_sequence_number=file.min_sequence_number + shift,
                max_sequence_number=file.max_sequence_number + shift,
            )
        layout, rules = file_layout(self._context), write_rules(self._context)
        new_name = f"{self._prefix}-{next(self._moved_files)}.{rules.extension}"
        old, new = (
            self._context.data_file_path(message.partition, message.bucket, name) for name in (file.file_name, new_name)
        )
        return restamp(self._attempt.fileio, old, new, file, layout, rules, shift)


class _RowsWait(Exception):
    """Rows wait that have to be placed before others are written to their buckets."""

    outcome = "put off"


def _count(kind: str, files: Iterable[DataFile], table: str) -> None:
    """Tells who listens of files that were committed, whoever made them."""
    if is_heard() and (found := list(files)):
        WRITE_ROWS.tell(sum(file.row_count for file in found), table, kind)
        WRITE_FILES.tell(len(found), table, kind)
        WRITE_FILE_SIZE.tell(sum(file.size_bytes for file in found), table, kind)


def _added(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.new_files)]


def _recorded(messages: list[CommitMessage]) -> list[ManifestEntry]:
    return [entry for message in messages for entry in message.entries(EntryKind.ADD, message.changelog_files)]
