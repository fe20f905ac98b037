"""Bloom filters of columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from tests.unit.datafiles.index.indexed_columns import columns, typed

from lakebed.datafiles.index.bloom import BloomBuilder, check_settings, may_contain, supports
from lakebed.errors import InvalidOption
from lakebed.types.logical import DataType

_SMALL = {"items": "100"}


@given(columns(without=("BOOLEAN",)))
def test_nothing_that_is_there_is_missed(case: tuple[DataType, list[pa.Array], pa.Array]) -> None:
    """Every value that went in is found, for every type, whatever else is sought."""
    data_type, parts, _ = case
    builder = BloomBuilder(data_type, _SMALL)
    for part in parts:
        builder.add(part)
        present = part.drop_null()
    payload = builder.finish()
    for part in parts:
        present = part.drop_null()
        assert may_contain(payload, present, data_type).all()


def test_most_of_what_is_not_there_is_excluded() -> None:
    """With as many values as planned for, about a tenth of others seems to be there, not more."""
    builder = BloomBuilder(typed("BIGINT"), {"items": "10000"})
    builder.add(pa.array(np.arange(10_000), pa.int64()))
    found = may_contain(builder.finish(), pa.array(np.arange(10_000, 30_000), pa.int64()), typed("BIGINT"))
    assert 0.05 < found.mean() < 0.15


def test_nulls_are_not_in_it() -> None:
    """A column of nulls makes an empty filter of the size that the settings ask for."""
    builder = BloomBuilder(typed("INT"), {"items": "10", "fpp": "0.5"})
    builder.add(pa.nulls(3, pa.int32()))
    assert builder.finish() == bytes([0, 0, 0, 1]) + bytes(2)


@pytest.mark.parametrize("name", ["BOOLEAN", "DECIMAL(10, 2)", "ARRAY<INT>", "ROW<a INT>", "MAP<STRING, INT>"])
def test_types_without_a_filter(name: str) -> None:
    """Types that other engines do not hash have none."""
    assert not supports(typed(name))


@pytest.mark.parametrize("settings", [{"items": "0"}, {"items": "many"}, {"fpp": "0"}, {"fpp": "1"}, {"fpp": "x"}])
def test_settings_that_make_no_filter(settings: dict[str, str]) -> None:
    """Numbers of items below one, and chances outside of 0 to 1, are refused by name."""
    with pytest.raises(InvalidOption, match=next(iter(settings))):
        check_settings(settings)
