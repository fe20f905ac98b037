"""Puts rows in the place of stored ones of the same key, whatever the table's merge engine would make of the two.

The buckets concerned have been settled: one row is stored of each key. The new rows are written as files of level 0 by
a copy of the table that knows nothing but keys, and merged with what is there as a compaction of that copy: the later
row counts, a -D row removes. What comes out takes the place of the bucket's files, in one commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import CommitIdentity
from lakebed.commit.index_changes import current_entries
from lakebed.commit.message import CommitMessage
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.partition_spec import Overwrite
from lakebed.errors import CommitConflict, FileMissing, InvalidArgument
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.levels import Levels, is_one_run
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket, in_buckets, live_files
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    CHANGELOG_PRODUCER,
    DELETION_VECTORS_ENABLED,
    FORCE_LOOKUP,
    FULL_COMPACTION_DELTA_COMMITS,
    IGNORE_DELETE,
    IGNORE_UPDATE_BEFORE,
    LAKEBED_COUNT_FIELDS,
    MERGE_ENGINE,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    STREAMING_READ_OVERWRITE,
    WRITE_ONLY,
    Options,
)
from lakebed.records import dataclass
from lakebed.rewrite.bucket import PickedBucket, compacted_bucket
from lakebed.rewrite.bucket_files import CompactionFiles
from lakebed.rewrite.settle import is_settled, settled
from lakebed.write.commit import Committed, WriteCommit
from lakebed.write.files import FileMaker
from lakebed.write.pieces import PieceWork
from lakebed.write.read_state import ReadState
from lakebed.write.sequence import BucketStates

_MEANING = (
    MERGE_ENGINE.key,
    CHANGELOG_PRODUCER.key,
    DELETION_VECTORS_ENABLED.key,
    SEQUENCE_FIELD.key,
    ROWKIND_FIELD.key,
    IGNORE_DELETE.key,
    IGNORE_UPDATE_BEFORE.key,
    FORCE_LOOKUP.key,
    FULL_COMPACTION_DELTA_COMMITS.key,
    LAKEBED_COUNT_FIELDS.key,
    STREAMING_READ_OVERWRITE.key,
    "partial-update.",
    "aggregation.",
    "fields.",
)
"""How the names of options begin that say what rows of one key mean together, or what is told of them."""


def settled_for_rewrite(context: TableContext, statement: str) -> Snapshot | None:
    """The state that a statement which rewrites rows reads. Where compacting is left to others, they come first."""
    if not context.options[WRITE_ONLY]:
        return settled(context, one_row_per_key=True)
    snapshot = context.stores.snapshots.latest()
    if not is_settled(context, snapshot, one_row_per_key=True):
        raise InvalidArgument(
            f"table `{context.name}` (merge engine `{context.merge_engine.name}`, `{WRITE_ONLY.key}`) has rows that "
            f"are not compacted, so {statement} can not rewrite any",
            hint=f"compact it first: CALL sys.compact(table => '{context.name}', compact_strategy => 'full')",
        )
    return snapshot


def knowing_keys_only(context: TableContext) -> TableContext:
    """A copy of the table for which the later row of a key is its row, and nothing is told of changes."""
    raw = {key: value for key, value in context.options.raw.items() if not key.startswith(_MEANING)}
    raw[POSTPONE_BATCH_WRITE_FIXED_BUCKET.key] = "true"
    return context.with_schema(context.schema, Options(raw))


@dataclass(frozen=True)
class Replacement(Overwrite):
    """Replaces files of buckets by what they were rewritten to, or nothing if others changed the buckets meanwhile."""

    read: dict[Bucket, frozenset[Hashable]] = field(default_factory=dict)
    """The files of each bucket that were read."""
    gone: set[Hashable] = field(default_factory=set)
    """Those that go."""

    def check(self, partition: bytes) -> None:
        """Rows come from where they were, or are new."""

    def replaced(self, live: Sequence[ManifestEntry], new_partitions: set[bytes]) -> list[ManifestEntry]:
        """The live entries that go."""
        now: dict[Bucket, set[Hashable]] = defaultdict(set)
        for entry in live:
            now[entry.partition, entry.bucket].add(entry.identity)
        if any(now.get(bucket, set()) != files for bucket, files in self.read.items()):
            raise CommitConflict(
                f"table `{self.context.name}` was written to while rows were being rewritten",
                hint="run the statement again; nothing was changed",
            )
        return [entry for entry in live if entry.identity in self.gone]

    def emptied(self, known: set[bytes], written: set[bytes]) -> set[bytes]:
        """No partition is replaced as a whole."""
        return set()


@dataclass(frozen=True)
class RowRewrite:
    """One statement's new rows on top of a settled snapshot."""

    context: TableContext
    snapshot: Snapshot | None
    identity: CommitIdentity

    @property
    def storing(self) -> TableContext:
        """What the rows are written by."""
        return knowing_keys_only(self.context)

    def states(self) -> BucketStates:
        """What the numbers of the rows continue from."""
        with self._while_it_lasts():
            return BucketStates.load(self.context.stores, self.snapshot)

    def commit_of(self, attempt: Attempt, run_pieces: Elsewhere | None = None) -> tuple[WriteCommit, Replacement]:
        """The commit, and what it replaces, which is known once the rows are merged."""
        replacement = Replacement(self.context, {})
        commit = WriteCommit(
            self.context,
            overwrite=replacement,
            identity=self.identity,
            attempt=attempt,
            read=ReadState(self.snapshot),
            run_pieces=run_pieces,
        )
        return commit, replacement

    def write(self, rows: Any, row_kind: str) -> Committed | None:
        """Rewrites rows in this process."""
        with Attempt(self.context.fileio) as attempt:
            commit, replacement = self.commit_of(attempt)
            with FileMaker(
                self.storing, row_kind=row_kind, overwrite=None, states=self.states, fileio=attempt.fileio
            ) as maker:
                maker.write(rows, lambda: None)
                made = maker.finish()
            messages = self.merged(made, replacement, PieceWork(self.storing, attempt))
            return commit.run(messages)

    def merged(
        self, messages: Sequence[CommitMessage], replacement: Replacement, work: PieceWork
    ) -> list[CommitMessage]:
        """The new files of each bucket that rows were written to, from these messages and what is stored there."""
        with self._while_it_lasts():
            return self._merged(messages, replacement, work)

    @contextmanager
    def _while_it_lasts(self) -> Iterator[None]:
        """Others may write, and expire what is being read: then the statement has to begin anew, as for any write."""
        try:
            yield
        except FileMissing as error:
            if self.context.stores.snapshots.latest() == self.snapshot:
                raise
            raise self._unsettled() from error

    def _merged(
        self, messages: Sequence[CommitMessage], replacement: Replacement, work: PieceWork
    ) -> list[CommitMessage]:
        written: dict[Bucket, list[CommitMessage]] = defaultdict(list)
        for message in messages:
            written[message.partition, message.bucket].append(message)
        stored: dict[Bucket, list[ManifestEntry]] = defaultdict(list)
        for entry in live_files(self.context.stores, self.snapshot, keep_entries=in_buckets(written)):
            stored[entry.partition, entry.bucket].append(entry)
        for entries in stored.values():
            if not is_one_run((entry.file.level for entry in entries), num_levels(self.context.options)):
                # Rows that still add up would be taken for versions of each other, and all but the last be lost.
                raise self._unsettled()
        vectors: dict[Bucket, list[IndexEntry]] = defaultdict(list)
        for index in current_entries(self.context.stores, self.snapshot):
            if index.index_type == DELETION_VECTORS_INDEX:
                vectors[index.partition, index.bucket].append(index)
        pieces = [
            _BucketRewrite(
                tuple(new), tuple(entry.file for entry in stored[bucket]), tuple(vectors[bucket]), self._stamp
            )
            for bucket, new in written.items()
        ]
        size_bytes = sum(file.size_bytes for piece in pieces for file in piece.files)
        made = work.run(pieces, size_bytes, _rewritten)
        before = {file.file_name for message in made for file in message.compact_before}
        for bucket in written:
            replacement.read[bucket] = frozenset(entry.identity for entry in stored[bucket])
            replacement.gone.update(entry.identity for entry in stored[bucket] if entry.file.file_name in before)
        return [
            replace(
                message,
                new_files=message.compact_after,
                compact_before=(),
                compact_after=(),
                removed_index_files=(),
            )
            for message in made
        ]

    def _unsettled(self) -> CommitConflict:
        return CommitConflict(
            f"table `{self.context.name}` was written to before rows could be rewritten",
            hint="run the statement again; nothing was changed",
        )

    @property
    def _stamp(self) -> int | None:
        """The number of all new rows where rows of later snapshots are newer."""
        if not self.context.orders_by_snapshot:
            return None
        return self.snapshot.id + 1 if self.snapshot is not None else 1


