"""How Spark spells types: `bigint`, `struct<a:int>`; for what DESCRIBE and SHOW CREATE TABLE show."""

from __future__ import annotations

from lakebed.types.logical import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
)

_NAMES = {
    TypeRoot.VARBINARY: "binary",
    TypeRoot.BINARY: "binary",
    TypeRoot.BLOB: "binary",
    TypeRoot.TIMESTAMP: "timestamp_ntz",
    TypeRoot.TIMESTAMP_LTZ: "timestamp",
}


def spark_name(data_type: DataType) -> str:
    """The type as Spark's DESCRIBE shows it."""
    match data_type:
        case ArrayType(element):
            return f"array<{spark_name(element)}>"
        case MultisetType(element):
            return f"map<{spark_name(element)},int>"
        case MapType(key, value):
            return f"map<{spark_name(key)},{spark_name(value)}>"
        case RowType(fields):
            return f"struct<{','.join(f'{member.name}:{spark_name(member.type)}' for member in fields)}>"
        case AtomicType(root=TypeRoot.VARCHAR, length=length) if length == MAX_LENGTH:
            return "string"
        case AtomicType(root=TypeRoot.VARCHAR | TypeRoot.CHAR as root, length=length):
            return f"{root.value.lower()}({length})"
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case AtomicType(root=TypeRoot.TIME):
            return "time(6)"
        case AtomicType(root=root):
            return _NAMES.get(root, root.value.lower())
