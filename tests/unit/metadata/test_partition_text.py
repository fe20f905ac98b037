"""Java's spelling of floats, and of times outside everyday ranges."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import InvalidArgument
from lakebed.metadata.partition_text import java_float_text, partition_text
from lakebed.types import logical as lt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00123, "0.00123"),
        (0.000999, "9.99E-4"),
        (1e-5, "1.0E-5"),
        (1e10, "1.0E10"),
        (2e23, "2.0E23"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    """Plain notation from 0.001 up to ten million, scientific outside."""
    assert java_float_text(np.float64(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (3.4028235e38, "3.4028235E38"), (1e-45, "1.4E-45"), (16777216.0, "1.6777216E7"), (1.0e10, "1.0E10")],
)
def test_floats_print_with_their_own_digits(value: float, text: str) -> None:
    """A FLOAT has the shortest digits that give the same float, not those of the double it converts to."""
    assert java_float_text(np.float32(value)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value: float) -> None:
    """The text is the same number, whatever the notation."""
    assert float(java_float_text(np.float64(value))) == value


@pytest.mark.parametrize(
    ("nanos", "legacy", "modern"),
    [
        (0, "1970-01-01T00:00", "1970-01-01 00:00:00.000000000"),
        (-1, "1969-12-31T23:59:59.999999999", "1969-12-31 23:59:59.999999999"),
        (1_000_000_000, "1970-01-01T00:00:01", "1970-01-01 00:00:01.000000000"),
        (1_000, "1970-01-01T00:00:00.000001", "1970-01-01 00:00:00.000001000"),
    ],
)
def test_timestamps_have_the_digits_they_need(nanos: int, legacy: str, modern: str) -> None:
    """Legacy text drops zero parts by three digits, the other keeps the type's precision."""
    value = pa.scalar(nanos, pa.timestamp("ns"))
    assert partition_text(lt.timestamp(9), value) == legacy
    assert partition_text(lt.timestamp(9), value, legacy=False) == modern


@pytest.mark.parametrize(
    ("days", "text"),
    [(2932896, "9999-12-31"), (2932897, "+10000-01-01"), (-719529, "-0001-12-31"), (-719528, "0000-01-01")],
)
def test_dates_of_any_year_have_a_text(days: int, text: str) -> None:
    """Arrow holds years that Python's own dates do not."""
    assert partition_text(lt.DATE, pa.scalar(days, pa.int32()).cast(pa.date32()), legacy=False) == text


@pytest.mark.parametrize(
    ("precision", "millis", "text"),
    [(0, 4, "00:00:00"), (3, 0, "00:00:00.0"), (3, 120, "00:00:00.12"), (1, 987, "00:00:00.9")],
)
def test_times_stop_at_their_last_digit(precision: int, millis: int, text: str) -> None:
    """The cast to text leaves one zero when there is no fraction, and never more digits than the precision."""
    assert partition_text(lt.time(precision), pa.scalar(millis, pa.time32("ms")), legacy=False) == text


@pytest.fixture
def in_shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time eight hours ahead of UTC."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_shanghai")
def test_instants_are_local_only_in_the_new_spelling() -> None:
    """The legacy spelling prints the instant in UTC, the cast to text in local time."""
    value = pa.scalar(datetime.datetime(2024, 1, 1, 20, tzinfo=datetime.UTC), pa.timestamp("ms", tz="UTC"))
    assert partition_text(lt.timestamp_ltz(3), value) == "2024-01-01T20:00"
    assert partition_text(lt.timestamp_ltz(3), value, legacy=False) == "2024-01-02 04:00:00.000"


def test_nested_types_can_not_be_partitions() -> None:
    """A list has no directory name."""
    with pytest.raises(InvalidArgument, match="ARRAY"):
        partition_text(lt.ArrayType(lt.INT), pa.scalar([1]))
