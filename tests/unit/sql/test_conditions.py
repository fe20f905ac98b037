"""Conditions that tables can evaluate keep exactly the rows that SQL keeps; others are left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.sql.parse.query import read_expression
from lakebed.sql.query.pushdown import to_predicate
from lakebed.sql.words.cursor import Cursor
from lakebed.types.logical import DataField, parse_type
from lakebed.types.predicate import Predicate
from lakebed.types.predicate_evaluate import to_expression

TYPES = {"i": "INT", "b": "BIGINT", "s": "STRING", "d": "DATE", "x": "DOUBLE", "n": "DECIMAL(6, 2)", "f": "BOOLEAN"}
FIELDS = tuple(DataField(number, name, parse_type(kind)) for number, (name, kind) in enumerate(TYPES.items()))
ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, None], pa.int32()),
        "b": pa.array([10, 20, 30, 40], pa.int64()),
        "s": pa.array(["a", "b", None, "it's"]),
        "d": pa.array([19000, 19001, 19002, None], pa.int32()).cast(pa.date32()),
        "x": pa.array([1.5, 2.0, None, -1.0]),
        "n": pa.array(["1.50", "2.00", "3.25", None]).cast(pa.decimal128(6, 2)),
        "f": pa.array([True, False, None, True]),
    }
)


def predicate(text: str) -> Predicate | None:
    """The filter that a condition stands for."""
    return to_predicate(read_expression(Cursor(text)).tree, FIELDS)


KEPT = [
    ("i = 2", [20]),
    ("2 < i", [30]),
    ("i <> 2", [10, 30]),
    ("i >= 2 AND s IS NULL", [30]),
    ("i = 1 OR (s = 'it''s')", [10, 40]),
    ("NOT i = 2", [10, 30]),
    ("NOT (i = 2 OR s = 'a')", []),
    ("i IN (1, 3)", [10, 30]),
    ("i NOT IN (1, 3)", [20]),
    ("b BETWEEN 20 AND 30", [20, 30]),
    ("s IS NOT NULL", [10, 20, 40]),
    ("s > 'a'", [20, 40]),
    ('s = "b"', [20]),
    ("d = '2022-01-08'", [10]),
    ("d > DATE '2022-01-08'", [20, 30]),
    ("n = 3.25", [30]),
    ("x = 2", [20]),
    ("x < 0.0", [40]),
    ("f = true", [10, 40]),
    ("I = 2L", [20]),
    ("i = NULL", []),
    ("true", [10, 20, 30, 40]),
]


@pytest.mark.parametrize(("text", "kept"), KEPT)
def test_kept_rows(text: str, kept: list[int]) -> None:
    """A comparison means what it means in SQL, NULLs included."""
    found = predicate(text)
    assert found is not None
    assert ROWS.filter(to_expression(found))["b"].to_pylist() == kept


LEFT_TO_SPARK = [
    "i + 1 = 2",
    "i = b",
    "upper(s) = 'A'",
    "nope = 1",
    "s = 1",
    "i = 1.5",
    "i IN (1, NULL)",
    "i IN (SELECT 1)",
    "s LIKE 'a%'",
    "EXISTS (SELECT 1)",
    "i = 99999999999",
    "d = 'yesterday'",
    "d = TIMESTAMP '2022-01-08 00:00:00'",
]


@pytest.mark.parametrize("text", LEFT_TO_SPARK)
def test_what_is_not_understood_is_not_guessed(text: str) -> None:
    """Anything but comparisons of columns with constants of their type gives no filter."""
    assert predicate(text) is None
