"""The normaliser: upserts become complete changes, with a state that does not fit into memory too."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.changelog import key_state
from lakebed.changelog.normalise import Normaliser
from lakebed.errors import InvalidArgument, InvalidData, StorageError

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), ("t", pa.string()), ("v", pa.list_(pa.float64()))])
Event = tuple[str, int, str | None, Any]
Row = tuple[Any, ...]


def batch(events: list[Event], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = list(zip(*events, strict=True)) or [()] * (len(schema) + 1)
    fields = [pa.field("rowkind", pa.string()), *schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])


def listed(rows: pa.RecordBatch) -> list[Row]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def test_n_51_the_old_value_tells_what_was_added() -> None:
    """N-51: seeing 5 is one more after 4 and one less after 6: the old rows make a sum over the stream right."""
    schema = pa.schema([("k", pa.int32()), ("v", pa.int64())])
    for old, change in ((4, 1), (6, -1)):
        with Normaliser(["k"], schema) as normaliser:
            normaliser.normalise(batch([("+I", 1, old)], schema))  # type: ignore[list-item]
            told = listed(normaliser.normalise(batch([("+I", 1, 5)], schema)))  # type: ignore[list-item]
        assert told == [("-U", 1, old), ("+U", 1, 5)]
        assert sum(-row[2] if row[0] == "-U" else row[2] for row in told) == change


def test_every_kind() -> None:
    """New, changed, unchanged and vanished keys, also several times in one batch, in the order they came."""
    normaliser = Normaliser(["k"], SCHEMA)
    told = normaliser.normalise(
        batch(
            [
                ("+I", 2, "b", None),
                ("+I", 1, "a", [1.0]),
                ("+I", 2, "b", None),
                ("+U", 2, "c", None),
                ("-D", 9, "x", None),
            ]
        )
    )
    assert told.schema == normaliser.schema
    assert listed(told) == [("+I", 2, "b", None), ("+I", 1, "a", [1.0]), ("-U", 2, "b", None), ("+U", 2, "c", None)]
    told = normaliser.normalise(
        batch(
            [
                ("-D", 1, "other", None),
                ("-D", 1, None, None),
                ("-U", 2, "c", None),
                ("+U", 2, "d", None),
                ("+I", 1, "z", []),
            ]
        )
    )
    assert listed(told) == [("-D", 1, "a", [1.0]), ("-D", 2, "c", None), ("+I", 2, "d", None), ("+I", 1, "z", [])]
    assert listed(normaliser.normalise(batch([]))) == []


def test_unchanged_rows_may_be_told() -> None:
    """On request a row that comes again as it was is a pair, as a lookup changelog has it."""
    normaliser = Normaliser(["k"], SCHEMA, skips_unchanged=False)
    event: Event = ("+I", 1, "a", [1.0])
    normaliser.normalise(batch([event]))
    assert [row[0] for row in listed(normaliser.normalise(batch([event])))] == ["-U", "+U"]


_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["+I", "+I", "+U", "-U", "-D"]),
        st.integers(0, 12),
        st.none() | st.sampled_from(["", "a", "é"]),
        st.none() | st.lists(st.sampled_from([0.5, 1.0]), max_size=2),
    ),
    max_size=10,
)


@settings(max_examples=80, deadline=None)
@given(
    batches=st.lists(_EVENTS, max_size=8),
    max_memory=st.sampled_from([0, 200, 1 << 20]),
    key=st.sampled_from(["k", "kt"]),
)
def test_replays_to_the_table(batches: list[list[Event]], max_memory: int, key: str) -> None:
    """Any history: the changes give the table, and every old row is exactly the one that was there."""
    names = list(key)
    width = len(names)
    shown: dict[Row, Row] = {}
    written: dict[Row, Row] = {}
    with Normaliser(names, SCHEMA, max_memory) as normaliser:
        for events in batches:
            for kind, *row in events:
                if kind in ("+I", "+U"):
                    written[tuple(row[:width])] = tuple(row)
                else:
                    written.pop(tuple(row[:width]), None)
            for kind, *row in listed(normaliser.normalise(batch(events))):
                if kind in ("-U", "-D"):
                    assert shown.pop(tuple(row[:width])) == tuple(row)
                else:
                    assert tuple(row[:width]) not in shown
                    shown[tuple(row[:width])] = tuple(row)
            assert shown == written
            assert normaliser.state.memory_bytes <= max_memory


def test_large_state_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A state many times the limit is right, holds its limit, and leaves no file behind; files stay few."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(key_state, "_CHUNK_ROWS", 1 << 10)
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    count, limit = 100_000, 1 << 17
    generator = np.random.default_rng(7)
    known = np.full(count, -1)
    before = pa.total_allocated_bytes()
    with Normaliser(["k"], schema, limit) as normaliser:
        for step in range(60):
            keys = generator.choice(count, 4_000, replace=False)
            values = np.arange(len(keys)) + step * count
            rows = [pa.repeat("+I", len(keys)), pa.array(keys), pa.array(values)]
            told = normaliser.normalise(pa.RecordBatch.from_arrays(rows, names=["rowkind", "k", "v"]))
            kinds, told_keys, told_values = (np.asarray(column) for column in told.columns)
            old = kinds == "-U"
            assert np.array_equal(told_values[old], known[told_keys[old]])
            assert np.array_equal(np.sort(told_keys[old]), np.sort(keys[known[keys] >= 0]))
            known[keys] = values
            assert normaliser.state.memory_bytes <= limit
            assert pa.total_allocated_bytes() - before < 12 * limit
            del rows, told
        files = [name for _, _, names in os.walk(tmp_path) for name in names]
        assert 0 < len(files) < 12
        assert normaliser.state.disk_bytes > 8 * limit
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says where, and what to do."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(StorageError, match="TMPDIR"):
        Normaliser(["k"], SCHEMA, 0).normalise(batch([("+I", 1, "a", None)]))


def test_refused() -> None:
    """Keys and events that do not fit are refused by name."""
    with pytest.raises(InvalidArgument, match="key is empty"):
        Normaliser([], SCHEMA)
    with pytest.raises(InvalidArgument, match="`x`"):
        Normaliser(["x"], SCHEMA)
    normaliser = Normaliser(["k"], SCHEMA)
    with pytest.raises(InvalidData, match="columns"):
        normaliser.normalise(batch([]).select(["rowkind", "k"]))
    with pytest.raises(InvalidData, match=r"`k`.*int64"):
        normaliser.normalise(batch([], SCHEMA.set(0, pa.field("k", pa.int64()))))
    with pytest.raises(InvalidData, match="rowkind"):
        normaliser.normalise(batch([("upsert", 1, "a", None)]))
