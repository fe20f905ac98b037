"""Compactions that know the old row of every key they change, and can therefore say what changed.

A section's rows come with their levels. What is old and what is new about them differs from one kind of table to the
other, one class each. The pair of old row and result gives the events.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.lsm.compaction.merging import Merged, ReadRun, SectionMerging
from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.merge_runs import windows
from lakebed.lsm.sections import Section, SortedRun, overlapping_runs
from lakebed.merge.base import Groups, Indices, MergeEngine, MergeOrder
from lakebed.merge.events import EventRules, change_events
from lakebed.merge.folding import seeing_everything
from lakebed.merge.levels import counting, levels_of, lowest_above_0, without_level
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass
from lakebed.types.logical import DataType

Mask = npt.NDArray[np.bool_]
Levels = npt.NDArray[np.int8]

FindOlder = Callable[[Sequence[SortedRun], pa.RecordBatch], tuple[Mask, pa.RecordBatch]]
"""Which keys some runs hold, and what of their rows is asked for, in key order."""

NO_ROW = -1


@dataclass(frozen=True)
class ChangeTracking(SectionMerging):
    """What all of them share. `read_run` gives rows with their levels; `rules` None means that no events are told."""

    order: MergeOrder
    engine: MergeEngine
    read_run: ReadRun
    key_types: tuple[DataType, ...]
    rules: EventRules | None

    def merged(self, section: Section, plan: CompactionPlan) -> Iterator[Merged]:
        """See `SectionMerging.merged`."""
        engine = seeing_everything(self.engine) if plan.drops_retracts else self.engine
        return self._windows(section, plan, engine.merge)

    def moved(self, section: Section, plan: CompactionPlan) -> Iterator[Merged]:
        """See `SectionMerging.moved`. What is read afterwards are the rows of the file: no function touches them."""
        return self._windows(section, plan, _newest)

    def _windows(self, section: Section, plan: CompactionPlan, merge: Merge) -> Iterator[Merged]:
        older = overlapping_runs(plan.older, section.files, self.key_types)
        for parts in windows([self.read_run(run) for run in section.runs], self.order):
            window = pa.concat_batches(parts)
            yield self._window(_Window(without_level(window), levels_of(window), older, plan), merge)

    @abstractmethod
    def _window(self, window: _Window, merge: Merge) -> Merged:
        """Merges all rows of some keys."""

    def _keys(self, rows: pa.RecordBatch, groups: Groups, wanted: Mask) -> pa.RecordBatch:
        return rows.select(list(self.order.key)).take(pa.array(groups.last[wanted]))

    def _events(
        self, old: Indices, rows: pa.RecordBatch, after: pa.RecordBatch, changed: Mask
    ) -> pa.RecordBatch | None:
        """Events of the changed groups. `old` is each group's old row, or NO_ROW."""
        if self.rules is None or not np.any(changed):
            return None
        before = rows.take(pa.array(np.maximum(old, 0)[changed]))
        return change_events(before, after.filter(pa.array(changed)), self.rules, known=(old != NO_ROW)[changed])


