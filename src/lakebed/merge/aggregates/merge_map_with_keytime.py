"""`merge_map_with_keytime`: maps whose entries carry the time at which they became true."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.merge.aggregates.elements import Elements, equality_codes, gathered, since_cleared
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.types import ordering
from lakebed.types.logical import DataField, DataType, MapType, RowType, is_nested


class MergeMapWithKeytime(Aggregate):
    """Of each map key the entry with the greatest time; the older of two with the same time.

    Times in text are compared as text, as Java does: '50' is after '100'. Java knows no other times, here any type with
    an order will do.

    A null entry removes its map key, an entry without time is left out. The first map of a key is taken as it is: its
    null entries and entries without time stay until another entry of that map key comes.
    """

    name = "merge_map_with_keytime"
    takes = "MAP<…, ROW<…>> where the ROW has two or more members, one of them a time"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return (
            isinstance(data_type, MapType) and isinstance(data_type.value, RowType) and len(data_type.value.fields) >= 2
        )

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        super().check(field, settings)
        row = _row_of(field)
        names = [member.name for member in row.fields]
        if settings.ts_field is not None and settings.ts_field not in names:
            raise InvalidOption(
                f"`fields.{field.name}.ts-field` names `{settings.ts_field}`, which the rows of column `{field.name}` "
                "do not have",
                hint=did_you_mean(settings.ts_field, names),
            )
        time = row.fields[_time_index(row, settings)]
        if is_nested(time.type):
            raise InvalidOption(
                f"column `{field.name}`: member `{time.name}`, the time for `{cls.name}`, is {time.type}",
                hint=f"make it STRING or another type with an order, or name another in `fields.{field.name}.ts-field`",
            )

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        entries = Elements.of(column, segments)
        rows = entries.values.field(1)
        time = rows.flatten()[_time_index(_row_of(self.field), self.settings)]
        has_row, has_time = np.asarray(pc.is_valid(rows)), np.asarray(pc.is_valid(time))
        valid = segments.valid(column)
        is_first = entries.position == segments.first(valid)[entries.segment]

        same = entries.grouped(equality_codes(entries.values.field(0)))
        alive = since_cleared(same, (~has_row & ~is_first)[same.order]) & (has_time | is_first)[same.order]
        # No time comes before all times. Of equal times the oldest wins: later positions count for less.
        rank = np.unique(ordering.sort_codes(time), return_inverse=True)[1].astype(np.int64)[same.order]
        best = same.greatest(rank * len(rank) + np.arange(len(rank))[::-1], alive)

        first = same.first(alive)
        kept = best != NO_ROW
        chosen = same.order[best[kept]]
        return gathered(
            column.type,
            entries.values,
            chosen,
            segment=entries.segment[chosen],
            places=same.order[first[kept]],
            is_null=~segments.any(valid),
        )


def _row_of(field: DataField) -> RowType:
    assert isinstance(field.type, MapType)
    assert isinstance(field.type.value, RowType)
    return field.type.value


def _time_index(row: RowType, settings: AggregateSettings) -> int:
    if settings.ts_field is None:
        return len(row.fields) - 1
    return [member.name for member in row.fields].index(settings.ts_field)
