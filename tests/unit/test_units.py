"""Sizes and durations: every spelling Paimon reads, nothing it does not, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import InvalidOption
from lakebed.units import (
    DAY_MS,
    GIB,
    HOUR_MS,
    KIB,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    SECOND_MS,
    TIB,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("500", 500),
        ("500 bytes", 500),
        ("1b", 1),
        ("128 mb", 128 * MIB),
        ("128MB", 128 * MIB),
        (" 2 g ", 2 * GIB),
        ("3 kibibytes", 3 * KIB),
        ("1 tb", TIB),
        ("9223372036854775807 b", LONG_MAX),
    ],
)
def test_parse_size(text: str, size_bytes: int) -> None:
    """A size is a whole number with a unit of a power of 1024, bytes if there is none, in any case."""
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("1500", 1500),
        ("10 ms", 10),
        ("1 h", HOUR_MS),
        ("7d", 7 * DAY_MS),
        ("2 days", 2 * DAY_MS),
        ("10 s", 10 * SECOND_MS),
        ("3 secs", 3 * SECOND_MS),
        ("5 m", 5 * MINUTE_MS),
        ("5 MIN", 5 * MINUTE_MS),
        ("1 minute", MINUTE_MS),
        ("2500 us", 2),
        ("2500 µs", 2),
        ("999999 ns", 0),
        ("12 millis", 12),
    ],
)
def test_parse_duration(text: str, duration_ms: int) -> None:
    """A duration is a whole number with a unit, milliseconds if there is none; finer parts are cut off."""
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize(
    "text", ["", " ", "mb", "-1 mb", "1.5 gb", "1 qb", "1 mb 2", "1 h", "9" * 30, "9223372036854775807 kb", "١ mb"]
)
def test_bad_size_is_named(text: str) -> None:
    """What is no size is refused with an error that shows the text and says how to write one."""
    with pytest.raises(InvalidOption) as caught:
        parse_size(text)
    assert f"`{text}`" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "h", "-1 s", "1.5 h", "1 fortnight", "1 mb", "9" * 5000, "9223372036854775807 d"])
def test_bad_duration_is_named(text: str) -> None:
    """What is no duration is refused with an error that shows the text and says how to write one."""
    with pytest.raises(InvalidOption) as caught:
        parse_duration(text)
    assert f"`{text}`" in caught.value.message


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 b"), (500, "500 b"), (128 * MIB, "128 mb"), (1536 * MIB, "1536 mb"), (TIB, "1 tb")]
)
def test_format_size(size_bytes: int, text: str) -> None:
    """A size is spelled in the largest unit that is exact."""
    assert format_size(size_bytes) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [(0, "0 ms"), (10, "10 ms"), (HOUR_MS, "1 h"), (90 * SECOND_MS, "90 s"), (48 * HOUR_MS, "2 d")],
)
def test_format_duration(duration_ms: int, text: str) -> None:
    """A duration is spelled in the largest unit that is exact."""
    assert format_duration(duration_ms) == text


@given(st.integers(0, LONG_MAX))
def test_formatted_values_parse_back(number: int) -> None:
    """Formatting loses nothing."""
    assert parse_size(format_size(number)) == number
    assert parse_duration(format_duration(number)) == number
