"""Compacts buckets of a primary-key table: reads the levels, lets the picker decide, runs the task, commits the result.

A compaction changes no row, so it is a commit of its own, after the rows it takes in are visible. Another compaction of
the same files wins or loses as a whole; appends never get in the way.
"""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from lakebed.commit.attempt import Attempt
from lakebed.commit.committer import Changes
from lakebed.commit.compaction_note import CompactionNote, count_compacted
from lakebed.commit.conflict import check_conflicts
from lakebed.commit.index_changes import current_entries, replace_entries, without_vectors
from lakebed.commit.message import CommitMessage
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, producer
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.file_rules import check_same_meaning, committer_for
from lakebed.definition.folded import check_folded
from lakebed.errors import CommitConflict, LakebedError
from lakebed.fileio.base import FileIO
from lakebed.lsm.compaction.full import pick_full
from lakebed.lsm.compaction.plan import CompactionPlan, CompactionResult
from lakebed.lsm.levels import Levels
from lakebed.lsm.sections import key_bounds
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import Bucket, Keep, in_buckets, live_files
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metrics.families import COMPACTION_DURATION
from lakebed.metrics.instruments import NOTHING
from lakebed.options import COMPACTION_FORCE_REWRITE_ALL_FILES
from lakebed.read.reader import parallelism
from lakebed.records import dataclass
from lakebed.rewrite.bucket_files import CompactionFiles
from lakebed.rewrite.due import due_plan, picker_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PickedBucket:
    """A bucket, and what is to be done with it."""

    partition: bytes
    bucket: int
    total_buckets: int
    plan: CompactionPlan
    index_entries: tuple[IndexEntry, ...] = ()
    """Index files that mark deleted rows of the bucket."""


Tell = Callable[[int, int], None]
"""Is told how many buckets are done, and how many there are to do."""


