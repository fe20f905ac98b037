"""Compacts buckets of a primary-key table: reads the levels, lets the picker decide, runs the task, commits the result.

A compaction changes no row, so it is a commit of its own, after the rows it takes in are visible. Another compaction of
the same files wins or loses as a whole; appends never get in the way.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from lakebed.commit.committer import Changes, Progress
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.commit.written_files import WrittenFiles
from lakebed.datafiles.rolling_writer import FileLayout, RollingWriter
from lakebed.errors import CommitConflict, LakebedError
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.full import last_full_ms, pick_full
from lakebed.lsm.compaction.merging import FirstRowMerging, PlainMerging, SectionMerging
from lakebed.lsm.compaction.plan import CompactionPlan, CompactionResult
from lakebed.lsm.compaction.task import CompactionTask
from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.lsm.levels import Levels
from lakebed.lsm.sections import Section, SortedRun, key_bounds
from lakebed.merge.first_row import FirstRow
from lakebed.merge.folding import folding_lone_rows
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.options import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_SIZE_RATIO,
    COMPACTION_SMALL_FILE_RATIO,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    MERGE_ENGINE,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    Options,
)
from lakebed.schema import system_columns
from lakebed.table.context import TableContext, num_levels
from lakebed.table.read import SplitReader
from lakebed.table.record_expiry import RecordExpiry
from lakebed.table.scan import FileSieve
from lakebed.table.splits import Split
from lakebed.table.write_rules import committer_for, write_rules
from lakebed.types.predicate_parse import to_predicate

_log = logging.getLogger(__name__)

Bucket = tuple[bytes, int]
Keep = Callable[[list[ManifestEntry]], list[ManifestEntry]]


@dataclass(frozen=True)
class Compactor:
    """Compacts one table. `keep` chooses among its live entries; all by default."""

    context: TableContext
    full: bool = False
    keep: Keep | None = None

    def run(self, identity: CommitIdentity) -> Snapshot | None:
        """One round over the chosen buckets and, if anything was compacted, one snapshot."""
        fileio, written = WrittenFiles.watch(self.context.fileio)
        progress = Progress()
        try:
            messages = self._compacted(_FileMaker(self.context, fileio))
            if not messages:
                return None
            snapshot = self._commit(messages, identity, progress)
        except BaseException:
            if not progress.may_be_visible:
                written.take_back()
            raise
        made = {
            self.context.data_file_path(message.partition, message.bucket, file.file_name)
            for message in messages
            for file in message.compact_after
        }
        written.take_back(keep=made if snapshot is not None else set())
        return snapshot

    def run_quietly(self, identity: CommitIdentity) -> None:
        """As `run`, after a commit that stands whatever happens here: failures are logged, the next round repeats."""
        try:
            self.run(identity)
        except CommitConflict as conflict:
            _log.info("table %s: another job compacted first: %s", self.context.name, conflict.message)
        except LakebedError as error:
            _log.warning("table %s: not compacted after the commit: %s", self.context.name, error.message)

    # --- inside --------------------------------------------------------------------------------------------------

    def _compacted(self, maker: _FileMaker) -> list[CommitMessage]:
        latest = self.context.stores.snapshots.latest()
        buckets = self._buckets(latest)
        picked = [(key, plan) for key, files in buckets.items() if (plan := self._pick(files, maker)) is not None]
        if not picked:
            return []

        def execute(item: tuple[tuple[bytes, int, int], CompactionPlan]) -> CommitMessage | None:
            (partition, bucket, total), plan = item
            result: CompactionResult = maker.task(partition, bucket).run(plan)
            if not result.before and not result.after:
                return None
            base = latest.id if latest else 0
            return CommitMessage(
                partition, bucket, total, base, compact_before=result.before, compact_after=result.after
            )

        with ThreadPoolExecutor(min(len(picked), os.cpu_count() or 1)) as pool:
            return [message for message in pool.map(execute, picked) if message is not None]

    def _buckets(self, snapshot: Snapshot | None) -> dict[tuple[bytes, int, int], list[DataFile]]:
        found: dict[tuple[bytes, int, int], list[DataFile]] = defaultdict(list)
        for entry in live_files(self.context.stores, snapshot, keep_entries=self.keep):
            if entry.bucket >= 0:
                found[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
        return found

    def _pick(self, files: Sequence[DataFile], maker: _FileMaker) -> CompactionPlan | None:
        options = self.context.options
        levels = Levels.of(files, self.context.key_types, num_levels(options))
        if self.full:
            return pick_full(
                levels,
                force_rewrite=options[COMPACTION_FORCE_REWRITE_ALL_FILES],
                must_rewrite=maker.holds_expired_rows,
            )
        picker = UniversalPicker(_settings(options))
        now_ms = self.context.clock.now_ms()
        plan = picker.pick(levels, now_ms=now_ms, last_full_ms=last_full_ms(levels))
        if plan is None and needs_empty_level_0(options):
            plan = picker.force_up_level_0(levels, now_ms=now_ms)
        if plan is not None and not plan.is_full and removes_records(options) and _may_hold_retracts(plan.files):
            # One row can not say "removed, then added again": as long as older rows stay behind, a removal must too.
            return picker.everything(levels, "removed records")
        return plan

    def _commit(
        self, messages: Sequence[CommitMessage], identity: CommitIdentity, progress: Progress
    ) -> Snapshot | None:
        touched = {(message.partition, message.bucket) for message in messages}
        delta = [
            entry
            for message in messages
            for entry in (
                *message.entries(EntryKind.DELETE, message.compact_before),
                *message.entries(EntryKind.ADD, message.compact_after),
            )
        ]

        def prepare(latest: Snapshot | None) -> Changes:
            live = live_files(self.context.stores, latest, keep_entries=in_buckets(touched))
            check_conflicts(
                live,
                delta,
                table=self.context.name,
                key_bounds=lambda files: key_bounds(files, self.context.key_types),
                may_change_bucket_count=False,
            )
            return Changes(delta)

        return committer_for(self.context).commit(
            CommitKind.COMPACT,
            identity,
            lambda: self.context.schema.id,
            prepare,
            progress=progress,
            operation="COMPACT",
        )


class _FileMaker:
    """Reads runs and writes files for compactions of one table; used from several threads."""

    def __init__(self, context: TableContext, fileio: FileIO) -> None:
        self._context = context
        self._fileio = fileio
        self._rules = write_rules(context)
        self._layout = FileLayout(context.schema.id, context.schema.fields, context.key_fields)
        fields = (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, *context.schema.fields)
        self._reader = SplitReader(context, fields, use_threads=False)
        self._expiry = RecordExpiry.of(context.schema, context.options, context.clock.now_ms())
        key_fields = (*context.key_fields, self._expiry.column) if self._expiry else context.key_fields
        self._key_reader = SplitReader(context, tuple(dict.fromkeys(key_fields)), use_threads=False)
        condition = self._expiry.condition if self._expiry else None
        self._expired_files = FileSieve(context, to_predicate(condition, context.schema.arrow_schema))
        self._prefix = context.new_data_file_prefix()
        self._counter = itertools.count()

    def task(self, partition: bytes, bucket: int) -> CompactionTask:
        """The task for one bucket."""
        options = self._context.options
        return CompactionTask(
            self._context.key_types,
            self._merging(partition, bucket),
            lambda level: self._writer(partition, bucket, level),
            self._rules.target_size_bytes,
            options[COMPACTION_SMALL_FILE_RATIO],
            options[COMPACTION_FORCE_REWRITE_ALL_FILES],
            self.holds_expired_rows,
        )

    def holds_expired_rows(self, file: DataFile) -> bool:
        """Whether rows of the file have outlived the table's `record-level.expire-time`, as far as statistics tell."""
        return self._expiry is not None and bool(self._expired_files.may_hold_matches([file])[0])

    def _merging(self, partition: bytes, bucket: int) -> SectionMerging:
        context = self._context
        read_run = self._read_with(self._reader, partition, bucket)
        if not context.is_first_row:
            return PlainMerging(context.merge_order, context.merge_engine, read_run)
        # Of a key that has expired the first row is gone: the next one may be the first again.
        read_keys = self._read_with(self._key_reader, partition, bucket)
        engine = folding_lone_rows(context.merge_engine)
        return FirstRowMerging(context.merge_order, engine, read_run, read_keys, tuple(context.key_types))

    def _read_with(
        self, reader: SplitReader, partition: bytes, bucket: int
    ) -> Callable[[SortedRun], Iterator[pa.RecordBatch]]:
        def read(run: SortedRun) -> Iterator[pa.RecordBatch]:
            batches = reader.read_stored(Split(partition, bucket, (Section((run,)),)))
            return batches if self._expiry is None else map(self._expiry.without_expired, batches)

        return read

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


