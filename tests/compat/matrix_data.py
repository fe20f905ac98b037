"""The columns of the compatibility matrix: every type with values that hurt, in canonical form.

A column's values run from plain to extreme; row `n` of the matrix takes the `n`-th value of each column, starting over
where a column has fewer, and the last row is all null. What a format has no room for, and what a judge does not manage,
is listed here with the words of the refusal: tests ask for the refusal, so that no list outlives its reason.
"""

from dataclasses import dataclass, field
from typing import Any

from .judges import Row

FORMATS = ["parquet", "orc", "avro"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the matrix: its type and the values to try, never null."""

    name: str
    type: str
    values: tuple[Any, ...]


def _base64(*texts: str) -> tuple[str, ...]:
    return tuple(f"base64:{text}" for text in texts)


def _zoned(*texts: str) -> tuple[str, ...]:
    return tuple(f"{text}+00:00" for text in texts)


_SECONDS = (
    "2024-02-29T23:59:59",
    "1970-01-01T00:00:00",
    "1969-12-31T23:59:58",
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59",
)
_MILLIS = (
    "2024-01-02T03:04:05.120000",
    "1970-01-01T00:00:00.001000",
    "1969-12-31T23:59:58.999000",
    "0001-01-01T00:00:00.001000",
    "9999-12-31T23:59:59.999000",
)
_MICROS = (
    "2024-01-02T03:04:05.123456",
    "1970-01-01T00:00:00.000001",
    "1969-12-31T23:59:58.999999",
    "0001-01-01T00:00:00.000001",
    "9999-12-31T23:59:59.999999",
)
_NANOS = (
    "2024-01-02T03:04:05.123456789",
    "1970-01-01T00:00:00.000000001",
    "1969-12-31T23:59:58.999999999",
    "1677-09-22T00:00:00.000000001",
    "2262-04-11T23:47:16.854775807",
)

COLUMNS = [
    Column("c_boolean", "BOOLEAN", (True, False)),
    Column("c_tinyint", "TINYINT", (1, 0, -1, -128, 127)),
    Column("c_smallint", "SMALLINT", (1, 0, -1, -32768, 32767)),
    Column("c_int", "INT", (1, 0, -1, -2147483648, 2147483647)),
    Column("c_bigint", "BIGINT", (1, 0, -1, -9223372036854775808, 9223372036854775807)),
    Column(
        "c_float",
        "FLOAT",
        (0.10000000149011612, -0.0, "NaN", "-Infinity", "Infinity", 1.401298464324817e-45, -3.4028234663852886e38),
    ),
    Column("c_double", "DOUBLE", (0.1, -0.0, "NaN", "-Infinity", "Infinity", 5e-324, -1.7976931348623157e308)),
    Column("c_char", "CHAR(3)", ("abc", "äöü", "中文字", "\U0001f300\U0001f300\U0001f300")),
    Column("c_varchar", "VARCHAR(20)", ("plain", "", "Grüße", "\U0001f300", " blank ", "\x00\x01")),
    Column("c_string", "STRING", ("plain", "", "中文", "\U0001f300\U0010ffff", 'a "quote" \\ \u2028 \n', "x" * 5000)),
    Column("c_binary", "BINARY(3)", _base64("AAEC", "////", "AAAA")),
    Column("c_varbinary", "VARBINARY(8)", _base64("AQ==", "", "/wD/")),
    Column("c_bytes", "BYTES", _base64("AP8=", "", "gIGCg4SFhoeIiYqLjI2Ojw==")),
    Column("c_decimal_9", "DECIMAL(9, 2)", ("1.50", "0.00", "-0.01", "-9999999.99", "9999999.99")),
    Column(
        "c_decimal_18", "DECIMAL(18, 4)", ("1.5000", "0.0000", "-0.0001", "-99999999999999.9999", "99999999999999.9999")
    ),
    Column(
        "c_decimal_20",
        "DECIMAL(20, 5)",
        ("1.50000", "0.00000", "-0.00001", "-999999999999999.99999", "999999999999999.99999"),
    ),
    Column(
        "c_decimal_38",
        "DECIMAL(38, 10)",
        (
            "1.5000000000",
            "0.0000000000",
            "-0.0000000001",
            "-9999999999999999999999999999.9999999999",
            "9999999999999999999999999999.9999999999",
        ),
    ),
    Column("c_date", "DATE", ("2024-02-29", "1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31")),
    Column("c_time", "TIME(3)", ("03:04:05.120000", "00:00:00", "23:59:59.999000", "12:00:00")),
    Column("c_ts_0", "TIMESTAMP(0)", _SECONDS),
    Column("c_ts_3", "TIMESTAMP(3)", _MILLIS),
    Column("c_ts_6", "TIMESTAMP(6)", _MICROS),
    Column("c_ltz_0", "TIMESTAMP(0) WITH LOCAL TIME ZONE", _zoned(*_SECONDS)),
    Column("c_ltz_3", "TIMESTAMP(3) WITH LOCAL TIME ZONE", _zoned(*_MILLIS)),
    Column("c_ltz_6", "TIMESTAMP(6) WITH LOCAL TIME ZONE", _zoned(*_MICROS)),
    Column("c_array", "ARRAY<INT>", ([1, None, -3], [], [2147483647])),
    Column("c_array_array", "ARRAY<ARRAY<STRING>>", ([["a", None], None, []], [], [[], ["é"]])),
    Column("c_map", "MAP<STRING, BIGINT>", ([["a", 1], ["b", None]], [], [["", -1]])),
    Column("c_map_int", "MAP<INT, STRING>", ([[-1, "x"], [2, None]], [], [[7, ""]])),
    Column("c_map_array", "MAP<STRING, ARRAY<DATE>>", ([["a", ["2024-02-29", None]]], [["b", []], ["c", None]])),
    Column("c_row", "ROW<x INT, y STRING>", ({"x": 1, "y": "a"}, {"x": None, "y": None}, {"x": -7, "y": ""})),
    Column(
        "c_row_row",
        "ROW<x INT, y ROW<z STRING, w DECIMAL(9, 2)>>",
        ({"x": 1, "y": {"z": "deep", "w": "1.50"}}, {"x": None, "y": None}, {"x": 2, "y": {"z": None, "w": None}}),
    ),
    Column("c_array_row", "ARRAY<ROW<x BIGINT, y BOOLEAN>>", ([{"x": 1, "y": True}, None, {"x": None, "y": None}], [])),
    Column(
        "c_row_nested",
        "ROW<a ARRAY<INT>, m MAP<STRING, INT>>",
        ({"a": [1, None], "m": [["k", 1]]}, {"a": None, "m": None}, {"a": [], "m": []}),
    ),
    Column("c_multiset", "MULTISET<STRING>", ([["x", 2], ["y", 1]], [], [["", 2147483647]])),
    Column("c_multiset_int", "MULTISET<INT>", ([[-1, 2], [5, 1]], [])),
    Column(
        "c_variant",
        "VARIANT",
        ({"value": "base64:DAE=", "metadata": "base64:AQAA"}, {"value": "base64:AA==", "metadata": "base64:AQAA"}),
    ),
]

FINE_COLUMNS = [
    Column("c_ts_9", "TIMESTAMP(9)", _NANOS),
    Column("c_ltz_9", "TIMESTAMP(9) WITH LOCAL TIME ZONE", _zoned(*_NANOS)),
    Column("c_ts_3", "TIMESTAMP(3)", _MILLIS),
    Column("c_ts_6", "TIMESTAMP(6)", _MICROS),
    Column("c_ltz_0", "TIMESTAMP(0) WITH LOCAL TIME ZONE", _zoned(*_SECONDS)),
    Column("c_array_ts", "ARRAY<TIMESTAMP(9)>", ([_NANOS[0], None], [], [_NANOS[2]])),
    Column(
        "c_row_ts",
        "ROW<a TIMESTAMP(9), b TIMESTAMP(3)>",
        ({"a": _NANOS[0], "b": _MILLIS[0]}, {"a": None, "b": None}, {"a": _NANOS[2], "b": _MILLIS[2]}),
    ),
    Column("c_map_ts", "MAP<STRING, TIMESTAMP(9)>", ([["k", _NANOS[2]], ["n", None]], [])),
]
"""Timestamps finer than microseconds, which Parquet files store as INT96 at any depth, and coarser ones beside them."""


# ---------------------------------------------------------------- what a format has no room for

LAKEBED_REFUSES = {
    "orc": {
        "c_variant": "can not store VARIANT",
    },
    "avro": {"c_variant": "can not store VARIANT"},
}
"""Columns that Lakebed does not write in a format, with what it says."""


def columns_of(file_format: str, absent: Any = (), columns: list[Column] = COLUMNS) -> list[Column]:
    """The columns that Lakebed writes in this format, reduced to the values the format has room for."""
    absent = {*absent, *LAKEBED_REFUSES.get(file_format, {})}
    chosen = [column for column in columns if column.name not in absent]
    return [_reduced(column) for column in chosen] if file_format == "orc" else chosen


def _reduced(column: Column) -> Column:
    """pyarrow's ORC knows the years 1678 to 2261, and no fractions of a second before 1970."""
    texts = [text for text in column.values if _in_orc(text)]
    return Column(column.name, column.type, tuple(texts))


def _in_orc(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_in_orc, value.values()))
    if isinstance(value, list):
        return all(map(_in_orc, value))
    if not isinstance(value, str) or value[10:11] != "T":
        return True
    return "1678" <= value[:4] <= "2261" and (value >= "1970" or "." not in value)


