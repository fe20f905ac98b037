"""Elements of list and map columns, laid out flat with the key each belongs to, and back into one list per key.

The functions on nested columns all work the same way: flatten once, tell by integer codes which elements are the same,
choose some of them with the questions `Segments` answers, and gather the chosen ones into lists again. A map is a list
of entries here. What is chosen is up to each function.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.merge.segments import Indices, Mask, Segments
from lakebed.records import dataclass
from lakebed.types import ordering


@dataclass(frozen=True)
class Elements:
    """All elements of all rows, oldest row first. `segment` and `position` say which key and row each comes from."""

    values: pa.Array
    segment: Indices
    position: Indices
    retracts: Mask

    def __len__(self) -> int:
        return len(self.segment)

    @staticmethod
    def of(column: pa.Array, segments: Segments) -> Elements:
        """The elements of a list or map column."""
        values, position = flattened(column, segments.order)
        return Elements(values, segments.segment_of[position], position, segments.retracts[position])

    def grouped(self, codes: Indices, where: Mask | None = None) -> Segments:
        """Elements with the same key and the same code as segments of their own, in the order they came in.

        Their `order` holds indices of elements; only those at which `where` holds take part.
        """
        index = np.arange(len(self)) if where is None else np.flatnonzero(where)
        identity = combined(self.segment, codes)[index]
        order = np.argsort(identity, kind="stable")
        starts = np.flatnonzero(ordering.changes([identity[order]]))
        return Segments(index[order], starts, np.append(starts, len(index))[1:], self.retracts[index[order]])


def flattened(column: pa.Array, rows: Indices) -> tuple[pa.Array, Indices]:
    """The elements of the lists at these rows, and for each the place in `rows` it comes from."""
    borders = np.asarray(column.offsets).astype(np.int64)
    counts = np.diff(borders)
    if column.null_count:
        # A null may stand over elements that nobody should see.
        counts = np.where(np.asarray(pc.is_valid(column)), counts, 0)
    counts, begins = counts[rows], borders[:-1][rows]
    before = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum())) + np.repeat(begins - before, counts)
    return column.values.take(pa.array(index)), np.repeat(np.arange(len(rows)), counts)


def gathered(
    arrow: pa.DataType,
    values: pa.Array,
    chosen: Indices,
    *,
    segment: Indices,
    places: Indices,
    is_null: Mask,
    limit: int | None = None,
) -> pa.Array:
    """One list or map per key: `values[chosen]`, each in the list of its segment, in ascending order of `places`.

    At most the first `limit` of a list are kept. REQUIRES: places ascend from segment to segment, and a key that
    `is_null` has nothing chosen.
    """
    order = np.argsort(places, kind="stable")
    counts = np.bincount(segment, minlength=len(is_null)).astype(np.int64)
    if limit is not None and np.any(counts > limit):
        rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order, counts = order[rank < limit], np.minimum(counts, limit)
    borders = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=borders[1:])
    validity = pa.array(~is_null).buffers()[1] if np.any(is_null) else None
    children = [values.take(pa.array(chosen[order]))]
    return pa.Array.from_buffers(arrow, len(counts), [validity, pa.py_buffer(borders)], children=children)


def since_cleared(groups: Segments, clears: Mask) -> Mask:
    """Positions of groups that come after everything which clears their group."""
    return np.arange(len(clears)) > groups.last(clears)[groups.segment_of]


# --- which values are the same ---------------------------------------------------------------------------------------


def equality_codes(values: pa.Array) -> Indices:
    """Numbers from 0 that are equal exactly where the values are; null equals null. Any type, nested ones included.

    Floats are told apart as Java's boxed numbers are: NaN equals itself, 0.0 and -0.0 differ. Maps are equal whatever
    the order of their entries. Codes of two arrays do not compare.
    """
    arrow = values.type
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    if pa.types.is_struct(arrow):
        codes = _validity_codes(values)
        for member in values.flatten():
            codes = combined(codes, equality_codes(member))
        return codes
    if pa.types.is_list(arrow) or pa.types.is_map(arrow):
        return combined(_validity_codes(values), _list_codes(values))
    if pa.types.is_floating(arrow):
        return _dense(pa.array(ordering.sort_codes(values)))
    return _dense(values)


def combined(left: Indices, right: Indices) -> Indices:
    """Codes of pairs of codes. REQUIRES: no code is below 0 or above the number of values by far."""
    if not len(left):
        return left
    return _dense(pa.array(left * (int(right.max()) + 1) + right))


def _validity_codes(values: pa.Array) -> Indices:
    return np.asarray(pc.is_valid(values)).astype(np.int64)


def _dense(values: pa.Array) -> Indices:
    return np.asarray(values.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


def _list_codes(values: pa.Array) -> Indices:
    elements, owner = flattened(values, np.arange(len(values)))
    if pa.types.is_map(values.type):
        keys, items = (equality_codes(part) for part in elements.flatten())
        # Maps have no order: entries are put in that of their keys' codes.
        codes = combined(keys, items)[np.lexsort((keys, owner))]
    else:
        codes = equality_codes(elements)
    borders = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(8 * np.bincount(owner, minlength=len(values)), out=borders[1:])
    # A list of numbers is a text of their bytes.
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(codes)]
    return _dense(pa.Array.from_buffers(pa.large_binary(), len(values), buffers))