def in_buckets(buckets: Collection[Bucket]) -> Keep:
    """Keeps the entries of these (partition, bucket) pairs."""
    wanted = frozenset(buckets)
    return lambda entries: [entry for entry in entries if (entry.partition, entry.bucket) in wanted]


def needs_empty_level_0(options: Options) -> bool:
    """Whether new files must leave level 0 as soon as possible. First-row tables show nothing of it."""
    return options[COMPACTION_FORCE_UP_LEVEL_0] or options[MERGE_ENGINE] == FirstRow.name


def removes_records(options: Options) -> bool:
    """Whether a `-D` row ends what was there of its key, so that later rows begin anew."""
    return bool(
        options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]
        or options[PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP]
        or options[AGGREGATION_REMOVE_RECORD_ON_DELETE]
    )


def _may_hold_retracts(files: Sequence[DataFile]) -> bool:
    return any(file.delete_row_count != 0 for file in files)


def looks_for_more(options: Options) -> bool:
    """Whether something else than the number of runs can make a compaction due."""
    return (
        needs_empty_level_0(options)
        or options[COMPACTION_OPTIMIZATION_INTERVAL] is not None
        or options[COMPACTION_TOTAL_SIZE_THRESHOLD] is not None
        or options[COMPACTION_INCREMENTAL_SIZE_THRESHOLD] is not None
    )


def _settings(options: Options) -> UniversalSettings:
    return UniversalSettings(
        trigger=options[NUM_SORTED_RUN_COMPACTION_TRIGGER],
        size_ratio_percent=options[COMPACTION_SIZE_RATIO],
        max_size_amplification_percent=options[COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT],
        optimization_interval_ms=options[COMPACTION_OPTIMIZATION_INTERVAL],
        total_size_threshold_bytes=options[COMPACTION_TOTAL_SIZE_THRESHOLD],
        incremental_size_threshold_bytes=options[COMPACTION_INCREMENTAL_SIZE_THRESHOLD],
        offpeak_start_hour=options[COMPACTION_OFFPEAK_START_HOUR],
        offpeak_end_hour=options[COMPACTION_OFFPEAK_END_HOUR],
        offpeak_ratio_percent=options[COMPACTION_OFFPEAK_RATIO],
    )
