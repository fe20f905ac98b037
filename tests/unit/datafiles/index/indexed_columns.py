"""Columns of every type that an index can hold, for hypothesis."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import DataType, parse_type

_MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
_TIMES = st.integers(0, 86_399_999)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "FLOAT": st.floats(width=32) | st.sampled_from([0.0, -0.0]),
    "DOUBLE": st.floats() | st.sampled_from([0.0, -0.0]),
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    "BYTES": st.binary(max_size=40),
    "DATE": st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    "TIME(3)": _TIMES,
    "TIMESTAMP(3)": _MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": _MOMENTS,
    "TIMESTAMP(9)": _MOMENTS,
}


def typed(name: str) -> DataType:
    """A type by its name."""
    return parse_type(name)


def column(values: list[Any], data_type: DataType) -> pa.Array:
    """Values as an Arrow column of the type."""
    return pa.array(values, to_arrow_type(data_type))


@st.composite
def columns(draw: st.DrawFn, without: tuple[str, ...] = ()) -> tuple[DataType, list[pa.Array], pa.Array]:
    """A type, a column of it in parts, and some values to look for: of the column, and others."""
    name = draw(st.sampled_from([name for name in VALUES if name not in without]))
    data_type = typed(name)
    some = draw(st.lists(VALUES[name], min_size=1, max_size=6))
    parts = draw(st.lists(st.lists(st.none() | st.sampled_from(some), max_size=8), min_size=1, max_size=3))
    sought = some + draw(st.lists(VALUES[name], max_size=3))
    return data_type, [column(part, data_type) for part in parts], column(sought, data_type)
