"""Whether values are the same, row by row, for columns of any type: null equals null, and NaN equals NaN.

Arrow compares neither nested values nor nulls this way. Nested columns are compared member by member; a loop runs over
the depth of the type, never over rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Array, right: pa.Array) -> Mask:
    """For each row whether both arrays hold the same value. Maps are the same when their entries are, in order.

    REQUIRES: both have the same type and length.
    """
    left_valid, right_valid = _valid(left), _valid(right)
    same: Mask = left_valid == right_valid
    both = left_valid & right_valid
    if not np.any(both):
        return same
    arrow = left.type
    if pa.types.is_struct(arrow):
        for member in range(arrow.num_fields):
            # What a member holds under a null parent does not count.
            same &= ~both | equal_rows(left.field(member), right.field(member))
        return same
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_map(arrow):
        same[both] = _equal_lists(left, right, both)[both]
    else:
        same[both] = _equal_atoms(left, right)[both]
    return same


def _valid(column: pa.Array) -> Mask:
    if column.null_count == 0:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(pc.is_valid(column))


def _equal_atoms(left: pa.Array, right: pa.Array) -> Mask:
    same: Mask = np.asarray(pc.fill_null(pc.equal(left, right), False))
    if pa.types.is_floating(left.type):
        same = same | np.asarray(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    return same


def _equal_lists(left: pa.Array, right: pa.Array, both: Mask) -> Mask:
    left_lengths, right_lengths = _lengths(left), _lengths(right)
    same: Mask = left_lengths == right_lengths
    counts = np.where(same & both, left_lengths, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    within = np.arange(int(counts.sum())) - before[rows]
    elements = equal_rows(_elements(left, rows, within), _elements(right, rows, within))
    same[rows[~elements]] = False
    return same


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    offsets = np.asarray(column.offsets).astype(np.int64)
    return offsets[1:] - offsets[:-1]


def _elements(column: pa.Array, rows: npt.NDArray[np.int64], within: npt.NDArray[np.int64]) -> pa.Array:
    """Element `within[i]` of the list at `rows[i]`, with entries of maps as structs."""
    begins = np.asarray(column.offsets).astype(np.int64)[:-1]
    places = pa.array(begins[rows] + within)
    if pa.types.is_map(column.type):
        # `values` of a map array are its entries without the offset of a slice, as for lists.
        keys, items = column.keys.take(places), column.items.take(places)
        return pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    return column.values.take(places)


__all__ = ["equal_rows"]
