"""How the rows of a compaction come to be: what is merged with what, and which files may stay as they are.

Most tables merge the runs of a section and that is all. Others also look at the older runs that stay behind, and tell
what has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import pyarrow as pa

from lakebed.lsm.compaction.plan import CompactionPlan
from lakebed.lsm.merge_runs import merge_runs
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.merge.folding import seeing_everything
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass

ReadRun = Callable[[SortedRun], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Merged:
    """Rows of some keys, one per key, in key order and key-value shape; and the events of what changed, if told."""

    rows: pa.RecordBatch
    events: pa.RecordBatch | None = None


class SectionMerging(ABC):
    """Turns sections of a plan into the rows that are written."""

    @abstractmethod
    def merged(self, section: Section, plan: CompactionPlan) -> Iterator[Merged]:
        """Rows of a section in key order, with what they change."""

    def may_move(self, file: DataFile, plan: CompactionPlan) -> bool:
        """Whether a file that overlaps no other of the plan can go to the output level as it is."""
        # Readers take the highest level to be free of retracts; an unknown number may be any.
        return not plan.is_full or file.delete_row_count == 0

    def tells_changes_of(self, file: DataFile, plan: CompactionPlan) -> bool:
        """Whether a file that moves as it is changes something that must be told."""
        return False

    def moved(self, section: Section, plan: CompactionPlan) -> Iterator[Merged]:
        """What a section of one file that moves as it is changes."""
        return self.merged(section, plan)


@dataclass(frozen=True)
class PlainMerging(SectionMerging):
    """The runs of a section, merged by the table's engine; rows of a lone run are merged already."""

    order: MergeOrder
    engine: MergeEngine
    read_run: ReadRun

    def merged(self, section: Section, plan: CompactionPlan) -> Iterator[Merged]:
        """See `SectionMerging.merged`."""
        runs = [self.read_run(run) for run in section.runs]
        engine = seeing_everything(self.engine) if plan.drops_retracts else self.engine
        return map(Merged, runs[0] if len(runs) == 1 else merge_runs(runs, self.order, engine))


__all__ = ["Merged", "PlainMerging", "ReadRun", "SectionMerging"]