@dataclass(frozen=True, slots=True)
class _BucketRewrite:
    """What was written to a bucket, and what is stored there."""

    messages: tuple[CommitMessage, ...]
    stored: tuple[DataFile, ...]
    vectors: tuple[IndexEntry, ...]
    stamp: int | None

    @property
    def files(self) -> tuple[DataFile, ...]:
        new = [file for message in self.messages for file in message.new_files]
        if self.stamp is not None:
            new = [replace(file, min_sequence_number=self.stamp, max_sequence_number=self.stamp) for file in new]
        return (*new, *self.stored)


def _rewritten(context: TableContext, piece: _BucketRewrite, fileio: FileIO) -> list[CommitMessage]:
    """The files of one bucket with its new rows. May run in a task."""
    first = piece.messages[0]
    maker = CompactionFiles(context, fileio)
    levels = Levels.of(piece.files, context.key_types, num_levels(context.options))
    plan = pick_full(levels, force_rewrite=False)
    if plan is None:
        return []
    picked = PickedBucket(first.partition, first.bucket, first.total_buckets, plan, piece.vectors)
    made = compacted_bucket(maker, picked, first.base_snapshot_id, 1)
    if made is None:
        return []
    indexes = tuple(entry for message in piece.messages for entry in message.new_index_files)
    return [replace(made, new_index_files=indexes, removed_index_files=())]


__all__ = ["Replacement", "RowRewrite", "knowing_keys_only", "settled_for_rewrite"]
