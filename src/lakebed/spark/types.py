"""Table types as Spark types, and the Arrow shape in which rows travel between the two.

Spark knows one resolution of time, microseconds; text and bytes have no length; a multiset is a map to counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import types as st

from lakebed.errors import Unsupported
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot

_ATOMIC: dict[TypeRoot, st.DataType] = {
    TypeRoot.BOOLEAN: st.BooleanType(),
    TypeRoot.TINYINT: st.ByteType(),
    TypeRoot.SMALLINT: st.ShortType(),
    TypeRoot.INT: st.IntegerType(),
    TypeRoot.BIGINT: st.LongType(),
    TypeRoot.FLOAT: st.FloatType(),
    TypeRoot.DOUBLE: st.DoubleType(),
    TypeRoot.CHAR: st.StringType(),
    TypeRoot.VARCHAR: st.StringType(),
    TypeRoot.BINARY: st.BinaryType(),
    TypeRoot.VARBINARY: st.BinaryType(),
    TypeRoot.BLOB: st.BinaryType(),
    TypeRoot.DATE: st.DateType(),
    TypeRoot.TIME: st.TimeType(6),
    TypeRoot.TIMESTAMP: st.TimestampNTZType(),
    TypeRoot.TIMESTAMP_LTZ: st.TimestampType(),
}


def spark_type(data_type: DataType, column: str) -> st.DataType:
    """The Spark type of a column's values."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return st.DecimalType(data_type.precision, data_type.scale)
        case AtomicType(root=root) if root in _ATOMIC:
            return _ATOMIC[root]
        case ArrayType(element):
            return st.ArrayType(spark_type(element, column), element.nullable)
        case MultisetType(element):
            return st.MapType(spark_type(element, column), st.IntegerType(), False)
        case MapType(key, value):
            return st.MapType(spark_type(key, column), spark_type(value, column), value.nullable)
        case RowType(fields):
            return spark_schema(fields)
    raise Unsupported(
        f"column `{column}` is of type {data_type}, which can not travel to Spark",
        hint="leave the column out, or read the table with to_arrow()",
    )


def spark_schema(fields: Iterable[DataField]) -> st.StructType:
    """The Spark schema of a list of columns."""
    return st.StructType(
        [
            st.StructField(
                field.name,
                spark_type(field.type, field.name),
                field.type.nullable,
                _metadata(field),
            )
            for field in fields
        ]
    )


def _metadata(field: DataField) -> dict[str, str] | None:
    """Comment, and the length of padded text: Spark compares such columns regardless of blanks at the end."""
    found = {"comment": field.description} if field.description else {}
    if isinstance(field.type, AtomicType) and field.type.root == TypeRoot.CHAR:
        found["__CHAR_VARCHAR_TYPE_STRING"] = f"char({field.type.length})"
    return found or None


def empty_rows(schema: st.StructType) -> pa.RecordBatch:
    """A batch without rows whose columns are those of a Spark schema."""
    names = [field.name for field in schema.fields]
    columns = [pa.array([], arrow_type(field.dataType, field.name)) for field in schema.fields]
    return pa.RecordBatch.from_arrays(columns, names=names)


_TO_ARROW: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.StringType: pa.string(),
    st.VarcharType: pa.string(),
    st.CharType: pa.string(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", tz="UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.TimeType: pa.time64("ns"),
    st.NullType: pa.null(),
}


def arrow_schema(given: st.StructType) -> pa.Schema:
    """A schema of Spark's as Arrow has it."""
    return pa.schema(
        [pa.field(each.name, arrow_type(each.dataType, each.name), each.nullable) for each in given.fields]
    )


def arrow_type(given: st.DataType, column: str) -> pa.DataType:
    """The Arrow type in which values of a Spark column arrive."""
    if isinstance(given, st.DecimalType):
        return pa.decimal128(given.precision, given.scale)
    if isinstance(given, st.ArrayType):
        return pa.list_(pa.field("element", arrow_type(given.elementType, column), given.containsNull))
    if isinstance(given, st.MapType):
        value = pa.field("value", arrow_type(given.valueType, column), given.valueContainsNull)
        return pa.map_(arrow_type(given.keyType, column), value)
    if isinstance(given, st.StructType):
        return pa.struct(
            [pa.field(part.name, arrow_type(part.dataType, column), part.nullable) for part in given.fields]
        )
    found = _TO_ARROW.get(type(given))
    if found is None:
        raise Unsupported(
            f"column `{column}` is of Spark type {given.simpleString()}, which no table type stands for",
            hint="cast it to another type first",
        )
    return found
