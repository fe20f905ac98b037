"""Search of many keys in sorted columns, against Python dictionaries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.types import ordering
from lakebed.types.sorted_search import find_keys

NUMBERS = st.integers(-5, 20)
TEXTS = st.sampled_from([None, "", "a", "ab", "b", "é", "z" * 40])
KEYS: dict[str, tuple[list[pa.DataType], st.SearchStrategy[tuple[Any, ...]]]] = {
    "bigint": ([pa.int64()], st.tuples(NUMBERS)),
    "double": ([pa.float64()], st.tuples(st.sampled_from([-1.0, -0.0, 0.0, 2.5, float("nan"), float("inf")]))),
    "nullable": ([pa.int64()], st.tuples(st.none() | NUMBERS)),
    "text": ([pa.string()], st.tuples(TEXTS)),
    "date": ([pa.date32()], st.tuples(st.dates())),
    "composite": ([pa.int32(), pa.string(), pa.bool_()], st.tuples(NUMBERS, TEXTS, st.booleans())),
}


def columns_of(keys: list[tuple[Any, ...]], types: list[pa.DataType]) -> list[pa.Array]:
    return [pa.array([key[n] for key in keys], arrow) for n, arrow in enumerate(types)]


@pytest.mark.parametrize("name", KEYS)
@given(data=st.data())
def test_finds_what_is_there(name: str, data: st.DataObject) -> None:
    """Every key that is there is found in its row, and no other, for every kind of key."""
    types, values = KEYS[name]
    held = data.draw(st.lists(values, min_size=1, max_size=30, unique_by=repr))
    asked = data.draw(st.lists(values, max_size=30))
    held_columns, asked_columns = columns_of(held, types), columns_of(asked, types)
    order = sorted(range(len(held)), key=lambda row: ordering.sort_key(held_columns, row))
    held_columns = [column.take(pa.array(order)) for column in held_columns]
    rows = {repr(held[row]): place for place, row in enumerate(order)}
    places, found = find_keys(held_columns, asked_columns)
    assert found.tolist() == [repr(key) in rows for key in asked]
    for key, place, is_found in zip(asked, places.tolist(), found.tolist(), strict=True):
        if is_found:
            assert place == rows[repr(key)]
