"""Differences of two states for tables of all engines, key types and file formats, compacted at any moment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.side_by_side import SideBySide

from lakebed.testing.engine_strategies import KINDS_OF_TABLES, engine_definitions
from lakebed.testing.model import Row, Value
from lakebed.testing.model_arrow import changes_from_arrow, from_arrow, types_of
from lakebed.testing.strategies import row_kinds, rows_of

Key = tuple[str, ...]
State = dict[Key, dict[str, object]]


def _keyed(row: Row, key: Sequence[str]) -> tuple[Key, dict[str, object]]:
    """Keys tell 0.0 from -0.0; values that are compared do not, and NaN is itself."""
    return tuple(repr(row[name]) for name in key), {name: _value(value) for name, value in row.items()}


def _value(value: Value) -> object:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _applied(state: State, changes: list[tuple[str, Row]], key: Sequence[str]) -> State:
    state = dict(state)
    for kind, row in changes:
        place, cells = _keyed(row, key)
        if kind in ("-U", "-D"):
            assert state.pop(place) == cells
        else:
            assert place not in state
            state[place] = cells
    return state


@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_differences_lead_from_state_to_state(kind: str, data: st.DataObject) -> None:
    """Applied to one state, the difference gives the other, row by row; nothing is told that is the same in both."""
    both = SideBySide(data.draw(engine_definitions(kind), "definition"), judges=True)
    try:
        schema = both.model.schema
        for _ in range(data.draw(st.integers(2, 4), "commits")):
            rows = data.draw(rows_of(types_of(schema), both.pools(schema), min_size=1, max_size=6), "rows")
            kinds = data.draw(st.none() | st.lists(row_kinds(), min_size=len(rows), max_size=len(rows)), "kinds")
            both.write([rows], kinds)
            if data.draw(st.booleans(), "compact"):
                both.compact(data.draw(st.booleans(), "full"), 0)
        table, key = both.open(), both.definition.primary_key
        states: dict[int, State] = {0: {}}
        for snapshot in table.snapshots():
            found = from_arrow(table.at(snapshot=snapshot.id).to_arrow())
            states[snapshot.id] = dict(_keyed(row, key) for row in found)
        for before in states:
            after = data.draw(st.sampled_from(sorted(states)), "after")
            changes = changes_from_arrow(table.diff(before, after))
            assert _applied(states[before], changes, key) == states[after]
            told = {_keyed(row, key)[0] for _, row in changes}
            assert all(states[before].get(place) != states[after].get(place) for place in told)
    finally:
        both.close()
