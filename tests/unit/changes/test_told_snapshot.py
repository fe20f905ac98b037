"""`t.told_snapshot()`: the newest snapshot of which no change is told later."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed

PRODUCERS = ("none", "input", "lookup", "full-compaction")
_TELLS_LATER = ("lookup", "full-compaction")
_names = itertools.count()


def _table(producer: str, **options: Any) -> lakebed.Table:
    columns = {"k": "INT NOT NULL", "v": "INT"}
    return lakebed.connect(f"memory://told-{next(_names)}").create_table(
        "t", columns, primary_key=["k"], options={"bucket": "1", "changelog-producer": producer, **options}
    )


def _rows(*keys: int, value: int = 1) -> pa.Table:
    return pa.table({"k": ints(*keys), "v": ints(*[value] * len(keys))})


def _told_id(table: lakebed.Table) -> int | None:
    found = table.told_snapshot()
    return None if found is None else found.id


def _folded(table: lakebed.Table, until: int) -> Counter[tuple[int, int]]:
    """What is left of all changes: an upsert without its old row takes the place of what is there."""
    state: dict[int, int] = {}
    for row in table.changes(0, until).to_pylist():
        if row["rowkind"] in ("-U", "-D"):
            state.pop(row["k"], None)
        else:
            state[row["k"]] = row["v"]
    return Counter(state.items())


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_table_that_compacts_as_it_writes(producer: str) -> None:
    """Each commit is told by the time the write returns."""
    table = _table(producer)
    assert table.told_snapshot() is None
    for value in (1, 2, 3):
        table.write(_rows(1, 2, value=value))
        told = table.told_snapshot()
        assert told == table.latest_snapshot()
        assert told is not None
        assert _folded(table, told.id) == {(1, value): 1, (2, value): 1}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_table_that_others_compact(producer: str) -> None:
    """Where compactions tell, what was written since the last one is not told; elsewhere the latest is."""
    table = _table(producer, **{"write-only": "true"})
    table.write(_rows(1))
    assert _told_id(table) == (None if producer in _TELLS_LATER else 1)
    table.with_options({"write-only": "false"}).compact(full=True)
    compacted = table.snapshots()[-1].id
    assert _told_id(table) == compacted
    table.write(_rows(1, 2, value=5))
    table.write(_rows(3))
    assert _told_id(table) == (compacted if producer in _TELLS_LATER else compacted + 2)
    assert table.at(snapshot=compacted).told_snapshot() == table.at(snapshot=compacted).fixed_to
    table.with_options({"write-only": "false"}).compact(full=True)
    assert table.told_snapshot() == table.latest_snapshot()


def test_a_partial_compaction_tells_with_lookup_only() -> None:
    """`full-compaction` tells what has reached the highest level, `lookup` what has left level 0."""
    for producer, is_told in (("lookup", True), ("full-compaction", False)):
        table = _table(producer, **{"write-only": "true", "num-sorted-run.compaction-trigger": "3"})
        writable = table.with_options({"write-only": "false"})
        table.write(_rows(*range(50_000)))
        writable.compact(full=True)
        for value in (2, 3, 4):
            table.write(_rows(1, value=value))
        writable.compact()
        latest = table.latest_snapshot()
        assert latest is not None
        levels = {file.level for file in table.scan().files}
        assert 0 not in levels
        assert len(levels) > 1, "everything was compacted"
        assert (table.told_snapshot() == latest) is is_told


def test_expired_and_without_a_key(warehouse: Warehouse) -> None:
    """None if the told one has expired; a table without a key tells at once; an empty one has none."""
    table = _table("lookup", **{"write-only": "true"})
    for value in range(3):
        table.write(_rows(1, value=value))
    assert table.told_snapshot() is None
    appended = warehouse.table("a", {"v": "INT"}, pa.table({"v": ints(1)}))
    assert appended.told_snapshot() == appended.latest_snapshot()
    assert warehouse.table("e", {"v": "INT"}).told_snapshot() is None


def test_a_producer_that_was_chosen_later() -> None:
    """To choose one folds the table first; what is written since is told by compactions."""
    table = _table("none", **{"write-only": "true"})
    table.write(_rows(1))
    table.alter(lakebed.SetOption("changelog-producer", "lookup"))
    folded = table.latest_snapshot()
    assert table.told_snapshot() == folded
    table.write(_rows(2))
    assert table.told_snapshot() == folded


_STEP = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=4) | st.sampled_from(
    ["compact", "compact all", "overwrite"]
)


@pytest.mark.parametrize("producer", PRODUCERS)
@settings(max_examples=15, deadline=None)
@given(is_write_only=st.booleans(), buckets=st.sampled_from(["1", "2", "-1"]), steps=st.lists(_STEP, max_size=7))
def test_changes_up_to_it_are_its_rows(producer: str, is_write_only: bool, buckets: str, steps: list[Any]) -> None:
    """Whatever was written and compacted: folded changes up to the told snapshot are its rows."""
    table = _table(producer, bucket=buckets, **{"write-only": str(is_write_only).lower()})
    is_complete = True
    for step in steps:
        if step == "overwrite":
            table.write(_rows(1, 9), overwrite=True)
            is_complete = is_complete and producer in _TELLS_LATER  # others pass overwrites over
        elif isinstance(step, str):
            table.with_options({"write-only": "false"}).compact(full=step.endswith("all"))
        else:
            keys, values = zip(*step, strict=True)
            table.write(pa.table({"k": ints(*keys), "v": ints(*values)}))
    told = table.told_snapshot()
    if told is not None and is_complete:
        rows = table.at(snapshot=told.id).to_arrow().to_pylist()
        assert _folded(table, told.id) == Counter((row["k"], row["v"]) for row in rows)
