"""The Arrow shape in which rows are handed to engines of SQL: Spark's types.

Spark knows one resolution of time, microseconds; text and bytes have no length; a multiset is a map to counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot


def transfer_schema(fields: Iterable[DataField]) -> pa.Schema:
    """The Arrow schema in which rows of these columns are handed to Spark."""
    return pa.schema([pa.field(field.name, _transfer_type(field.type), field.type.nullable) for field in fields])


def to_transfer(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the shape that Spark takes; columns that have it already are not touched."""
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_UNITS = {"s": "second", "ms": "millisecond"}


def to_precision(rows: pa.Table, fields: Iterable[DataField]) -> pa.Table:
    """Rows from an engine with moments cut to what the columns hold: it knows microseconds only, whatever was meant."""
    for field in fields:
        index = rows.schema.get_field_index(field.name)
        wanted = to_arrow_type(field.type)
        if index < 0 or not pa.types.is_timestamp(wanted) or not pa.types.is_timestamp(rows.schema.types[index]):
            continue
        unit = _UNITS.get(wanted.unit)
        if unit is not None:
            rows = rows.set_column(index, field.name, pc.floor_temporal(rows.column(index), unit=unit))
    return rows


def _transfer_type(data_type: DataType) -> pa.DataType:
    match data_type:
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return pa.timestamp("us")
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return pa.timestamp("us", tz="UTC")
        case AtomicType(root=TypeRoot.TIME):
            return pa.time64("ns")
        case ArrayType(element):
            return pa.list_(pa.field("element", _transfer_type(element), element.nullable))
        case MultisetType(element):
            return pa.map_(_transfer_type(element), pa.field("value", pa.int32(), nullable=False))
        case MapType(key, value):
            return pa.map_(_transfer_type(key), pa.field("value", _transfer_type(value), value.nullable))
        case RowType(fields):
            return pa.struct([pa.field(part.name, _transfer_type(part.type), part.type.nullable) for part in fields])
    return to_arrow_type(data_type)
