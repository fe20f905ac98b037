"""Columns as an Avro schema in the dialect that Paimon uses.

Its peculiarities: nullable is a union with null first; `timestamp-*` stands for wall-clock time and
`local-timestamp-*` for instants (the reverse of what the names say); a map whose key is not text is an array of
key/value records. Encoding and decoding live elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lakebed.errors import InvalidSchema
from lakebed.types import logical as lt
from lakebed.types.logical import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType, TypeRoot

RECORD_NAME = "org.apache.paimon.avro.generated.record"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVES: dict[TypeRoot, str] = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "int",
    TypeRoot.SMALLINT: "int",
    TypeRoot.INT: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.FLOAT: "float",
    TypeRoot.DOUBLE: "double",
    TypeRoot.CHAR: "string",
    TypeRoot.VARCHAR: "string",
    TypeRoot.BINARY: "bytes",
    TypeRoot.VARBINARY: "bytes",
    TypeRoot.BLOB: "bytes",
}


def avro_schema(fields: Sequence[DataField]) -> dict[str, Any]:
    """The schema of a file with these columns; raises InvalidSchema for what Avro can not express."""
    return _record(fields, RECORD_NAME)


def has_text_key(data_type: MapType | MultisetType) -> bool:
    """Whether Avro's own map type can hold it."""
    key = data_type.key if isinstance(data_type, MapType) else data_type.element
    return lt.is_root(key, lt.STRINGS)


def _record(fields: Sequence[DataField], name: str) -> dict[str, Any]:
    members = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise InvalidSchema(
                f"column `{field.name}`: Avro files allow letters, digits and underscores in names",
                hint="rename the column, or use file.format parquet",
            )
        member: dict[str, Any] = {"name": field.name, "type": _type(field.type, f"{name}_{field.name}", field.name)}
        if field.type.nullable:
            member["default"] = None
        members.append(member)
    return {"type": "record", "name": name, "fields": members}


def _type(data_type: DataType, name: str, column: str) -> Any:
    """`name` is for records within: Avro wants every record's name to be unique."""
    bare = _bare_type(data_type, name, column)
    return ["null", bare] if data_type.nullable else bare


def _bare_type(data_type: DataType, name: str, column: str) -> Any:
    match data_type:
        case AtomicType():
            return _atomic(data_type, column)
        case ArrayType(element):
            return {"type": "array", "items": _type(element, name, column)}
        case MapType(key, value):
            return _map(data_type, key, value, name, column)
        case MultisetType(element):
            return _map(data_type, element, lt.INT, name, column)
        case RowType(members):
            return _record(members, name)


def _map(data_type: MapType | MultisetType, key: DataType, value: DataType, name: str, column: str) -> Any:
    if has_text_key(data_type):
        return {"type": "map", "values": _type(value, name, column)}
    entry: list[dict[str, Any]] = [
        {"name": "key", "type": _type(lt.with_nullable(key, False), f"{name}_key", column)},
        {"name": "value", "type": _type(value, f"{name}_value", column)},
    ]
    items = {"type": "record", "name": name, "fields": entry}
    return {"type": "array", "items": items, "logicalType": "map"}


def _atomic(data_type: AtomicType, column: str) -> Any:
    root, precision = data_type.root, data_type.precision
    if root in _PRIMITIVES:
        return _PRIMITIVES[root]
    if root is TypeRoot.DECIMAL:
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": data_type.scale}
    if root is TypeRoot.DATE:
        return {"type": "int", "logicalType": "date"}
    if root is TypeRoot.TIME and precision <= 3:
        return {"type": "int", "logicalType": "time-millis"}
    if root in lt.TIMESTAMPS and precision <= 6:
        prefix = "timestamp" if root is TypeRoot.TIMESTAMP else "local-timestamp"
        return {"type": "long", "logicalType": f"{prefix}-{'millis' if precision <= 3 else 'micros'}"}
    raise InvalidSchema(
        f"column `{column}`: Avro files can not store {data_type}",
        hint="lower the precision (3 for TIME, 6 for TIMESTAMP), or use file.format parquet",
    )
