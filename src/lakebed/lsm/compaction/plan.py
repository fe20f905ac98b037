"""What a compaction shall do, and what it did: pure data, and the rules that every choice of runs follows.

A unit of work is always the newest runs of a bucket up to some run, so that what stays behind is older than all that
moves. Pickers decide how many runs to take; from that follow here the level they go to and whether retracts may go.
"""

from __future__ import annotations

from collections.abc import Iterable

from lakebed.lsm.levels import Levels, files_of
from lakebed.lsm.sections import SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Files to bring to a level, and why."""

    output_level: int
    files: tuple[DataFile, ...]
    drops_retracts: bool
    """Nothing older of these keys stays behind, so rows that only take something away may go."""
    reason: str
    is_full: bool = False
    """The output level is the highest: afterwards all data lies there."""
    older: tuple[SortedRun, ...] = ()
    """Runs that stay behind. All of them lie above the output level, and all of their rows are older."""
    rewrites_each_file: bool = False
    """Every file is rewritten on its own: others that stay may lie between them."""


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """Files that are gone and files that are new. One that only changed its level is in both, under one name."""

    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]
    changelog: tuple[DataFile, ...] = ()
    """Files of events that tell what the rows taken in have changed."""

    def applied_to(self, files: Iterable[DataFile]) -> list[DataFile]:
        """The bucket's files once this result counts."""
        gone = {file.file_name for file in self.before}
        return [*(file for file in files if file.file_name not in gone), *self.after]


def plan_newest(
    levels: Levels, run_count: int, reason: str, *, deletion_vectors: bool = False
) -> CompactionPlan | None:
    """Compacts the newest runs, at least `run_count` of them; None when that would change nothing.

    They go right below the next run. That may not be level 0, where runs overlap: then all of level 0 and the first
    run above it come along, into the level of that run.
    """
    runs = levels.runs
    output_level = runs[run_count].level - 1 if run_count < len(runs) else levels.max_level
    while output_level < 1 and run_count < len(runs):
        output_level = runs[run_count].level
        run_count += 1
    is_full = run_count == len(runs)
    if is_full:
        output_level = levels.max_level
    files = files_of(runs[:run_count])
    if len(files) == 1 and files[0].level == output_level:
        return None
    # INVARIANT: retracts go only if nothing older of their keys stays behind, or if it is masked where it lies. A
    # dropped delete brings the row back that it deleted.
    is_oldest = output_level >= levels.highest_non_empty_level
    older = tuple(run.run for run in runs[run_count:])
    return CompactionPlan(output_level, files, is_oldest or deletion_vectors, reason, is_full, older)


def keep_as_it_is(file: DataFile) -> bool:
    """Stands for: no file has to be rewritten for what it holds."""
    return False


__all__ = ["CompactionPlan", "CompactionResult", "keep_as_it_is", "plan_newest"]
