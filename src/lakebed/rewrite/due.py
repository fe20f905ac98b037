"""When a bucket is compacted, and what of it: all that follows from the options of a table and from its metadata.

Compactions ask it for real buckets, the advisor for those that it imagines.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.definition.changelog_rules import full_compaction_every, looks_up
from lakebed.definition.context import TableContext, once_per_context
from lakebed.definition.row_rules import removes_records
from lakebed.lsm.compaction.full import last_full_ms
from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.compaction.universal import UniversalPicker, UniversalSettings
from lakebed.lsm.levels import Levels
from lakebed.merge.first_row import FirstRow
from lakebed.metadata.data_file import DataFile
from lakebed.options import (
    CHANGELOG_PRODUCER,
    COMMIT_FORCE_COMPACT,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_SIZE_RATIO,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    DELETION_VECTORS_ENABLED,
    LOOKUP_COMPACT,
    LOOKUP_COMPACT_MAX_INTERVAL,
    LOOKUP_WAIT,
    MERGE_ENGINE,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    Options,
)

_SMALL_BUCKET_BYTES = 512 << 10
"""Streams compact a bucket of up to this size as a whole, unless `compaction.total-size-threshold` says otherwise:
merging a part of it takes about as long, and what is left over would have to be opened by every reader."""

# --- after a commit --------------------------------------------------------------------------------------------------


def is_full_due(options: Options, identifier: int, *, is_replayable: bool) -> bool:
    """Whether a commit makes a full compaction of the table due; those of batches always do where any does."""
    every = full_compaction_every(options)
    return every is not None and (not is_replayable or identifier % every == 0)


def looks_at_buckets(context: TableContext) -> bool:
    """Whether every bucket that a commit wrote to is looked at, however few runs it has."""
    return context.options[COMMIT_FORCE_COMPACT] or _looks_for_more(context)


def has_many_runs(options: Options, run_count: int) -> bool:
    """Whether a bucket that a commit wrote to has so many runs that it is looked at."""
    return run_count >= options[NUM_SORTED_RUN_COMPACTION_TRIGGER]


@once_per_context
def _looks_for_more(context: TableContext) -> bool:
    """Whether something else than the number of runs can make a compaction due."""
    options = context.options
    return (
        options[COMPACTION_FORCE_UP_LEVEL_0]
        or (_needs_empty_level_0(options) and options[LOOKUP_WAIT])
        or options[COMPACTION_OPTIMIZATION_INTERVAL] is not None
        or options[COMPACTION_TOTAL_SIZE_THRESHOLD] is not None
        or options[COMPACTION_INCREMENTAL_SIZE_THRESHOLD] is not None
    )


# --- of a bucket -----------------------------------------------------------------------------------------------------


def due_plan(context: TableContext, levels: Levels, *, now_ms: int, is_in_stream: bool) -> CompactionPlan | None:
    """What of a bucket is compacted now; None when nothing is due."""
    options = context.options
    picker = picker_of(options, is_in_stream)
    plan = picker.pick(levels, now_ms=now_ms, last_full_ms=last_full_ms(levels))
    if plan is None and _needs_empty_level_0(options) and len(levels.level0) >= _files_that_wait(options):
        plan = picker.force_up_level_0(levels, now_ms=now_ms)
    if plan is not None and not plan.is_full and removes_records(context) and _may_hold_retracts(plan.files):
        # One row can not say "removed, then added again": as long as older rows stay behind, a removal must too.
        return picker.everything(levels, "removed records")
    return plan


def picker_of(options: Options, is_in_stream: bool) -> UniversalPicker:
    """The picker as the options want it; `is_in_stream` if somebody compacts who commits again and again."""
    total_bytes = options[COMPACTION_TOTAL_SIZE_THRESHOLD]
    # Where full compactions tell what has changed, they come when they were asked for.
    folds_small = is_in_stream and total_bytes is None and options[CHANGELOG_PRODUCER] != "full-compaction"
    settings = UniversalSettings(
        trigger=options[NUM_SORTED_RUN_COMPACTION_TRIGGER],
        size_ratio_percent=options[COMPACTION_SIZE_RATIO],
        max_size_amplification_percent=options[COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT],
        optimization_interval_ms=options[COMPACTION_OPTIMIZATION_INTERVAL],
        total_size_threshold_bytes=total_bytes,
        incremental_size_threshold_bytes=options[COMPACTION_INCREMENTAL_SIZE_THRESHOLD],
        offpeak_start_hour=options[COMPACTION_OFFPEAK_START_HOUR],
        offpeak_end_hour=options[COMPACTION_OFFPEAK_END_HOUR],
        offpeak_ratio_percent=options[COMPACTION_OFFPEAK_RATIO],
        deletion_vectors=options[DELETION_VECTORS_ENABLED],
        small_bucket_bytes=_SMALL_BUCKET_BYTES if folds_small else 0,
    )
    return UniversalPicker(settings)


def _needs_empty_level_0(options: Options) -> bool:
    """Whether new files must leave level 0 as soon as possible.

    First-row tables show nothing of it, and where compaction looks up old rows, others wait to hear of the changes.
    """
    return options[COMPACTION_FORCE_UP_LEVEL_0] or options[MERGE_ENGINE] == FirstRow.name or looks_up(options)


def _files_that_wait(options: Options) -> int:
    """How many new files make it worth to look up old rows: one, unless the table is to be gentle."""
    if options[COMPACTION_FORCE_UP_LEVEL_0] or options[LOOKUP_COMPACT] == "RADICAL":
        return 1
    return options[LOOKUP_COMPACT_MAX_INTERVAL] or 2 * options[NUM_SORTED_RUN_COMPACTION_TRIGGER]


def _may_hold_retracts(files: Sequence[DataFile]) -> bool:
    return any(file.delete_row_count != 0 for file in files)


__all__ = ["due_plan", "has_many_runs", "is_full_due", "looks_at_buckets", "picker_of"]
