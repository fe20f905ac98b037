"""`collect`: all elements of a key's arrays in one array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.aggregates.elements import Elements, equality_codes, gathered, since_cleared
from lakebed.merge.segments import NO_ROW, Indices, Segments
from lakebed.types.logical import ArrayType, DataType


class Collect(Aggregate):
    """Arrays one after the other; with `distinct` each element once, where it was first seen.

    A retract takes away one equal element, the oldest, for each of its own; those that find none are forgotten.
    """

    name = "collect"
    takes = "ARRAY"
    can_retract = True
    forgets_early_retracts = True
    keeps_arrival_order = True

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return isinstance(data_type, ArrayType)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        elements = Elements.of(column, segments)
        chosen = self._chosen(elements)
        return gathered(
            column.type,
            elements.values,
            chosen,
            segment=elements.segment[chosen],
            places=chosen,
            is_null=~segments.any(segments.valid(column) & ~segments.retracts),
        )

    def _chosen(self, elements: Elements) -> Indices:
        has_retracts = bool(np.any(elements.retracts))
        if not self.settings.distinct and not has_retracts:
            return np.arange(len(elements))
        same = elements.grouped(equality_codes(elements.values))
        if self.settings.distinct:
            first = same.first(since_cleared(same, same.retracts))
            positions = first[first != NO_ROW]
        else:
            positions = _survivors(same)
        chosen: Indices = same.order[positions]
        return chosen


def _survivors(same: Segments) -> Indices:
    """Positions of elements that retracts leave, among equal ones.

    Retracts empty a queue from its front and do nothing when it is empty. So what is left at the end is the newest
    elements, and their number is that of a walk which never goes below zero.
    """
    adds = (~same.retracts).astype(np.int64)
    walk = np.cumsum(2 * adds - 1)
    walk -= np.repeat(walk[same.starts] - (2 * adds[same.starts] - 1), same.sizes)
    left = walk[same.ends - 1] - np.minimum(np.minimum.reduceat(walk, same.starts), 0)
    count = np.cumsum(adds)
    newer = np.repeat(count[same.ends - 1], same.sizes) - count
    return np.flatnonzero(~same.retracts & (newer < np.repeat(left, same.sizes)))
