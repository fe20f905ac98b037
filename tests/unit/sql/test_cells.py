"""Values of statements as Arrow columns."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from lakebed.errors import InvalidData
from lakebed.sql.parse.query import read_expression
from lakebed.sql.words.conversion import column_of
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.literals import evaluate
from lakebed.types.logical import DataField, parse_type


def _column(data_type: str, *texts: str, zone: dt.tzinfo | None = None) -> list[object]:
    values = [evaluate(read_expression(Cursor(text)).tree) for text in texts]
    found: list[object] = column_of(DataField(0, "c", parse_type(data_type)), values, zone).to_pylist()
    return found


def test_moments_are_cut_to_the_precision_of_the_column() -> None:
    """A TIMESTAMP(3) column holds milliseconds."""
    assert _column("TIMESTAMP(3)", "'2024-01-01 00:00:00.123456'") == [dt.datetime(2024, 1, 1, 0, 0, 0, 123000)]


def test_clocks_of_columns_with_a_zone_are_read_in_the_zone_of_the_session() -> None:
    """Ten o'clock in Shanghai is two o'clock in UTC."""
    found = _column("TIMESTAMP_LTZ(3)", "TIMESTAMP '2024-01-01 10:00:00'", zone=ZoneInfo("Asia/Shanghai"))
    assert found == [dt.datetime(2024, 1, 1, 2, tzinfo=dt.UTC)]


def test_nested_columns() -> None:
    """Rows, arrays and maps of rows keep their members, nulls included."""
    found = _column("ARRAY<ROW<a INT, m MAP<STRING, DOUBLE>>>", "ARRAY[ROW(1, MAP['k', 1]), NULL]", "NULL")
    assert found == [[{"a": 1, "m": [("k", 1.0)]}, None], None]


def test_times_of_day() -> None:
    """A TIME column takes text."""
    assert _column("TIME", "'01:02:03'") == [dt.time(1, 2, 3)]


def test_errors_name_the_column() -> None:
    """What does not fit is said with the column's name."""
    with pytest.raises(InvalidData, match="column `c`"):
        _column("INT", "'x'")
