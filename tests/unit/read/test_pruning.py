"""What a scan opens: files that a filter rules out by partition, bucket, key or column statistics stay closed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import Table


def _check(table: Table, given: Any, files: int, rows: int) -> None:
    """The filter opens that many files and finds that many rows, as many as without any pruning."""
    plan = table.scan(filter=given)
    assert len(plan.files) == files
    found = table.to_arrow(filter=given)
    assert found.num_rows == rows
    expression = given if isinstance(given, pc.Expression) else None
    if expression is not None:
        assert found.num_rows == table.to_arrow().filter(expression).num_rows


def test_partitions(warehouse: Warehouse) -> None:
    """Only files of matching partitions are opened, by any comparison and by null."""
    table = warehouse.table("t", {"id": "INT", "a": "INT", "b": "STRING"}, partition_by=["a", "b"])
    for number in range(6):
        b = None if number == 5 else "xyz"[number % 3]
        table.write(pa.table({"id": ints(number), "a": ints(number // 2), "b": pa.array([b], pa.string())}))
    _check(table, pc.field("a") == 1, 2, 2)
    _check(table, pc.field("a") >= 1, 4, 4)
    _check(table, (pc.field("a") == 1) & (pc.field("b") == "z"), 1, 1)
    _check(table, (pc.field("a") == 0) | (pc.field("b") == "y"), 3, 3)
    _check(table, pc.field("b").is_null(), 1, 1)
    _check(table, pc.field("a") == 9, 0, 0)
    _check(table, [("b", "in", ["x", "y"])], 4, 4)


def test_buckets(warehouse: Warehouse) -> None:
    """A filter that fixes the bucket key opens one bucket."""
    options = {"bucket": "8", "bucket-key": "id"}
    table = warehouse.table("t", {"id": "INT", "v": "INT"}, options=options)
    table.write(pa.table({"id": ints(*range(100)), "v": ints(*range(100))}))
    assert len(table.scan().files) == 8
    _check(table, pc.field("id") == 42, 1, 1)
    assert len(table.scan(filter=[("id", "in", [1, 2, 3])]).files) <= 3
    _check(table, [("id", "in", [1, 2, 3])], len(table.scan(filter=[("id", "in", [1, 2, 3])]).files), 3)


def test_keys(warehouse: Warehouse) -> None:
    """Files of a keyed table whose key range can not match stay closed, those that overlap with a match do not."""
    table = warehouse.table("t", {"id": "INT", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    for start in (0, 10, 20):
        table.write(pa.table({"id": ints(*range(start, start + 10)), "v": ints(*range(10))}))
    _check(table, pc.field("id") == 15, 1, 1)
    _check(table, pc.field("id") >= 15, 2, 15)
    _check(table, pc.field("id") < 0, 0, 0)


def test_values_of_an_append_table(warehouse: Warehouse) -> None:
    """Files whose columns can not hold a match stay closed, nulls and text included."""
    table = warehouse.table("t", {"id": "INT", "s": "STRING"})
    for start in (0, 10, 20):
        texts = [None] * 10 if start == 20 else [f"long common prefix of all {start + i:03}" for i in range(10)]
        table.write(pa.table({"id": ints(*range(start, start + 10)), "s": pa.array(texts, pa.string())}))
    _check(table, pc.field("id") == 15, 1, 1)
    _check(table, (pc.field("id") > 5) & (pc.field("id") < 8), 1, 2)
    _check(table, pc.field("s").is_null(), 1, 10)
    _check(table, pc.field("s") >= "long common prefix of all 015", 2, 5)
    _check(table, pc.field("s") > "m", 0, 0)


def test_values_of_a_keyed_table(warehouse: Warehouse) -> None:
    """Column statistics close a file only where no other file has the same keys: an old row must not come back."""
    table = warehouse.table("t", {"id": "INT", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": ints(1, 2), "v": ints(1, 1)}))
    table.write(pa.table({"id": ints(11, 12), "v": ints(5, 5)}))
    _check(table, pc.field("v") == 5, 1, 2)
    table.write(pa.table({"id": ints(1), "v": ints(7)}))
    _check(table, pc.field("v") == 1, 2, 1)
    assert table.to_arrow(filter=pc.field("v") == 1)["id"].to_pylist() == [2]


@pytest.mark.parametrize("mode", ["none", "counts", "full", "truncate(3)"])
def test_any_statistics_give_the_same_rows(warehouse: Warehouse, mode: str) -> None:
    """Whatever is recorded about columns, filters find the same rows."""
    options = {"metadata.stats-mode": mode, "fields.id.stats-mode": "full"}
    table = warehouse.table("t", {"id": "INT", "s": "STRING"}, options=options)
    for start in (0, 10):
        table.write(pa.table({"id": ints(start, start + 1), "s": [f"text {start}", None]}))
    _check(table, pc.field("id") == 10, 1, 1)
    _check(table, pc.field("s") == "text 10", {"full": 1}.get(mode, 2), 1)
    assert table.to_arrow(filter=pc.field("s").is_null()).num_rows == 2


def test_pruning_across_schema_versions(warehouse: Warehouse) -> None:
    """Statistics of old files are read by column id: renames, new, dropped and widened columns lose no row."""
    table = warehouse.table("t", {"id": "INT", "a": "INT", "b": "INT"})
    table.write(pa.table({"id": ints(1), "a": ints(100), "b": ints(200)}))
    table.alter(lakebed.RenameColumn("a", "c"), lakebed.DropColumn("b"), lakebed.UpdateColumnType("id", "BIGINT"))
    table.alter(lakebed.RenameColumn("c", "b"), lakebed.AddColumn("a", "INT"))
    table.write(pa.table({"id": [2], "b": ints(1), "a": ints(5)}))
    _check(table, pc.field("b") == 100, 1, 1)
    _check(table, pc.field("b") == 200, 0, 0)
    assert table.to_arrow(filter=pc.field("a").is_null())["id"].to_pylist() == [1]
    assert table.to_arrow(filter=pc.field("a") == 5)["id"].to_pylist() == [2]
    _check(table, pc.field("id") == 1, 1, 1)
    assert table.to_arrow(filter=[("id", "=", 2**40)]).num_rows == 0
