"""Bit-slice indexes of columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from tests.unit.datafiles.index.indexed_columns import columns, typed

from lakebed.datafiles.index.bsi import BsiBuilder, has_nulls, has_values, may_compare, may_contain, supports
from lakebed.errors import InvalidData
from lakebed.types.logical import DataType
from lakebed.types.predicate import Op

_OPERATORS = {Op.LT: pc.less, Op.LE: pc.less_equal, Op.GT: pc.greater, Op.GE: pc.greater_equal}
_OTHERS = ("BOOLEAN", "FLOAT", "DOUBLE", "STRING", "BYTES", "TIMESTAMP(9)", "BIGINT")


@given(columns(without=_OTHERS))
def test_just_what_is_there_is_found(case: tuple[DataType, list[pa.Array], pa.Array]) -> None:
    """A value is found exactly if a row has it; nulls and ranges are known too."""
    data_type, parts, sought = case
    builder = BsiBuilder(data_type, {})
    for part in parts:
        builder.add(part)
    payload = builder.finish()
    rows = pa.concat_arrays(parts)
    present = rows.to_pylist()
    assert may_contain(payload, sought, data_type).tolist() == [value in present for value in sought.to_pylist()]
    assert has_nulls(payload, data_type) == (None in present)
    assert has_values(payload, data_type) == any(value is not None for value in present)
    for op, compare in _OPERATORS.items():
        for literal in sought:
            if pc.any(compare(rows, literal)).as_py():
                assert may_compare(payload, op, literal, data_type)


def test_ranges_exclude() -> None:
    """What lies outside of all values excludes the file."""
    data_type = typed("INT")
    builder = BsiBuilder(data_type, {})
    builder.add(pa.array([-3, 7, None], pa.int32()))
    payload = builder.finish()
    assert not may_compare(payload, Op.LT, pa.scalar(-3, pa.int32()), data_type)
    assert not may_compare(payload, Op.GT, pa.scalar(7, pa.int32()), data_type)
    assert may_compare(payload, Op.LE, pa.scalar(-3, pa.int32()), data_type)


def test_the_least_number_has_no_size() -> None:
    """The smallest BIGINT is refused, since its size is no BIGINT."""
    with pytest.raises(InvalidData, match="bit-slice"):
        BsiBuilder(typed("BIGINT"), {}).add(pa.array([-(2**63)], pa.int64()))


@pytest.mark.parametrize("name", ["STRING", "DOUBLE", "BOOLEAN", "ARRAY<INT>"])
def test_types_without_an_index(name: str) -> None:
    """Only whole numbers, dates and times have slices."""
    assert not supports(typed(name))
