"""Tables with a column of every kind and values at its edges, for whoever compares what conditions find."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed

NAN = float("nan")
COLUMNS = {
    "id": "INT NOT NULL",
    "tiny": "TINYINT",
    "big": "BIGINT",
    "f": "DOUBLE",
    "g": "FLOAT",
    "s": "STRING",
    "d": "DECIMAL(10, 2)",
    "ts": "TIMESTAMP(6)",
    "ms": "TIMESTAMP(3)",
    "ns": "TIMESTAMP(9)",
    "tz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "day": "DATE",
    "b": "BOOLEAN",
    "raw": "BYTES",
    "clock": "TIME(3)",
    "n": "ROW<x INT, y STRING>",
    "l": "ARRAY<INT>",
    "m": "MAP<STRING, INT>",
}
MOMENTS = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 3, 4, 5, 678901), None, dt.datetime(2021, 6, 1), None, None]
VALUES: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6],
    "tiny": [1, -128, None, 127, 0, 5],
    "big": [1, 2**62, None, -(2**62), 0, 5],
    "f": [1.5, NAN, None, -0.0, float("inf"), float("-inf")],
    "g": [0.1, NAN, None, -0.0, 2.0, float("inf")],
    "s": ["a", "ß", None, "", "Z", "abc"],
    "d": [Decimal("1.10"), Decimal("-2.25"), None, Decimal(0), Decimal("99999999.99"), Decimal("3.30")],
    "ts": MOMENTS,
    "ms": [moment and moment.replace(microsecond=678000) for moment in MOMENTS],
    "ns": MOMENTS,
    "tz": [moment and moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    "day": [moment and moment.date() for moment in MOMENTS],
    "b": [True, False, None, True, False, None],
    "raw": [b"a", b"\xff", None, b"", b"Z", b"abc"],
    "clock": [dt.time(1, 2, 3), dt.time(23, 59, 59, 999000), None, dt.time(0), dt.time(12), dt.time(5)],
    "n": [{"x": 1, "y": "p"}, {"x": 2, "y": None}, None, {"x": None, "y": "q"}, {"x": 5, "y": ""}, {"x": 6, "y": "p"}],
    "l": [[1], [2, None], None, [], [5], [6, 7]],
    "m": [[("k", 1)], [], None, [("j", None)], [("k", 5)], []],
}
SHAPES = ["keyed", "appended", "vectors"]


def wide_table(house: Warehouse, shape: str) -> lakebed.Table:
    """The rows in a table with runs to merge, in one without a key, or in one with deletion vectors."""
    more: dict[str, Any] = {"primary_key": ["id"], "options": {"bucket": "1"}} if shape == "keyed" else {}
    if shape == "vectors":
        more = {"options": {"deletion-vectors.enabled": "true"}}
    made = house.table(shape, COLUMNS, **more)
    schema = made.arrow_schema
    rows = pa.table({name: pa.array(VALUES[name], schema.field(name).type) for name in VALUES}, schema=schema)
    if shape == "keyed":
        made.write(pa.concat_tables([rows.slice(3), rows.slice(0, 2)]))
    made.write(rows)
    if shape == "vectors":
        made.write(rows.set_column(0, rows.schema.field("id"), ints(11, 12, 13, 14, 15, 16)))
        made.delete_where([("id", ">", 10)])
    return made
