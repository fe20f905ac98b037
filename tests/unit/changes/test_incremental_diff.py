"""`t.diff(a, b)`: what makes one state of a table another, for every engine, reading only what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.changes.test_incremental import between
from tests.unit.table.worked_tables import N, create, write
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.datafiles.read_file import FileReader
from lakebed.errors import InvalidArgument, InvalidData, NotFound
from lakebed.metadata.data_file import DataFile

Rows = list[tuple[Any, ...]]


def differences(table: lakebed.Table, before: int | str, after: int | str, **more: Any) -> Rows:
    return [tuple(row.values()) for row in table.diff(before, after, **more).to_pylist()]


def numbered(start: int, stop: int, value: int) -> pa.Table:
    keys = np.arange(start, stop, dtype=np.int32)
    return pa.table({"k": keys, "v": np.full(len(keys), value, dtype=np.int32)})


@contextmanager
def opened_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts how often each data file is opened."""
    opened: Counter[str] = Counter()
    real = FileReader._open

    def counting(self: FileReader, path: str, file: DataFile) -> Any:
        opened[path.rsplit("/", 1)[-1]] += 1
        return real(self, path, file)

    with monkeypatch.context() as patch:
        patch.setattr(FileReader, "_open", counting)
        yield opened


def test_every_kind_of_difference() -> None:
    """New, changed and vanished keys, in either direction; what came back as it was is no difference."""
    table = create("k v:STRING", {})
    write(table, [[1, "a"], [2, "b"], [3, "c"], [4, N]])
    write(table, [[1, "x"], ("-D", [2, "b"]), [3, "q"], [5, "e"]])
    write(table, [[3, "c"], [4, N]])
    forth = [("-U", 1, "a"), ("+U", 1, "x"), ("-D", 2, "b"), ("+I", 5, "e")]
    assert differences(table, 1, 3) == forth
    assert differences(table, 3, 1) == [("-U", 1, "x"), ("+U", 1, "a"), ("+I", 2, "b"), ("-D", 5, "e")]
    assert differences(table, 2, 2) == []
    assert differences(table, 0, 1) == [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c"), ("+I", 4, N)]
    assert differences(table, 1, 0) == [("-D", 1, "a"), ("-D", 2, "b"), ("-D", 3, "c"), ("-D", 4, N)]
    table.compact(full=True)
    assert differences(table, 1, 4) == forth
    assert differences(table, 3, 4) == []


def test_tags_columns_and_filters() -> None:
    """States go by tag or by number, also as text; columns that are not asked for still count in the comparison."""
    table = create("k v", {})
    write(table, [[1, 1], [2, 2]])
    table.create_tag("old")
    write(table, [[1, 10]])
    assert differences(table, "old", 2) == differences(table, "1", "2") == [("-U", 1, 1), ("+U", 1, 10)]
    assert differences(table, "old", 2, columns=["k"]) == [("-U", 1), ("+U", 1)]
    assert differences(table, "old", 2, filter=[("v", ">", 5)]) == [("+U", 1, 10)]
    assert differences(table, 0, 2, filter=[("rowkind", "==", "+I"), ("k", "==", 2)]) == [("+I", 2, 2)]
    for name, kind in (("none", NotFound), (9, NotFound), (-1, InvalidArgument), (True, InvalidArgument)):
        with pytest.raises(kind):
            table.diff(1, name)
    with pytest.raises(InvalidArgument):
        table.diff(None, 1)  # type: ignore[arg-type]


def test_shared_files_are_not_opened(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files of key ranges in which something differs are read; a difference of nothing opens no file."""
    options = {"bucket": 1, "write-only": True}
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options=options)
    for start in (0, 100, 200, 300):
        table.write(numbered(start, start + 100, 1))
    old = {file.file_name for file in table.scan().files}
    table.write(numbered(110, 120, 2))
    with opened_files(monkeypatch) as opened:
        assert table.diff(4, 5).num_rows == 20
    assert len(opened) == 2
    assert len(opened.keys() & old) == 1
    table.compact(full=True)
    with opened_files(monkeypatch) as opened:
        assert table.diff(5, 5).num_rows == 0
        assert table.diff(6, 6).num_rows == 0
    assert not opened
    with opened_files(monkeypatch) as opened:
        assert table.diff(5, 6).num_rows == 0


def test_files_that_only_rose_are_not_opened(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction that only lifts a file to another level leaves nothing to compare."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1})
    table = table.with_options({"target-file-size": "1 b"})
    table.write(numbered(0, 10, 1))
    table.compact(full=True)
    assert [file.level for file in table.scan().files] != [0]
    with opened_files(monkeypatch) as opened:
        assert table.diff(1, 2).num_rows == 0
    assert not opened


def test_partitions_come_and_go(warehouse: Warehouse) -> None:
    """Partitions that only one state has are all new, or all gone."""
    table = warehouse.table(
        "t", {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"},
        primary_key=["p", "k"], partition_by=["p"], options={"bucket": 2},
    )  # fmt: skip
    table.write(pa.table({"p": ints(1, 2), "k": ints(1, 1), "v": ints(1, 2)}))
    table.write(pa.table({"p": ints(3), "k": ints(1), "v": ints(3)}))
    assert differences(table, 1, 2) == [("+I", 3, 1, 3)]
    table.write(pa.table({"p": ints(), "k": ints(), "v": ints()}), overwrite={"p": 1})
    assert differences(table, 2, 3) == [("-D", 1, 1, 1)]


def test_changed_bucket_count(warehouse: Warehouse) -> None:
    """6.8: states with different numbers of buckets are compared key by key, wherever the keys lie."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 2})
    table.write(numbered(0, 100, 1))
    table.alter(lakebed.SetOption("bucket", "3"))
    table.write(numbered(50, 101, 1), overwrite=True)
    table.write(pa.table({"k": ints(60), "v": ints(7), "op": ["+U"]}), row_kind="op")
    before, after = ({row["k"]: row["v"] for row in table.at(snapshot=n).to_arrow().to_pylist()} for n in (1, 3))
    assert sorted(differences(table, 1, 3), key=lambda event: event[1]) == [
        *(("-D", k, before[k]) for k in range(50)),
        ("-U", 60, before[60]),
        ("+U", 60, 7),
        ("+I", 100, after[100]),
    ]
    log = warehouse.lake.table("t$audit_log").with_options(
        {"incremental-between": "1,3", "incremental-between-scan-mode": "diff"}
    )
    told = sorted((tuple(row.values()) for row in log.to_arrow().to_pylist()), key=lambda event: event[1])
    assert told[50:] == [("+U", 60, 7), ("+I", 100, after[100])], "rows as they were written"


def test_schema_changes_in_between(warehouse: Warehouse) -> None:
    """Both states are read under the schema of today."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1})
    table.write(numbered(0, 2, 1))
    table.alter(lakebed.AddColumn("w", "STRING"), lakebed.RenameColumn("v", "u"))
    table.write(pa.table({"k": ints(1), "u": ints(1), "w": ["new"]}))
    assert differences(table, 1, 2) == [("-U", 1, 1, None), ("+U", 1, 1, "new")]


def test_tables_without_a_key(warehouse: Warehouse) -> None:
    """Files that came are inserts, files that went deletes; equal rows of files that were replaced cancel out."""
    table = warehouse.table("t", {"v": "INT"}, pa.table({"v": ints(1)}))
    table.write(pa.table({"v": ints(1, 2)}))
    assert differences(table, 1, 2) == [("+I", 1), ("+I", 2)]
    assert differences(table, 2, 0) == [("-D", 1), ("-D", 1), ("-D", 2)]
    table.write(pa.table({"v": ints(3, 1, None)}), overwrite=True)
    assert differences(table, 2, 3) == [("-D", 1), ("-D", 2), ("+I", 3), ("+I", None)]
    assert differences(table, 3, 2) == [("-D", 3), ("-D", None), ("+I", 1), ("+I", 2)]


def test_memory_does_not_grow_with_the_states(disk: Warehouse) -> None:
    """Two large states that differ in every row are compared with a small part of them in memory."""
    count = 400_000
    options = {"bucket": 1, "write-only": True, "read.batch-size": 4096, "file.compression": "none"}
    table = disk.table("t", {"k": "INT NOT NULL", "v": "BIGINT"}, primary_key=["k"], options=options)
    keys = np.arange(count, dtype=np.int32)
    for value in (1, 2):
        values = np.arange(count, dtype=np.int64) * value + value
        table.write(pa.table({"k": keys, "v": values}))
    before = pa.total_allocated_bytes()
    peak = seen = 0
    for batch in table.with_options(between(1, 2, "diff")).to_batches():
        seen += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert seen == count
    assert peak < count * 12 // 2


ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "deduplicate by field": {"sequence.field": "b"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max",
        "fields.b.ignore-retract": "true",
    },
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "aggregation with lookup": {
        "merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "changelog-producer": "lookup",
        "fields.b.aggregate-function": "max", "fields.b.ignore-retract": "true",
    },
    "deduplicate with lookup": {"changelog-producer": "lookup"},
}  # fmt: skip

_CELL = st.none() | st.integers(0, 3)
_CHANGE = st.tuples(st.sampled_from(["+I", "+I", "+U", "-D"]), st.integers(0, 6), _CELL, _CELL)
_STEP = st.lists(_CHANGE, min_size=1, max_size=6) | st.sampled_from(["compact", "compact all", "overwrite"])


def _play(table: lakebed.Table, step: Any) -> None:
    if step == "overwrite":
        table.write(pa.table({"k": ints(2, 9), "a": ints(1, 1), "b": ints(1, None)}), overwrite=True)
    elif isinstance(step, str):
        table.compact(full=step.endswith("all"))
    else:
        write(table, [(kind, [k, a, b]) for kind, k, a, b in step])


def _applied(state: dict[int, Rows], events: Rows) -> dict[int, Any]:
    """Row by row, and an old row must be the one that is there."""
    for kind, key, *cells in events:
        if kind in ("-U", "-D"):
            assert state.pop(key) == cells
        else:
            assert key not in state
            state[key] = cells
    return state


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=10, deadline=None)
@given(steps=st.lists(_STEP, min_size=2, max_size=6), writes_only=st.booleans())
def test_a_difference_leads_from_one_state_to_the_other(engine: str, steps: list[Any], writes_only: bool) -> None:
    """For any two snapshots of any history: applied to the one state, the difference gives the other."""
    options = {**ENGINES[engine], "write-only": str(writes_only).lower(), "num-sorted-run.compaction-trigger": "2"}
    table = create("k a b", options)
    for step in steps:
        try:
            _play(table, step)
        except InvalidData:
            continue  # some engines refuse some retracts
    states: dict[int, dict[int, Any]] = {0: {}}
    for snapshot in table.snapshots():
        found = table.at(snapshot=snapshot.id).to_arrow().to_pylist()
        states[snapshot.id] = {row["k"]: [row["a"], row["b"]] for row in found}
    for before in states:
        for after in {0, len(states) - 1, (before * 7 + 3) % len(states)}:
            events = differences(table, before, after)
            assert _applied(dict(states[before]), events) == states[after]
            changed = [key for key in states[before].keys() | states[after].keys()
                       if states[before].get(key) != states[after].get(key)]  # fmt: skip
            assert sorted({event[1] for event in events}) == sorted(changed)
