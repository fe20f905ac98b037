"""Bitmap indexes of columns."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.datafiles.index.indexed_columns import columns, typed

from lakebed.datafiles.index.bitmap import BitmapBuilder, check_settings, has_nulls, has_values, may_contain, supports
from lakebed.errors import InvalidOption
from lakebed.types.logical import DataType

_SETTINGS = st.sampled_from([{}, {"version": "1"}, {"index-block-size": "20 b"}, {"index-block-size": "120 b"}])


def same(left: object, right: object) -> bool:
    """Equality of stored values: NaN is NaN, and the zeros differ."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
        )
    return left == right


@given(columns(without=("BYTES", "TIMESTAMP(9)")), _SETTINGS)
def test_just_what_is_there_is_found(case: tuple[DataType, list[pa.Array], pa.Array], settings: dict[str, str]) -> None:
    """A value is found exactly if a row has it, in both versions and whatever the size of blocks."""
    data_type, parts, sought = case
    builder = BitmapBuilder(data_type, settings)
    for part in parts:
        builder.add(part)
    payload = builder.finish()
    present = [value for part in parts for value in part.to_pylist()]
    wanted = [any(same(value, other) for other in present) for value in sought.to_pylist()]
    assert may_contain(payload, sought, data_type).tolist() == wanted
    assert has_nulls(payload, data_type) == any(value is None for value in present)
    assert has_values(payload, data_type) == any(value is not None for value in present)


def test_moments_within_a_microsecond_are_one_value() -> None:
    """Indexes know microseconds: all rows of one are found together, as one value."""
    data_type = typed("TIMESTAMP(9)")
    builder = BitmapBuilder(data_type, {})
    builder.add(pa.array([1001, 1002, 2000], pa.timestamp("ns")))
    payload = builder.finish()
    assert int.from_bytes(payload[5:9], "big") == 2
    assert may_contain(payload, pa.array([1999, 2001, 3000], pa.timestamp("ns")), data_type).tolist() == [
        True,
        True,
        False,
    ]


def test_layout_of_version_2() -> None:
    """The bytes of a small index: a single row stands for itself, others are bitmaps after the blocks."""
    builder = BitmapBuilder(typed("TINYINT"), {})
    builder.add(pa.array([5, None, 5, -1], pa.int8()))
    head = "02000000040000000201fffffffeffffffff"
    table = "00000001ff0000000000000016"
    block = "00000002fffffffffcffffffff050000000000000014"
    assert builder.finish().hex().startswith(head + table + block)


@pytest.mark.parametrize("name", ["BYTES", "DECIMAL(10, 2)", "ARRAY<INT>", "ROW<a INT>"])
def test_types_without_an_index(name: str) -> None:
    """Types that other engines refuse are refused."""
    assert not supports(typed(name))


def test_unknown_versions_are_refused() -> None:
    """Only the two versions that exist can be written."""
    with pytest.raises(InvalidOption, match="version"):
        check_settings({"version": "3"})
