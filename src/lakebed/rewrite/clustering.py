"""Incremental clustering: files of a table without a key are sorted step by step, so that no step rewrites them all.

Files lie on levels as those of a table with a key do, and the same rules tell which of them are sorted together next:
new ones (level 0) by themselves, and what is sorted already only when they have become many beside it. No row changes,
so this is a compaction like any other: rows keep their ids, and others may append meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from lakebed.commit.attempt import Attempt
from lakebed.commit.compaction_note import CompactionNote
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext, num_levels
from lakebed.definition.elsewhere import Elsewhere
from lakebed.definition.row_rules import vectors_at
from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.lsm.levels import LevelRun, Levels
from lakebed.lsm.sections import SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.deletion_vector import Vectors
from lakebed.metadata.entries import Bucket, Keep, live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    CLUSTERING_COLUMNS,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_SIZE_RATIO,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    Options,
)
from lakebed.records import dataclass
from lakebed.rewrite.small_files import AppendCompactor, KeylessRound, PickedFiles, commit_rewritten, stored_bytes
from lakebed.rewrite.sorting import sorted_files
from lakebed.write.clustering import stepwise_clustering_of
from lakebed.write.pieces import PieceWork, Tell


def keyless_compactor(
    context: TableContext,
    full: bool = False,
    keep: Keep | None = None,
    run_pieces: Elsewhere | None = None,
    tell: Tell | None = None,
) -> AppendCompactor | Clusterer:
    """What compacts a table without a key: by joining small files, or by sorting them where the table asks for it."""
    if stepwise_clustering_of(context) is not None:
        return Clusterer(context, full, keep, run_pieces, tell)
    return AppendCompactor(context, full, keep, run_pieces, tell)


@dataclass(frozen=True)
class Clusterer(KeylessRound):
    """Sorts files step by step; `full` sorts all that is not one sorted run."""

    def _run(self, identity: CommitIdentity, latest: Snapshot | None) -> Snapshot | None:
        clustering = stepwise_clustering_of(self.context)
        picked = list(self._picked(latest))
        if clustering is None or not picked:
            return None
        clock, began_ms = self.context.clock, self.context.clock.now_ms()
        with Attempt(self.context.fileio) as attempt:
            work = PieceWork(self.context, attempt, self.run_pieces, self.tell)
            sort = partial(sorted_files, strategy=clustering.strategy, columns=clustering.columns)
            messages = work.run(picked, stored_bytes(picked), sort)
            note = CompactionNote("asked for" if self.full else "clustering", max(0, clock.now_ms() - began_ms))
            return commit_rewritten(self.context, picked, messages, identity, attempt, note=note)

    def _picked(self, snapshot: Snapshot | None) -> Iterator[PickedFiles]:
        vectors = vectors_at(self.context, snapshot)
        buckets: dict[tuple[Bucket, int], list[DataFile]] = defaultdict(list)
        for entry in live_files(self.context.stores, snapshot, keep_entries=self.keep):
            buckets[(entry.partition, entry.bucket), entry.total_buckets].append(entry.file)
        for ((partition, bucket), total), files in buckets.items():
            chosen = self._chosen(_levels(files, num_levels(self.context.options)), vectors)
            if chosen is not None:
                level, group = chosen
                masked = {file.file_name: vectors[file.file_name] for file in group if file.file_name in vectors}
                yield PickedFiles(partition, bucket, total, group, masked, level)

    def _chosen(self, levels: Levels, vectors: Vectors) -> tuple[int, tuple[DataFile, ...]] | None:
        """The level that files go to, and the files; None when nothing is due."""
        if self.full:
            return None if self._is_sorted(levels, vectors) else (levels.max_level, levels.files)
        options, now_ms = self.context.options, self.context.clock.now_ms()
        plan = UniversalPicker(_settings(options)).pick(levels, now_ms=now_ms, last_full_ms=None)
        return None if plan is None else (plan.output_level, plan.files)

    def _is_sorted(self, levels: Levels, vectors: Vectors) -> bool:
        """Whether everything is one run on the highest level already, by the same columns and without rows to drop."""
        if [run.level for run in levels.runs] != [levels.max_level]:
            return not levels.runs
        columns = self.context.options[CLUSTERING_COLUMNS]
        schemas = {file.schema_id for file in levels.files}
        return not any(file.file_name in vectors for file in levels.files) and all(
            Options(self.context.schemas.get(number).options)[CLUSTERING_COLUMNS] == columns for number in schemas
        )


def _levels(files: Sequence[DataFile], level_count: int) -> Levels:
    """The runs of a partition: files of a level need not follow each other, since rows without a key have no order."""
    by_level: dict[int, list[DataFile]] = defaultdict(list)
    for file in files:
        by_level[file.level].append(file)
    new = (LevelRun(0, SortedRun((file,))) for file in reversed(by_level.pop(0, [])))
    old = (LevelRun(level, SortedRun(tuple(by_level[level]))) for level in sorted(by_level))
    return Levels((*new, *old), max(level_count - 1, *by_level, 0))


def _settings(options: Options) -> UniversalSettings:
    return UniversalSettings(
        trigger=options[NUM_SORTED_RUN_COMPACTION_TRIGGER],
        size_ratio_percent=options[COMPACTION_SIZE_RATIO],
        max_size_amplification_percent=options[COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT],
    )


__all__ = ["Clusterer", "keyless_compactor"]
