"""Differences of two states for tables of all engines, key types and file formats, compacted at any moment."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.side_by_side import SideBySide
from tests.properties.ways_of_diff import COMMITS, FILES, PLAIN, WAYS, differences_by, taken

import lakebed
from lakebed.changes.diff import StateDiff
from lakebed.errors import LakebedError
from lakebed.testing.engine_strategies import KINDS_OF_TABLES, engine_definitions
from lakebed.testing.model import Row, Value
from lakebed.testing.model_arrow import changes_from_arrow, from_arrow, types_of
from lakebed.testing.strategies import row_kinds, rows_of

Key = tuple[str, ...]
State = dict[Key, dict[str, object]]

_names = itertools.count()


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
            with differences_by(data.draw(st.sampled_from(WAYS), "way")):
                changes = changes_from_arrow(table.diff(before, after))
            assert _applied(states[before], changes, key) == states[after]
            told = {_keyed(row, key)[0] for _, row in changes}
            assert all(states[before].get(place) != states[after].get(place) for place in told)
    finally:
        both.close()


_OPTIONS: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "sequence field": {"sequence.field": "b"},
    "marks rows": {"deletion-vectors.enabled": "true"},
    "marks rows, merged on read": {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "2"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "sum": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"},
    "sum, lookup": {
        "merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "changelog-producer": "lookup",
    },
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "write-only": {"write-only": "true"},
}  # fmt: skip
_BUCKETS = ({"bucket": "1"}, {"bucket": "2"}, {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}, {"bucket": "-2"})
_CHANGE = st.tuples(st.sampled_from(["+I", "+I", "+U", "-D"]), st.integers(0, 20), st.integers(0, 3), st.integers(0, 3))
_STEPS = st.lists(_CHANGE, min_size=1, max_size=8) | st.sampled_from(
    ["compact", "compact", "compact all", "overwrite", "roll back", "come back", "tag", "column", "delete", "rescale"]
)


def _play(table: lakebed.Table, step: Any) -> None:
    match step:
        case "compact" | "compact all":
            table.compact(full=step.endswith("all"))
        case "overwrite":
            table.write(_rows([("+I", 2, 1, 1), ("+I", 30, 1, 1)]).drop_columns(["op"]), overwrite=True)
        case "roll back":
            table.rollback_to(table.snapshots()[-2:][0].id)
        case "come back":
            table.rollback_to_as_latest(table.snapshots()[0].id)
        case "tag":
            table.create_tag(f"t{len(table.tags())}")
        case "column":
            table.alter(lakebed.AddColumn(f"c{len(table.arrow_schema)}", "INT"))
        case "delete":
            table.delete_where([("k", "<", 3)])
        case "rescale":
            table.rescale(3)
        case _:
            table.write(_rows(step), row_kind="op")


def _rows(changes: Sequence[tuple[str, int, int, int]]) -> pa.Table:
    kinds, keys, first, second = zip(*changes, strict=True)
    columns = {"op": list(kinds), "k": pa.array(keys, pa.int32())}
    return pa.table({**columns, "a": pa.array(first, pa.int32()), "b": pa.array(second, pa.int32())})


@pytest.mark.parametrize("kind", _OPTIONS)
@settings(max_examples=12, deadline=None)
@given(buckets=st.sampled_from(_BUCKETS), steps=st.lists(_STEPS, min_size=2, max_size=9), data=st.data())
def test_all_ways_tell_the_same(kind: str, buckets: dict[str, str], steps: list[Any], data: st.DataObject) -> None:
    """Whichever way a difference is found, it tells the same events, and those are what the two states say."""
    table = lakebed.connect(f"memory://ways-{next(_names)}").create_table(
        "t",
        {"k": "INT NOT NULL", "a": "INT", "b": "INT"},
        primary_key=["k"],
        options={**_OPTIONS[kind], **buckets},
    )
    table.write(_rows([("+I", k, 1, 1) for k in range(0, 20, 2)]), row_kind="op")
    for step in steps:
        with contextlib.suppress(LakebedError):  # not every table takes every step
            _play(table, step)
    states: list[int | str] = [snapshot.id for snapshot in table.snapshots()]
    states += table.tags()
    for before in data.draw(st.lists(st.sampled_from(states), min_size=1, max_size=3), "befores"):
        after = data.draw(st.sampled_from(states), "after")
        told = {}
        for way in WAYS:
            with differences_by(way):
                told[way] = sorted(table.diff(before, after).to_pylist(), key=repr)
        assert told[FILES] == told[PLAIN]
        assert told[COMMITS] == told[PLAIN]


def test_the_short_ways_are_taken() -> None:
    """A large table of which few rows change is not read: by files, and by commits if all files were replaced."""
    table = lakebed.connect(f"memory://ways-{next(_names)}").create_table(
        "t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": "1", "write-only": "true"}
    )
    table.write(pa.table({"k": pa.array(range(1000), pa.int32()), "v": pa.array([0] * 1000, pa.int32())}))
    table.write(pa.table({"k": pa.array([7, 5000], pa.int32()), "v": pa.array([1, 1], pa.int32())}))
    table.compact(full=True)
    expected = [("-U", 7, 0), ("+U", 7, 1), ("+I", 5000, 1)]
    for after in (2, 3):
        with mock.patch.object(StateDiff, "_side", autospec=True, side_effect=StateDiff._side) as sides:
            found = [tuple(row.values()) for row in table.diff(1, after).to_pylist()]
        assert found == expected
        assert sides.call_args_list
        assert all(call.args[4:] for call in sides.call_args_list), "a whole side was read"
    for way in (FILES, COMMITS):  # what the other test compares is really met
        before = taken[way]
        with differences_by(way):
            table.diff(1, 3)
        assert taken[way] > before
