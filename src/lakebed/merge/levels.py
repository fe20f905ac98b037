"""Merging in tables whose compactions look up older rows: of the rows above level 0, only the lowest one counts.

Such a compaction merges a key's new rows with its row in the levels above, and writes the result below that row. The
lower row holds all that the higher ones do: taking both would count it twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.base import Groups, Indices

LEVEL = "_LEVEL"
_LEVEL_FIELD = pa.field(LEVEL, pa.int8(), nullable=False)


def with_level(rows: pa.RecordBatch, level: int) -> pa.RecordBatch:
    """The rows with the level of their file behind them."""
    return rows.append_column(_LEVEL_FIELD, pa.repeat(pa.scalar(level, pa.int8()), rows.num_rows))


def without_level(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as they were before `with_level`."""
    return rows.drop_columns([LEVEL])


def levels_of(rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
    """The level of each row."""
    return np.asarray(rows.column(LEVEL))


def lowest_above_0(levels: npt.NDArray[np.int8], groups: Groups) -> Indices:
    """For each group the index of its row on the lowest level above 0; -1 for groups with rows of level 0 only."""
    sorted_levels = levels[groups.order].astype(np.int64)
    highest = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(np.where(sorted_levels > 0, sorted_levels, highest), groups.starts)
    group_of = np.repeat(np.arange(len(groups)), groups.ends - groups.starts)
    found = np.full(len(groups), -1, dtype=np.int64)
    at = np.flatnonzero((sorted_levels > 0) & (sorted_levels == lowest[group_of]))
    found[group_of[at]] = groups.order[at]
    return found


def counting(levels: npt.NDArray[np.int8], groups: Groups) -> Groups:
    """The groups without the rows that do not count."""
    lowest = lowest_above_0(levels, groups)
    counts = levels == 0
    counts[lowest[lowest >= 0]] = True
    keep = counts[groups.order]
    if keep.all():
        return groups
    sizes = np.add.reduceat(keep.astype(np.int64), groups.starts)
    ends = np.cumsum(sizes)
    return Groups(groups.order[keep], ends - sizes, ends)


__all__ = ["LEVEL", "counting", "levels_of", "lowest_above_0", "with_level", "without_level"]
