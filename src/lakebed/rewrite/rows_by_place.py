"""Deletes and replaces rows of a table without a primary key where they lie, in one commit.

How a statement such as DELETE, UPDATE or MERGE uses it, on one machine or with a job of many tasks:

    base = context.stores.snapshots.latest()                        # what the statement reads
    plan = plan_scan(context, base, predicate)                      # splits go to the tasks
    reader = SplitReader(context, (*columns, FILE_PATH, ROW_INDEX), predicate)
    for batch in reader.read(split): ...                            # where each matching row lies is part of the batch
    messages = FileMaker(context, ...).finish()                     # new rows, and new versions of old ones
    RowChanges(context, base, "UPDATE").commit({file: positions}, messages)

`deleted` names files by path (as in `__paimon_file_path`) or by name, and rows by position (`__paimon_row_index`).
With `deletion-vectors.enabled` the rows are marked and no data file is rewritten; else the touched files are rewritten
without them, in threads of this process or, if they are large and `run_pieces` is given, in tasks elsewhere.

Where rows have ids (`row-tracking.enabled`), new versions of old rows keep theirs: read `_ROW_ID` too, and write it
with `FileMaker(..., carries_ids=True)`, and `_SEQUENCE_NUMBER` as null. New rows go to a FileMaker of their own.

A file that went away meanwhile, or a row of these that somebody else deleted meanwhile, is a `CommitConflict`: nothing
is changed then. Others may append, and may delete other rows of the same files, without getting in the way.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.index_changes import current_entries, replace_entries, without_vectors
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity, is_replay
from lakebed.datafiles.rolling_writer import RollingWriter
from lakebed.definition.context import TableContext
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import committer_for, latest_schema_id, write_rules
from lakebed.definition.row_rules import mark_rows, vectors_at
from lakebed.errors import CommitConflict, InvalidArgument, Unsupported
from lakebed.fileio.base import FileIO
from lakebed.lsm.sections import Section, SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import (
    NO_POSITIONS,
    DeletionVectorStore,
    Positions,
    Vectors,
    decode_vector,
    encode_vector,
)
from lakebed.metadata.entries import Bucket, in_buckets, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import COMMIT_USER_PREFIX, DATA_EVOLUTION_ENABLED, DELETION_VECTORS_ENABLED
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader, parallelism
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.rewrite.columns import ColumnChanges, range_guard, refuse_deletes
from lakebed.schema.system_columns import ROW_ID, ROW_INDEX, TRACKING_FIELDS
from lakebed.types.predicate import Predicate
from lakebed.write.files import FileMaker, file_layout
from lakebed.write.pieces import PieceWork
from lakebed.write.sequence import BucketStates

Deleted = Mapping[str, npt.ArrayLike]
"""Rows to delete: positions by the path or name of their file."""

_Touched = list[tuple[ManifestEntry, Positions]]


@dataclass(frozen=True)
class RowChanges:
    """Changes to rows that were found in the state of a snapshot."""

    context: TableContext
    base: Snapshot | None
    operation: str = "DELETE"
    run_pieces: Elsewhere | None = None
    """Rewrites files elsewhere, if there is much to rewrite."""
    replaced: Deleted = field(default_factory=dict)
    """Rows that stay where they lie and get new columns: they must not have been deleted meanwhile."""

    def __post_init__(self) -> None:
        if self.context.has_key:
            raise Unsupported(
                f"table `{self.context.name}` has a primary key: its rows are changed by writing new ones",
                hint="lake.sql('DELETE FROM ... WHERE ...') does it by condition; rows of kind `-D` or `+U` do by key: "
                't.write(rows, row_kind="kind")',
            )

    def commit(
        self,
        deleted: Deleted,
        messages: Sequence[CommitMessage] = (),
        identity: CommitIdentity | None = None,
        attempt: Attempt | None = None,
    ) -> Snapshot | None:
        """Deletes rows and adds files as one snapshot; None when there is nothing to do.

        Of a failed commit the files in `messages` are left to the caller, whose `attempt` knows whether they may go.
        """
        touched = self._touched(deleted)
        if touched:
            refuse_deletes(self.context)
        if not touched and not messages:
            return None
        user = (self.context.options[COMMIT_USER_PREFIX] or "") + self.context.ids.new_id()
        with attempt or Attempt(self.context.fileio) as attempt:
            if not self.context.options[DELETION_VECTORS_ENABLED]:
                work = PieceWork(self.context, attempt, self.run_pieces)
                messages, touched = [*messages, *self._rewritten(touched, work)], []
            fitting = _Fitting(self, identity or CommitIdentity(user), attempt)
            snapshot = fitting.commit(touched, messages)
            attempt.keep_only(fitting.kept if snapshot is not None else set())
        return snapshot

    def _rewritten(self, touched: _Touched, work: PieceWork) -> list[CommitMessage]:
        vectors = vectors_at(self.context, self.base)
        pieces = [TouchedFile.of(entry, positions, vectors) for entry, positions in touched]
        return work.run(pieces, sum(entry.file.size_bytes for entry, _ in touched), _rewrite_without)

    def _touched(self, deleted: Deleted) -> _Touched:
        """The files that lose rows, with the positions of these."""
        wanted: dict[str, Positions] = {}
        for file, given in deleted.items():
            positions = np.unique(np.asarray(given, dtype=np.int64))
            if len(positions):
                wanted[file.rpartition("/")[2]] = positions
        if not wanted:
            return []

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            return [entry for entry in entries if entry.file.file_name in wanted]

        found = live_files(self.context.stores, self.base, keep_entries=keep)
        lacking = wanted.keys() - {entry.file.file_name for entry in found}
        if lacking:
            raise InvalidArgument(
                f"table `{self.context.name}` has no file {min(lacking)} in the snapshot that was read",
                hint="name files as a read of that snapshot does, in column `__paimon_file_path`",
            )
        touched = [(entry, wanted[entry.file.file_name]) for entry in found]
        for entry, positions in touched:
            if positions[0] < 0 or positions[-1] >= entry.file.row_count:
                raise InvalidArgument(
                    f"file {entry.file.file_name} has {entry.file.row_count} rows, position "
                    f"{positions[-1] if positions[0] >= 0 else positions[0]} is none of them",
                    hint="name rows as a read does, in column `__paimon_row_index`",
                )
        return touched


class _Fitting:
    """A commit under way: fits the changes to whatever snapshot is the latest, as often as it takes."""

    def __init__(self, changes: RowChanges, identity: CommitIdentity, attempt: Attempt) -> None:
        self._changes = changes
        self._context = changes.context
        self._identity = identity
        self._store = DeletionVectorStore(attempt.fileio, changes.context.paths)
        self._attempt = attempt
        self._check_ranges: Callable[[Sequence[ManifestEntry]], None] | None = None
        self.kept: set[str] = set()
        """Files that the commit needs."""

    def commit(self, touched: _Touched, messages: Sequence[CommitMessage]) -> Snapshot | None:
        deletes = bool(touched) or any(message.deleted_files for message in messages)
        if self._context.options[DATA_EVOLUTION_ENABLED]:
            files = [entry.file for entry, _ in touched] + [file for message in messages for file in message.new_files]
            firsts = {file.first_row_id for file in files if file.first_row_id is not None}
            self._check_ranges = range_guard(self._context, self._changes.base, firsts)

        def prepare(latest: Snapshot | None) -> Changes | None:
            if is_replay(self._context.stores.snapshots, latest, self._identity):
                return None
            return self._fitted(touched, messages, latest)

        return committer_for(self._context).commit(
            CommitKind.OVERWRITE if deletes else CommitKind.APPEND,
            self._identity,
            lambda: latest_schema_id(self._context),
            prepare,
            attempt=self._attempt,
            operation=self._changes.operation,
        )

    def _fitted(self, touched: _Touched, messages: Sequence[CommitMessage], latest: Snapshot | None) -> Changes:
        context = self._context
        live = live_files(context.stores, latest, keep_entries=in_buckets(_buckets(touched, messages)))
        delta: list[ManifestEntry] = []
        states = BucketStates.load(context.stores, latest) if any(m.total_buckets > 0 for m in messages) else None
        for message in messages:
            delta += message.entries(EntryKind.DELETE, message.deleted_files)
            delta += message.entries(EntryKind.ADD, _behind(message, states))
        marked, emptied = self._marks(touched, live, latest, bool(messages))
        delta += [replace(entry, kind=EntryKind.DELETE) for entry in emptied]
        check_conflicts(live, delta, table=context.name, key_bounds=None, may_change_bucket_count=False)
        if self._check_ranges is not None:
            self._check_ranges(live)
        self._check_replaced(latest)
        replaced = {file.file_name for message in messages for file in message.deleted_files}
        self._check_vectors(replaced, latest)

        current = current_entries(context.stores, latest)
        removed, added = mark_rows(context, self._store, current, marked)
        entries = replace_entries(current, removed, added, table=context.name)
        entries = without_vectors(entries, replaced | {entry.file.file_name for entry in emptied})
        self.kept = {context.paths.index_file(entry.file_name) for entry in added} | {
            context.data_file_path(entry.partition, entry.bucket, entry.file.file_name)
            for entry in delta
            if entry.kind == EntryKind.ADD
        }
        return Changes(delta, index_entries=None if entries == current else entries)

    def _marks(
        self, touched: _Touched, live: Sequence[ManifestEntry], latest: Snapshot | None, replaces: bool
    ) -> tuple[dict[Bucket, dict[str, Positions]], list[ManifestEntry]]:
        """The vectors of touched files as they shall be, and the files that have no row left."""
        context = self._context
        there = {entry.identity for entry in live}
        vectors = vectors_at(context, latest)
        marked: dict[Bucket, dict[str, Positions]] = defaultdict(dict)
        emptied: list[ManifestEntry] = []
        for entry, positions in touched:
            name = entry.file.file_name
            if entry.identity not in there:
                raise _conflict(context, f"file {name} whose rows this commit deletes is no longer there")
            before = context.vector_store.read(vectors[name]) if name in vectors else NO_POSITIONS
            after = np.union1d(before, positions)
            if replaces and len(after) < len(before) + len(positions):
                raise _conflict(context, f"rows of file {name} that this commit replaces are deleted already")
            if len(after) == entry.file.row_count:
                emptied += self._same_rows(entry, live)
            elif len(after) > len(before):
                marked[entry.partition, entry.bucket][name] = after
        return marked, emptied

    def _same_rows(self, entry: ManifestEntry, live: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        """The file of an entry and, where columns have files of their own, all others that hold columns of its rows."""
        if not self._context.options[DATA_EVOLUTION_ENABLED] or entry.file.first_row_id is None:
            return [entry]
        return [
            other
            for other in live
            if (other.partition, other.bucket) == (entry.partition, entry.bucket)
            and other.file.first_row_id == entry.file.first_row_id
        ]

    def _check_replaced(self, latest: Snapshot | None) -> None:
        """Raises if a row that gets new columns was deleted meanwhile: nobody would see them."""
        vectors = vectors_at(self._context, latest) if self._changes.replaced else {}
        for file, positions in self._changes.replaced.items():
            name = file.rpartition("/")[2]
            if name in vectors and np.isin(positions, self._context.vector_store.read(vectors[name])).any():
                raise _conflict(self._context, f"rows of file {name} that this commit changes were deleted meanwhile")

    def _check_vectors(self, replaced: set[str], latest: Snapshot | None) -> None:
        """Raises if rows were deleted from a file after it was read to be rewritten: they would come back."""
        if not replaced:
            return
        before, now = vectors_at(self._context, self._changes.base), vectors_at(self._context, latest)
        for name in sorted(replaced):
            if before.get(name) != now.get(name):
                raise _conflict(self._context, f"rows of file {name} were deleted while it was rewritten")


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that loses rows: small enough, however many these are, to be sent to a task."""

    entry: ManifestEntry
    deleted: bytes
    """The positions of the rows, as a deletion vector."""
    vectors: Vectors
    """The file's own vector in the snapshot that was read, if it had one."""

    @staticmethod
    def of(entry: ManifestEntry, positions: Positions, vectors: Vectors) -> TouchedFile:
        """The file of an entry."""
        name = entry.file.file_name
        own = {name: vectors[name]} if name in vectors else {}
        return TouchedFile(entry, encode_vector(positions, bits=64), own)


