"""Packing of events: which rows become one, in any place and of any key."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.merge.binlog import packed_events

Event = tuple[int, int]


def _batch(events: list[Event]) -> pa.RecordBatch:
    kinds, keys = [kind for kind, _ in events], [key for _, key in events]
    return pa.RecordBatch.from_pydict(
        {"_VALUE_KIND": pa.array(kinds, pa.int8()), "k": pa.array(keys, pa.int64())},
        schema=pa.schema([pa.field("_VALUE_KIND", pa.int8(), nullable=False), ("k", pa.int64())]),
    )


def _expected(events: list[Event]) -> list[tuple[int, list[int]]]:
    """Row by row: a `+U` joins the row before it if that is the `-U` of its key."""
    packed: list[tuple[int, list[int]]] = []
    for kind, key in events:
        if kind == 2 and packed and packed[-1] == (1, [key]):
            packed[-1] = (2, [key, key])
        else:
            packed.append((kind, [key]))
    return packed


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=6), max_size=5))
def test_pairs_of_one_key_are_packed(batches: list[list[Event]]) -> None:
    """However the events are cut into batches, exactly a `-U` and the `+U` of its key behind it are one row."""
    packed = list(packed_events(iter([_batch(events) for events in batches]), ["k"]))
    assert all(batch.num_rows for batch in packed)
    rows = [(row["_VALUE_KIND"], row["k"]) for batch in packed for row in batch.to_pylist()]
    assert rows == _expected([event for events in batches for event in events])
