"""Rows as they came, against what was stored, as a chain of events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.merge.events import EventRules, InputChain
from lakebed.types.row_kind import TEXTS

Row = tuple[str, int, Any, Any]
"""Kind, key, sequence value, value."""
SCHEMA = pa.schema(
    [
        ("_SEQUENCE_NUMBER", pa.int64()),
        ("_VALUE_KIND", pa.int8()),
        ("k", pa.int32()),
        ("s", pa.int32()),
        ("v", pa.int32()),
    ]
)


def _batch(rows: list[Row], first: int) -> pa.RecordBatch:
    cells = [(first + i, TEXTS.index(kind), k, s, v) for i, (kind, k, s, v) in enumerate(rows)]
    columns = list(zip(*cells, strict=True)) if cells else [[] for _ in SCHEMA]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _events(stored: list[Row], came: list[Row], *, fields: tuple[str, ...] = (), **rules: Any) -> list[Row]:
    chain = InputChain(("k",), fields, False, EventRules(**rules))
    told = chain.events(_batch(stored, 0), _batch(came, 100))
    return [(TEXTS[r["_VALUE_KIND"]], r["k"], r["s"], r["v"]) for r in told.to_pylist()]


def _one_by_one(stored: list[Row], came: list[Row], fields: tuple[str, ...]) -> list[Row]:
    """The same, one row at a time."""
    told = []
    for key in sorted({row[1] for row in came}):
        state = next((row for row in stored if row[1] == key), None)
        won: list[Row] = []
        newest = state
        for row in came:
            if row[1] == key:
                if fields and newest is not None and (newest[2] is not None) and (row[2] is None or row[2] < newest[2]):
                    continue
                newest = row
                won.append(row)
        for place, row in enumerate(won):
            if row[0] == "-U" and place + 1 < len(won) and won[place + 1][0][0] == "+":
                continue
            had, has = state is not None and state[0][0] == "+", row[0][0] == "+"
            if had and state is not None:
                told.append(("-U" if has else "-D", *state[1:]))
            if has:
                told.append(("+U" if had else "+I", *row[1:]))
            state = row
    return told


ROWS = st.tuples(st.sampled_from(TEXTS), st.integers(1, 3), st.none() | st.integers(0, 3), st.integers(0, 9))


@settings(deadline=None)
@given(st.lists(ROWS, max_size=3, unique_by=lambda row: row[1]), st.lists(ROWS, min_size=1, max_size=12), st.booleans())
def test_chains_as_one_row_after_the_other(stored: list[Row], came: list[Row], has_sequence: bool) -> None:
    """Whatever is stored and comes: the events are those of a walk through the rows."""
    fields = ("s",) if has_sequence else ()
    stored = sorted(stored, key=lambda row: row[1])
    assert _events(stored, came, fields=fields) == _one_by_one(stored, came, fields)


def test_upserts_become_pairs() -> None:
    """A row that meets another of its key is an update, with the old row in front."""
    came = [("+I", 1, 0, 5), ("+I", 2, 0, 6), ("+I", 1, 0, 7)]
    expected = [("-U", 1, 0, 4), ("+U", 1, 0, 5), ("-U", 1, 0, 5), ("+U", 1, 0, 7), ("+I", 2, 0, 6)]
    assert _events([("+I", 1, 0, 4)], came) == expected


def test_rows_that_lose_leave_no_trace() -> None:
    """A row older than what it meets is not told, also if what it meets takes away."""
    stored = [("+I", 1, 5, 1), ("-D", 2, 5, 1)]
    assert _events(stored, [("+I", 1, 3, 2), ("-D", 1, 4, 1), ("+I", 2, 4, 2)], fields=("s",)) == []


def test_an_update_in_two_halves_stays_one() -> None:
    """The old half of an update is told as it is stored, not as it came; alone it takes the row away."""
    stored = [("+I", 1, 0, 4), ("+I", 2, 0, 5)]
    came = [("-U", 1, 0, 99), ("+U", 1, 0, 6), ("-U", 2, 0, 5)]
    assert _events(stored, came) == [("-U", 1, 0, 4), ("+U", 1, 0, 6), ("-D", 2, 0, 5)]


@pytest.mark.parametrize(("skips", "expected"), [(True, []), (False, [("-U", 1, 0, 4), ("+U", 1, 0, 4)])])
def test_unchanged_rows(skips: bool, expected: list[Row]) -> None:
    """The same row again is an update, unless such pairs are to be left out."""
    assert _events([("+I", 1, 0, 4)], [("+I", 1, 0, 4)], skips_unchanged=skips) == expected
