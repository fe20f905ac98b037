"""Reads and writes files for compactions of one table, in the way that its options ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.change_tracking import (
    FindOlder,
    FirstRowTracking,
    FullCompactionTracking,
    LookupTracking,
)
from lakebed.lsm.compaction.merging import PlainMerging, SectionMerging
from lakebed.lsm.compaction.task import CompactionTask
from lakebed.lsm.lookup.store import LookupLimits, LookupStore
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.deduplicate import Deduplicate
from lakebed.merge.folding import folding_lone_rows
from lakebed.merge.levels import with_level
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.options import (
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_SMALL_FILE_RATIO,
    IGNORE_DELETE,
    LOOKUP_CACHE_FILE_RETENTION,
    LOOKUP_CACHE_MAX_DISK_SIZE,
    LOOKUP_CACHE_MAX_MEMORY_SIZE,
)
from lakebed.schema import system_columns
from lakebed.table.context import TableContext
from lakebed.table.producers import FULL_COMPACTION, event_rules, looks_up, producer
from lakebed.table.read import SplitReader
from lakebed.table.record_expiry import RecordExpiry
from lakebed.table.scan import FileSieve
from lakebed.table.splits import Split
from lakebed.table.write_rules import changelog_write_rules, write_rules
from lakebed.types.logical import DataField
from lakebed.types.predicate_parse import to_predicate


class CompactionFiles:
    """One round of compactions; used from several threads."""

    def __init__(self, context: TableContext, fileio: FileIO) -> None:
        self._context = context
        self._fileio = fileio
        self._rules = write_rules(context)
        self._changelog_rules = changelog_write_rules(context)
        self._layout = FileLayout(context.schema.id, context.schema.fields, context.key_fields)
        self._expiry = RecordExpiry.of(context.schema, context.options, context.clock.now_ms())
        condition = self._expiry.condition if self._expiry else None
        self._expired_files = FileSieve(context, to_predicate(condition, context.schema.arrow_schema))
        self._prefix = context.new_data_file_prefix()
        self._changelog_prefix = context.new_changelog_file_prefix()
        self._counter = itertools.count()

    def task(self, partition: bytes, bucket: int, threads: int) -> CompactionTask:
        """The task for one bucket, which may use so many threads."""
        options = self._context.options
        return CompactionTask(
            self._context.key_types,
            self._merging(partition, bucket),
            lambda level: self._writer(partition, bucket, level),
            lambda level: self._changelog_writer(partition, bucket, level),
            self._rules.target_size_bytes,
            options[COMPACTION_SMALL_FILE_RATIO],
            options[COMPACTION_FORCE_REWRITE_ALL_FILES],
            self.holds_expired_rows,
            threads,
        )

    def holds_expired_rows(self, file: DataFile) -> bool:
        """Whether rows of the file have outlived the table's `record-level.expire-time`, as far as statistics tell."""
        return self._expiry is not None and bool(self._expired_files.may_hold_matches([file])[0])

    # --- merging -------------------------------------------------------------------------------------------------

    def _merging(self, partition: bytes, bucket: int) -> SectionMerging:
        context, options = self._context, self._context.options
        order, engine, types = context.merge_order, context.merge_engine, tuple(context.key_types)
        rules = event_rules(options)
        read, read_levels = self._reads(partition, bucket, self._all_fields)
        if context.is_first_row:
            # Of a key that has expired the first row is gone: the next one may be the first again.
            fields = (*context.key_fields, self._expiry.column) if self._expiry else context.key_fields
            find = self._finder(partition, bucket, tuple(dict.fromkeys(fields)))
            return FirstRowTracking(order, folding_lone_rows(engine), read_levels, types, rules, find)
        if looks_up(options):
            find = self._finder(partition, bucket, self._all_fields)
            newest_wins = isinstance(engine, Deduplicate) and not order.sequence_fields and not options[IGNORE_DELETE]
            return LookupTracking(
                order, folding_lone_rows(engine), read_levels, types, rules, find, newest_wins=newest_wins
            )
        if producer(options) == FULL_COMPACTION:
            return FullCompactionTracking(order, engine, read_levels, types, rules)
        return PlainMerging(order, engine, read)

    @property
    def _all_fields(self) -> tuple[DataField, ...]:
        return (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *self._context.schema.fields)

    def _reads(
        self, partition: bytes, bucket: int, fields: tuple[DataField, ...]
    ) -> tuple[Callable[[SortedRun], Iterator[pa.RecordBatch]], Callable[[SortedRun], Iterator[pa.RecordBatch]]]:
        """Two ways to read a run: its rows, and its rows with their levels."""
        reader = SplitReader(self._context, fields, use_threads=False)

        def read(run: SortedRun) -> Iterator[pa.RecordBatch]:
            batches = reader.read_stored(Split(partition, bucket, (Section((run,)),)))
            return batches if self._expiry is None else map(self._expiry.without_expired, batches)

        def read_levels(run: SortedRun) -> Iterator[pa.RecordBatch]:
            for file in run.files:
                for batch in read(SortedRun((file,))):
                    yield with_level(batch, file.level)

        return read, read_levels

    def _finder(self, partition: bytes, bucket: int, fields: tuple[DataField, ...]) -> FindOlder:
        read, _ = self._reads(partition, bucket, fields)
        schema = SplitReader(self._context, fields).schema
        store = self._lookup_store()
        types = self._context.key_types

        def find(runs: Sequence[SortedRun], keys: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch]:
            return store.find(runs, keys, types, schema, lambda file: read(SortedRun((file,))))

        return find

    def _lookup_store(self) -> LookupStore:
        """Copies outlive a compaction: the next one will ask for the same files."""
        memory, options = self._context.memory, self._context.options
        with memory.lock:
            if memory.lookup_store is None:
                limits = LookupLimits(
                    options[LOOKUP_CACHE_MAX_DISK_SIZE],
                    options[LOOKUP_CACHE_FILE_RETENTION],
                    options[LOOKUP_CACHE_MAX_MEMORY_SIZE],
                )
                memory.lookup_store = LookupStore(limits, self._context.clock)
            return memory.lookup_store

    # --- writing -------------------------------------------------------------------------------------------------

    def _writer(self, partition: bytes, bucket: int, level: int) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            lambda name: self._context.data_file_path(partition, bucket, name),
            lambda: f"{self._prefix}-{next(self._counter)}.{self._rules.format.name}",
            self._layout,
            self._rules,
            self._context.clock,
            level=level,
            source=FileSource.COMPACT,
        )

    def _changelog_writer(self, partition: bytes, bucket: int, level: int) -> RollingWriter:
        return RollingWriter(
            self._fileio,
            lambda name: self._context.data_file_path(partition, bucket, name),
            lambda: f"{self._changelog_prefix}-{next(self._counter)}.{self._changelog_rules.format.name}",
            self._layout,
            self._changelog_rules,
            self._context.clock,
            level=level,
        )
