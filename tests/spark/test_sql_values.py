"""Values worked out without Spark are what Spark makes of them."""

from __future__ import annotations

import pytest

import lakebed
from lakebed.errors import LakebedError

_TYPES = {
    "INT": ["1", "-1", "1.9", "-1.9", "CAST('7' AS INT)", "2 + 3 * 4", "1e1", "CAST(1.5 AS BIGINT)", "3L"],
    "BIGINT": ["2147483648", "9223372036854775807", "-9223372036854775808", "1.5D"],
    "TINYINT": ["127", "-128", "CAST(5 AS SMALLINT)"],
    "DOUBLE": ["1", "1.1", "1e-3", "CAST('1.25' AS DOUBLE)", "2.5F"],
    "FLOAT": ["1.1", "16777217", "CAST(0.1 AS DOUBLE)"],
    "DECIMAL(6, 2)": [
        "1",
        "1.005",
        "-1.005",
        "CAST(1.239 AS DECIMAL(10, 3))",
        "CAST('12.3' AS DECIMAL(4, 1))",
        "1.1e1",
    ],
    "STRING": ["'a'", "1", "1.50", "TRUE", "DATE '2024-02-03'", "'it''s'", "X'6162'", "CAST(7 AS STRING)"],
    "CHAR(4)": ["'ab'", "'abcd'", "12"],
    "BOOLEAN": ["TRUE", "false", "CAST('true' AS BOOLEAN)"],
    "BYTES": ["X'01FF'", "'ab'"],
    "DATE": ["'2024-02-03'", "DATE '2024-02-03'", "TIMESTAMP '2024-02-03 23:59:59'", "CAST('2024-2-3' AS DATE)"],
    "TIMESTAMP(3)": [
        "'2024-02-03 04:05:06.789'",
        "TIMESTAMP '2024-02-03 04:05:06.7891'",
        "DATE '2024-02-03'",
        "'2024-02-03'",
    ],
    "TIMESTAMP_LTZ(6)": ["TIMESTAMP '2024-07-03 04:05:06.123456'", "'2024-01-03 04:05:06'"],
    "ARRAY<INT>": ["ARRAY[1, NULL]", "array()", "CAST(NULL AS ARRAY<INT>)", "array(1L)"],
    "MAP<STRING, DOUBLE>": ["MAP['a', 1.5, 'b', NULL]", "map('a', 1.5D)"],
    "ROW<a INT, b ROW<c STRING>>": ["ROW(1, ROW('x'))", "named_struct('a', 1, 'b', struct('y'))", "struct(NULL, NULL)"],
}


@pytest.mark.parametrize("data_type", _TYPES)
def test_both_ways_store_the_same(lake: lakebed.Lake, data_type: str) -> None:
    """`VALUES` without Spark and `SELECT` with it leave the same rows, or both are refused."""
    lake.sql(f"CREATE TABLE here (k INT, v {data_type}); CREATE TABLE there (k INT, v {data_type})")
    for index, value in enumerate(_TYPES[data_type]):
        answers = []
        for statement in (f"INSERT INTO here VALUES ({index}, {value})", f"INSERT INTO there SELECT {index}, {value}"):
            try:
                lake.sql(statement)
                answers.append("stored")
            except LakebedError as error:
                answers.append(type(error).__name__)
        assert answers[0] == answers[1], value
    here, there = (
        sorted(lake.table(name).to_arrow().to_pylist(), key=lambda row: row["k"]) for name in ("here", "there")
    )
    assert here == there


@pytest.mark.parametrize(
    ("data_type", "value"),
    [("INT", "TRUE"), ("BOOLEAN", "1"), ("DATE", "1"), ("TINYINT", "128"), ("INT", "array(1)")],
)
def test_both_ways_refuse_the_same(lake: lakebed.Lake, data_type: str, value: str) -> None:
    """What needs a cast, or does not fit, is refused on either way."""
    lake.sql(f"CREATE TABLE t (v {data_type})")
    for statement in (f"INSERT INTO t VALUES ({value})", f"INSERT INTO t SELECT {value}"):
        with pytest.raises(LakebedError):
            lake.sql(statement)
    assert lake.table("t").snapshots() == []
