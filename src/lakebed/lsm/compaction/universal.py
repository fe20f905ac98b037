"""Universal compaction: picks the newest runs to merge, so that few runs remain and little is rewritten twice.

Some questions are asked in turn, and the first one with an answer decides: is a full compaction due early, is the
bucket too small to be compacted in part, do newer runs weigh too much against the oldest, are there neighbours of like
size, are there simply too many runs. This decides only: it opens no file and asks no clock.
"""

from __future__ import annotations

from datetime import datetime

from lakebed.lsm.compaction.plan import CompactionPlan, plan_newest
from lakebed.lsm.levels import Levels
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class UniversalSettings:
    """When to compact what. None switches a rule off; an hour of -1, or equal hours, mean no quiet time."""

    trigger: int = 5
    size_ratio_percent: int = 1
    max_size_amplification_percent: int = 200
    optimization_interval_ms: int | None = None
    total_size_threshold_bytes: int | None = None
    incremental_size_threshold_bytes: int | None = None
    offpeak_start_hour: int = -1
    offpeak_end_hour: int = -1
    offpeak_ratio_percent: int = 0
    deletion_vectors: bool = False
    small_bucket_bytes: int = 0
    """Up to this size a bucket is compacted as a whole as soon as it has as many runs as trigger a compaction."""

    def is_offpeak(self, now_ms: int) -> bool:
        """Whether it is quiet time on the local wall clock; the end hour does not belong to it."""
        start, end = self.offpeak_start_hour, self.offpeak_end_hour
        if start == -1 or end == -1:
            return False
        hour = datetime.fromtimestamp(now_ms / 1000).hour
        if start <= end:
            return start <= hour < end
        return hour >= start or hour < end

    def ratio_percent(self, now_ms: int) -> int:
        """By how much the next run may be larger at this time."""
        return self.size_ratio_percent + (self.offpeak_ratio_percent if self.is_offpeak(now_ms) else 0)


@dataclass(frozen=True, slots=True)
class UniversalPicker:
    """Picks what to compact by the sizes of the runs."""

    settings: UniversalSettings

    def pick(self, levels: Levels, *, now_ms: int, last_full_ms: int | None) -> CompactionPlan | None:
        """What is due now; None when nothing is. `last_full_ms` is None when there never was a full compaction."""
        return (
            self.early_full(levels, now_ms=now_ms, last_full_ms=last_full_ms)
            or self.of_small_bucket(levels)
            or self.by_size_amplification(levels)
            or self.by_size_ratio(levels, now_ms=now_ms)
            or self.by_run_count(levels, now_ms=now_ms)
        )

    def early_full(self, levels: Levels, *, now_ms: int, last_full_ms: int | None) -> CompactionPlan | None:
        """Everything, because the table asks for it before the runs do."""
        if levels.number_of_runs < 2:
            return None
        settings = self.settings
        interval_ms, total_bytes = settings.optimization_interval_ms, settings.total_size_threshold_bytes
        new_bytes = sum(run.size_bytes for run in levels.runs if run.level < levels.max_level)
        new_limit_bytes = settings.incremental_size_threshold_bytes
        if interval_ms is not None and (last_full_ms is None or now_ms - last_full_ms > interval_ms):
            return self.everything(levels, "optimization interval")
        if total_bytes is not None and levels.size_bytes < total_bytes:
            return self.everything(levels, "small bucket")
        if new_limit_bytes is not None and new_bytes > new_limit_bytes:
            return self.everything(levels, "much new data")
        return None

    def of_small_bucket(self, levels: Levels) -> CompactionPlan | None:
        """Everything, because it is little: each run costs readers more than its rows do, and so does each compaction,
        of which fewer are due this way."""
        if levels.number_of_runs < self.settings.trigger or levels.size_bytes > self.settings.small_bucket_bytes:
            return None
        return self.everything(levels, "little data")

    def by_size_amplification(self, levels: Levels) -> CompactionPlan | None:
        """Everything, because the newer runs together are too large beside the oldest."""
        if levels.number_of_runs < self.settings.trigger or not levels.runs:
            return None
        oldest_bytes = levels.runs[-1].size_bytes
        newer_bytes = levels.size_bytes - oldest_bytes
        if 100 * newer_bytes <= self.settings.max_size_amplification_percent * oldest_bytes:
            return None
        return self.everything(levels, "size amplification")

    def by_size_ratio(self, levels: Levels, *, now_ms: int) -> CompactionPlan | None:
        """The newest runs, as long as the next one is of about the size of those taken."""
        if levels.number_of_runs < self.settings.trigger or not levels.runs:
            return None
        count = self._extended(levels, 1, now_ms, is_due=False)
        return self._newest(levels, count, "size ratio") if count > 1 else None

    def by_run_count(self, levels: Levels, *, now_ms: int) -> CompactionPlan | None:
        """As many of the newest runs as there are too many, and those of like size after them."""
        excess = levels.number_of_runs - self.settings.trigger
        if excess < 1:
            return None
        return self._newest(levels, self._extended(levels, excess + 1, now_ms, is_due=True), "number of runs")

    def force_up_level_0(self, levels: Levels, *, now_ms: int) -> CompactionPlan | None:
        """All of level 0, for tables that need it empty: to be asked when `pick` finds nothing due."""
        count = len(levels.level0)
        if not count:
            return None
        return self._newest(levels, self._extended(levels, count, now_ms, is_due=True), "level 0")

    def everything(self, levels: Levels, reason: str) -> CompactionPlan | None:
        """All runs, for a reason that the caller has."""
        return self._newest(levels, levels.number_of_runs, reason)

    def _extended(self, levels: Levels, count: int, now_ms: int, *, is_due: bool) -> int:
        """How many runs to take, at least `count`.

        Once there is something to do (`is_due`), runs up to level 1 come along whatever their size: the output would
        have to be merged with them anyway.
        """
        factor = 100 + self.settings.ratio_percent(now_ms)
        taken_bytes = sum(run.size_bytes for run in levels.runs[:count])
        for run in levels.runs[count:]:
            is_much_larger = taken_bytes * factor < run.size_bytes * 100
            if is_much_larger and not (is_due and run.level <= 1):
                break
            taken_bytes += run.size_bytes
            count += 1
            is_due = True
        return count

    def _newest(self, levels: Levels, run_count: int, reason: str) -> CompactionPlan | None:
        return plan_newest(levels, run_count, reason, deletion_vectors=self.settings.deletion_vectors)


__all__ = ["UniversalPicker", "UniversalSettings"]