def _rewrite_without(context: TableContext, touched: TouchedFile, fileio: FileIO) -> list[CommitMessage]:
    """The file again without some rows: what stands for it from then on, as a message. May run in a task.

    Nothing is written if no row is left.
    """
    entry, deleted = touched.entry, decode_vector(touched.deleted, touched.entry.file.file_name)
    fields = (*context.schema.fields, *(TRACKING_FIELDS if context.tracks_rows else ()))
    reader = SplitReader(context, (*fields, ROW_INDEX), use_threads=False)
    rules, names = write_rules(context), itertools.count()
    prefix = context.new_data_file_prefix()
    writer = RollingWriter(
        fileio,
        lambda name: context.data_file_path(entry.partition, entry.bucket, name),
        lambda: f"{prefix}-{next(names)}.{rules.extension}",
        file_layout(context, carries_ids=context.tracks_rows),
        rules,
        context.clock,
        # Where the order of files counts, the rows stay where they were.
        first_sequence_number=entry.file.min_sequence_number,
    )
    split = Split(entry.partition, entry.bucket, (Section((SortedRun((entry.file,)),)),), touched.vectors)
    for batch in reader.read_stored(split):
        is_gone = np.isin(np.asarray(batch.column(ROW_INDEX.name)), deleted, assume_unique=True)
        writer.write(batch.drop_columns([ROW_INDEX.name]).filter(pa.array(~is_gone)))
    made = tuple(writer.close())
    return [CommitMessage(entry.partition, entry.bucket, entry.total_buckets, 0, made, deleted_files=(entry.file,))]


