"""Spark's types, as Arrow types: which there are, which is the common one of two, and what each is called.

INT is int32, DECIMAL(p, s) decimal128, STRING string, TIMESTAMP a moment in UTC, TIMESTAMP_NTZ a clock reading without
zone; a type that only Spark's expressions have, the untyped NULL, is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakebed.expressions.nodes import NotProven

BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
TIME = pa.time64("ns")
NULL = pa.null()
DAY_TIME = pa.duration("us")
"""INTERVAL DAY TO SECOND."""
YEAR_MONTH = pa.month_day_nano_interval()
"""INTERVAL YEAR TO MONTH; days and nanoseconds are 0."""

INTEGRALS = (TINYINT, SMALLINT, INT, BIGINT)
_MOST_DIGITS = 38
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_LEAST_SCALE = 6

_SPARK_NAMES = {
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
    NULL: "VOID",
    DAY_TIME: "INTERVAL DAY TO SECOND",
    YEAR_MONTH: "INTERVAL YEAR TO MONTH",
    TIME: "TIME(6)",
}
_DUCKDB_NAMES = {
    **_SPARK_NAMES,
    INT: "INTEGER",
    STRING: "VARCHAR",
    BINARY: "BLOB",
    TIMESTAMP: "TIMESTAMPTZ",
    TIMESTAMP_NTZ: "TIMESTAMP",
    NULL: "INTEGER",  # any type holds an untyped null; results get their type back when they leave
    DAY_TIME: "BIGINT",  # microseconds: DuckDB's own intervals take 30 days for a month
    YEAR_MONTH: "INTEGER",  # months
    TIME: "TIME",
}


def is_integral(kind: pa.DataType) -> bool:
    """TINYINT to BIGINT."""
    return kind in INTEGRALS


def is_decimal(kind: pa.DataType) -> bool:
    """DECIMAL."""
    return bool(pa.types.is_decimal(kind))


def is_fraction(kind: pa.DataType) -> bool:
    """FLOAT or DOUBLE."""
    return kind in (FLOAT, DOUBLE)


def is_numeric(kind: pa.DataType) -> bool:
    """Any number."""
    return is_integral(kind) or is_decimal(kind) or is_fraction(kind)


def is_nested(kind: pa.DataType) -> bool:
    """ARRAY, MAP or STRUCT."""
    return bool(pa.types.is_nested(kind))


def decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(p, s)."""
    return pa.decimal128(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of a whole-number or decimal type."""
    if is_decimal(kind):
        return kind
    if is_integral(kind):
        return decimal(_DIGITS[kind], 0)
    raise NotProven(f"{spark_name(kind)} as DECIMAL")


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal type of at most 38 digits, as results of arithmetic have it: fraction digits go first, down to six."""
    if precision <= _MOST_DIGITS:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(_MOST_DIGITS, max(_MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def _wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type that holds values of both; past 38 digits those of the fraction go first, as Spark has it."""
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale > _MOST_DIGITS:
        return decimal(_MOST_DIGITS, max(0, _MOST_DIGITS - whole))
    return decimal(whole + scale, scale)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type to which Spark (ANSI) brings two values before it compares or mixes them; None if there is none."""
    if left == right:
        return left
    if left == NULL:
        return right
    if right == NULL:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if STRING in (left, right):
        return _with_text(right if left == STRING else left)
    moments = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
    if left in moments and right in moments:
        return moments[max(moments.index(left), moments.index(right))]
    if pa.types.is_list(left) and pa.types.is_list(right):
        element = common_type(left.value_type, right.value_type)
        nullable = left.value_field.nullable or right.value_field.nullable
        return None if element is None else array_of(element, nullable)
    return None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_integral(left) and is_integral(right):
        return INTEGRALS[max(INTEGRALS.index(left), INTEGRALS.index(right))]
    if is_fraction(left) or is_fraction(right):
        return FLOAT if left == right == FLOAT else DOUBLE
    return _wider_decimal(left, right)


def _with_text(other: pa.DataType) -> pa.DataType | None:
    """ANSI: text is read as the other type, and as the widest of its kind."""
    if is_integral(other):
        return BIGINT
    if is_numeric(other):
        return DOUBLE
    if other in (BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, DAY_TIME, YEAR_MONTH):
        return other
    return None


def common_type_of(kinds: Sequence[pa.DataType], what: str) -> pa.DataType:
    """The common type of several values."""
    found = NULL
    for kind in sorted(kinds, key=lambda kind: kind == STRING):  # text last: it takes the type of the others
        common = common_type(found, kind)
        if common is None:
            raise NotProven(what, f"values of {spark_name(found)} and {spark_name(kind)} have no common type")
        found = common
    return found


def array_of(element: pa.DataType, nullable: bool = True) -> pa.DataType:
    """ARRAY<element>."""
    return pa.list_(pa.field("element", element, nullable))


def map_of(key: pa.DataType, value: pa.DataType, nullable: bool = True) -> pa.DataType:
    """MAP<key, value>."""
    return pa.map_(key, pa.field("value", value, nullable))


def spark_name(kind: pa.DataType) -> str:
    """The type as Spark writes it."""
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_name(kind.key_type)}, {spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{part.name}: {spark_name(part.type)}' for part in kind)}>"
    if is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _SPARK_NAMES.get(kind, str(kind))


def plain_name(kind: pa.DataType) -> str:
    """The type as DESCRIBE shows it."""
    if pa.types.is_list(kind):
        return f"array<{plain_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{plain_name(kind.key_type)},{plain_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{part.name}:{plain_name(part.type)}' for part in kind)}>"
    return spark_name(kind).lower()


def duckdb_name(kind: pa.DataType) -> str:
    """The type as DuckDB writes it."""
    if pa.types.is_list(kind):
        return f"{duckdb_name(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_name(kind.key_type)}, {duckdb_name(kind.item_type)})"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{quoted(part.name)} {duckdb_name(part.type)}' for part in kind)})"
    if is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if kind not in _DUCKDB_NAMES:
        raise NotProven(f"type {kind}")
    return _DUCKDB_NAMES[kind]


def quoted(name: str) -> str:
    """A name as DuckDB reads it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
