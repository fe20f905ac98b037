"""Values in statements: what they are worked out to, and what is left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from lakebed.errors import InvalidData
from lakebed.sql.parse.query import read_expression
from lakebed.sql.words.conversion import convert
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.literals import evaluate
from lakebed.sql.words.values import Items, Members, NotLiteral, Pairs, Scalar, Value
from lakebed.types.logical import TypeRoot, parse_type

_NS = 10**9


def _value(text: str) -> Value:
    return evaluate(read_expression(Cursor(text)).tree)


@pytest.mark.parametrize(
    ("text", "root", "value"),
    [
        ("7", TypeRoot.INT, 7),
        ("-2147483648", TypeRoot.INT, -2147483648),
        ("2147483648", TypeRoot.BIGINT, 2147483648),
        ("7L", TypeRoot.BIGINT, 7),
        ("1.50", TypeRoot.DECIMAL, Decimal("1.50")),
        ("1e3", TypeRoot.DOUBLE, 1000.0),
        ("1.5D", TypeRoot.DOUBLE, 1.5),
        ("'a''b'", TypeRoot.VARCHAR, "a'b"),
        ("TRUE", TypeRoot.BOOLEAN, True),
        ("X'01AB'", TypeRoot.VARBINARY, b"\x01\xab"),
        ("DATE '2024-02-29'", TypeRoot.DATE, dt.date(2024, 2, 29)),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", TypeRoot.TIMESTAMP, 3 * _NS // 2),
        ("CAST('7' AS INT)", TypeRoot.INT, 7),
        ("CAST(7 AS STRING)", TypeRoot.VARCHAR, "7"),
        ("CAST(1.005 AS DECIMAL(10, 2))", TypeRoot.DECIMAL, Decimal("1.01")),
        ("CAST('2024-01-02' AS DATE)", TypeRoot.DATE, dt.date(2024, 1, 2)),
        ("2 + 3 * 4", TypeRoot.INT, 14),
    ],
)
def test_scalars(text: str, root: TypeRoot, value: object) -> None:
    """A literal has the type and value that Spark gives it."""
    assert _value(text) == Scalar(root, value)


def test_null_and_cast_of_null() -> None:
    """NULL is None whatever it is cast to."""
    assert _value("NULL") is None
    assert _value("CAST(NULL AS ARRAY<ROW<a INT>>)") is None


def test_nested_values_in_both_spellings() -> None:
    """Arrays, maps and rows are read in Flink's spelling as in Spark's."""
    one, text = Scalar(TypeRoot.INT, 1), Scalar(TypeRoot.VARCHAR, "a")
    assert _value("ARRAY[1, NULL]") == _value("array(1, NULL)") == Items((one, None))
    assert _value("MAP['a', 1]") == _value("map('a', 1)") == Pairs((text,), (one,))
    assert _value("ROW(1, 'a')") == _value("named_struct('x', 1, 'y', 'a')") == Members((one, text))


@pytest.mark.parametrize(
    "text",
    [
        "current_date()",
        "1 / 2",
        "CAST('x' AS INT)",
        "CAST(300 AS TINYINT)",
        "map('a', 1, 'a', 2)",
        "a",
        "2147483647 + 1",
    ],
)
def test_the_rest_is_left_to_spark(text: str) -> None:
    """Functions, columns, and casts whose outcome depends on settings are not worked out here."""
    with pytest.raises(NotLiteral):
        _value(text)


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("1.9", "INT", 1),
        ("-1.9", "INT", -1),
        ("1", "DOUBLE", 1.0),
        ("1", "STRING", "1"),
        ("1.50", "STRING", "1.50"),
        ("TRUE", "STRING", "true"),
        ("'2024-01-01 10:00:00'", "TIMESTAMP(3)", 1704103200 * _NS),
        ("'2024-01-01'", "DATE", dt.date(2024, 1, 1)),
        ("DATE '1970-01-02'", "TIMESTAMP(6)", 86400 * _NS),
        ("'12:30'", "TIME", 45000 * _NS),
        ("'ab'", "BYTES", b"ab"),
        ("1.005", "DECIMAL(5, 2)", Decimal("1.01")),
    ],
)
def test_columns_take_values_of_other_types(text: str, data_type: str, value: object) -> None:
    """What a column takes without a cast is turned into its type."""
    found = convert(_value(text), parse_type(data_type), explicit=False)
    assert isinstance(found, Scalar)
    assert found.value == value


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("'x'", "INT"),
        ("'1.5'", "INT"),
        ("'yes'", "BOOLEAN"),
        ("TRUE", "INT"),
        ("1", "BOOLEAN"),
        ("1", "DATE"),
        ("array(1)", "INT"),
        ("1", "ARRAY<INT>"),
    ],
)
def test_columns_refuse_what_needs_a_cast(text: str, data_type: str) -> None:
    """Text that spells no number is none, and a number is no date, unless the user says so."""
    with pytest.raises(InvalidData, match="column `c`"):
        convert(_value(text), parse_type(data_type), explicit=False, place="column `c`")


@pytest.mark.parametrize(("text", "data_type"), [("128", "TINYINT"), ("1000", "DECIMAL(3, 0)"), ("1e20", "BIGINT")])
def test_values_out_of_range_are_refused(text: str, data_type: str) -> None:
    """A number that does not fit is an error, never another number."""
    with pytest.raises(InvalidData, match="does not fit"):
        convert(_value(text), parse_type(data_type), explicit=False)


def test_rows_need_all_members() -> None:
    """A row with too few members is refused."""
    with pytest.raises(InvalidData, match="2 members"):
        convert(_value("ROW(1, 2)"), parse_type("ROW<a INT, b INT, c INT>"), explicit=False)
