"""Keeps a -D row from being forgotten when rows of its key follow it in the same flush.

Some engines let a -D row remove all that was there of its key; rows after it begin anew. One file holds one row per
key, and the row folded from "-D, then more" does not say any more that something was removed: values of older files
would show through. So such a flush makes two runs, as if the rows after the delete had come with a later flush.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.lsm.sorted_rows import SortedRows
from lakebed.merge.base import MergeEngine
from lakebed.types import key_value
from lakebed.types.row_kind import RowKind

Mask = npt.NDArray[np.bool_]


def split_at_deletes(rows: SortedRows, engine: MergeEngine, first_number: int) -> list[Iterator[pa.RecordBatch]]:
    """One run, or two: first the rows of every key up to the last -D that removed it, then the rest."""
    after = _after_removal(rows, engine)
    if not np.any(after):
        return [rows.merged(engine, first_number)]
    before = _only(rows, ~after)
    # All of the second run is newer than all of the first. Which number a key has means nothing to other keys.
    return [
        _renumbered(before.merged(engine, 0), first_number),
        _renumbered(_only(rows, after).merged(engine, 0), first_number + len(before.positions)),
    ]


def _after_removal(rows: SortedRows, engine: MergeEngine) -> Mask:
    """Sorted places that come after the last -D which removed their key."""
    groups = rows.groups
    kinds = key_value.kinds(rows.rows)[groups.order]
    is_delete = kinds == RowKind.DELETE
    after = np.zeros(len(kinds), dtype=np.bool_)
    if not np.any(is_delete):
        return after
    group_of = np.repeat(np.arange(len(groups)), groups.ends - groups.starts)
    positions = np.arange(len(kinds))
    open_groups = np.ones(len(groups), dtype=np.bool_)
    while True:
        candidates = np.flatnonzero(is_delete & open_groups[group_of])
        if not len(candidates):
            return after
        last = np.full(len(groups), -1, dtype=np.int64)
        last[group_of[candidates]] = candidates
        # Not every -D removes: with sequence groups a late one does not. What the engine makes of the rows up to it
        # tells; if it did not remove, the one before it is looked at.
        has_last = last >= 0
        up_to = has_last[group_of] & (positions <= last[group_of])
        removed = np.zeros(len(groups), dtype=np.bool_)
        removed[has_last] = _ends_removed(_only(rows, up_to), engine)
        after |= removed[group_of] & (positions > last[group_of])
        open_groups = has_last & ~removed
        is_delete[last[has_last]] = False


def _ends_removed(rows: SortedRows, engine: MergeEngine) -> Mask:
    """Whether each key is removed after its last row."""
    merged = [key_value.kinds(batch) for batch in rows.merged(engine, 0)]
    return np.asarray(np.concatenate(merged) == RowKind.DELETE)


def _only(rows: SortedRows, keep: Mask) -> SortedRows:
    """The rows at the sorted places where `keep` holds."""
    counts = np.add.reduceat(keep.astype(np.int64), rows.groups.starts)
    sizes = counts[counts > 0]
    return replace(rows, positions=rows.positions[keep], starts=np.cumsum(sizes) - sizes)


def _renumbered(run: Iterator[pa.RecordBatch], first_number: int) -> Iterator[pa.RecordBatch]:
    for batch in run:
        numbers = np.arange(first_number, first_number + batch.num_rows, dtype=np.int64)
        first_number += batch.num_rows
        yield batch.set_column(0, key_value.SEQUENCE_FIELD, pa.array(numbers))
