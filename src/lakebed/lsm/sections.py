"""Cuts a bucket's files into sections: key ranges that share no key with each other, so each merges on its own.

Inside a section the files form as few sorted runs as possible; a run's files follow each other without overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataType


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files in key order whose key ranges do not overlap."""

    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Runs that overlap one another, and nothing outside; oldest run first."""

    runs: tuple[SortedRun, ...]

    @property
    def files(self) -> list[DataFile]:
        """All files of the section."""
        return [file for run in self.runs for file in run.files]


def key_bounds(files: Sequence[DataFile], key_types: Sequence[DataType]) -> tuple[list[int], list[int]]:
    """Min and max key of each file as integers that compare as the keys do."""
    columns = decode_rows([file.min_key for file in files] + [file.max_key for file in files], key_types)
    codes = [ordering.sort_codes(column) for column in columns]
    order = ordering.argsort(codes)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(ordering.changes([column[order] for column in codes]))
    bounds = ranks.tolist()
    return bounds[: len(files)], bounds[len(files) :]


def cut_sections(files: Sequence[DataFile], key_types: Sequence[DataType]) -> list[Section]:
    """Sections in key order. Files at level 0 may overlap freely; so may files of different levels."""
    if not files:
        return []
    if len(files) == 1:  # most buckets that are compacted: nothing has to be compared
        return [Section((SortedRun(tuple(files)),))]
    low, high = key_bounds(files, key_types)
    by_key = sorted(range(len(files)), key=lambda i: (low[i], high[i]))
    sections: list[list[int]] = []
    reach = -1
    for i in by_key:
        if low[i] > reach:
            sections.append([])
        sections[-1].append(i)
        reach = max(reach, high[i])
    return [Section(_runs(files, members, low, high)) for members in sections]


def _runs(files: Sequence[DataFile], members: list[int], low: list[int], high: list[int]) -> tuple[SortedRun, ...]:
    """Fewest runs: each file (in key order) joins the run whose last key is smallest, if that lies below it."""
    if len(members) == 1:  # most sections of a large bucket
        return (SortedRun((files[members[0]],)),)
    runs: list[list[int]] = []
    for i in members:
        fitting = min(runs, key=lambda run: high[run[-1]], default=None)
        if fitting is not None and high[fitting[-1]] < low[i]:
            fitting.append(i)
        else:
            runs.append([i])
    # Oldest first: the stable sort by key then finds each key's rows in arrival order nearly always.
    runs.sort(key=lambda run: max(files[i].max_sequence_number for i in run))
    return tuple(SortedRun(tuple(files[i] for i in run)) for run in runs)


def overlapping_runs(
    runs: Sequence[SortedRun], files: Sequence[DataFile], key_types: Sequence[DataType]
) -> list[SortedRun]:
    """What of the runs may share a key with the files, judging by their smallest and largest keys."""
    candidates = [file for run in runs for file in run.files]
    if not candidates or not files:
        return []
    low, high = key_bounds([*files, *candidates], key_types)
    lowest, highest = min(low[: len(files)]), max(high[: len(files)])
    bounds = iter(zip(low[len(files) :], high[len(files) :], strict=True))
    kept = [tuple(file for file in run.files if _meets(next(bounds), lowest, highest)) for run in runs]
    return [SortedRun(members) for members in kept if members]


def _meets(bounds: tuple[int, int], lowest: int, highest: int) -> bool:
    return bounds[0] <= highest and bounds[1] >= lowest


__all__ = ["Section", "SortedRun", "cut_sections", "key_bounds", "overlapping_runs"]