Merge = Callable[[pa.RecordBatch, Groups], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class _Window:
    """All rows of some keys that take part, their levels, and what stays behind."""

    rows: pa.RecordBatch
    levels: Levels
    older: Sequence[SortedRun]
    plan: CompactionPlan


@dataclass(frozen=True)
class LookupTracking(ChangeTracking):
    """Every compaction that takes rows from level 0 merges them with the old row of their key, wherever that is."""

    find_older: FindOlder
    newest_wins: bool
    """Whether the last row that came is the key's row: then a file of new rows need not be merged with old ones."""
    is_masked: Callable[[DataFile], bool] | None = None
    """Where old rows are marked as deleted as soon as they are found: whether a file has such rows."""

    def may_move(self, file: DataFile, plan: CompactionPlan) -> bool:
        """New rows stay in their file if they win over all old ones, or if there are none.

        Where old rows are masked, files above level 0 are read as they are: retracts must not get there. A full
        compaction also rids files of masked rows.
        """
        if self.is_masked is not None and ((plan.is_full and self.is_masked(file)) or file.delete_row_count != 0):
            return False
        return super().may_move(file, plan) and (file.level > 0 or self.newest_wins or not plan.older)

    def tells_changes_of(self, file: DataFile, plan: CompactionPlan) -> bool:
        """What leaves level 0 is news: to readers of the changelog, and to the files that hold the old rows."""
        masks = self.is_masked is not None and bool(plan.older)
        return file.level == 0 and (self.rules is not None or masks)

    def _window(self, window: _Window, merge: Merge) -> Merged:
        rows, levels = window.rows, window.levels
        groups = self.order.group(rows)
        old = lowest_above_0(levels, groups)
        is_new = np.logical_or.reduceat(levels[groups.order] == 0, groups.starts)
        # INVARIANT: the old row of a new key is looked for in all that stays behind. A key taken for new though it has
        # a row there is told as an insert, and with deletion vectors its old row stays visible beside the new one.
        unknown = is_new & (old == NO_ROW)
        if window.older and np.any(unknown):
            _, found = self.find_older(window.older, self._keys(rows, groups, unknown))
            if found.num_rows:
                rows = pa.concat_batches([found, rows])
                above = np.full(found.num_rows, window.plan.output_level + 1, dtype=np.int8)
                levels = np.concatenate([above, levels])
                groups = self.order.group(rows)
                old = lowest_above_0(levels, groups)
        after = merge(rows, counting(levels, groups))
        if not is_new.all():
            # Without new rows the old one stays what it is: it is complete, and no function touches it.
            source = np.where(is_new, rows.num_rows + np.arange(len(old)), old)
            after = pa.concat_batches([rows, after]).take(pa.array(source))
        return Merged(after, self._events(old, rows, after, is_new))


@dataclass(frozen=True)
class FullCompactionTracking(ChangeTracking):
    """Full compactions tell what changed since the one before: what lay on the highest level is old."""

    def tells_changes_of(self, file: DataFile, plan: CompactionPlan) -> bool:
        """What reaches the highest level is news."""
        return self.rules is not None and plan.is_full and file.level < plan.output_level

    def _window(self, window: _Window, merge: Merge) -> Merged:
        rows = window.rows
        groups = self.order.group(rows)
        after = merge(rows, groups)
        if not window.plan.is_full:
            return Merged(after)
        is_old = (window.levels == window.plan.output_level)[groups.order]
        group_of = np.repeat(np.arange(len(groups)), groups.ends - groups.starts)
        old = np.full(len(groups), NO_ROW, dtype=np.int64)
        old[group_of[is_old]] = groups.order[is_old]
        changed = np.logical_or.reduceat(~is_old, groups.starts)
        return Merged(after, self._events(old, rows, after, changed))


@dataclass(frozen=True)
class FirstRowTracking(ChangeTracking):
    """A key that is known is thrown away: above level 0 every key is there once, and new keys are all that is news.

    The engine must fold lone rows too: it is what refuses or drops retracts.
    """

    find_older: FindOlder

    def may_move(self, file: DataFile, plan: CompactionPlan) -> bool:
        """Only what was thrown out of already, or what nothing older can contradict."""
        return file.delete_row_count == 0 and (file.level > 0 or not plan.older)

    def tells_changes_of(self, file: DataFile, plan: CompactionPlan) -> bool:
        """What leaves level 0 is news."""
        return self.rules is not None and file.level == 0

    def _window(self, window: _Window, merge: Merge) -> Merged:
        rows = window.rows
        groups = self.order.group(rows)
        after = merge(rows, groups)
        is_new = np.logical_and.reduceat(window.levels[groups.order] == 0, groups.starts)
        if window.older and np.any(is_new):
            is_known = np.zeros(len(groups), dtype=np.bool_)
            is_known[is_new], _ = self.find_older(window.older, self._keys(rows, groups, is_new))
            if np.any(is_known):
                after = after.filter(pa.array(~is_known))
                is_new = is_new[~is_known]
        return Merged(after, self._events(np.full(len(is_new), NO_ROW), after, after, is_new))


def _newest(rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
    return rows.take(pa.array(groups.last))


__all__ = ["ChangeTracking", "FindOlder", "FirstRowTracking", "FullCompactionTracking", "LookupTracking"]
