"""Whoever applies what a stream brings ends with the table, whenever they began and however often they stopped."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.table.worked_tables import create

import lakebed

Steps = list[Any]
ROWS = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), st.integers(0, 4), st.integers(0, 99)), max_size=6)
STEPS = st.lists(st.one_of(ROWS, st.sampled_from(["compact", "full", "read", "go on"])), min_size=3, max_size=8)


def apply(state: dict[int, int], changes: pa.Table) -> None:
    """What changes make of a state: retracts take away, everything else is there from now on."""
    for kind, key, value in zip(*(column.to_pylist() for column in changes.columns), strict=True):
        if kind in ("-D", "-U"):
            state.pop(key, None)
        else:
            state[key] = value


def write(table: lakebed.Table, rows: list[tuple[str, int, int]], overwrite: bool) -> None:
    kinds, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())}
    if overwrite:
        table.write(pa.table(columns), overwrite=True)
    else:
        table.write(pa.table(columns | {"kind": pa.array(kinds, pa.string())}), row_kind="kind")


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@settings(max_examples=8, deadline=None)
@given(before=STEPS, after=STEPS, overwrites=st.sets(st.integers(0, 7)))
def test_replay(producer: str, before: Steps, after: Steps, overwrites: set[int]) -> None:
    """State first, then changes, gives the table, with compactions, overwrites and pauses anywhere."""
    tells_overwrites = producer in ("none", "input")
    options = {"streaming-read-overwrite": str(tells_overwrites).lower(), "changelog-producer": producer}
    table = create("k v", {"write-only": "false", "num-sorted-run.compaction-trigger": "3", **options})

    def act(step: Any, number: int) -> None:
        if isinstance(step, list):
            write(table, step, tells_overwrites and number in overwrites)
        elif step in ("compact", "full"):
            table.compact(full=step == "full")

    for number, step in enumerate(before):
        act(step, number)
    stream = table.follow()
    state: dict[int, int] = {}
    for number, step in enumerate([*after, "read"]):
        act(step, number)
        if step == "read":
            for changes in stream:
                apply(state, changes)
        elif step == "go on":
            stream = table.follow(position=json.loads(json.dumps(stream.position)))
    table.compact(full=True)  # what is still to be told by a full compaction
    for changes in stream:
        apply(state, changes)
    assert state == dict(zip(*(column.to_pylist() for column in table.to_arrow().columns), strict=True))
