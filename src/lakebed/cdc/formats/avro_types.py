"""What types of Avro schemas are in the lake: by Connect's notes where Debezium put some, else by Avro's own words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.formats.connect_types import COUNTS, DECIMAL, ZONED, counted, unscaled_decimals
from lakebed.errors import InvalidData, LakebedError, Unsupported
from lakebed.formats.avro.named import Node
from lakebed.schema.casts import cast_array
from lakebed.types.arrow import to_arrow_type
from lakebed.types.cast_text import in_utc
from lakebed.types.logical import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    ArrayType,
    DataField,
    DataType,
    MapType,
    RowType,
    binary,
    decimal,
    time,
    timestamp,
    timestamp_ltz,
    with_nullable,
)

_PLAIN: Final[dict[str, DataType]] = {
    "null": STRING,
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": STRING,
    "enum": STRING,
}
_SMALL: Final = {"int8": TINYINT, "int16": SMALLINT}
_LOGICAL: Final[dict[str, tuple[DataType, str]]] = {
    "date": (DATE, "d"),
    "time-millis": (time(3), "ms"),
    "time-micros": (time(6), "us"),
    "timestamp-millis": (timestamp_ltz(3), "ms"),
    "timestamp-micros": (timestamp_ltz(6), "us"),
    "timestamp-nanos": (timestamp_ltz(9), "ns"),
    "local-timestamp-millis": (timestamp(3), "ms"),
    "local-timestamp-micros": (timestamp(6), "us"),
    "local-timestamp-nanos": (timestamp(9), "ns"),
}
_INTEGERS: Final = ("int", "long")
_DECIMALS: Final = ("bytes", "fixed")
_MOST_DIGITS: Final = 38


def avro_type(node: Node, ids: Iterator[int] | None = None) -> DataType:
    """The type of the lake; `ids` numbers members of rows."""
    numbers = count() if ids is None else ids
    if node.kind == "union":
        plain = node.plain
        if plain.kind == "union":
            raise Unsupported(
                f"a union of {len(plain.parts)} types is no type of a column",
                hint="only unions of null and one type are read: change the schema",
            )
        return with_nullable(avro_type(plain, numbers), node.is_optional)
    return with_nullable(_known(node) or _nested(node, numbers), node.kind == "null")


def _known(node: Node) -> DataType | None:
    """The type of a value without parts."""
    if (counts := _count(node)) is not None:
        return counts[0]
    if node.note("connect.name") == ZONED:
        return timestamp_ltz(6)
    if _is_decimal(node):
        precision, scale = _digits(node)
        return decimal(precision, scale)
    if node.kind == "int" and node.note("connect.type") in _SMALL:
        return _SMALL[node.note("connect.type")]
    if node.kind == "fixed":
        return binary(node.size) if node.size else BYTES
    return _PLAIN.get(node.kind)


def _nested(node: Node, ids: Iterator[int]) -> DataType:
    if node.kind == "array":
        return ArrayType(avro_type(node.parts[0], ids))
    if node.kind == "map":
        return MapType(with_nullable(STRING, False), avro_type(node.parts[0], ids))
    if not node.names:
        raise Unsupported("a record without fields is no type of a column", hint="change the schema")
    members = [
        DataField(next(ids), name, avro_type(part, ids)) for name, part in zip(node.names, node.parts, strict=True)
    ]
    return RowType(tuple(members))


def _count(node: Node) -> tuple[DataType, str] | None:
    if node.kind not in _INTEGERS:
        return None
    return COUNTS.get(str(node.note("connect.name"))) or _LOGICAL.get(str(node.note("logicalType")))


def _is_decimal(node: Node) -> bool:
    is_named = node.note("connect.name") == DECIMAL or node.note("logicalType") == "decimal"
    return is_named and node.kind in _DECIMALS


def _digits(node: Node) -> tuple[int, int]:
    parameters = node.note("connect.parameters") or {}
    scale = int(node.note("scale") or parameters.get("scale") or 0)
    precision = parameters.get("connect.decimal.precision") or node.note("precision") or _MOST_DIGITS
    return min(max(int(precision), scale, 1), _MOST_DIGITS), scale


def avro_values(raw: pa.Array, node: Node, column: str) -> pa.Array:
    """What was decoded as values of the type of the lake."""
    try:
        return _values(raw, node.plain)
    except LakebedError as error:
        raise type(error)(f"column `{column}`: {error.message}", hint=error.hint) from error
    except (pa.ArrowException, ValueError) as error:
        raise InvalidData(
            f"column `{column}`: {error}", hint="the message's schema and its values do not belong together"
        ) from error


def _values(raw: pa.Array, node: Node) -> pa.Array:
    arrow = to_arrow_type(avro_type(node))
    if (counts := _count(node)) is not None:
        return counted(raw.cast(pa.int64()), counts[1], arrow)
    if node.note("connect.name") == ZONED:
        return cast_array(in_utc(raw), STRING, timestamp_ltz(6))
    if _is_decimal(node):
        return unscaled_decimals(raw, _digits(node)[1], arrow)
    if node.kind == "array":
        (part,) = node.parts
        items = _values(raw.values, part.plain)
        return pa.ListArray.from_arrays(raw.offsets, items, type=arrow, mask=_nulls(raw))
    if node.kind == "map":
        items = _values(raw.items, node.parts[0].plain)
        return pa.MapArray.from_arrays(raw.offsets, raw.keys, items, type=arrow, mask=_nulls(raw))
    if node.kind == "record":
        members = [
            _values(raw.field(number), part.plain).cast(arrow.field(number).type)
            for number, part in enumerate(node.parts)
        ]
        return pa.StructArray.from_arrays(members, fields=list(arrow), mask=_nulls(raw))
    return raw.cast(arrow)


def _nulls(values: pa.Array) -> pa.Array | None:
    return pc.is_null(values) if values.null_count else None


__all__ = ["avro_type", "avro_values"]
