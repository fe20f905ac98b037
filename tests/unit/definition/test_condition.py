"""Conditions that tables can evaluate keep exactly the rows that SQL keeps; others are left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.definition.condition import text_predicate
from lakebed.errors import InvalidArgument, LakebedError, NotFound
from lakebed.types.predicate_evaluate import evaluate, to_expression

ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, None], pa.int32()),
        "b": pa.array([10, 20, 30, 40], pa.int64()),
        "s": pa.array(["a", "b", None, "it's"]),
        "d": pa.array([19000, 19001, 19002, None], pa.int32()).cast(pa.date32()),
        "x": pa.array([1.5, 2.0, None, -1.0]),
        "n": pa.array(["1.50", "2.00", "3.25", None]).cast(pa.decimal128(6, 2)),
        "f": pa.array([True, False, None, True]),
        "y": pa.array([0.1, float("nan"), None, -0.0], pa.float32()),
        "t": pa.array([0, 1_000_000, None, 86_400_000_000], pa.int64()).cast(pa.timestamp("us")),
        "z": pa.array([0, 1_000_000, None, 86_400_000_000], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "r": pa.array([b"a", b"\xff", None, b""]),
        "o": pa.array([{"p": 1}, None, {"p": 2}, {"p": None}]),
    }
)


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
    ("i = 1.5", []),
    ("i > 1.5", [20, 30]),
    ("i < 99999999999", [10, 20, 30]),
    ("i < 99999999999999999999", [10, 20, 30]),
    ("i = 1e0", [10]),
    ("i = '2'", [20]),
    ("i NOT IN (1, 2.5, 3)", [20]),
    ("i IN (1, 2.5, 99999999999)", [10]),
    ("s LIKE 'a%'", [10]),
    ("s LIKE '_t%s'", [40]),
    ("s NOT LIKE '%a%'", [20, 40]),
    ("s IN ('a', 'it''s')", [10, 40]),
    ("f", [10, 40]),
    ("NOT f", [20]),
    ("f IS TRUE OR i = 3", [10, 30, 40]),
    ("f IS NOT TRUE", [20, 30]),
    ("i <=> 2", [20]),
    ("NOT i <=> 2", [10, 30, 40]),
    ("i <=> NULL", [40]),
    ("y > 0", [10, 20]),
    ("y >= 0.1", [10, 20]),
    ("y > 0.1", [10, 20]),
    ("y < 1", [10, 40]),
    ("NOT y < 1", [20]),
    ("NOT y > 0", [40]),
    ("y BETWEEN 0 AND 1", [10, 40]),
    ("y = 0", [40]),
    ("y <> 0", [10, 20]),
    ("y NOT IN (0, 5)", [10, 20]),
    ("x > '1'", [10, 20]),
    ("n > 1.999", [20, 30]),
    ("t >= '1970-01-01 00:00:01'", [20, 40]),
    ("t = DATE '1970-01-02'", [40]),
    ("t > TIMESTAMP '1970-01-01 00:00:00.5'", [20, 40]),
    ("z >= '1970-01-01 00:00:01+00:00'", [20, 40]),
    ("r = X'FF'", [20]),
    ("o IS NULL", [20]),
    ("(i) = (2) AND ((b > 1))", [20]),
]


@pytest.mark.parametrize(("text", "kept"), KEPT)
def test_kept_rows(text: str, kept: list[int]) -> None:
    """A comparison means what it means in SQL, NULLs and NaN included, by batch and by expression."""
    found = text_predicate(text, ROWS.schema)
    assert ROWS.filter(to_expression(found))["b"].to_pylist() == kept
    batch = ROWS.to_batches()[0]
    assert batch.filter(evaluate(found, batch)).column("b").to_pylist() == kept


REFUSED = {
    "i + 1 = 2": "`i + 1`",
    "i = b": "`b`",
    "upper(s) = 'A'": "`UPPER(s)`",
    "s = 1": "`s = 1`",
    "i IN (1, NULL)": "NULL",
    "i IN (SELECT 1)": "SELECT 1",
    "s LIKE 'a\\\\%'": "LIKE",
    "s ILIKE 'a%'": "ILIKE",
    "EXISTS (SELECT 1)": "EXISTS",
    "d = 'yesterday'": "'yesterday' is no DATE",
    "d = TIMESTAMP '2022-01-08 00:00:00'": "zone of a session",
    "z > '1970-01-01 00:00:00'": "needs a time zone",
    "z > TIMESTAMP '1970-01-01 00:00:00'": "zone of a session",
    "b = 1e3": "without exponent",
    "n = '1.50'": "without quotes",
    "f = 'true'": "without quotes",
    "i = 'x'": "'x' is no BIGINT",
    "x = 'NaN'": "NaN",
    "o.p = 1": "`o.p`",
    "i": "`i`",
    "i = ": "is no condition",
    "": "is no condition",
    "SELECT 1": "is no condition",
    "i = 1; i = 2": "is no condition",
    "DROP TABLE t": "is no condition",
    "i > current_date()": "`CURRENT_DATE`",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_not_guessed(text: str) -> None:
    """Anything but comparisons of columns with constants is refused, and the part in question is named."""
    with pytest.raises(LakebedError) as raised:
        text_predicate(text, ROWS.schema)
    assert type(raised.value) is InvalidArgument
    assert REFUSED[text] in raised.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("upper(s) = 'A'", "lake.query('SELECT * FROM t WHERE ...')"),
        ("d > 'x'", "a value of type DOUBLE"),
        ("m > '2024-05-14'", "write it with its zone, such as '2024-05-14 00:00:00+00:00'"),
        ("m > 'noon'", "2024-05-14 13:45:00+00:00"),
    ],
)
def test_what_to_write_instead(text: str, hint: str) -> None:
    """The hint fits what is wrong."""
    schema = pa.schema([("s", pa.string()), ("d", pa.float64()), ("m", pa.timestamp("us", "UTC"))])
    with pytest.raises(InvalidArgument) as raised:
        text_predicate(text, schema)
    assert hint in raised.value.hint


def test_an_unknown_column_is_named() -> None:
    """A mistyped column is told with the nearest one."""
    with pytest.raises(NotFound, match="`stat`") as raised:
        text_predicate("stat = 'paid'", pa.schema([("state", pa.string())]))
    assert raised.value.hint == "did you mean `state`?"
