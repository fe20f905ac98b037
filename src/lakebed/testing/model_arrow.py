"""Between the plain values of `model` and Arrow: rows to write, rows to compare.

Kept apart so that the model itself stays free of Arrow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from lakebed.testing.model import Change, ModelSchema, Row, Value
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import AtomicType

ROWKIND = "rowkind"


def to_arrow_array(values: Sequence[Value], data_type: AtomicType) -> pa.Array:
    """A column of model values."""
    arrow = to_arrow_type(data_type)
    if pa.types.is_temporal(arrow):
        ticks = pa.int32() if arrow.bit_width == 32 else pa.int64()
        return pa.array(values, ticks).view(arrow)
    return pa.array(values, arrow)


def to_arrow_table(rows: Sequence[Row], types: Mapping[str, AtomicType]) -> pa.Table:
    """Model rows as a table with these columns."""
    columns = [to_arrow_array([row[name] for row in rows], data_type) for name, data_type in types.items()]
    return pa.Table.from_arrays(columns, names=list(types))


def types_of(schema: ModelSchema) -> dict[str, AtomicType]:
    """Column types by name."""
    return {column.name: column.type for column in schema.columns}


def from_arrow_array(column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The model values of a column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[Value] = column.to_pylist()
    return values


def from_arrow(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """The model rows of a table."""
    columns = [from_arrow_array(table.column(name)) for name in table.column_names]
    return [dict(zip(table.column_names, cells, strict=True)) for cells in zip(*columns, strict=True)]


def changes_from_arrow(table: pa.Table) -> list[Change]:
    """The model changes of what `Table.changes` returns."""
    kinds = table.column(ROWKIND).to_pylist()
    return list(zip(kinds, from_arrow(table.drop_columns([ROWKIND])), strict=True))


def tally(rows: Iterable[Row]) -> Counter[tuple[tuple[str, object], ...]]:
    """How often each row occurs. NaN equals NaN here, and 0.0 differs from -0.0."""
    return Counter(tuple((name, _token(value)) for name, value in row.items()) for row in rows)


def tally_changes(changes: Iterable[Change]) -> Counter[tuple[tuple[str, object], ...]]:
    """How often each change occurs."""
    return tally({ROWKIND: kind, **row} for kind, row in changes)


def _token(value: Value) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value