# ---------------------------------------------------------------- what a judge does not manage

_NO_MULTISET = dict.fromkeys(["c_multiset", "c_multiset_int"], "Unsupported data type: MULTISET")
_NO_VARIANT = {"c_variant": "cannot be given rows of type VARIANT"}
_RUST_ORC = [
    "c_decimal_9",
    "c_decimal_18",
    "c_decimal_20",
    "c_decimal_38",
    "c_date",
    "c_time",
    "c_ts_0",
    "c_ts_3",
    "c_ts_6",
    "c_ltz_0",
    "c_ltz_3",
    "c_ltz_6",
    "c_array",
    "c_array_array",
    "c_map",
    "c_map_int",
    "c_map_array",
    "c_row",
    "c_row_row",
    "c_array_row",
    "c_row_nested",
    "c_multiset",
    "c_multiset_int",
]

CANNOT_READ = {
    ("pypaimon", "parquet"): _NO_MULTISET,
    ("pypaimon", "orc"): _NO_MULTISET,
    ("pypaimon", "avro"): _NO_MULTISET,
    ("java", "avro"): {"c_multiset_int": "Failed to create FileRecordReader"},
    ("java2", "avro"): {"c_multiset_int": "Failed to create FileRecordReader"},
}
"""(judge, format) -> columns it can not read, whoever wrote them, with its words."""

