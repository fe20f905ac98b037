"""The levels of one bucket: which sorted runs there are, and in which order compaction looks at them.

Every file of level 0 is a run of its own; all files of a higher level are one run together. Runs are listed from the
newest data to the oldest. This only arranges what a manifest says: it reads no file, and whether the files keep the
rules of their levels is for `checker` to tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lakebed.errors import CorruptFile, InvalidArgument
from lakebed.lsm.sections import SortedRun, key_bounds
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass
from lakebed.types.logical import DataType


@dataclass(frozen=True, slots=True)
class LevelRun:
    """A sorted run and the level it lies on."""

    level: int
    run: SortedRun

    @property
    def size_bytes(self) -> int:
        """Bytes of all files of the run."""
        return sum(file.size_bytes for file in self.run.files)


@dataclass(frozen=True, slots=True)
class Levels:
    """Runs of a bucket: level 0 from newest to oldest, then one run for every level that holds files."""

    runs: tuple[LevelRun, ...]
    max_level: int

    @staticmethod
    def of(files: Sequence[DataFile], key_types: Sequence[DataType], num_levels: int) -> Levels:
        """The levels of a bucket's live files.

        A file beyond `num_levels` was written when the table had more of them: there are as many as that file needs.
        """
        if num_levels < 2:
            raise InvalidArgument(
                f"a bucket with {num_levels} levels has none to compact into", hint="use at least 2 levels"
            )
        by_level: dict[int, list[DataFile]] = {}
        for file in files:
            if file.level < 0:
                raise CorruptFile(
                    f"data file {file.file_name} is said to lie on level {file.level}",
                    hint="its manifest is damaged: restore it, or roll the table back to a snapshot without it",
                )
            by_level.setdefault(file.level, []).append(file)
        newest_first = sorted(by_level.pop(0, []), key=_age)
        runs = (
            *(LevelRun(0, SortedRun((file,))) for file in newest_first),
            *(LevelRun(level, SortedRun(_by_key(by_level[level], key_types))) for level in sorted(by_level)),
        )
        return Levels(runs, max(num_levels - 1, *by_level, 0))

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, in the order of the runs."""
        return files_of(self.runs)

    @property
    def level0(self) -> tuple[DataFile, ...]:
        """Files of level 0, newest first."""
        return files_of(run for run in self.runs if run.level == 0)

    @property
    def highest_non_empty_level(self) -> int:
        """Where the oldest data lies; -1 when there is none."""
        return self.runs[-1].level if self.runs else -1

    @property
    def number_of_runs(self) -> int:
        """How many runs a reader may have to merge."""
        return len(self.runs)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(run.size_bytes for run in self.runs)


def is_one_run(levels: Iterable[int], num_levels: int) -> bool:
    """Whether files on these levels are one run with nothing older below it: every key is there once.

    INVARIANT: it does not do to be on the highest level or beyond. Where a table had more levels before, several runs
    may lie there, and whoever takes their rows for those of different keys keeps the newest version of each alone.
    """
    found = set(levels)
    return len(found) <= 1 and all(level >= num_levels - 1 for level in found)


def files_of(runs: Iterable[LevelRun]) -> tuple[DataFile, ...]:
    """All files of some runs, in their order."""
    return tuple(file for run in runs for file in run.run.files)


def _age(file: DataFile) -> tuple[int, int, int, str]:
    """Sorts files of level 0 from newest to oldest. Several writers may give equal numbers: the rest breaks ties."""
    return (-file.max_sequence_number, file.min_sequence_number, file.creation_time_ms or 0, file.file_name)


def _by_key(files: Sequence[DataFile], key_types: Sequence[DataType]) -> tuple[DataFile, ...]:
    if len(files) == 1:
        return tuple(files)
    low, high = key_bounds(files, key_types)
    return tuple(files[i] for i in sorted(range(len(files)), key=lambda i: (low[i], high[i])))


__all__ = ["LevelRun", "Levels", "files_of", "is_one_run"]
