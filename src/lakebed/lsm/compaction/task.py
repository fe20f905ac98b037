"""Carries a compaction plan out: merges what overlaps, moves what does not, and says which files came and went.

Files whose keys nobody shares need no merge. A large one of them just changes its level; small ones are rewritten
together with their neighbours in key order. Rows are merged as streams, so memory does not grow with the bucket: each
run has one window of rows in memory, each writer one row group. Nothing is visible until somebody commits the result;
when anything fails, every file written is removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.datafiles.rolling_writer import RollingWriter
from lakebed.lsm.compaction.merging import SectionMerging
from lakebed.lsm.compaction.plan import CompactionPlan, CompactionResult, keep_as_it_is
from lakebed.lsm.sections import Section, SortedRun, cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass
from lakebed.types import key_value
from lakebed.types.logical import DataType
from lakebed.types.row_kind import is_retract


@dataclass(frozen=True, slots=True)
class Move:
    """A file changes its level and nothing else; `tells_changes` if readers of the changelog must hear of its rows."""

    file: DataFile
    tells_changes: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Sections, neighbours in key order, that one writer turns into new files."""

    sections: tuple[Section, ...]

    @property
    def files(self) -> list[DataFile]:
        """All files that are rewritten."""
        return [file for section in self.sections for file in section.files]


_Made = tuple[list[DataFile], list[DataFile]]


@dataclass(frozen=True)
class CompactionTask:
    """How plans of one bucket are carried out.

    `merging` streams a section's rows in key-value shape, with all columns of the table in their order. `new_writer`
    opens a writer for a level, whose files are marked as made by compaction, `new_changelog_writer` one for events. All
    are called from up to `threads` threads. `must_rewrite` names files that may not keep their content although nothing
    overlaps them.
    """

    key_types: Sequence[DataType]
    merging: SectionMerging
    new_writer: Callable[[int], RollingWriter]
    new_changelog_writer: Callable[[int], RollingWriter]
    target_size_bytes: int
    small_file_ratio: float = 0.7
    force_rewrite: bool = False
    must_rewrite: Callable[[DataFile], bool] = keep_as_it_is
    threads: int = 1

    def run(self, plan: CompactionPlan) -> CompactionResult:
        """Does what the plan says. Which files come out does not depend on the number of threads."""
        steps = self.steps(plan)
        before: list[DataFile] = []
        after: list[DataFile] = []
        changelog: list[DataFile] = []
        for step, (written, events) in zip(steps, _Execution(self, plan).run(steps), strict=True):
            if isinstance(step, Move):
                before.append(step.file)
                after.append(step.file.at_level(plan.output_level))
            else:
                before += step.files
                after += written
            changelog += events
        return CompactionResult(tuple(before), tuple(after), tuple(changelog))

    def steps(self, plan: CompactionPlan) -> list[Move | Rewrite]:
        """What is to be done, in key order. Files that stay as they are do not appear."""
        if plan.rewrites_each_file:
            return [Rewrite((_alone(file),)) for file in plan.files]
        steps: list[Move | Rewrite] = []
        together: list[Section] = []
        for section in cut_sections(plan.files, self.key_types):
            if len(section.runs) > 1 or self._is_small(section):
                together.append(section)
            else:
                # What is rewritten together must be neighbours: files around this one may not meet across it.
                steps += self._together(together, plan)
                together = []
                steps += self._unmerged(section, plan)
        steps += self._together(together, plan)
        return steps

    def _is_small(self, section: Section) -> bool:
        # Well below the target: files of compaction end a little short of it and should not be rewritten for that.
        limit_bytes = int(self.target_size_bytes * self.small_file_ratio)
        return any(file.size_bytes < limit_bytes for file in section.files)

    def _together(self, sections: Sequence[Section], plan: CompactionPlan) -> list[Move | Rewrite]:
        if len(sections) == 1 and len(sections[0].runs) == 1:
            return self._unmerged(sections[0], plan)
        return [Rewrite(tuple(sections))] if sections else []

    def _unmerged(self, section: Section, plan: CompactionPlan) -> list[Move | Rewrite]:
        """A section of one file, which moves as it is if it may."""
        (file,) = section.files
        if self.force_rewrite or self.must_rewrite(file) or not self.merging.may_move(file, plan):
            return [Rewrite((section,))]
        if file.level == plan.output_level:
            return []
        return [Move(file, self.merging.tells_changes_of(file, plan))]


class _Execution:
    """The steps of one plan under way, in one or several threads: all succeed, or no file is left."""

    def __init__(self, task: CompactionTask, plan: CompactionPlan) -> None:
        self._task = task
        self._plan = plan
        self._writers: list[RollingWriter] = []
        self._is_given_up = threading.Event()

    def run(self, steps: Sequence[Move | Rewrite]) -> list[_Made]:
        """New files of every step: those with rows, and those with events."""
        workers = min(self._task.threads, sum(not isinstance(step, Move) or step.tells_changes for step in steps))
        with on_failure(self._abort):
            if workers <= 1:
                return [self._step(step) for step in steps]
            with ThreadPoolExecutor(workers, thread_name_prefix="lakebed-compaction") as pool:
                try:
                    return list(pool.map(self._step, steps))
                finally:
                    # After an error others must not go on to write what is thrown away; after success nobody is left.
                    self._is_given_up.set()

    def _abort(self) -> None:
        for writer in self._writers:
            writer.abort()

    def _step(self, step: Move | Rewrite) -> _Made:
        with on_failure(self._is_given_up.set):
            if isinstance(step, Rewrite):
                return self._rewrite(step)
            return self._moved(step) if step.tells_changes else ([], [])

    def _rewrite(self, step: Rewrite) -> _Made:
        writer = self._opened(self._task.new_writer)
        events = _Lazily(lambda: self._opened(self._task.new_changelog_writer))
        for section in step.sections:
            for merged in self._task.merging.merged(section, self._plan):
                if self._is_given_up.is_set():
                    return [], []  # the error of another thread is the one to tell
                writer.write(_without_retracts(merged.rows) if self._plan.drops_retracts else merged.rows)
                events.write(merged.events)
        return writer.close(), events.close()

    def _moved(self, step: Move) -> _Made:
        events = _Lazily(lambda: self._opened(self._task.new_changelog_writer))
        for merged in self._task.merging.moved(_alone(step.file), self._plan):
            if self._is_given_up.is_set():
                return [], []
            events.write(merged.events)
        return [], events.close()

    def _opened(self, new_writer: Callable[[int], RollingWriter]) -> RollingWriter:
        writer = new_writer(self._plan.output_level)
        self._writers.append(writer)
        return writer


class _Lazily:
    """A writer that is opened when the first row comes: most compactions have no events to tell."""

    def __init__(self, open_writer: Callable[[], RollingWriter]) -> None:
        self._open = open_writer
        self._writer: RollingWriter | None = None

    def write(self, rows: pa.RecordBatch | None) -> None:
        if rows is not None and rows.num_rows:
            self._writer = self._writer or self._open()
            self._writer.write(rows)

    def close(self) -> list[DataFile]:
        return self._writer.close() if self._writer else []


def _alone(file: DataFile) -> Section:
    return Section((SortedRun((file,)),))


def _without_retracts(rows: pa.RecordBatch) -> pa.RecordBatch:
    retracts = is_retract(key_value.kinds(rows))
    return rows.filter(pa.array(~retracts)) if np.any(retracts) else rows


__all__ = ["CompactionTask", "Move", "Rewrite"]
