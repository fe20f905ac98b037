from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.merge.aggregates.nested_folds import frozen

from lakebed.merge.aggregates.elements import equality_codes, flattened
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import parse_type

MEMBERS = st.builds(lambda a, b: {"a": a, "b": b}, st.sampled_from([None, 1, 2]), st.sampled_from([None, "", "x"]))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "DECIMAL(20, 2)": st.sampled_from([0, 1, -1]),
    "DOUBLE": st.sampled_from([0.0, -0.0, math.nan, -math.inf]),
    "TIMESTAMP(9)": st.integers(-2, 2),
    "BYTES": st.sampled_from([b"", b"\0", b"\0\0"]),
    "ROW<a INT, b STRING>": MEMBERS,
    "ARRAY<ROW<a INT, b STRING>>": st.lists(st.none() | MEMBERS, max_size=2),
    "ARRAY<ARRAY<INT>>": st.lists(st.none() | st.lists(st.sampled_from([None, 1]), max_size=2), max_size=2),
    "MAP<INT, STRING>": st.dictionaries(st.integers(0, 2), st.sampled_from([None, "", "x"])).map(
        lambda entries: list(entries.items())
    ),
}


@pytest.mark.parametrize("type_text", VALUES)
@given(st.data())
def test_codes_are_equal_where_values_are(type_text: str, data: st.DataObject) -> None:
    """Two values have the same code exactly if they are the same, in slices too."""
    values = data.draw(st.lists(st.none() | VALUES[type_text], max_size=12))
    skipped = data.draw(st.integers(0, len(values)))
    array = pa.array(values, to_arrow_type(parse_type(type_text))).slice(skipped)
    codes = equality_codes(array)
    keys = [frozen(value) for value in values[skipped:]]
    # In Python true equals 1 and 0 equals 0.0, but each array holds one type only.
    assert [[code == other for other in codes] for code in codes] == [[key == other for other in keys] for key in keys]


def test_elements_below_nulls_are_not_seen() -> None:
    """What a list array holds below a null list, or outside a slice, does not come out."""
    validity = pa.array([True, False, True, True]).buffers()[1]
    offsets = pa.py_buffer(np.array([0, 1, 3, 4, 6], dtype=np.int32))
    lists = pa.Array.from_buffers(
        pa.list_(pa.int32()), 4, [validity, offsets], children=[pa.array(range(6), pa.int32())]
    )
    values, owner = flattened(lists.slice(1), np.array([2, 0, 1]))
    assert values.to_pylist() == [4, 5, 3]
    assert owner.tolist() == [0, 0, 2]
    two = pa.concat_arrays([lists.slice(1, 1), pa.array([None, []], lists.type)])
    assert equality_codes(two)[0] == equality_codes(two)[1] != equality_codes(two)[2]
