"""Reads and writes files for compactions of one table, in the way that its options ask for."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter, WriteRules
from lakebed.definition.changelog_rules import FULL_COMPACTION, event_rules, looks_up, producer
from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import changelog_write_rules, write_rules
from lakebed.definition.row_rules import RecordExpiry, mark_rows
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.change_tracking import FindOlder, FirstRowTracking, FullCompactionTracking, LookupTracking
from lakebed.lsm.compaction.merging import PlainMerging, SectionMerging
from lakebed.lsm.compaction.task import CompactionTask
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.folding import folding_lone_rows
from lakebed.merge.levels import with_level
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.deletion_vector import NO_POSITIONS, DeletionVectorStore, Positions, Vectors
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.options import COMPACTION_FORCE_REWRITE_ALL_FILES, COMPACTION_SMALL_FILE_RATIO, IGNORE_DELETE
from lakebed.read.keyed_reader import lookup_store
from lakebed.read.plan import FileSieve
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.schema import system_columns
from lakebed.schema.system_columns import ROW_INDEX
from lakebed.types.logical import DataField
from lakebed.types.predicate_parse import to_predicate


class CompactionFiles:
    """One round of compactions; used from several threads."""

    def __init__(self, context: TableContext, fileio: FileIO) -> None:
        self._context = context
        self._fileio = fileio
        self._rules = write_rules(context)
        self._by_level: dict[int, tuple[WriteRules, WriteRules]] = {}
        self._layout = FileLayout(context.schema.id, context.schema.fields, context.key_fields)
        self._expiry = RecordExpiry.of(context.schema, context.options, context.clock.now_ms())
        condition = self._expiry.condition if self._expiry else None
        self._expired_files = FileSieve(context, to_predicate(condition, context.schema.arrow_schema))
        self._prefix = context.new_data_file_prefix()
        self._changelog_prefix = context.new_changelog_file_prefix()
        self._counter = itertools.count()

    def marks(self, entries: Sequence[IndexEntry]) -> BucketMarks:
        """The deleted rows of a bucket, given its index files."""
        store = DeletionVectorStore(self._fileio, self._context.paths, self._context.ids.new_id)
        return BucketMarks(self._context, store, entries)

    def task(self, partition: bytes, bucket: int, threads: int, marks: BucketMarks) -> CompactionTask:
        """The task for one bucket, which may use so many threads."""
        options = self._context.options
        return CompactionTask(
            self._context.key_types,
            self._merging(partition, bucket, marks),
            lambda level: self._writer(partition, bucket, level),
            lambda level: self._changelog_writer(partition, bucket, level),
            self._rules.target_size_bytes,
            options[COMPACTION_SMALL_FILE_RATIO],
            options[COMPACTION_FORCE_REWRITE_ALL_FILES],
            lambda file: self.holds_expired_rows(file) or self._context.may_miscount_retracts(file),
            threads,
        )

    def holds_expired_rows(self, file: DataFile) -> bool:
        """Whether rows of the file have outlived the table's `record-level.expire-time`, as far as statistics tell."""
        return self._expiry is not None and bool(self._expired_files.may_hold_matches([file])[0])

    # --- merging -------------------------------------------------------------------------------------------------

    def _merging(self, partition: bytes, bucket: int, marks: BucketMarks) -> SectionMerging:
        context, options = self._context, self._context.options
        order, engine, types = context.merge_order, context.merge_engine, tuple(context.key_types)
        rules = event_rules(options)
        read, read_levels = self._reads(partition, bucket, self._all_fields, marks.vectors)
        if context.is_first_row:
            # Of a key that has expired the first row is gone: the next one may be the first again.
            fields = (*context.key_fields, self._expiry.column) if self._expiry else context.key_fields
            find = self._finder(partition, bucket, tuple(dict.fromkeys(fields)), marks)
            return FirstRowTracking(order, folding_lone_rows(engine), read_levels, types, rules, find)
        if looks_up(options):
            masks = context.masks_old_rows
            find = self._finder(partition, bucket, self._all_fields, marks)
            newest_wins = isinstance(engine, Deduplicate) and not order.sequence_fields and not options[IGNORE_DELETE]
            return LookupTracking(
                order,
                folding_lone_rows(engine),
                read_levels,
                types,
                rules,
                find,
                newest_wins=newest_wins,
                is_masked=marks.is_marked if masks else None,
            )
        if producer(options) == FULL_COMPACTION:
            return FullCompactionTracking(order, engine, read_levels, types, rules)
        return PlainMerging(order, engine, read)

    @property
    def _all_fields(self) -> tuple[DataField, ...]:
        return (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *self._context.schema.fields)

    def _reads(
        self, partition: bytes, bucket: int, fields: tuple[DataField, ...], vectors: Vectors
    ) -> tuple[Callable[[SortedRun], Iterator[pa.RecordBatch]], Callable[[SortedRun], Iterator[pa.RecordBatch]]]:
        """Two ways to read a run: its rows, and its rows with their levels."""
        reader = SplitReader(self._context, fields, use_threads=False)

        def read(run: SortedRun) -> Iterator[pa.RecordBatch]:
            batches = reader.read_stored(Split(partition, bucket, (Section((run,)),), vectors))
            return batches if self._expiry is None else map(self._expiry.without_expired, batches)

        def read_levels(run: SortedRun) -> Iterator[pa.RecordBatch]:
            for file in run.files:
                for batch in read(SortedRun((file,))):
                    yield with_level(batch, file.level)

        return read, read_levels

    def _finder(self, partition: bytes, bucket: int, fields: tuple[DataField, ...], marks: BucketMarks) -> FindOlder:
        """Finds old rows that count now, and where the table masks old rows, marks them as replaced.

        INVARIANT: local copies hold all rows of a file, marked and expired ones too. A copy outlives the compaction it
        was made for. With the marks of that time in it, rows that a rollback has brought back would not be found; with
        the rows left out that had expired by then, those that expire later would be found for ever: new rows would be
        thrown away for them, or merged with them.
        """
        context, expiry = self._context, self._expiry
        reader = SplitReader(context, (*fields, ROW_INDEX), use_threads=False)
        store = lookup_store(context)

        def read(file: DataFile) -> Iterator[pa.RecordBatch]:
            return reader.read_stored(Split(partition, bucket, (Section((SortedRun((file,)),)),)))

        def accept(file: DataFile, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
            places = np.asarray(rows.column(ROW_INDEX.name))
            alive = marks.alive(file, places)
            if context.masks_old_rows:
                marks.mark(file, places[alive])
            # What has expired is replaced like any other row, and adds nothing to the new one.
            return alive if expiry is None else alive & expiry.is_young(rows)

        def find(runs: Sequence[SortedRun], keys: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch]:
            found, rows = store.find(runs, keys, context.key_types, reader.fields, read, accept)
            return found, rows.drop_columns([ROW_INDEX.name])

        return find

    # --- writing -------------------------------------------------------------------------------------------------

    def _rules_of(self, level: int) -> tuple[WriteRules, WriteRules]:
        """How files of a level are written: those with rows, and those with changes."""
        found = self._by_level.get(level)
        if found is None:
            rules = write_rules(self._context, level), changelog_write_rules(self._context, level)
            found = self._by_level[level] = rules
        return found

    def _writer(self, partition: bytes, bucket: int, level: int) -> RollingWriter:
        rules, _ = self._rules_of(level)
        return RollingWriter(
            self._fileio,
            lambda name: self._context.data_file_path(partition, bucket, name),
            lambda: f"{self._prefix}-{next(self._counter)}.{rules.extension}",
            self._layout,
            rules,
            self._context.clock,
            level=level,
            source=FileSource.COMPACT,
        )

    def _changelog_writer(self, partition: bytes, bucket: int, level: int) -> RollingWriter:
        _, rules = self._rules_of(level)
        return RollingWriter(
            self._fileio,
            lambda name: self._context.data_file_path(partition, bucket, name),
            lambda: f"{self._changelog_prefix}-{next(self._counter)}.{rules.extension}",
            self._layout,
            rules,
            self._context.clock,
            level=level,
        )


# ------------------------------------------------------------------------------------------------------------------
# Rows of one bucket that deletion vectors mark: those that are gone already, and those that a compaction replaces.
#
# A compaction that brings new rows up finds the old rows of their keys in files that stay, and marks them there
# instead of rewriting the files. Used from several threads at once.


class BucketMarks:
    """Marks of one bucket, on top of those that the index files of a snapshot hold."""

    def __init__(self, context: TableContext, store: DeletionVectorStore, entries: Sequence[IndexEntry]) -> None:
        self._context = context
        self._store = store
        self._entries = entries
        self.vectors = store.places(entries)
        self._before: dict[str, Positions] = {}
        self._marked: dict[str, list[Positions]] = defaultdict(list)
        self._lock = threading.Lock()

    def is_marked(self, file: DataFile) -> bool:
        """Whether rows of a file are gone."""
        return file.file_name in self.vectors

    def alive(self, file: DataFile, positions: Positions) -> npt.NDArray[np.bool_]:
        """Which of these rows of a file were there when the compaction began."""
        place = self.vectors.get(file.file_name)
        if place is None:
            return np.ones(len(positions), dtype=np.bool_)
        with self._lock:
            before = self._before.get(file.file_name)
            if before is None:
                before = self._before[file.file_name] = self._store.read(place)
        return ~np.isin(positions, before)

    def mark(self, file: DataFile, positions: Positions) -> None:
        """Says that rows of a file are replaced."""
        if len(positions):
            with self._lock:
                self._marked[file.file_name].append(positions)

    def index_files(
        self, partition: bytes, bucket: int, gone: Collection[str]
    ) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
        """Index files that come, and those that go for them; `gone` are data files that need no marks any more."""
        # INVARIANT: a new vector has all marks of the one it replaces. One left out is a deleted row come back.
        vectors = {
            name: np.union1d(self._vector(name), np.concatenate(parts))
            for name, parts in self._marked.items()
            if name not in gone
        }
        if not vectors:
            return (), ()
        removed, added = mark_rows(self._context, self._store, self._entries, {(partition, bucket): vectors}, gone)
        return tuple(added), tuple(removed)

    def _vector(self, name: str) -> Positions:
        place = self.vectors.get(name)
        return NO_POSITIONS if place is None else self._store.read(place)


__all__ = ["BucketMarks"]