CANNOT_WRITE = {
    ("pypaimon", "parquet"): _NO_VARIANT,
    ("pypaimon", "avro"): {
        # Elements of an array are never nullable in its Avro schemas, and there are no maps.
        **dict.fromkeys(["c_array", "c_array_array", "c_array_row"], "do not match"),
        **dict.fromkeys(["c_map", "c_map_int", "c_map_array", "c_row_nested"], "Unsupported pyarrow type"),
    },
    ("rust", "parquet"): _NO_VARIANT,
    ("rust", "orc"): dict.fromkeys(_RUST_ORC, "ORC writer does not support column"),
}
"""(judge, format) -> columns it can read and not write."""

MISREADS = {("rust", "avro"): ["c_row_row"]}
"""(judge, format) -> columns it silently reads as something else, whoever wrote them."""

WRITES_WRONG = {("rust", "parquet"): dict.fromkeys(["c_multiset", "c_multiset_int"], "keys must be non-nullable")}
"""(judge, format) -> columns it writes in a way that the format forbids, with what Lakebed says on reading them."""

LOSES_VALUES = {("pypaimon", "orc"): ["c_row_row"]}
"""(judge, format) -> columns it writes with other values than it was given, next to nulls."""


def readable_by(judge: str, file_format: str) -> list[Column]:
    """The columns of the matrix that Lakebed writes and the judge reads."""
    return columns_of(file_format, _names(judge, file_format, CANNOT_READ, MISREADS))


def writable_by(judge: str, file_format: str) -> list[Column]:
    """The columns of the matrix that both read and write."""
    unfit = _names(judge, file_format, CANNOT_READ, MISREADS, CANNOT_WRITE, WRITES_WRONG, LOSES_VALUES)
    return columns_of(file_format, unfit)


def _names(judge: str, file_format: str, *lists: Any) -> set[str]:
    return {name for unfit in lists for name in unfit.get((judge, file_format), ())}


# ---------------------------------------------------------------- rows and tables


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table of the matrix is laid out. Every table has the columns `id` and `part`."""

    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


LAYOUTS = {
    "key_1": Layout(["id"], [], {"bucket": "1"}),
    "key_4": Layout(["id"], [], {"bucket": "4"}),
    "key_1_partitioned": Layout(["part", "id"], ["part"], {"bucket": "1"}),
    "key_4_partitioned": Layout(["part", "id"], ["part"], {"bucket": "4"}),
    "append": Layout(),
    "append_partitioned": Layout([], ["part"]),
    "append_4": Layout([], [], {"bucket": "4", "bucket-key": "id"}),
    "append_4_partitioned": Layout([], ["part"], {"bucket": "4", "bucket-key": "id"}),
}
IDENTITY = {"id": "INT NOT NULL", "part": "STRING NOT NULL"}
_PARTS = ["a", "b/é 1"]


def rows_of(columns: list[Column], first_id: int = 0, shift: int = 0) -> list[Row]:
    """One row for each value, then one of nulls. Another `shift` gives each row other values."""
    count = max(len(column.values) for column in columns)
    rows = [
        _identity(first_id + n) | {column.name: column.values[(n + shift) % len(column.values)] for column in columns}
        for n in range(count)
    ]
    return [*rows, _identity(first_id + count) | dict.fromkeys(column.name for column in columns)]


def _identity(number: int) -> Row:
    return {"id": number, "part": _PARTS[number % 2]}
