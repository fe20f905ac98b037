"""Range bitmaps of columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.datafiles.index.indexed_columns import columns, typed
from tests.unit.datafiles.index.test_bitmap import same

from lakebed.datafiles.index.range_bitmap import (
    RangeBitmapBuilder,
    check_settings,
    has_nulls,
    has_values,
    may_compare,
    may_contain,
    supports,
)
from lakebed.errors import InvalidOption
from lakebed.types.logical import DataType
from lakebed.types.predicate import Op

_SETTINGS = st.sampled_from([{}, {"chunk-size": "0 b"}, {"chunk-size": "9 b"}, {"chunk-size": "40 b"}])
_OPERATORS = {Op.LT: pc.less, Op.LE: pc.less_equal, Op.GT: pc.greater, Op.GE: pc.greater_equal}


@given(columns(without=("BYTES", "TIMESTAMP(9)")), _SETTINGS)
def test_just_what_is_there_is_found(case: tuple[DataType, list[pa.Array], pa.Array], settings: dict[str, str]) -> None:
    """A value is found exactly if a row has it, whatever the size of chunks; nulls and ranges are known too."""
    data_type, parts, sought = case
    builder = RangeBitmapBuilder(data_type, settings)
    for part in parts:
        builder.add(part)
    payload = builder.finish()
    rows = pa.concat_arrays(parts)
    present = rows.to_pylist()
    wanted = [any(same(value, other) for other in present) for value in sought.to_pylist()]
    assert may_contain(payload, sought, data_type).tolist() == wanted
    assert has_nulls(payload, data_type) == any(value is None for value in present)
    assert has_values(payload, data_type) == any(value is not None for value in present)
    for op, compare in _OPERATORS.items():
        for literal in sought:
            if not pa.types.is_boolean(rows.type) and pc.any(compare(rows, literal)).as_py():
                assert may_compare(payload, op, literal, data_type)


def test_ranges_exclude() -> None:
    """What lies outside of all values excludes the file."""
    data_type = typed("INT")
    builder = RangeBitmapBuilder(data_type, {})
    builder.add(pa.array([3, 7, None], pa.int32()))
    payload = builder.finish()
    answers = {
        (op, number): may_compare(payload, op, pa.scalar(number, pa.int32()), data_type)
        for op in _OPERATORS
        for number in (3, 7)
    }
    assert {key for key, may in answers.items() if not may} == {(Op.LT, 3), (Op.GT, 7)}


@pytest.mark.parametrize("name", ["BYTES", "DECIMAL(10, 2)", "TIMESTAMP(9)", "ARRAY<INT>"])
def test_types_without_an_index(name: str) -> None:
    """Types that have none here are refused."""
    assert not supports(typed(name))


def test_settings() -> None:
    """The size of chunks has to be a size."""
    with pytest.raises(InvalidOption):
        check_settings({"chunk-size": "large"})
