"""First-row tables: the first row of a key stays, and reads show what compaction has decided."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidData, InvalidOption
from lakebed.metadata.snapshot import CommitKind

COLUMNS = {"k": "INT NOT NULL", "v": "STRING"}


def _table(**options: object) -> lakebed.Table:
    lake = lakebed.connect(f"memory://first-row-{np.random.default_rng().integers(1 << 60)}")
    return lake.create_table(
        "t", COLUMNS, primary_key=["k"], options={"bucket": 1, "merge-engine": "first-row", **options}
    )


def _rows(rows: Mapping[int, str]) -> pa.Table:
    return pa.table({"k": pa.array(rows.keys(), pa.int32()), "v": pa.array(rows.values(), pa.string())})


def _read(table: lakebed.Table, **arguments: object) -> dict[int, str]:
    found = table.to_arrow(**arguments).to_pylist()
    assert len({row["k"] for row in found}) == len(found)
    return {row["k"]: row["v"] for row in found}


@pytest.mark.parametrize("trigger", [2, 5])
def test_random_history(trigger: int) -> None:
    """After every commit a read shows the first value of every key, with files on several levels."""
    table = _table(**{"num-sorted-run.compaction-trigger": trigger, "num-levels": 6})
    rng = np.random.default_rng(trigger)
    first: dict[int, str] = {}
    levels = set()
    for commit in range(30):
        keys = [int(key) for key in rng.choice(400, 25, replace=False)]
        values = {key: f"{commit}/{key}" for key in keys}
        first = values | first
        table.write(_rows(values))
        assert _read(table) == first
        assert table.check() == []
        levels |= {file.level for file in table.scan().files}
        if commit == 20:
            table.compact(full=True)
            assert _read(table) == first
            assert {file.level for file in table.scan().files} == {5}
    assert {4, 5} <= levels
    assert sum(file.row_count for file in table.scan().files) == len(first)


def test_m_60_the_first_row_stays() -> None:
    """M-60: a later row of a key is ignored."""
    table = _table()
    table.write(_rows({1: "a"}))
    table.write(_rows({1: "b"}))
    assert _read(table) == {1: "a"}


def test_m_61_within_one_commit() -> None:
    """M-61: of two rows of a key in one commit the first stays."""
    table = _table()
    table.write(pa.table({"k": pa.array([1, 1], pa.int32()), "v": ["a", "b"]}))
    assert _read(table) == {1: "a"}


def test_m_62_level_0_is_invisible() -> None:
    """M-62: without compaction nothing is shown; compaction shows it."""
    table = _table(**{"write-only": True})
    table.write(_rows({1: "a", 2: "b"}))
    table.write(_rows({1: "c", 3: "d"}))
    assert _read(table) == {}
    compactor = table.with_options({"write-only": False})
    assert compactor.compact() is not None
    assert _read(table) == {1: "a", 2: "b", 3: "d"}
    assert compactor.compact() is None


def test_m_63_changes_without_a_producer() -> None:
    """M-63: without a changelog every row that came is a change, later ones of a key too."""
    table = _table()
    table.write(_rows({1: "a"}))
    table.write(_rows({1: "b"}))
    changes = table.changes().to_pylist()
    assert [(row["rowkind"], row["k"], row["v"]) for row in changes] == [("+I", 1, "a"), ("+I", 1, "b")]


def test_every_commit_compacts() -> None:
    """Each write makes its rows visible by a compaction of its own."""
    table = _table()
    table.write(_rows({1: "a"}))
    table.write(_rows({2: "b"}))
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds == [CommitKind.APPEND, CommitKind.COMPACT] * 2


def test_filters_reach_files_of_any_level() -> None:
    """Levels never hold a key twice, so a filter on values may skip files although their keys overlap."""
    table = _table()
    table.write(_rows({key: f"old-{key}" for key in range(0, 1000, 2)}))
    table.compact(full=True)
    table.write(_rows({key: f"zoo-{key}" for key in range(0, 100)}))
    assert len(table.scan().files) == 2
    assert len(table.scan(filter=[("v", ">=", "zoo")]).files) == 1
    assert _read(table, filter=[("v", ">=", "zoo")]) == {key: f"zoo-{key}" for key in range(1, 100, 2)}


def test_retracts_are_refused(warehouse: Warehouse) -> None:
    """A first-row table takes no deletes, and says how to drop them; nothing changes."""
    options = {"bucket": 1, "merge-engine": "first-row"}
    table = warehouse.table("t", COLUMNS, _rows({1: "a"}), primary_key=["k"], options=options)
    delete = pa.table({"k": pa.array([1], pa.int32()), "v": ["a"], "op": ["-D"]})
    with warehouse.refuses(InvalidData, "-D", "`ignore-delete`"):
        table.write(delete, row_kind="op")


def test_n_49_old_name_of_ignore_delete() -> None:
    """N-49: `first-row.ignore-delete` drops deletes; the row stays."""
    table = _table(**{"first-row.ignore-delete": True})
    table.write(_rows({1: "a"}))
    table.write(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"], "op": ["-D", "+I"]}), row_kind="op")
    assert _read(table) == {1: "a", 2: "b"}


def test_n_49_no_sequence_field(warehouse: Warehouse) -> None:
    """N-49: what came first is not for a column to say."""
    options = {"bucket": 1, "merge-engine": "first-row", "sequence.field": "v"}
    with warehouse.refuses(InvalidOption, "first-row", "sequence.field"):
        warehouse.table("t", COLUMNS, primary_key=["k"], options=options)


def test_large_file_moves_to_the_top_unread() -> None:
    """A first file that nothing contradicts goes to the highest level as it is."""
    table = _table(**{"target-file-size": "1 kb"})
    table.write(_rows({key: f"value {key}" for key in range(1000)}))
    appended = table.changes(until=1).num_rows
    (file,) = table.scan().files
    assert (appended, file.level, file.row_count) == (1000, 5, 1000)
    compacted = table.snapshots()[-1]
    assert compacted.commit_kind == CommitKind.COMPACT
    assert compacted.delta_record_count == 0
