"""A column that takes the name of one that was dropped has none of its values, however rows are looked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lakebed

ROWS = 20_000
"""Enough that old rows are looked for in a copy of their file, and not merged."""


def _table(path: Path, **options: str) -> lakebed.Table:
    lake = lakebed.connect(path)
    columns = {"k": "INT NOT NULL", "a": "STRING", "v": "STRING"}
    return lake.create_table("t", columns, primary_key=["k"], options={"bucket": "1"} | options)


def _write(table: lakebed.Table, keys: range | list[int], value: str | None) -> None:
    columns = {"a": [f"a{key * 7919 % ROWS}" for key in keys], "v": pa.array([value] * len(keys), pa.string())}
    table.write(pa.table({"k": pa.array(keys, pa.int32()), **columns}))


def _exchange(table: lakebed.Table) -> None:
    table.alter(lakebed.DropColumn("v"))
    table.alter(lakebed.AddColumn("v", "STRING"))


def test_a_compaction_looks_up_the_new_column(tmp_path: Path) -> None:
    """What a compaction merges with new rows, stores and tells has nothing of the dropped column."""
    table = _table(tmp_path, **{"changelog-producer": "lookup", "merge-engine": "partial-update"})
    _write(table, range(ROWS), "dropped")
    table.compact(full=True)
    _write(table, [5], None)  # looks up, and leaves a copy behind
    _exchange(table)
    before = table.latest_snapshot().id
    _write(table, [7], None)
    again = lakebed.connect(tmp_path).table("t")
    assert again.to_arrow(filter="k = 7")["v"].to_pylist() == [None]
    told = table.changes(since=before)
    assert told.num_rows
    assert set(told["v"].to_pylist()) == {None}


def test_lookups_find_the_new_column(tmp_path: Path) -> None:
    """`t.lookup` shows what a read shows."""
    table = _table(tmp_path)
    _write(table, [1, 2], "dropped")
    for _ in range(5):
        assert table.lookup([1])["v"].to_pylist() == ["dropped"]
    _exchange(table)
    assert table.lookup([1]).to_pylist() == table.to_arrow(filter="k = 1").to_pylist()
    assert table.lookup([1])["v"].to_pylist() == [None]


def test_old_rows_are_told_with_the_new_column(tmp_path: Path) -> None:
    """A normalised `input` changelog tells the row that was shown before."""
    table = _table(tmp_path, **{"changelog-producer": "input", "changelog-producer.input.normalize": "true"})
    _write(table, [1, 2], "dropped")
    _write(table, [1], "dropped, too")
    _exchange(table)
    before = table.latest_snapshot().id
    _write(table, [2], None)
    told = table.changes(since=before).select(["rowkind", "k", "v"]).to_pylist()
    assert told in ([], [{"rowkind": "-U", "k": 2, "v": None}, {"rowkind": "+U", "k": 2, "v": None}])
