"""`lake.sql(text, args=...)`: values stay values, whatever they hold, in every statement."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokens import TokenType
from tests.unit.warehouse_under_test import Warehouse

from lakebed.errors import InvalidArgument
from lakebed.sql.words.cursor import tokens_of
from lakebed.sql.words.parameters import bound, literal

ATTACKS = [
    "'; DROP TABLE t; --",
    "\\'; DROP TABLE t; --",
    "\\\\'; DROP TABLE t; --",
    "'') OR 1=1",
    "a\\",
    "a\\\\",
    "'",
    "''",
    '"',
    "`",
    ":v",
    "?",
    "-- no",
    "/* no",
    "*/",
    "a\nb",
    "\u2028",
    "\x1a",
    "é\U0001f600",
    "${x}",
    "\\u0027; DROP TABLE t; --",
    "\\047",
    "%_\\%\\_",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_a_text_stays_a_text(warehouse: Warehouse, text: str) -> None:
    """It is written as it is, by name and by place, and nothing else happens."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (v STRING)")
    lake.sql("INSERT INTO t VALUES (:v)", args={"v": text})
    lake.sql("INSERT INTO t VALUES (?), (':v ?')", args=[text])
    assert sorted(lake.table("t").to_arrow()["v"].to_pylist()) == sorted([text, text, ":v ?"])
    assert not lake.is_spark_started


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_any_text_is_one_word(text: str) -> None:
    """The words of the statement are those of before, and a text that is the value."""
    tokens = tokens_of(bound("INSERT INTO t VALUES (:v) -- :v", {"v": text}))
    assert [token.text for token in tokens[:5]] == ["INSERT", "INTO", "t", "VALUES", "("]
    assert (tokens[5].token_type, tokens[5].text, tokens[6].text) == (TokenType.STRING, text, ")")
    assert len(tokens) == 7


VALUES: list[tuple[Any, str, Any]] = [
    (7, "INT", 7),
    (-1, "INT", -1),
    (-(1 << 31), "INT", -(1 << 31)),
    (1 << 40, "BIGINT", 1 << 40),
    (-(1 << 63), "BIGINT", -(1 << 63)),
    (np.int64(5), "BIGINT", 5),
    (True, "BOOLEAN", True),
    (None, "INT", None),
    (1.5, "DOUBLE", 1.5),
    (1e300, "DOUBLE", 1e300),
    (-0.1, "DOUBLE", -0.1),
    (Decimal("12.50"), "DECIMAL(10, 2)", Decimal("12.50")),
    (Decimal(100), "DECIMAL(10, 0)", Decimal(100)),
    (Decimal("-1E+2"), "DECIMAL(10, 0)", Decimal(-100)),
    (b"\x00'\xff", "BYTES", b"\x00'\xff"),
    (dt.date(2024, 2, 29), "DATE", dt.date(2024, 2, 29)),
    (dt.datetime(2024, 2, 29, 1, 2, 3, 45), "TIMESTAMP(6)", dt.datetime(2024, 2, 29, 1, 2, 3, 45)),
    ([1, 2], "ARRAY<INT>", [1, 2]),
    (["a'b", None], "ARRAY<STRING>", ["a'b", None]),
    ({"k": 1}, "MAP<STRING, INT>", [("k", 1)]),
    (uuid.UUID(int=1), "STRING", str(uuid.UUID(int=1))),
]


@pytest.mark.parametrize(("value", "kind", "stored"), VALUES)
def test_values_reach_columns(warehouse: Warehouse, value: object, kind: str, stored: object) -> None:
    """Every kind of value is a literal of its type, and needs no Spark to be written."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE t (v {kind}); INSERT INTO t VALUES (:v)", args={"v": value})
    assert lake.table("t").to_arrow()["v"].to_pylist() == [stored]
    assert not lake.is_spark_started


def test_statements_that_take_values(warehouse: Warehouse) -> None:
    """Procedures, partitions, options, comments, patterns and SET take them like INSERT."""
    lake = warehouse.lake
    lake.sql(
        "CREATE TABLE t (v INT, d STRING) COMMENT :c PARTITIONED BY (d) WITH ('bucket' = :b)", {"c": "it's", "b": -1}
    )
    assert (lake.table("t").comment, lake.table("t").options["bucket"]) == ("it's", "-1")
    lake.sql("INSERT INTO t PARTITION (d = ?) VALUES (?), (?)", ["x'y", 1, 2])
    lake.sql("CALL sys.create_tag(table => :t, tag => :tag, snapshot => :n)", {"t": "t", "tag": "a-b", "n": 1})
    assert "a-b" in lake.table("t").tags()
    assert lake.sql("SHOW TABLES LIKE ?", ["t"]).count() == 1
    lake.sql("ALTER TABLE t DROP PARTITION (d = :d)", {"d": "x'y"})
    assert lake.table("t").to_arrow().num_rows == 0
    lake.sql("RESTORE TABLE t TO VERSION AS OF :v", {"v": "a-b"})
    assert lake.table("t").to_arrow().num_rows == 2


def test_only_markers_are_markers() -> None:
    """Quotes, comments, names, casts and members of a type are left alone; no comment comes about."""
    args = {"a": -7, "INT": 0, "b": "x"}
    text = "SELECT ':a', `:a`, \":a\", a[1:2], CAST(x AS STRUCT<a:INT>) /* :a */ -- :a"
    assert bound(text, args) == text
    assert bound("SELECT 1-:a, :a::BIGINT", args) == "SELECT 1- -7 ,  -7 ::BIGINT"
    assert bound("SELECT ?::INT", [1]) == "SELECT  1 ::INT"
    assert bound("SELECT :a", None) == "SELECT :a"


@pytest.mark.parametrize(
    ("text", "args", "says"),
    [
        ("SELECT :nmae", {"name": 1}, "did you mean `name`"),
        ("SELECT ?", {"name": 1}, "args are named"),
        ("SELECT ?, ?", [1], "2 question marks"),
        ("SELECT ?", [1, 2], "2 values"),
        ("SELECT :x", {"x": object()}, "of type object"),
        ("SELECT :x", {"x": "a\0b"}, "character"),
        ("SELECT :x", {"x": "\ud800"}, "character"),
        ("SELECT :x", {"x": 10**38}, "38 digits"),
        ("SELECT :x", {"x": Decimal("NaN")}, "DECIMAL"),
        ("SELECT :x", {"x y": 1}, "no name"),
        ("SELECT :x", {1: 1}, "no name"),
        ("SELECT :x", "x", "args is str"),
        ("SELECT :x", 5, "args is int"),
    ],
)
def test_what_can_not_be_bound(warehouse: Warehouse, text: str, args: Any, says: str) -> None:
    """It is said before anything runs."""
    with warehouse.refuses(InvalidArgument, says):
        warehouse.lake.sql(f"CREATE TABLE u (a INT); {text}", args=args)


def test_what_spark_is_told() -> None:
    """Literals that only Spark reads."""
    assert literal(dt.datetime(2024, 1, 1, tzinfo=dt.UTC)) == "TIMESTAMP '2024-01-01 00:00:00+00:00'"
    assert literal(dt.timedelta(days=-1, hours=2)) == "INTERVAL '-0 22:00:00.000000' DAY TO SECOND"
    assert literal(dt.time(1, 2, 3)) == "TIME '01:02:03'"
    assert literal(float("nan")) == "CAST('NaN' AS DOUBLE)"
