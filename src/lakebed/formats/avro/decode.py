"""Avro records to Arrow columns.

Records come as Python dicts from fastavro, which is the slow part; no library decodes Avro into Arrow with the codecs
and types needed here without a data frame engine as a dependency. So that at least the values are cheap, fastavro gets
to see a schema without logical types and returns plain integers and bytes; dates, timestamps and decimals are then made
of whole columns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import Unsupported

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
# Either name of a timestamp may stand for either kind (writers disagree); the column's own type decides afterwards.
_TEMPORAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    **{
        f"{prefix}-{word}": pa.timestamp(unit)
        for prefix in ("timestamp", "local-timestamp")
        for word, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def plain_schema(schema: Any) -> Any:
    """The same schema without logical types: what the bytes are rather than what they mean."""
    if isinstance(schema, list):
        return [plain_schema(branch) for branch in schema]
    if isinstance(schema, dict):
        inner = ("type", "items", "values", "fields")
        return {
            key: plain_schema(part) if key in inner else part for key, part in schema.items() if key != "logicalType"
        }
    return schema


def without_null(schema: Any, path: str) -> Any:
    """The branch of an optional type that is not null."""
    if not isinstance(schema, list):
        return schema
    branches = [branch for branch in schema if branch != "null"]
    if len(branches) != 1:
        raise Unsupported(
            f"data file `{path}` has a union of {len(branches)} types", hint="only unions of null and one type are read"
        )
    return branches[0]


def to_columns(records: Sequence[dict[str, Any]], members: Sequence[dict[str, Any]], path: str) -> list[pa.Array]:
    """One Arrow array per record member."""
    columns = []
    for member in members:
        name, schema = member["name"], without_null(member["type"], path)
        raw = pa.array([record[name] for record in records], _raw_type(schema, path))
        columns.append(_meant(raw, schema, path))
    return columns


def _raw_type(schema: Any, path: str) -> pa.DataType:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict):
        return _raw_type(kind, path)
    if kind == "array":
        return pa.list_(_raw_type(without_null(schema["items"], path), path))
    if kind == "map":
        return pa.map_(pa.string(), _raw_type(without_null(schema["values"], path), path))
    if kind == "record":
        return pa.struct(
            [(member["name"], _raw_type(without_null(member["type"], path), path)) for member in schema["fields"]]
        )
    if kind not in _PRIMITIVES:
        raise Unsupported(f"data file `{path}` uses the Avro type `{kind}`", hint="rewrite the file as parquet")
    return _PRIMITIVES[kind]


def _meant(array: pa.Array, schema: Any, path: str) -> pa.Array:
    """Plain values as what the schema's logical types say they are."""
    if not isinstance(schema, dict):
        return array
    kind, logical = schema["type"], schema.get("logicalType")
    if isinstance(kind, dict):
        return _meant(array, kind, path)
    if kind == "array":
        return _list(array, without_null(schema["items"], path), path)
    if kind == "map":
        items = _meant(array.items, without_null(schema["values"], path), path)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, mask=array.is_null())
    if kind == "record":
        parts = _members(array, schema, path)
        return pa.StructArray.from_arrays(parts, names=[m["name"] for m in schema["fields"]], mask=array.is_null())
    if logical == "decimal":
        return _decimals(array, schema["precision"], schema.get("scale", 0))
    return array.cast(_TEMPORAL[logical]) if logical in _TEMPORAL else array


def _members(array: pa.StructArray, schema: dict[str, Any], path: str) -> list[pa.Array]:
    return [
        _meant(part, without_null(member["type"], path), path)
        for part, member in zip(array.flatten(), schema["fields"], strict=True)
    ]


def _list(array: pa.ListArray, items: Any, path: str) -> pa.Array:
    names = [m["name"] for m in items["fields"]] if isinstance(items, dict) and items["type"] == "record" else []
    if names == ["key", "value"]:
        keys, values = _members(array.values, items, path)
        return pa.MapArray.from_arrays(array.offsets, keys, values, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, _meant(array.values, items, path), mask=array.is_null())


def _decimals(array: pa.BinaryArray, precision: int, scale: int) -> pa.Decimal128Array:
    """Big-endian two's complement of any length to the 16 little-endian bytes of Arrow."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    # One spare byte in front, so that places beyond a value's first byte can be looked up and then discarded.
    data = np.concatenate((np.zeros(1, np.uint8), np.frombuffer(array.buffers()[2] or b"", np.uint8)))
    starts, ends = offsets[:-1] + 1, offsets[1:] + 1
    lengths = ends - starts
    sign = np.where((lengths > 0) & (data[np.minimum(starts, len(data) - 1)] >= 0x80), 0xFF, 0).astype(np.uint8)
    places = np.arange(16)
    matrix = np.where(places < lengths[:, None], data[np.maximum(ends[:, None] - 1 - places, 0)], sign[:, None])
    values = pa.Array.from_buffers(
        pa.decimal128(precision, scale), len(array), [None, pa.py_buffer(matrix.astype(np.uint8))]
    )
    return pc.if_else(array.is_valid(), values, None) if array.null_count else values
