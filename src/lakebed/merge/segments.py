"""Rows of several keys in the order in which they count, and what can be asked of each key's stretch at once.

The engines speak in terms of this module: "the last row with a value", "the row with the greatest sequence", "the sum".
Each question is one numpy pass over all rows, never a loop over keys.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.records import dataclass

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_ROW = -1
"""Stands for "no such row" among row positions; becomes null when values are taken."""


@dataclass(frozen=True)
class Segments:
    """Sorted rows: position i holds row `order[i]` of the batch; segment s spans positions `starts[s]` to `ends[s]`.

    No segment is empty, and they follow each other without gaps. `retracts` marks positions whose row takes away.
    """

    order: Indices
    starts: Indices
    ends: Indices
    retracts: Mask

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def sizes(self) -> Indices:
        """Rows of each segment."""
        return self.ends - self.starts

    @cached_property
    def segment_of(self) -> Indices:
        """The segment of each position."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @cached_property
    def has_retracts(self) -> bool:
        """Whether any row takes away."""
        return bool(np.any(self.retracts))

    def sorted(self, column: pa.Array) -> pa.Array:
        """The column's values in this order."""
        return column.take(pa.array(self.order))

    def valid(self, column: pa.Array) -> Mask:
        """Which positions hold a value."""
        if column.null_count == 0:
            return np.ones(len(self.order), dtype=np.bool_)
        return np.asarray(pc.is_valid(column))[self.order]

    def last(self, where: Mask) -> Indices:
        """The last position of each segment at which `where` holds, or NO_ROW."""
        found = np.full(len(self), NO_ROW, dtype=np.int64)
        # Where several positions write to one segment, the one that comes last in the list stays.
        holds = np.flatnonzero(where)
        found[self.segment_of[holds]] = holds
        return found

    def first(self, where: Mask) -> Indices:
        """The first position of each segment at which `where` holds, or NO_ROW."""
        found = np.full(len(self), NO_ROW, dtype=np.int64)
        holds = np.flatnonzero(where)[::-1]
        found[self.segment_of[holds]] = holds
        return found

    def any(self, where: Mask) -> Mask:
        """Whether `where` holds somewhere in each segment."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[self.segment_of[where]] = True
        return found

    def greatest(self, codes: Indices, where: Mask) -> Indices:
        """The last position among those with the greatest code at which `where` holds, or NO_ROW."""
        lowest = np.iinfo(np.int64).min
        best = np.full(len(self), lowest, dtype=np.int64)
        np.maximum.at(best, self.segment_of, np.where(where, codes, lowest))
        return self.last(where & (codes == best[self.segment_of]))

    def pick(self, column: pa.Array, positions: Indices) -> pa.Array:
        """Values at one position per segment; null for NO_ROW."""
        missing = positions == NO_ROW
        if not np.any(missing):
            return column.take(pa.array(self.order[positions]))
        rows = self.order[np.where(missing, 0, positions)]
        return column.take(pa.array(rows, mask=missing))

    def reordered(self, rank: Indices) -> Segments:
        """The same segments with their rows in ascending order of `rank` (a stable sort)."""
        order = np.lexsort((rank, self.segment_of))
        return Segments(self.order[order], self.starts, self.ends, self.retracts[order])

    def only(self, keep: Mask) -> tuple[Segments, Indices]:
        """The positions at which `keep` holds, without segments that lose all; and the segments that remain."""
        counts = np.add.reduceat(keep.astype(np.int64), self.starts)
        remaining = np.flatnonzero(counts)
        ends = np.cumsum(counts[remaining])
        return Segments(self.order[keep], ends - counts[remaining], ends, self.retracts[keep]), remaining

    def spread(self, values: pa.Array, remaining: Indices) -> pa.Array:
        """Values of the segments that `only` left, one per segment again: null for those that lost all."""
        if len(remaining) == len(self):
            return values
        places = np.full(len(self), NO_ROW, dtype=np.int64)
        places[remaining] = np.arange(len(remaining))
        return values.take(pa.array(places, mask=places == NO_ROW))

    def null_without_value(self, results: pa.Array, column: pa.Array) -> pa.Array:
        """The results, one per segment, made null where all of the segment's values in the column are."""
        if column.null_count == 0:
            return results
        has_value = self.any(self.valid(column))
        return results if np.all(has_value) else pc.if_else(pa.array(has_value), results, pa.scalar(None, results.type))

    def running_greatest(self, codes: Indices) -> Indices:
        """For each position the greatest code among those before it in its segment; -1 at its start.

        REQUIRES: codes >= 0.
        """
        if not len(codes):
            return codes
        # Lifting each segment above all earlier ones turns many running maxima into one.
        lift = self.segment_of * (int(codes.max()) + 2)
        lifted = np.maximum.accumulate(codes + 1 + lift)
        before = np.empty_like(lifted)
        before[0] = 0
        before[1:] = lifted[:-1]
        before[self.starts] = lift[self.starts]
        return before - lift - 1
