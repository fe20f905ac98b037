"""Compacts tables without a primary key: small files are joined, and rows that are marked as deleted are left out.

A compaction changes no row: it is a commit of its own, that readers of changes pass over. Rows keep their ids, and in
buckets their order. Others may append meanwhile; if somebody deletes rows of the same files, one of the two gives way.
Where columns have files of their own, marked rows stay in their places (`rewrite/columns`).
"""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import pyarrow as pa

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes
from lakebed.commit.compaction_note import CompactionNote, count_compacted
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.index_changes import current_entries, replace_entries, without_vectors
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.datafiles.rolling_writer import RollingWriter
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import committer_for, write_rules
from lakebed.definition.row_rules import mark_rows, vectors_at
from lakebed.errors import CommitConflict, LakebedError
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.small_files import Group, SmallFileRules, pick_ordered, pick_ranges, pick_unordered
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.deletion_vector import DeletionVectorStore, Positions, Vectors
from lakebed.metadata.entries import Bucket, Keep, in_buckets, live_files
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metrics.families import COMPACTION_DURATION
from lakebed.metrics.instruments import NOTHING
from lakebed.options import (
    COMPACTION_DELETE_RATIO_THRESHOLD,
    COMPACTION_FILE_NUM_LIMIT,
    COMPACTION_MIN_FILE_NUM,
    COMPACTION_SMALL_FILE_RATIO,
    DATA_EVOLUTION_COMPACTION_REWRITE_ROW_IDS,
    DATA_EVOLUTION_ENABLED,
    SOURCE_SPLIT_OPEN_FILE_COST,
)
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split, stitched_sections
from lakebed.records import dataclass
from lakebed.rewrite.columns import check_ranges, files_by_range, joined_file, moved_marks
from lakebed.schema.system_columns import TRACKING_FIELDS
from lakebed.write.files import file_layout
from lakebed.write.pieces import PieceWork, Tell

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PickedFiles:
    """Files of one bucket that become one run of new files, and the rows of theirs that are gone."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: Group
    vectors: Vectors = field(default_factory=dict, hash=False)
    output_level: int = 0
    """Where the new files lie: only sorting step by step (`clustering`) has levels."""


@dataclass(frozen=True)
class KeylessRound:
    """One round of a compaction of a table without a key. `keep` chooses among its live entries."""

    context: TableContext
    full: bool = False
    keep: Keep | None = None
    run_pieces: Elsewhere | None = None
    tell: Tell | None = None

    def run(self, identity: CommitIdentity) -> Snapshot | None:
        """One round over the chosen files and, if anything was compacted, one snapshot."""
        latest = self.context.stores.snapshots.latest()
        # Read after the snapshot, so that it knows every column of its files: an older one would lose their values.
        with COMPACTION_DURATION.timed(self.context.name) as timing:
            snapshot = replace(self, context=self.context.under_latest_schema())._run(identity, latest)
            if snapshot is None:
                timing.ended(NOTHING)
            return snapshot

    def run_quietly(self, identity: CommitIdentity) -> None:
        """As `run`, after a commit that stands whatever happens here: failures are logged, the next round repeats."""
        try:
            self.run(identity)
        except CommitConflict as conflict:
            _log.info("table %s: another job changed files first: %s", self.context.name, conflict.message)
        except LakebedError as error:
            _log.warning("table %s: not compacted after the commit: %s", self.context.name, error.message)

    def _run(self, identity: CommitIdentity, latest: Snapshot | None) -> Snapshot | None:
        raise NotImplementedError


@dataclass(frozen=True)
class AppendCompactor(KeylessRound):
    """Joins small files; `full` takes all that is worth it at all."""

    def picked(self, snapshot: Snapshot | None) -> list[PickedFiles]:
        """What is worth compacting in the state of a snapshot."""
        vectors = vectors_at(self.context, snapshot)
        rules = self._rules(vectors)
        buckets: dict[tuple[bytes, int, int], list[DataFile]] = defaultdict(list)
        for entry in live_files(self.context.stores, snapshot, keep_entries=self.keep):
            buckets[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
        found: list[PickedFiles] = []
        for (partition, bucket, total), files in buckets.items():
            pick = pick_ordered if total > 0 else pick_unordered
            if self.context.options[DATA_EVOLUTION_ENABLED]:
                pick = pick_ranges
            for group in pick(files, rules, full=self.full):
                masked = {file.file_name: vectors[file.file_name] for file in group if file.file_name in vectors}
                found.append(PickedFiles(partition, bucket, total, group, masked))
        return found

    # --- inside --------------------------------------------------------------------------------------------------

    def _run(self, identity: CommitIdentity, latest: Snapshot | None) -> Snapshot | None:
        picked = self.picked(latest)
        if not picked:
            return None
        clock, began_ms = self.context.clock, self.context.clock.now_ms()
        with Attempt(self.context.fileio) as attempt:
            work = PieceWork(self.context, attempt, self.run_pieces, self.tell)
            messages = work.run(picked, stored_bytes(picked), _compact_files)
            moved = _moved_vectors(self.context, picked, messages, attempt.fileio)
            why = "asked for" if self.full else "small files"
            note = CompactionNote(why, max(0, clock.now_ms() - began_ms))
            snapshot = commit_rewritten(self.context, picked, messages, identity, attempt, moved, note)
            attempt.keep_only(
                {
                    *(
                        self.context.data_file_path(message.partition, message.bucket, file.file_name)
                        for message in messages
                        for file in message.compact_after
                    ),
                    *(self.context.paths.index_file(entry.file_name) for entry in moved),
                }
            )
            return snapshot

    def _rules(self, vectors: Vectors) -> SmallFileRules:
        options = self.context.options

        def deleted_rows(file: DataFile) -> int:
            place = vectors.get(file.file_name)
            if place is None:
                return 0
            return place.cardinality if place.cardinality is not None else len(self.context.vector_store.read(place))

        return SmallFileRules(
            write_rules(self.context).target_size_bytes,
            options[COMPACTION_SMALL_FILE_RATIO],
            options[COMPACTION_MIN_FILE_NUM],
            options[SOURCE_SPLIT_OPEN_FILE_COST],
            options[COMPACTION_DELETE_RATIO_THRESHOLD],
            options[COMPACTION_FILE_NUM_LIMIT],
            deleted_rows,
            _drops_deleted_rows(self.context),
        )


def commit_rewritten(
    context: TableContext,
    picked: Sequence[PickedFiles],
    messages: Sequence[CommitMessage],
    identity: CommitIdentity,
    attempt: Attempt,
    moved: Sequence[IndexEntry] = (),
    note: CompactionNote | None = None,
) -> Snapshot | None:
    """Puts new files in the place of the picked ones, unless somebody changed these meanwhile.

    `moved` are the marks of rows that are gone from the new files; `note` is what the snapshot says of it.
    """
    touched = {(message.partition, message.bucket) for message in messages}
    delta = [
        entry
        for message in messages
        for entry in (
            *message.entries(EntryKind.DELETE, message.compact_before),
            *message.entries(EntryKind.ADD, message.compact_after),
        )
    ]
    ranges = [files_by_range(item.files) for item in picked if context.options[DATA_EVOLUTION_ENABLED]]
    gone = {file.file_name for item in picked for file in item.files}
    seen = {name: place for item in picked for name, place in item.vectors.items()}

    def prepare(latest: Snapshot | None) -> Changes:
        live = live_files(context.stores, latest, keep_entries=in_buckets(touched))
        check_conflicts(live, delta, table=context.name, key_bounds=None, may_change_bucket_count=False)
        for before in ranges:
            check_ranges(live, before, context.name)
        current = current_entries(context.stores, latest)
        now = {name: place for name, place in context.vector_store.places(current).items() if name in gone}
        if now != seen:
            raise CommitConflict(
                f"table `{context.name}`: rows were deleted from files while they were compacted",
                hint="compact again: nothing was changed",
            )
        kept = replace_entries(without_vectors(current, gone), (), moved, table=context.name)
        return Changes(delta, index_entries=None if kept == current else kept)

    snapshot = committer_for(context).commit(
        CommitKind.COMPACT,
        identity,
        lambda: context.schema.id,
        prepare,
        attempt=attempt,
        operation="COMPACT",
        properties=None if note is None else note.to_properties(),
    )
    if snapshot is not None:
        count_compacted(messages, context.name)
    return snapshot


def _drops_deleted_rows(context: TableContext) -> bool:
    """Whether a compaction leaves marked rows out. Ids of rows are positions where columns have files of their own."""
    options = context.options
    return not options[DATA_EVOLUTION_ENABLED] or options[DATA_EVOLUTION_COMPACTION_REWRITE_ROW_IDS]


def _moved_vectors(
    context: TableContext, picked: Sequence[PickedFiles], messages: Sequence[CommitMessage], fileio: FileIO
) -> list[IndexEntry]:
    """Index files with the marks of rows that have kept their places in new files. Nothing is visible yet."""
    vectors = {name: place for item in picked for name, place in item.vectors.items()}
    marked: dict[Bucket, dict[str, Positions]] = defaultdict(dict)
    for message in messages:
        for file in message.compact_after if vectors else ():
            if context.options[DATA_EVOLUTION_ENABLED] and file.first_row_id is not None:
                positions = moved_marks(context, message.compact_before, vectors, file)
                if len(positions):
                    marked[message.partition, message.bucket][file.file_name] = positions
    _, added = mark_rows(context, DeletionVectorStore(fileio, context.paths), (), marked)
    return added


def stored_bytes(picked: Sequence[PickedFiles]) -> int:
    """The size of all picked files."""
    return sum(file.size_bytes for item in picked for file in item.files)


def _compact_files(context: TableContext, picked: PickedFiles, fileio: FileIO) -> list[CommitMessage]:
    """Rewrites files as one run of new ones. May run in a task; nothing is visible before somebody commits."""
    if context.options[DATA_EVOLUTION_ENABLED] and picked.vectors and _drops_deleted_rows(context):
        return [replaced_by(picked, _remaining_rows(context, picked, fileio))]
    if context.options[DATA_EVOLUTION_ENABLED]:
        place = ManifestEntry(EntryKind.ADD, picked.partition, picked.bucket, picked.total_buckets, picked.files[0])
        return [replaced_by(picked, [joined_file(context, place, picked.files, fileio)])]
    writer = rewriter(context, picked, fileio)
    for batch in stored_rows(context, picked):
        writer.write(batch)
    return [replaced_by(picked, writer.close())]


def _remaining_rows(context: TableContext, picked: PickedFiles, fileio: FileIO) -> list[DataFile]:
    """Files with the rows that are not deleted. They get new ids with the commit, as rows that are new do."""
    writer = rewriter(context, picked, fileio, renumbers=True)
    split = Split(picked.partition, picked.bucket, tuple(stitched_sections(picked.files, context.name)), picked.vectors)
    for batch in SplitReader(context, context.schema.fields, use_threads=False).read_stored(split):
        writer.write(batch)
    return writer.close()


def stored_rows(context: TableContext, picked: PickedFiles) -> Iterator[pa.RecordBatch]:
    """Rows of the picked files that are not deleted, with their ids if they have any."""
    fields = (*context.schema.fields, *(TRACKING_FIELDS if context.tracks_rows else ()))
    sections = tuple(Section((SortedRun((file,)),)) for file in picked.files)
    split = Split(picked.partition, picked.bucket, sections, picked.vectors)
    return SplitReader(context, fields, use_threads=False).read_stored(split)


def rewriter(context: TableContext, picked: PickedFiles, fileio: FileIO, *, renumbers: bool = False) -> RollingWriter:
    """A writer for the rows of picked files. They keep their ids, unless it `renumbers` them."""
    rules, names = write_rules(context), itertools.count()
    prefix = context.new_data_file_prefix()
    return RollingWriter(
        fileio,
        lambda name: context.data_file_path(picked.partition, picked.bucket, name),
        lambda: f"{prefix}-{next(names)}.{rules.extension}",
        file_layout(context, carries_ids=context.tracks_rows and not renumbers),
        rules,
        context.clock,
        level=picked.output_level,
        source=FileSource.APPEND if renumbers else FileSource.COMPACT,
        # There are no more rows than before, so the numbers stay within those of the files that go.
        first_sequence_number=min(file.min_sequence_number for file in picked.files),
    )


def replaced_by(picked: PickedFiles, files: Sequence[DataFile]) -> CommitMessage:
    """What to commit when files stand for the picked ones."""
    return CommitMessage(
        picked.partition,
        picked.bucket,
        picked.total_buckets,
        0,
        compact_before=picked.files,
        compact_after=tuple(files),
    )


__all__ = [
    "AppendCompactor",
    "PickedFiles",
    "commit_rewritten",
    "replaced_by",
    "rewriter",
    "stored_bytes",
    "stored_rows",
]