def rows_matching(
    context: TableContext, snapshot: Snapshot | None, predicate: Predicate | None
) -> dict[str, Positions]:
    """Where the rows lie that a predicate is true for, by the names of their files."""
    reader = SplitReader(context, (ROW_INDEX,), predicate, use_threads=False)

    def positions(item: tuple[Split, Section]) -> tuple[str, Positions]:
        split, section = item
        parts = [np.asarray(batch.column(0)) for batch in reader.read(split.with_sections((section,)))]
        # A section is one file, or files with columns of the same rows, for which the oldest stands.
        return section.files[0].file_name, np.concatenate(parts) if parts else NO_POSITIONS

    splits = plan_scan(context, snapshot, predicate).splits
    sections = [(split, section) for split in splits for section in split.sections]
    with ThreadPoolExecutor(max(1, min(len(sections), parallelism(context.options)))) as pool:
        return {name: found for name, found in pool.map(positions, sections) if len(found)}


def _behind(message: CommitMessage, states: BucketStates | None) -> tuple[DataFile, ...]:
    """New files with sequence numbers after all that is there, where the order of files counts.

    Files that stand for others keep the numbers of these.
    """
    files = message.new_files
    if states is None or message.total_buckets < 0 or message.deleted_files or not files:
        return files
    start = states.next_sequence_number(message.partition, message.bucket)
    shift = max(0, start - min(file.min_sequence_number for file in files))
    return tuple(
        replace(
            file,
            min_sequence_number=file.min_sequence_number + shift,
            max_sequence_number=file.max_sequence_number + shift,
        )
        for file in files
    )


