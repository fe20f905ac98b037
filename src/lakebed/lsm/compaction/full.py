"""Full compaction: everything a bucket holds goes to the highest level."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.lsm.compaction.plan import CompactionPlan, keep_as_it_is, plan_newest
from lakebed.lsm.levels import Levels
from lakebed.metadata.data_file import DataFile, creation_time_to_epoch

FULL = "full compaction"


def pick_full(
    levels: Levels, *, force_rewrite: bool, must_rewrite: Callable[[DataFile], bool] = keep_as_it_is
) -> CompactionPlan | None:
    """Everything to the highest level.

    When all lies there already, only files that must be rewritten (all of them, if forced) are left to do; each is
    rewritten on its own, since the file between two of them may stay.
    """
    if not levels.runs:
        return None
    if levels.number_of_runs > 1 or levels.highest_non_empty_level < levels.max_level:
        return plan_newest(levels, levels.number_of_runs, FULL)
    files = tuple(file for file in levels.files if force_rewrite or must_rewrite(file))
    if not files:
        return None
    return CompactionPlan(levels.max_level, files, True, FULL, is_full=True, rewrites_each_file=True)


def last_full_ms(levels: Levels) -> int | None:
    """When the bucket was last compacted in full, judging by the newest file of the highest level; None for never."""
    times_ms = [
        creation_time_to_epoch(file.creation_time_ms)
        for file in levels.files
        if file.level == levels.max_level and file.creation_time_ms is not None
    ]
    return max(times_ms, default=None)


__all__ = ["last_full_ms", "pick_full"]
