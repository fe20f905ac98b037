"""Types of MySQL and MariaDB columns, as their definitions spell them (`bigint(20) unsigned`), as types of the lake."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lakebed.errors import Unsupported
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
    DataType,
    binary,
    char,
    decimal,
    time,
    timestamp,
    varbinary,
    varchar,
)

TINYINT1_NOT_BOOL: Final = "tinyint1-not-bool"
BIGINT_UNSIGNED_TO_BIGINT: Final = "bigint-unsigned-to-bigint"
CHAR_TO_STRING: Final = "char-to-string"
LONGTEXT_TO_BYTES: Final = "longtext-to-bytes"
TO_STRING: Final = "to-string"

_FORM: Final = re.compile(
    r"\s*([a-z]+(?:\s+(?:precision|varying))?)\s*(?:\(([^)]*)\))?\s*(.*)", re.IGNORECASE | re.DOTALL
)
_INTEGERS: Final = {
    "tinyint": (TINYINT, SMALLINT),
    "smallint": (SMALLINT, INT),
    "mediumint": (INT, BIGINT),
    "int": (INT, BIGINT),
    "integer": (INT, BIGINT),
    "bigint": (BIGINT, decimal(20, 0)),
}
"""Signed and unsigned."""
_PLAIN: Final[dict[str, DataType]] = {
    "bool": BOOLEAN,
    "boolean": BOOLEAN,
    "year": INT,
    "float": FLOAT,
    "double": DOUBLE,
    "double precision": DOUBLE,
    "real": DOUBLE,
    "date": DATE,
    "serial": decimal(20, 0),
    "set": ArrayType(STRING),
    "enum": STRING,
    "json": STRING,
    **dict.fromkeys(("text", "tinytext", "mediumtext", "longtext"), STRING),
    **dict.fromkeys(("blob", "tinyblob", "mediumblob", "longblob"), BYTES),
    **dict.fromkeys(
        (
            "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
            "geometrycollection", "geomcollection", "uuid", "inet4", "inet6",
        ),
        STRING,
    ),
}  # fmt: skip
_MOST_DIGITS: Final = 38


def mysql_type(text: str, modes: Collection[str] = ()) -> DataType:
    """The type of the lake for a MySQL column; `modes` are those of the type mapping. All of them may be NULL."""
    found = _FORM.fullmatch(text)
    name = found.group(1).lower() if found else ""
    numbers = _numbers(found.group(2)) if found else []
    is_unsigned = found is not None and ("unsigned" in found.group(3).lower() or "zerofill" in found.group(3).lower())
    if TO_STRING in modes:
        return STRING
    if name == "tinyint" and numbers == [1] and not is_unsigned and TINYINT1_NOT_BOOL not in modes:
        return BOOLEAN
    if name in ("bigint", "serial") and BIGINT_UNSIGNED_TO_BIGINT in modes:
        return BIGINT
    if name in _INTEGERS:
        return _INTEGERS[name][is_unsigned]
    if name == "longtext" and LONGTEXT_TO_BYTES in modes:
        return BYTES
    if name in _PLAIN:
        return _PLAIN[name]
    return _with_numbers(text, name, numbers, modes)


def _with_numbers(text: str, name: str, numbers: list[int], modes: Collection[str]) -> DataType:
    first = numbers[0] if numbers else None
    match name:
        case "decimal" | "numeric" | "dec" | "fixed":
            if first is None:
                return decimal(38, 18)
            return decimal(first, numbers[1] if len(numbers) > 1 else 0) if first <= _MOST_DIGITS else STRING
        case "bit":
            return BOOLEAN if first in (None, 1) else binary((first + 7) // 8)
        case "char" | "nchar":
            return STRING if first is None or first == 0 or CHAR_TO_STRING in modes else char(first)
        case "varchar" | "nvarchar" | "char varying":
            return STRING if first is None or first == 0 or CHAR_TO_STRING in modes else varchar(first)
        case "binary" | "varbinary":
            return BYTES if not first else varbinary(first)
        case "time":
            return time(first or 0)
        case "datetime" | "timestamp":
            return timestamp(first or 0)
    raise Unsupported(
        f"MySQL type `{text.strip()}` has no type in the lake",
        hint="leave the table out with `excluding`, or set the type mapping `to-string`",
    )


def _numbers(inside: str | None) -> list[int]:
    parts = [part.strip() for part in (inside or "").split(",")]
    return [int(part) for part in parts if part.isdigit()]


__all__ = [
    "BIGINT_UNSIGNED_TO_BIGINT",
    "CHAR_TO_STRING",
    "LONGTEXT_TO_BYTES",
    "TINYINT1_NOT_BOOL",
    "TO_STRING",
    "mysql_type",
]
