"""`merge_map`: the entries of a key's maps in one map."""

from __future__ import annotations

import pyarrow as pa

from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.aggregates.elements import Elements, equality_codes, gathered, since_cleared
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.types.logical import DataType, MapType


class MergeMap(Aggregate):
    """The newest value of each map key; a retract takes away its keys, whatever their values.

    Map keys stay where they were first seen.
    """

    name = "merge_map"
    takes = "MAP"
    can_retract = True
    forgets_early_retracts = True

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return isinstance(data_type, MapType)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        entries = Elements.of(column, segments)
        same = entries.grouped(equality_codes(entries.values.field(0)))
        alive = since_cleared(same, same.retracts)
        first, last = same.first(alive), same.last(alive)
        kept = last != NO_ROW
        chosen = same.order[last[kept]]
        return gathered(
            column.type,
            entries.values,
            chosen,
            segment=entries.segment[chosen],
            places=same.order[first[kept]],
            is_null=~segments.any(segments.valid(column) & ~segments.retracts),
        )
