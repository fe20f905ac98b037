"""Equality of rows of any type, against Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.types.equality import equal_rows

FLOATS = st.sampled_from([None, 0.0, 1.5, float("nan"), float("inf")])
LISTS = st.none() | st.lists(FLOATS, max_size=3)
MAPS = st.none() | st.lists(st.tuples(st.sampled_from("xyz"), FLOATS), max_size=2)
STRUCTS = st.none() | st.fixed_dictionaries({"a": FLOATS, "l": LISTS, "m": MAPS})
STRUCT = pa.struct([("a", pa.float64()), ("l", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.float64()))])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), st.none() | st.text(max_size=2)),
    "float": (pa.float32(), FLOATS),
    "list": (pa.list_(pa.float64()), LISTS),
    "map": (pa.map_(pa.string(), pa.float64()), MAPS),
    "struct": (STRUCT, STRUCTS),
    "list of structs": (pa.list_(STRUCT), st.none() | st.lists(STRUCTS, max_size=2)),
}


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_same_as_python(name: str, data: st.DataObject) -> None:
    """Null equals null, NaN equals NaN, nested values are equal if their members are; slices too."""
    arrow, values = COLUMNS[name]
    pairs = data.draw(st.lists(st.tuples(values, values, st.booleans()), max_size=12))
    left = [pair[0] for pair in pairs]
    right = [pair[0] if pair[2] else pair[1] for pair in pairs]
    start = data.draw(st.integers(0, len(pairs)))
    columns = [pa.array(side, arrow).slice(start) for side in (left, right)]
    expected = [repr(mine) == repr(theirs) for mine, theirs in zip(*(c.to_pylist() for c in columns), strict=True)]
    assert equal_rows(*columns).tolist() == expected
