"""Logical types as Arrow types and back: the one place that says which Arrow type a column has in memory.

Two shapes exist. The *read* shape is what users get and what all of the engine computes with. Files may differ from it
(INT96 timestamps, seconds stored as milliseconds); `formats/` converts at its border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from lakebed.errors import InvalidSchema
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot

_FIXED = {
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.BLOB: pa.binary(),
    TypeRoot.DATE: pa.date32(),
    TypeRoot.TIME: pa.time32("ms"),
    TypeRoot.VARIANT: pa.struct(
        [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
    ),
}


def timestamp_unit(precision: int) -> str:
    """Arrow unit that holds a timestamp of that many fraction digits."""
    return "s" if precision == 0 else "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type a column of this logical type has in memory."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return pa.decimal128(data_type.precision, data_type.scale)
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return pa.timestamp(timestamp_unit(data_type.precision))
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return pa.timestamp(timestamp_unit(data_type.precision), tz="UTC")
        case AtomicType():
            return _FIXED[data_type.root]
        case ArrayType(element):
            return pa.list_(pa.field("element", to_arrow_type(element), nullable=element.nullable))
        case MultisetType(element):
            return pa.map_(to_arrow_type(element), pa.field("value", pa.int32(), nullable=False))
        case MapType(key, value):
            return pa.map_(to_arrow_type(key), pa.field("value", to_arrow_type(value), nullable=value.nullable))
        case RowType(fields):
            return pa.struct([to_arrow_field(member) for member in fields])


def to_arrow_field(field: DataField) -> pa.Field:
    """The Arrow field of a column: name, type, nullability, and the description as metadata `comment`."""
    metadata = {"comment": field.description} if field.description else None
    return pa.field(field.name, to_arrow_type(field.type), nullable=field.type.nullable, metadata=metadata)


def to_arrow_schema(fields: Iterable[DataField]) -> pa.Schema:
    """The Arrow schema of a list of columns."""
    return pa.schema([to_arrow_field(field) for field in fields])


def under_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the fields of a schema. One without columns keeps its rows, which building it anew would lose."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema) if batch.num_columns else batch


def with_hidden(shown: pa.Schema, hidden: pa.Schema) -> pa.Schema:
    """All columns that may be asked for; a view may show what is hidden elsewhere."""
    return pa.schema([*shown, *(field for field in hidden if field.name not in shown.names)])


def from_arrow_schema(schema: pa.Schema) -> tuple[DataField, ...]:
    """Columns for an Arrow schema, with ids numbered as for a new table. Unmappable types are named in the error."""
    counter = iter(range(1 << 30))
    fields = []
    for arrow_field in schema:
        column_id = next(counter)
        data_type = lt.renumbered(from_arrow_type(arrow_field.type, arrow_field.name), lambda: next(counter))
        comment = (arrow_field.metadata or {}).get(b"comment")
        fields.append(
            DataField(
                column_id,
                arrow_field.name,
                replace(data_type, nullable=arrow_field.nullable),
                comment.decode() if comment else None,
            )
        )
    return tuple(fields)


_FROM_ARROW: list[tuple[Callable[[pa.DataType], bool], DataType]] = [
    (pa.types.is_boolean, lt.BOOLEAN),
    (pa.types.is_int8, lt.TINYINT),
    (pa.types.is_int16, lt.SMALLINT),
    (pa.types.is_int32, lt.INT),
    (pa.types.is_int64, lt.BIGINT),
    (pa.types.is_float16, lt.FLOAT),
    (pa.types.is_float32, lt.FLOAT),
    (pa.types.is_float64, lt.DOUBLE),
    (pa.types.is_string, lt.STRING),
    (pa.types.is_large_string, lt.STRING),
    (pa.types.is_string_view, lt.STRING),
    (pa.types.is_binary, lt.BYTES),
    (pa.types.is_large_binary, lt.BYTES),
    (pa.types.is_binary_view, lt.BYTES),
    (pa.types.is_date, lt.DATE),
]
_UNIT_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def from_arrow_type(arrow: pa.DataType, column: str) -> DataType:
    """The logical type for an Arrow type; `column` is named when there is none."""
    for matches, data_type in _FROM_ARROW:
        if matches(arrow):
            return data_type
    if pa.types.is_dictionary(arrow):
        return from_arrow_type(arrow.value_type, column)
    if pa.types.is_fixed_size_binary(arrow):
        return lt.binary(arrow.byte_width)
    if pa.types.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return lt.decimal(arrow.precision, arrow.scale)
    if pa.types.is_time(arrow):
        return lt.time(_UNIT_PRECISION[arrow.unit])
    if pa.types.is_timestamp(arrow):
        precision = _UNIT_PRECISION[arrow.unit]
        return lt.timestamp(precision) if arrow.tz is None else lt.timestamp_ltz(precision)
    if arrow == _FIXED[TypeRoot.VARIANT]:
        return lt.VARIANT
    return _nested_from_arrow(arrow, column)


def _nested_from_arrow(arrow: pa.DataType, column: str) -> DataType:
    def part(field: pa.Field) -> DataType:
        return replace(from_arrow_type(field.type, column), nullable=field.nullable)

    if pa.types.is_map(arrow):
        return MapType(replace(part(arrow.key_field), nullable=False), part(arrow.item_field))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return ArrayType(part(arrow.value_field))
    if pa.types.is_struct(arrow):
        return RowType(tuple(DataField(i, member.name, part(member)) for i, member in enumerate(arrow)))
    raise InvalidSchema(
        f"column `{column}` has Arrow type {arrow}, which no table type stands for", hint=_advice(arrow)
    )


def _advice(arrow: pa.DataType) -> str:
    if pa.types.is_unsigned_integer(arrow):
        wider = {8: "int16", 16: "int32", 32: "int64", 64: "decimal128(20, 0)"}[arrow.bit_width]
        return f"cast it to {wider}, which holds every value of {arrow}"
    if pa.types.is_null(arrow):
        return "give the column a type, for example pa.string()"
    if pa.types.is_duration(arrow):
        return "store it as int64 with the unit in the column's name"
    return "cast it to a type that the table reference lists"


def as_data_type(given: object, column: str) -> DataType:
    """A type however a user writes it: as text (`DECIMAL(10, 2)`), as an Arrow type, or as it is."""
    if isinstance(given, str):
        return lt.parse_type(given)
    if isinstance(given, pa.DataType):
        counter = iter(range(1 << 30))
        return lt.renumbered(from_arrow_type(given, column), lambda: next(counter))
    if isinstance(given, AtomicType | ArrayType | MultisetType | MapType | RowType):
        return given
    raise InvalidSchema(
        f"type of column `{column}` is {given!r}", hint='write it as text like "DECIMAL(10, 2)", or as a pyarrow type'
    )