def _buckets(touched: _Touched, messages: Sequence[CommitMessage]) -> set[Bucket]:
    return {
        *((entry.partition, entry.bucket) for entry, _ in touched),
        *((message.partition, message.bucket) for message in messages),
    }


def _conflict(context: TableContext, what: str) -> CommitConflict:
    return CommitConflict(
        f"table `{context.name}`: {what}", hint="another job changed the same rows: run the statement again"
    )


# --- Rows deleted, replaced and added in one commit, for a table without a primary key, from Arrow data -----------


@dataclass(frozen=True)
class ReplaceRows:
    """Changes to the rows of one snapshot.

    `replacing` are new versions of deleted rows; where rows have ids they bring them along. `added` are new rows.
    """

    context: TableContext
    base: Snapshot | None
    operation: str

    def commit(
        self, deleted: Deleted, replacing: pa.Table | None = None, added: pa.Table | None = None
    ) -> Snapshot | None:
        """Makes the changes visible as one snapshot; None when there are none."""
        with Attempt(self.context.fileio) as attempt:
            if self.context.options[DATA_EVOLUTION_ENABLED]:
                return self._commit_columns(deleted, replacing, added, attempt)
            messages = [
                *self._files(replacing, attempt.fileio, carries_ids=self.context.tracks_rows),
                *self._files(added, attempt.fileio, carries_ids=False),
            ]
            return RowChanges(self.context, self.base, self.operation).commit(deleted, messages, attempt=attempt)

    def _commit_columns(
        self,
        deleted: Deleted,
        replacing: pa.Table | None,
        added: pa.Table | None,
        attempt: Attempt,
    ) -> Snapshot | None:
        """Where columns of rows have files of their own, rows that are replaced stay, and get new columns."""
        changes = ColumnChanges(self.context, self.base, attempt.fileio)
        replaced = changes.places(replacing.column(ROW_ID.name)) if replacing is not None else {}
        gone = without_places(deleted, replaced)
        if gone:
            refuse_deletes(self.context)
        changed = changes.messages(replacing) if replacing is not None and replacing.num_rows else []
        messages = [*changed, *self._files(added, attempt.fileio, carries_ids=False)]
        change = RowChanges(self.context, self.base, self.operation, replaced=replaced)
        return change.commit(gone, messages, attempt=attempt)

    def _files(self, rows: pa.Table | None, fileio: FileIO, *, carries_ids: bool) -> Sequence[CommitMessage]:
        if rows is None or not rows.num_rows:
            return []
        with FileMaker(
            self.context,
            row_kind=None,
            overwrite=None,
            states=lambda: BucketStates.load(self.context.stores, self.base),
            fileio=fileio,
            carries_ids=carries_ids,
        ) as maker:
            maker.write(rows, lambda: None)
            return maker.finish()


def without_places(places: Deleted, others: Deleted) -> Deleted:
    """Positions of rows by the names of their files, without those of the others."""
    left = {}
    for path, positions in places.items():
        name = path.rpartition("/")[2]
        remaining = np.setdiff1d(
            np.asarray(positions, dtype=np.int64), np.asarray(others.get(name, ()), dtype=np.int64)
        )
        if len(remaining):
            left[name] = remaining
    return left


__all__ = ["Deleted", "ReplaceRows", "RowChanges", "TouchedFile", "rows_matching", "without_places"]
