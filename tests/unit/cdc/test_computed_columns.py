"""Functions of computed columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cdc.envelope import Description, SourceColumn
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.errors import InvalidArgument, InvalidData
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import parse_type

MOMENT = dt.datetime(2024, 2, 29, 13, 4, 5, 678_000)


def computed(text: str, values: list[Any], type_text: str) -> tuple[list[Any], str]:
    column = ComputedColumn.parse(text)
    description = Description((SourceColumn("c", type_text),))  # type: ignore[arg-type]
    data_type = parse_type(type_text)
    result = column.type_in(description)
    assert result is not None
    array = pa.array(values, to_arrow_type(data_type))
    found = column.evaluate({"c": array}, {"c": data_type}, len(values), result)
    assert found.type == to_arrow_type(result)
    return found.to_pylist(), str(result)


@pytest.mark.parametrize(
    ("function", "expected"),
    [("year", 2024), ("month", 2), ("day", 29), ("hour", 13), ("minute", 4), ("second", 5)],
)
def test_parts_of_times(function: str, expected: int) -> None:
    """Parts are INT; NULL stays NULL; times, dates, texts and counts since the epoch are understood."""
    assert computed(f"x={function}(c)", [MOMENT, None], "TIMESTAMP(3)") == ([expected, None], "INT")
    assert computed(f"x={function}(c)", ["2024-02-29 13:04:05.678"], "STRING")[0] == [expected]
    millis = int(MOMENT.replace(tzinfo=dt.UTC).timestamp() * 1000)
    assert computed(f"x={function}(c, 3)", [millis], "BIGINT")[0] == [expected]
    assert computed(f"x={function}(c)", [millis // 1000], "BIGINT")[0] == [expected]
    assert computed(f"x={function}(c, 6)", [millis * 1000], "BIGINT")[0] == [expected]
    assert computed(f"x={function}(c, 9)", [millis * 1_000_000], "BIGINT")[0] == [expected]


def test_parts_of_dates_and_instants() -> None:
    """Dates have a year; instants are taken apart in UTC."""
    assert computed("x=year(c)", [dt.date(1969, 12, 31)], "DATE")[0] == [1969]
    assert computed("x=hour(c)", [MOMENT.replace(tzinfo=dt.UTC)], "TIMESTAMP_LTZ(6)")[0] == [13]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd", "2024-02-29"),
        ("yyyyMMdd'T'HHmmss", "20240229T130405"),
        ("yy/M/d H:m:s.SSS", "24/2/29 13:4:5.678"),
        ("EEE d MMM yyyy, hh:mm a", "Thu 29 Feb 2024, 01:04 PM"),
        ("SSSSSS", "678000"),
        ("DDD", "060"),
    ],
)
def test_i_06_dates_are_formatted_by_java_patterns(pattern: str, expected: str) -> None:
    """I-06: a partition column comes from a date format; each row has its own."""
    other = MOMENT.replace(year=2023, month=3, day=1)
    quoted = f'x=date_format(c, "{pattern}")'
    values, type_text = computed(quoted, [MOMENT, None, other], "TIMESTAMP(3)")
    assert (values[:2], type_text) == ([expected, None], "STRING")
    assert values[2] != expected or pattern in ("SSSSSS", "DDD")


@pytest.mark.parametrize(
    ("text", "type_text", "values", "expected"),
    [
        ("x=substring(c, 1)", "STRING", ["abc", "", None], ["bc", "", None]),
        ("x=substring(c, 1, 2)", "STRING", ["abc", "äöü"], ["b", "ö"]),
        ("x=substring(c, 0, 2)", "INT", [12345], ["12"]),
        ("x=truncate(c, 2)", "STRING", ["abc", "a", None], ["ab", "a", None]),
        ("x=truncate(c, 10)", "INT", [19, -1, 0, None, -10], [10, -10, 0, None, -10]),
        ("x=truncate(c, 50)", "DECIMAL(9, 2)", [Decimal("10.65"), Decimal("-0.01"), None], ["10.50", "-0.50", None]),
        ("x=truncate(c, 50)", "DECIMAL(30, 2)", [Decimal("10.65"), Decimal("-0.01"), None], ["10.50", "-0.50", None]),
        ("x=upper(c)", "STRING", ["äb", None], ["ÄB", None]),
        ("x=lower(c)", "STRING", ["ÄB"], ["äb"]),
        ("x=trim(c)", "STRING", ["\t a b \n"], ["a b"]),
    ],
)
def test_cut_and_changed_values(text: str, type_text: str, values: list[Any], expected: list[Any]) -> None:
    """Texts and numbers are cut and changed as Paimon does it."""
    found, result = computed(text, values, type_text)
    wanted = [Decimal(v) if v is not None and type_text.startswith("DECIMAL") else v for v in expected]
    assert found == wanted
    assert result == (type_text if "truncate" in text else "STRING")


def test_constants_and_the_present() -> None:
    """`cast` gives every row one value of a type, `now` the time at which it is written."""
    assert computed('x=cast("7.5", "DECIMAL(10, 2)")', [1, 2], "INT") == ([Decimal("7.50")] * 2, "DECIMAL(10, 2)")
    assert computed("x=cast(eu)", [1], "INT") == (["eu"], "STRING")
    (moment,), type_text = computed("x=now()", [1], "INT")
    assert abs((dt.datetime.now(dt.UTC) - moment).total_seconds()) < 60
    assert type_text == "TIMESTAMP(3) WITH LOCAL TIME ZONE"


def test_a_missing_column_gives_null() -> None:
    """Where the source lacks the argument, the column is NULL."""
    column = ComputedColumn.parse("x=year(other)")
    found = column.evaluate({}, {"c": parse_type("INT")}, 2, parse_type("INT"))
    assert found.to_pylist() == [None, None]


@pytest.mark.parametrize(
    "text",
    ["year(c)", "x=", "x=yeer(c)", "x=year()", "x=date_format(c)", "x=date_format(c, QQQ)", "x=truncate(c, 0)",
     "x=substring(c, a)", "x=year(c, 5)", "x=cast(1, ARRAY<INT>)"],
)  # fmt: skip
def test_what_is_not_understood_is_refused(text: str) -> None:
    """Unknown functions, patterns and arguments are errors before anything runs."""
    with pytest.raises(InvalidArgument):
        computed(text, [1], "INT")


def test_a_value_that_is_no_time_names_the_column() -> None:
    """A text that is no time is an error that names the computed column."""
    with pytest.raises(InvalidData, match="`x`"):
        computed("x=year(c)", ["no time"], "STRING")
