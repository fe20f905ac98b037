"""Statistics of partition values."""

from __future__ import annotations

import math

import pyarrow as pa

from lakebed.metadata.stats import EMPTY_STATS, build_stats, partition_stats
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_type
from lakebed.types.binary_row import EMPTY_ROW, decode_rows, encode_rows


def stats_of(data_type: lt.DataType, values: list[object]) -> tuple[object, object, tuple[int | None, ...] | None]:
    """Minimum, maximum and null count over partitions with these values of one column."""
    rows = encode_rows([pa.array(values, to_arrow_type(data_type))], [data_type]).to_pylist()
    stats = partition_stats(rows, [data_type])
    low, high = (decode_rows([row], [data_type])[0][0].as_py() for row in (stats.min_values, stats.max_values))
    return low, high, stats.null_counts


def test_text_compares_by_bytes() -> None:
    """Order is that of UTF-8 bytes, and nulls are counted per entry."""
    assert stats_of(lt.STRING, ["b", None, "Z", "ä", None, "b"]) == ("Z", "ä", (2,))


def test_a_column_of_nulls_has_no_extremes() -> None:
    """Minimum and maximum are null then."""
    assert stats_of(lt.INT, [None, None]) == (None, None, (2,))


def test_floats_compare_as_in_java() -> None:
    """Minus zero is below zero, and NaN is the greatest."""
    low, high, _ = stats_of(lt.DOUBLE, [0.0, -0.0])
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1, 1)  # type: ignore[arg-type]
    low, high, _ = stats_of(lt.DOUBLE, [1.0, math.nan])
    assert low == 1.0
    assert math.isnan(high)  # type: ignore[arg-type]


def test_bytes_have_counts_only() -> None:
    """Engines do not agree on the order of bytes, so no bounds are kept."""
    assert stats_of(lt.BYTES, [b"\x00", None, b"\xff"]) == (None, None, (1,))


def test_columns_are_independent() -> None:
    """Minimum and maximum may come from different partitions."""
    types = [lt.STRING, lt.INT]
    rows = encode_rows([pa.array(["a", "b"]), pa.array([2, 1], pa.int32())], types).to_pylist()
    stats = partition_stats(rows, types)
    assert [column[0].as_py() for column in decode_rows([stats.min_values], types)] == ["a", 1]
    assert [column[0].as_py() for column in decode_rows([stats.max_values], types)] == ["b", 2]


def test_no_partition_columns_give_empty_stats() -> None:
    """The empty statistics are one shared object, also when they are read."""
    assert partition_stats([EMPTY_ROW], []) is EMPTY_STATS
    assert build_stats(EMPTY_ROW, EMPTY_ROW, ()) is EMPTY_STATS
    assert build_stats(EMPTY_ROW, EMPTY_ROW, None).null_counts is None
