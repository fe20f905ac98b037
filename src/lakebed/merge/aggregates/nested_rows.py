"""Common ground of the functions on ARRAY<ROW> columns: small tables inside a row, whose rows have keys of their own.

Here is what these keys are and which rows count; what becomes of the rows is up to each function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, InvalidOption, did_you_mean
from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.merge.aggregates.elements import Elements, combined, equality_codes
from lakebed.merge.segments import Indices, Mask
from lakebed.types.logical import ArrayType, DataField, DataType, RowType


class NestedRows(Aggregate):
    """A function on the rows of an ARRAY<ROW> column."""

    takes = "ARRAY<ROW<…>>"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return isinstance(data_type, ArrayType) and isinstance(data_type.element, RowType)

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        super().check(field, settings)
        check_members(field, "nested-key", settings.nested_key)
        if settings.nested_key_null_strategy != "merge" and not settings.nested_key:
            raise InvalidOption(
                f"`fields.{field.name}.nested-key-null-strategy` is set, but `fields.{field.name}.nested-key` is not",
                hint="name the nested key, or leave the strategy out",
            )

    def member(self, rows: pa.Array, name: str) -> pa.Array:
        """One member of the rows; null where the row is."""
        return rows.flatten()[[member.name for member in row_of(self.field).fields].index(name)]

    def key_codes(self, rows: pa.Array) -> Indices:
        """Numbers that are equal where nested keys are; without nested key, where whole rows are."""
        if not self.settings.nested_key:
            return equality_codes(rows)
        codes = np.zeros(len(rows), dtype=np.int64)
        for name in self.settings.nested_key:
            codes = combined(codes, equality_codes(self.member(rows, name)))
        return codes

    def rows_that_count(self, elements: Elements, takes_part: Mask) -> Mask:
        """Rows that are not null and whose nested key is allowed; an error for others if that is the strategy."""
        counts: Mask = takes_part & np.asarray(pc.is_valid(elements.values))
        if self.settings.nested_key_null_strategy == "merge":
            return counts
        has_key: Mask = np.ones(len(elements), dtype=np.bool_)
        for name in self.settings.nested_key:
            has_key &= np.asarray(pc.is_valid(self.member(elements.values, name)))
        if self.settings.nested_key_null_strategy == "error" and np.any(counts & ~has_key):
            raise InvalidData(
                f"column `{self.field.name}`: a row of the array has null in its nested key "
                f"({', '.join(self.settings.nested_key)})",
                hint="fill the key before writing, or set "
                f"`fields.{self.field.name}.nested-key-null-strategy` to `ignore` or `merge`",
            )
        return counts & has_key


def row_of(field: DataField) -> RowType:
    """The type of the rows in an ARRAY<ROW> column."""
    assert isinstance(field.type, ArrayType)
    assert isinstance(field.type.element, RowType)
    return field.type.element


def check_members(field: DataField, option: str, names: Sequence[str]) -> None:
    """Raises InvalidOption when the option names something that the column's rows do not have."""
    known = [member.name for member in row_of(field).fields]
    for name in names:
        if name not in known:
            raise InvalidOption(
                f"`fields.{field.name}.{option}` names `{name}`, which the rows of column `{field.name}` do not have",
                hint=did_you_mean(name, known),
            )
