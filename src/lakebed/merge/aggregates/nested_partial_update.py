"""`nested_partial_update`: a table inside a row, of which each record may fill some members."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidOption
from lakebed.merge.aggregates.base import AggregateSettings
from lakebed.merge.aggregates.elements import Elements, gathered
from lakebed.merge.aggregates.nested_rows import NestedRows
from lakebed.merge.segments import Segments
from lakebed.types.logical import DataField


class NestedPartialUpdate(NestedRows):
    """Rows by their nested key, each member with its newest value that is not null.

    Rows stay where their key was first seen; null rows are left out.
    """

    name = "nested_partial_update"

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        super().check(field, settings)
        if not settings.nested_key:
            raise InvalidOption(
                f"column `{field.name}`: aggregate function `{cls.name}` needs a nested key",
                hint=f"name the members that identify a row of the array in `fields.{field.name}.nested-key`",
            )

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        elements = Elements.of(column, segments)
        counts = self.rows_that_count(elements, np.ones(len(elements), dtype=np.bool_))
        same = elements.grouped(self.key_codes(elements.values), counts)
        members = [
            same.pick(member, same.last(np.asarray(pc.is_valid(member))[same.order]))
            for member in elements.values.flatten()
        ]
        first = same.order[same.starts]
        return gathered(
            column.type,
            pa.StructArray.from_arrays(members, fields=list(column.type.value_type)),
            np.arange(len(same)),
            segment=elements.segment[first],
            places=first,
            is_null=~segments.any(segments.valid(column)),
        )