@dataclass(frozen=True)
class Compactor:
    """Compacts one table. `keep` chooses among its live entries; all by default."""

    context: TableContext
    full: bool = False
    keep: Keep | None = None
    run_pieces: Elsewhere | None = None
    tell: Tell | None = None
    gives_way: bool = False
    """Whether buckets that somebody else changed meanwhile are left out, instead of giving up all of them."""
    most_bytes: int | None = None
    """About so much is rewritten in one round; buckets with the most files come first."""
    is_in_stream: bool = False
    """Whether somebody compacts who commits again and again, a little each time."""

    def run(self, identity: CommitIdentity) -> Snapshot | None:
        """One round over the chosen buckets and, if anything was compacted, one snapshot."""
        latest = self.context.stores.snapshots.latest()
        # Read after the snapshot, so that it knows every column of its files: an older one would lose their values.
        context = self.context.under_latest_schema()
        check_folded(context, latest)
        with COMPACTION_DURATION.timed(context.name) as timing:
            snapshot = replace(self, context=context)._run(identity, latest)
            if snapshot is None:
                timing.ended(NOTHING)
            return snapshot

    def _run(self, identity: CommitIdentity, latest: Snapshot | None) -> Snapshot | None:
        clock, began_ms = self.context.clock, self.context.clock.now_ms()
        with Attempt(self.context.fileio) as attempt:
            messages, reasons = self._compacted(CompactionFiles(self.context, attempt.fileio), latest)
            if not messages:
                return None
            attempt.make_durable()  # before it is this commit's turn, and others wait
            attempt.note(self._made(messages))  # also what was made elsewhere
            note = CompactionNote.of_plans(reasons, clock.now_ms() - began_ms)
            snapshot, committed = self._commit(messages, identity, attempt, note)
            attempt.keep_only(self._made(committed) if snapshot is not None else set())
            if snapshot is not None:
                count_compacted(committed, self.context.name)
            return snapshot

    def _made(self, messages: Sequence[CommitMessage]) -> set[str]:
        """Paths of the new files. One that only changed its level is not new."""
        paths = self.context.paths
        made = {paths.index_file(entry.file_name) for message in messages for entry in message.new_index_files}
        for message in messages:
            moved = {file.file_name for file in message.compact_before}
            made |= {
                self.context.data_file_path(message.partition, message.bucket, file.file_name)
                for file in (*message.compact_after, *message.compact_changelog)
                if file.file_name not in moved
            }
        return made

    def run_quietly(self, identity: CommitIdentity) -> None:
        """As `run`, after a commit that stands whatever happens here: failures are logged, the next round repeats."""
        try:
            self.run(identity)
        except CommitConflict as conflict:
            _log.info("table %s: another job compacted first: %s", self.context.name, conflict.message)
        except LakebedError as error:
            _log.warning("table %s: not compacted after the commit: %s", self.context.name, error.message)

    # --- inside --------------------------------------------------------------------------------------------------

    def _compacted(self, maker: CompactionFiles, latest: Snapshot | None) -> tuple[list[CommitMessage], Iterable[str]]:
        """What was compacted, and why."""
        buckets = self._buckets(latest)
        indexes = self._vector_files(latest)
        picked = [
            PickedBucket(*key, plan, tuple(marking))
            for key, files in buckets.items()
            if (plan := self._pick(files, maker, marking := indexes.get(key[:2], []))) is not None
        ]
        if not picked:
            return [], ()
        if self._shows_together:
            picked = self._all_that_tells(picked, latest, indexes)
        elif self.most_bytes is not None:
            picked = _most_urgent(picked, self.most_bytes)

        base = latest.id if latest else 0
        reasons = [item.plan.reason for item in picked]
        if self.run_pieces is not None:
            size_bytes = sum(file.size_bytes for item in picked for file in item.plan.files)
            elsewhere = self.run_pieces(self.context, picked, size_bytes, partial(_compacted_elsewhere, base=base))
            if elsewhere is not None:
                return elsewhere, reasons
        # Buckets come first; what they leave of the machine goes to the sections of each.
        threads = parallelism(self.context.options)
        workers = min(len(picked), threads)

        def work(item: PickedBucket) -> CommitMessage | None:
            return compacted_bucket(maker, item, base, threads // workers)

        if workers <= 1:
            done = list(self._told(map(work, picked), len(picked)))
        else:
            with ThreadPoolExecutor(workers) as pool:
                done = list(self._told(pool.map(work, picked), len(picked)))
        return [message for message in done if message is not None], reasons

    def _told(self, done: Iterable[CommitMessage | None], total: int) -> Iterator[CommitMessage | None]:
        tell = self.tell or (lambda count, total: None)
        tell(0, total)
        for count, message in enumerate(done, 1):
            tell(count, total)
            yield message

    def _buckets(self, snapshot: Snapshot | None) -> dict[tuple[bytes, int, int], list[DataFile]]:
        found: dict[tuple[bytes, int, int], list[DataFile]] = defaultdict(list)
        for entry in live_files(self.context.stores, snapshot, keep_entries=self.keep):
            if entry.bucket >= 0:
                found[entry.partition, entry.bucket, entry.total_buckets].append(entry.file)
        return found

    def _vector_files(self, snapshot: Snapshot | None) -> dict[Bucket, list[IndexEntry]]:
        found: dict[Bucket, list[IndexEntry]] = defaultdict(list)
        for entry in current_entries(self.context.stores, snapshot):
            if entry.index_type == DELETION_VECTORS_INDEX:
                found[entry.partition, entry.bucket].append(entry)
        return found

    def _pick(
        self, files: Sequence[DataFile], maker: CompactionFiles, marking: Sequence[IndexEntry]
    ) -> CompactionPlan | None:
        options = self.context.options
        levels = Levels.of(files, self.context.key_types, num_levels(options))
        if self.full:
            marks = maker.marks(marking)
            return pick_full(
                levels,
                force_rewrite=options[COMPACTION_FORCE_REWRITE_ALL_FILES],
                must_rewrite=lambda file: marks.is_marked(file) or maker.holds_expired_rows(file),
            )
        return due_plan(self.context, levels, now_ms=self.context.clock.now_ms(), is_in_stream=self.is_in_stream)

    @property
    def _shows_together(self) -> bool:
        """Whether new rows of all buckets must become visible, or be told, at once.

        A key may have left a partition for another one: as long as new files are not shown, both halves of that are
        hidden. Shown one by one, the key would be there twice, or nowhere; and so for who follows what is told.
        """
        context = self.context
        if not context.bucket_mode.crosses_partitions:
            return False
        tells = producer(context.options) in (LOOKUP, FULL_COMPACTION)
        return tells or context.lowest_visible_level > 0

    def _all_that_tells(
        self, picked: Sequence[PickedBucket], latest: Snapshot | None, indexes: Mapping[Bucket, list[IndexEntry]]
    ) -> list[PickedBucket]:
        """What is picked, and if it shows or tells what is new, plans that do so for all other buckets."""
        is_told_fully = producer(self.context.options) == FULL_COMPACTION
        if is_told_fully and not any(item.plan.is_full for item in picked):
            return list(picked)
        if not is_told_fully and not any(file.level == 0 for item in picked for file in item.plan.files):
            return list(picked)
        options = self.context.options
        found = [item for item in picked if item.plan.is_full or not is_told_fully]
        chosen = {(item.partition, item.bucket) for item in found}
        for (partition, bucket, total), files in replace(self, keep=None)._buckets(latest).items():
            if (partition, bucket) in chosen:
                continue
            levels = Levels.of(files, self.context.key_types, num_levels(options))
            if is_told_fully:
                plan = pick_full(levels, force_rewrite=False)
            else:
                picker = picker_of(options, self.is_in_stream)
                plan = picker.force_up_level_0(levels, now_ms=self.context.clock.now_ms())
            if plan is not None:
                marking = tuple(indexes.get((partition, bucket), ()))
                found.append(PickedBucket(partition, bucket, total, plan, marking))
        return found

    def _commit(
        self, messages: Sequence[CommitMessage], identity: CommitIdentity, attempt: Attempt, note: CompactionNote
    ) -> tuple[Snapshot | None, Sequence[CommitMessage]]:
        """The snapshot, and what of the messages is in it."""
        touched = {(message.partition, message.bucket) for message in messages}
        final = messages

        def prepare(latest: Snapshot | None) -> Changes:
            nonlocal final
            check_same_meaning(self.context, self.context.schemas)
            live = live_files(self.context.stores, latest, keep_entries=in_buckets(touched))
            current = current_entries(self.context.stores, latest)
            if self.gives_way and not self._shows_together:
                final = self._still_fitting(messages, live, current) or messages  # then it is all of them that conflict
            return self._changes(final, live, current)

        snapshot = committer_for(self.context).commit(
            CommitKind.COMPACT,
            identity,
            lambda: self.context.schema.id,
            prepare,
            attempt=attempt,
            operation="COMPACT",
            properties=note.to_properties(),
        )
        return snapshot, final

    def _changes(
        self, messages: Sequence[CommitMessage], live: list[ManifestEntry], current: list[IndexEntry]
    ) -> Changes:
        """What the messages change in a state, given its files and all its index files; or how they conflict."""
        delta = [
            entry
            for message in messages
            for entry in (
                *message.entries(EntryKind.DELETE, message.compact_before),
                *message.entries(EntryKind.ADD, message.compact_after),
            )
        ]
        check_conflicts(
            live,
            delta,
            table=self.context.name,
            key_bounds=lambda files: key_bounds(files, self.context.key_types),
            may_change_bucket_count=False,
        )
        kept = {file.file_name for message in messages for file in message.compact_after}
        gone = {file.file_name for message in messages for file in message.compact_before} - kept
        removed = [entry for message in messages for entry in message.removed_index_files]
        added = [entry for message in messages for entry in message.new_index_files]
        entries = without_vectors(replace_entries(current, removed, added, table=self.context.name), gone)
        changelog = [
            entry for message in messages for entry in message.entries(EntryKind.ADD, message.compact_changelog)
        ]
        return Changes(delta, changelog, None if entries == current else entries)

    def _still_fitting(
        self, messages: Sequence[CommitMessage], live: list[ManifestEntry], current: list[IndexEntry]
    ) -> list[CommitMessage]:
        """The messages whose buckets nobody else has changed in a way that conflicts."""
        by_bucket: dict[Bucket, list[ManifestEntry]] = defaultdict(list)
        for entry in live:
            by_bucket[entry.partition, entry.bucket].append(entry)
        fitting = []
        for message in messages:
            try:
                self._changes([message], by_bucket[message.partition, message.bucket], current)
            except CommitConflict as conflict:
                _log.info("table %s: one bucket is left out: %s", self.context.name, conflict.message)
            else:
                fitting.append(message)
        return fitting


def _most_urgent(picked: list[PickedBucket], most_bytes: int) -> list[PickedBucket]:
    """Buckets with the most files first, until they are so large together; at least one."""
    ordered = sorted(picked, key=lambda item: -len(item.plan.files))
    sizes = itertools.accumulate(sum(file.size_bytes for file in item.plan.files) for item in ordered)
    return [item for item, size in zip(ordered, sizes, strict=True) if item is ordered[0] or size <= most_bytes]


def _compacted_elsewhere(
    context: TableContext, picked: PickedBucket, fileio: FileIO, *, base: int
) -> list[CommitMessage]:
    message = compacted_bucket(CompactionFiles(context, fileio), picked, base, threads=1)
    return [] if message is None else [message]


def compacted_bucket(maker: CompactionFiles, picked: PickedBucket, base: int, threads: int) -> CommitMessage | None:
    """Runs the plan of one bucket; None when it changes nothing."""
    marks = maker.marks(picked.index_entries)
    result: CompactionResult = maker.task(picked.partition, picked.bucket, threads, marks).run(picked.plan)
    if not result.before and not result.after:
        return None
    gone = {file.file_name for file in result.before} - {file.file_name for file in result.after}
    new_index_files, removed_index_files = marks.index_files(picked.partition, picked.bucket, gone)
    return CommitMessage(
        picked.partition,
        picked.bucket,
        picked.total_buckets,
        base,
        compact_before=result.before,
        compact_after=result.after,
        compact_changelog=result.changelog,
        new_index_files=new_index_files,
        removed_index_files=removed_index_files,
    )
