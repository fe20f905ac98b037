"""How the rows of a compaction come to be: what is merged with what, and which files may stay as they are.

Most tables merge the runs of a section and that is all. Tables of which every key shall be complete on one level also
look at the older runs that stay behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.compaction.stored_keys import StoredKeys
from lakebed.lsm.merge_runs import merge_runs
from lakebed.lsm.sections import Section, SortedRun, overlapping_runs
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.merge.folding import seeing_everything
from lakebed.metadata.data_file import DataFile
from lakebed.types.logical import DataType

ReadRun = Callable[[SortedRun], Iterator[pa.RecordBatch]]


class SectionMerging(ABC):
    """Turns sections of a plan into the rows that are written."""

    @abstractmethod
    def rows(self, section: Section, plan: CompactionPlan) -> Iterator[pa.RecordBatch]:
        """Rows of a section in key order, one per key, in key-value shape."""

    def may_move(self, file: DataFile, plan: CompactionPlan) -> bool:
        """Whether a file that overlaps no other of the plan can go to the output level as it is."""
        # Readers take the highest level to be free of retracts; an unknown number may be any.
        return not plan.is_full or file.delete_row_count == 0


@dataclass(frozen=True)
class PlainMerging(SectionMerging):
    """The runs of a section, merged by the table's engine; rows of a lone run are merged already."""

    order: MergeOrder
    engine: MergeEngine
    read_run: ReadRun

    def rows(self, section: Section, plan: CompactionPlan) -> Iterator[pa.RecordBatch]:
        """See `SectionMerging.rows`."""
        runs = [self.read_run(run) for run in section.runs]
        engine = seeing_everything(self.engine) if plan.drops_retracts else self.engine
        return runs[0] if len(runs) == 1 else merge_runs(runs, self.order, engine)


@dataclass(frozen=True)
class FirstRowMerging(SectionMerging):
    """As plain merging, but a key that an older run holds is thrown away: above level 0 every key is there once.

    The engine must fold lone rows too: it is what refuses or drops retracts.
    """

    order: MergeOrder
    engine: MergeEngine
    read_run: ReadRun
    read_keys: ReadRun
    key_types: tuple[DataType, ...]

    def rows(self, section: Section, plan: CompactionPlan) -> Iterator[pa.RecordBatch]:
        """See `SectionMerging.rows`."""
        older = overlapping_runs(plan.older, section.files, self.key_types)
        stored = StoredKeys([self.read_keys(run) for run in older], self.order.key)
        for merged in merge_runs([self.read_run(run) for run in section.runs], self.order, self.engine):
            is_known = stored.contain(merged)
            yield merged.filter(pa.array(~is_known)) if is_known.any() else merged

    def may_move(self, file: DataFile, plan: CompactionPlan) -> bool:
        """Only what is filtered already, or what nothing older can contradict."""
        return file.delete_row_count == 0 and (file.level > 0 or plan.is_full)


__all__ = ["FirstRowMerging", "PlainMerging", "SectionMerging"]
