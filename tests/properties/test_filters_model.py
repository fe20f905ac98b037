"""Filtered reads of keys with several versions: what is skipped must never bring an outdated row back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.side_by_side import SideBySide

from lakebed.testing.model import order_of
from lakebed.testing.strategies import ATOMIC_TYPES, TableDefinition, filters, layouts, row_kinds, rows_of, values_of
from lakebed.types.logical import INT, AtomicType


@st.composite
def crowded_tables(draw: st.DrawFn) -> TableDefinition:
    """Few keys with few values: nearly every row is outdated by another one, and nearly every filter finds some."""
    columns = {"k": AtomicType(INT.root, nullable=False), "v": draw(st.sampled_from(ATOMIC_TYPES)), "w": INT}
    pools = {
        "k": (1, 2, 3, 4),
        "v": (None, *draw(st.lists(values_of(columns["v"]), min_size=1, max_size=3, unique_by=order_of))),
        "w": (None, 1, 2, 3),
    }
    return TableDefinition(columns, ("k",), (), {}, draw(layouts(columns)), pools)


@settings(max_examples=20)
@given(crowded_tables(), st.data())
def test_filters_see_the_newest_rows_only(definition: TableDefinition, data: st.DataObject) -> None:
    """Statistics, row groups, keys and buckets rule files out, and the rows that match are still the model's."""
    both = SideBySide(definition)
    try:
        for _ in range(data.draw(st.integers(1, 4), "commits")):
            rows = data.draw(rows_of(definition.columns, definition.pools, min_size=1, max_size=4), "rows")
            kinds = data.draw(st.lists(row_kinds(), min_size=len(rows), max_size=len(rows)), "kinds")
            both.write([rows], kinds)
        for _ in range(4):
            both.check_filtered(data.draw(filters(definition.columns, definition.pools), "filter"), ["k", "v"])
    finally:
        both.close()
