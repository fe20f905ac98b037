"""The columns of the compatibility matrix: every type with values that hurt, in canonical form.

A column's values run from plain to extreme; row `n` of the matrix takes the `n`-th value of each column, starting over
where a column has fewer, and the last row is all null. What a format has no room for is said here, once, with the
reason; what a judge does not manage is listed where the judges are asked.
"""

from dataclasses import dataclass, replace
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


_SECONDS = ("2024-02-29T23:59:59", "1970-01-01T00:00:00", "1969-12-31T23:59:58", "0001-01-01T00:00:00",
            "9999-12-31T23:59:59")
_MILLIS = ("2024-01-02T03:04:05.120000", "1970-01-01T00:00:00.001000", "1969-12-31T23:59:58.999000",
           "0001-01-01T00:00:00.001000", "9999-12-31T23:59:59.999000")
_MICROS = ("2024-01-02T03:04:05.123456", "1970-01-01T00:00:00.000001", "1969-12-31T23:59:58.999999",
           "0001-01-01T00:00:00.000001", "9999-12-31T23:59:59.999999")
_NANOS = ("2024-01-02T03:04:05.123456789", "1970-01-01T00:00:00.000000001", "1969-12-31T23:59:58.999999999",
          "1677-09-22T00:00:00.000000001", "2262-04-11T23:47:16.854775807")

COLUMNS = [
    Column("c_boolean", "BOOLEAN", (True, False)),
    Column("c_tinyint", "TINYINT", (1, 0, -1, -128, 127)),
    Column("c_smallint", "SMALLINT", (1, 0, -1, -32768, 32767)),
    Column("c_int", "INT", (1, 0, -1, -2147483648, 2147483647)),
    Column("c_bigint", "BIGINT", (1, 0, -1, -9223372036854775808, 9223372036854775807)),
    Column("c_float", "FLOAT", (0.10000000149011612, -0.0, "NaN", "-Infinity", "Infinity", 1.401298464324817e-45,
                                -3.4028234663852886e38)),
    Column("c_double", "DOUBLE", (0.1, -0.0, "NaN", "-Infinity", "Infinity", 5e-324, -1.7976931348623157e308)),
    Column("c_char", "CHAR(3)", ("abc", "äöü", "中文字", "\U0001f300\U0001f300\U0001f300")),
    Column("c_varchar", "VARCHAR(20)", ("plain", "", "Grüße", "\U0001f300", " blank ", "\x00\x01")),
    Column("c_string", "STRING", ("plain", "", "中文", "\U0001f300\U0010ffff", 'a "quote" \\ \u2028 \n', "x" * 5000)),
    Column("c_binary", "BINARY(3)", _base64("AAEC", "////", "AAAA")),
    Column("c_varbinary", "VARBINARY(8)", _base64("AQ==", "", "/wD/")),
    Column("c_bytes", "BYTES", _base64("AP8=", "", "gIGCg4SFhoeIiYqLjI2Ojw==")),
    Column("c_decimal_9", "DECIMAL(9, 2)", ("1.50", "0.00", "-0.01", "-9999999.99", "9999999.99")),
    Column("c_decimal_18", "DECIMAL(18, 4)", ("1.5000", "0.0000", "-0.0001", "-99999999999999.9999",
                                              "99999999999999.9999")),
    Column("c_decimal_20", "DECIMAL(20, 5)", ("1.50000", "0.00000", "-0.00001", "-999999999999999.99999",
                                              "999999999999999.99999")),
    Column("c_decimal_38", "DECIMAL(38, 10)", ("1.5000000000", "0.0000000000", "-0.0000000001",
                                               "-9999999999999999999999999999.9999999999",
                                               "9999999999999999999999999999.9999999999")),
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
    Column("c_row_row", "ROW<x INT, y ROW<z STRING, w DECIMAL(9, 2)>>", (
        {"x": 1, "y": {"z": "deep", "w": "1.50"}}, {"x": None, "y": None}, {"x": 2, "y": {"z": None, "w": None}})),
    Column("c_array_row", "ARRAY<ROW<x BIGINT, y BOOLEAN>>", ([{"x": 1, "y": True}, None, {"x": None, "y": None}],
                                                              [])),
    Column("c_row_nested", "ROW<a ARRAY<INT>, m MAP<STRING, INT>>", (
        {"a": [1, None], "m": [["k", 1]]}, {"a": None, "m": None}, {"a": [], "m": []})),
    Column("c_multiset", "MULTISET<STRING>", ([["x", 2], ["y", 1]], [], [["", 2147483647]])),
    Column("c_multiset_int", "MULTISET<INT>", ([[-1, 2], [5, 1]], [])),
    Column("c_variant", "VARIANT", ({"value": "base64:DAE=", "metadata": "base64:AQAA"},
                                    {"value": "base64:AA==", "metadata": "base64:AQAA"})),
]
FINE_COLUMNS = [
    Column("c_ts_9", "TIMESTAMP(9)", _NANOS),
    Column("c_ltz_9", "TIMESTAMP(9) WITH LOCAL TIME ZONE", _zoned(*_NANOS)),
]
