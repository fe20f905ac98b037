"""Flink's spelling becomes Spark's; what Spark understands stays as it is."""

from __future__ import annotations

import pytest

from lakebed.sql.words.spelling import to_spark, unnested_maps

CASES = [
    ("ARRAY[1, 2]", "array(1, 2)"),
    ("ARRAY[ARRAY[1], ARRAY[2]]", "array(array(1), array(2))"),
    ("MAP['a', 1, 'b', ARRAY[2]]", "map('a', 1, 'b', array(2))"),
    ("ROW(1, ROW('x', 2))", "struct(1, struct('x', 2))"),
    ("INSERT INTO t VALUES ROW(1, 'a'), ROW(2, 'b')", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"),
    ("CAST(NULL AS ROW<a INT, b BYTES>)", "CAST(NULL AS STRUCT<a INT, b BINARY>)"),
    ("CAST(x AS ARRAY<ROW<bytes VARBINARY(4)>>)", "CAST(x AS ARRAY<STRUCT<bytes BINARY>>)"),
    ("CAST(x AS VARCHAR), CAST(y AS VARCHAR(3))", "CAST(x AS STRING), CAST(y AS VARCHAR(3))"),
    ("CAST(x AS ROW<varchar VARCHAR>)", "CAST(x AS STRUCT<varchar STRING>)"),
    ("CAST(x AS TIMESTAMP(3))", "CAST(x AS TIMESTAMP_NTZ)"),
    ("CAST(x AS TIMESTAMP_LTZ(3))", "CAST(x AS TIMESTAMP_LTZ)"),
    ("CAST(x AS TIMESTAMP)", "CAST(x AS TIMESTAMP)"),
    ("CAST(x AS MULTISET<STRING>)", "CAST(x AS MAP<STRING, INT>)"),
    ("TRY_CAST(f(a, b) AS BYTES)", "TRY_CAST(f(a, b) AS BINARY)"),
    ("SELECT a FROM t, UNNEST(xs) AS u(x)", "SELECT a FROM t, LATERAL explode(xs) AS u(x)"),
    ("SELECT a FROM t CROSS JOIN UNNEST(xs) u(x, y)", "SELECT a FROM t CROSS JOIN LATERAL inline(xs) u(x, y)"),
]

UNCHANGED = [
    "SELECT a[0], m['k'], array(1, 2)[1], map('a', 1)['a'] FROM t",
    "SELECT 'ARRAY[1]', `ROW`, \"MAP[1]\" FROM t -- ROW(1)",
    "SELECT sum(x) OVER (ORDER BY y ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT bytes, unnest FROM t",
    "SELECT CAST(a AS STRUCT<x: INT>), DATE '2024-01-01', X'00ff', 10L, 1.5BD FROM t",
    "SELECT 'it''s', 'a\\'b', 'c\\\\' FROM t",
]


@pytest.mark.parametrize(("flink", "spark"), CASES)
def test_flink_becomes_spark(flink: str, spark: str) -> None:
    """Constructors, types in casts and UNNEST are written as Spark writes them."""
    assert to_spark(flink) == spark


@pytest.mark.parametrize("text", UNCHANGED)
def test_spark_stays(text: str) -> None:
    """Text that Spark understands is not touched, not even in quotes and comments."""
    assert to_spark(text) == text


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT * FROM t, LATERAL inline(m) AS u(a, b)", 1),
        ("SELECT * FROM t, LATERAL inline(t.m) AS u(a, b), LATERAL inline(x.y.M) AS v(c, d)", 2),
        ("SELECT * FROM t, LATERAL inline(a) AS u(a, b)", 0),
        ("SELECT * FROM t, LATERAL inline(f(m)) AS u(a, b)", 0),
        ("SELECT inline(m), 'LATERAL inline(m)' FROM t", 0),
        ("SELECT m FROM t", 0),
    ],
)
def test_maps_are_taken_apart_otherwise(text: str, places: int) -> None:
    """Where a column is a map its keys and values come out, and nothing else of the text changes."""
    edits = unnested_maps(text, lambda name: name.lower() == "m")
    assert [(text[start:end], new) for (start, end), new in edits.items()] == [("inline", "explode")] * places


def test_maps_in_the_text_itself() -> None:
    """That a constructor makes a map, the text tells."""
    flink = "SELECT * FROM t, UNNEST(MAP['a', 1]) AS u(k, v)"
    assert to_spark(flink) == "SELECT * FROM t, LATERAL explode(map('a', 1)) AS u(k, v)"
