"""`write.merge-schema`: a write makes room for the columns it brings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidData

MERGE = {"write.merge-schema": "true"}
WIDEN = {**MERGE, "write.merge-schema.type-widening": "true"}
CAST = {**MERGE, "write.merge-schema.explicit-cast": "true"}


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """A table with one row."""
    return warehouse.table("t", {"a": "INT", "b": "STRING"}, pa.table({"a": ints(1), "b": ["1"]}))


def _types(table: lakebed.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema.fields}


def test_new_columns_are_added(table: lakebed.Table) -> None:
    """Columns that the table lacks are added, old rows have nulls there, and new ones may lack columns."""
    merging = table.with_options(MERGE)
    merging.write(pa.table({"a": ints(3), "b": ["3"], "c": ints(3)}))
    merging.write(pa.table({"B": ["4"], "c": ints(4), "d": [[1, 2]]}))
    assert _types(table) == {"a": "INT", "b": "STRING", "c": "INT", "d": "ARRAY<BIGINT>"}
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["b"])
    assert rows == [
        {"a": 1, "b": "1", "c": None, "d": None},
        {"a": 3, "b": "3", "c": 3, "d": None},
        {"a": None, "b": "4", "c": 4, "d": [1, 2]},
    ]


def test_a_writer_makes_room_for_its_first_rows(table: lakebed.Table) -> None:
    """A writer adds the columns of its first batch; a later batch may lack some, and bring no more."""
    with table.with_options(MERGE).writer() as writer:
        writer.write(pa.table({"a": ints(2), "c": ints(5)}))
        writer.write(pa.table({"b": ["3"]}))
        with pytest.raises(InvalidData, match="`d`"):
            writer.write(pa.table({"a": ints(2), "d": ints(5)}))
    assert _types(table) == {"a": "INT", "b": "STRING", "c": "INT"}
    rows = sorted(table.to_arrow().to_pylist(), key=str)
    assert rows == [
        {"a": 1, "b": "1", "c": None},
        {"a": 2, "b": None, "c": 5},
        {"a": None, "b": "3", "c": None},
    ]


@pytest.mark.parametrize("form", ["table", "batch", "batches", "reader", "empty"])
def test_data_of_every_form(table: lakebed.Table, form: str) -> None:
    """Tables, batches and streams tell their columns alike."""
    data = pa.table({"a": ints(2), "c": ints(5)})
    forms: dict[str, Any] = {
        "table": data,
        "batch": data.to_batches()[0],
        "batches": data.to_batches(),
        "reader": data.to_reader(),
        "empty": data.slice(1),
    }
    table.with_options(MERGE).write(forms[form])
    assert "c" in _types(table)


def test_types_stay_unless_asked(table: lakebed.Table) -> None:
    """A wider number is stored as the narrow one if it fits, and refused if not."""
    merging = table.with_options(MERGE)
    merging.write(pa.table({"a": pa.array([2], pa.int64())}))
    with pytest.raises(InvalidData):
        merging.write(pa.table({"a": pa.array([2**40], pa.int64())}))
    assert _types(table)["a"] == "INT"


def test_types_grow(table: lakebed.Table) -> None:
    """With type widening, INT becomes BIGINT."""
    table.with_options(WIDEN).write(pa.table({"a": pa.array([2**40], pa.int64())}))
    assert _types(table)["a"] == "BIGINT"
    assert sorted(table.to_arrow()["a"].to_pylist()) == [1, 2**40]


def test_types_change(table: lakebed.Table) -> None:
    """With explicit casts, a column takes the type of the new rows, and old rows are read as it."""
    table.with_options(CAST).write(pa.table({"a": ["x"], "b": ["2"]}))
    assert _types(table)["a"] == "STRING"
    assert sorted(table.to_arrow()["a"].to_pylist()) == ["1", "x"]


def test_members_of_rows(warehouse: Warehouse) -> None:
    """Members of a ROW are added, and rows that lack some have nulls there, in arrays too."""
    table = warehouse.table("r", {"k": "INT", "d": "ROW<k1 STRING, k2 STRING>", "l": "ARRAY<ROW<x INT>>"})
    merging = table.with_options(MERGE)
    merging.write(pa.table({"k": ints(1), "d": [{"K1": "A", "k3": "C"}], "l": [[{"x": 1, "y": 2}, None]]}))
    merging.write(pa.table({"k": ints(2), "d": pa.array([{"k2": "B"}]), "l": [[{"y": 3}]]}))
    assert table.to_arrow(columns=["d"])["d"].to_pylist() == [
        {"k1": "A", "k2": None, "k3": "C"},
        {"k1": None, "k2": "B", "k3": None},
    ]
    assert table.to_arrow(columns=["l"])["l"].to_pylist() == [[{"x": 1, "y": 2}, None], [{"x": None, "y": 3}]]


def test_row_kinds_are_no_column(warehouse: Warehouse) -> None:
    """The column of row kinds is not added."""
    table = warehouse.table("k", {"k": "INT"}, primary_key=["k"], options={"bucket": "1", **MERGE})
    table.write(pa.table({"k": ints(1), "v": ints(2), "kind": ["+I"]}), row_kind="kind")
    assert list(_types(table)) == ["k", "v"]


def test_without_the_option_nothing_is_added(warehouse: Warehouse, table: lakebed.Table) -> None:
    """Columns that the table lacks are refused."""
    with warehouse.refuses(InvalidData, "`c`"):
        table.write(pa.table({"a": ints(3), "b": ["3"], "c": ints(3)}))
