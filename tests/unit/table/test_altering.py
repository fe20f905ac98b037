"""Schema changes through a table: each kind, with reads of files written before and after."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import Table
from lakebed.errors import InvalidData, NotFound


@pytest.fixture(params=["append", "keyed"])
def table(warehouse: Warehouse, request: pytest.FixtureRequest) -> Table:
    more = {"primary_key": ["id"], "options": {"bucket": "1"}} if request.param == "keyed" else {}
    return warehouse.table(
        "t",
        {"id": "INT NOT NULL", "a": "INT", "b": "STRING"},
        pa.table({"id": ints(1, 2), "a": ints(10, None), "b": ["x", "y"]}),
        **more,
    )


def _rows(table: Table) -> list[dict[str, object]]:
    return list(table.to_arrow().sort_by("id").to_pylist())


def test_adding(table: Table) -> None:
    """Old rows have null in a new column, wherever it is placed."""
    table.alter(lakebed.AddColumn("c", "DOUBLE", position=lakebed.After("id")), lakebed.AddColumn("d", pa.string()))
    assert table.arrow_schema.names == ["id", "c", "a", "b", "d"]
    table.write(pa.table({"id": ints(3), "c": [0.5], "a": ints(30), "b": ["z"], "d": ["new"]}))
    assert _rows(table) == [
        {"id": 1, "c": None, "a": 10, "b": "x", "d": None},
        {"id": 2, "c": None, "a": None, "b": "y", "d": None},
        {"id": 3, "c": 0.5, "a": 30, "b": "z", "d": "new"},
    ]
    assert table.at(snapshot=1).arrow_schema.names == ["id", "a", "b"]


def test_dropping_and_adding_again(table: Table) -> None:
    """A column that was dropped does not come back with its old values under the same name."""
    table.alter(lakebed.DropColumn("a"))
    assert _rows(table) == [{"id": 1, "b": "x"}, {"id": 2, "b": "y"}]
    table.alter(lakebed.AddColumn("a", "INT"))
    assert [row["a"] for row in _rows(table)] == [None, None]


def test_renaming(table: Table) -> None:
    """Old rows are found under a new name, also when two columns swap theirs."""
    table.alter(
        lakebed.RenameColumn("a", "temporary"), lakebed.RenameColumn("b", "a"), lakebed.RenameColumn("temporary", "b")
    )
    assert _rows(table) == [{"id": 1, "b": 10, "a": "x"}, {"id": 2, "b": None, "a": "y"}]
    with pytest.raises(InvalidData, match="`b` is INT"):
        table.write(pa.table({"id": ints(3), "b": ["z"], "a": ints(1)}))


def test_renaming_a_key(warehouse: Warehouse) -> None:
    """A key column may be renamed; keys and files follow."""
    table = warehouse.table("t", {"id": "INT", "v": "INT"}, primary_key=["id"], options={"bucket": "2"})
    table.write(pa.table({"id": ints(1, 2), "v": ints(1, 1)}))
    table.alter(lakebed.RenameColumn("id", "key"))
    assert table.primary_key == ("key",)
    table.write(pa.table({"key": ints(2, 3), "v": ints(2, 2)}))
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == [(1, 1), (2, 2), (3, 2)]
    assert table.to_arrow(filter=[("key", "=", 2)]).to_pylist() == [{"key": 2, "v": 2}]


def test_changing_types(table: Table) -> None:
    """Old values are cast when read; new ones are checked against the new type."""
    table.alter(lakebed.UpdateColumnType("a", "BIGINT"))
    table.write(pa.table({"id": ints(3), "a": [2**40], "b": ["z"]}))
    assert [row["a"] for row in _rows(table)] == [10, None, 2**40]
    table.alter(lakebed.UpdateColumnType("a", "STRING"))
    assert [row["a"] for row in _rows(table)] == ["10", None, "1099511627776"]
    assert table.to_arrow(filter=[("a", "=", "10")]).num_rows == 1


def test_nullability(table: Table) -> None:
    """NOT NULL can be asked for with the option that says so, and counts for writes from then on."""
    table.alter(lakebed.SetOption("alter-column-null-to-not-null.disabled", "false"))
    table.alter(lakebed.UpdateColumnNullability("b", False))
    with pytest.raises(InvalidData, match="`b` is NOT NULL"):
        table.write(pa.table({"id": ints(3), "a": ints(3), "b": pa.nulls(1)}))
    table.alter(lakebed.UpdateColumnNullability("b", True))
    table.write(pa.table({"id": ints(3), "a": ints(3), "b": pa.nulls(1)}))
    assert len(_rows(table)) == 3


def test_comments_order_and_options(table: Table) -> None:
    """Comments, the order of columns and options change without touching rows."""
    table.alter(
        lakebed.UpdateComment("all of it"),
        lakebed.UpdateColumnComment("a", "how many"),
        lakebed.UpdateColumnPosition("b", lakebed.First()),
        lakebed.SetOption("target-file-size", "1 mb"),
    )
    assert table.comment == "all of it"
    assert table.schema.field("a").description == "how many"
    assert table.arrow_schema.field("a").metadata == {b"comment": b"how many"}
    assert table.arrow_schema.names == ["b", "id", "a"]
    assert table.options["target-file-size"] == "1 mb"
    assert _rows(table) == [{"b": "x", "id": 1, "a": 10}, {"b": "y", "id": 2, "a": None}]
    table.alter(lakebed.RemoveOption("target-file-size"), lakebed.UpdateComment(None))
    assert "target-file-size" not in table.options
    assert table.comment is None


def test_nested_columns(warehouse: Warehouse) -> None:
    """Members of rows are added, renamed, dropped and widened inside columns, and old values follow."""
    table = warehouse.table("t", {"id": "INT", "r": "ROW<x INT, y STRING, z INT>", "l": "ARRAY<ROW<p INT>>"})
    first = {"id": 1, "r": {"x": 1, "y": "a", "z": 9}, "l": [{"p": 1}, None]}
    table.write(pa.Table.from_pylist([first], schema=table.arrow_schema))
    table.alter(
        lakebed.AddColumn(("r", "w"), "INT"),
        lakebed.RenameColumn("r.y", "text"),
        lakebed.DropColumn(("r", "z")),
        lakebed.UpdateColumnType(("l", "element", "p"), "BIGINT"),
        lakebed.AddColumn(("l", "element", "q"), "STRING"),
    )
    second = {"id": 2, "r": {"x": 2, "text": "b", "w": 3}, "l": [{"p": 2**40, "q": "new"}]}
    table.write(pa.Table.from_pylist([second], schema=table.arrow_schema))
    assert _rows(table) == [
        {"id": 1, "r": {"x": 1, "text": "a", "w": None}, "l": [{"p": 1, "q": None}, None]},
        second,
    ]


def test_a_handle_sees_later_versions(warehouse: Warehouse) -> None:
    """An open handle reads and writes under the schema that others have changed meanwhile."""
    table = warehouse.table("t", {"id": "INT"}, pa.table({"id": ints(1)}))
    other = warehouse.reopened().table("t")
    other.alter(lakebed.AddColumn("v", "STRING"))
    assert table.arrow_schema.names == ["id", "v"]
    table.write(pa.table({"id": ints(2), "v": ["x"]}))
    assert other.to_arrow().num_rows == 2
    assert table.alter() is None
    assert table.schema.id == 1


def test_an_option_that_is_not_set_can_not_be_removed() -> None:
    """Removing what is not there is a slip: it is said, and no schema version is made."""
    table = lakebed.connect("memory://remove-option").create_table("t", {"a": "INT"}, options={"file.format": "orc"})
    with pytest.raises(NotFound, match=r"`file\.formt`") as caught:
        table.alter(lakebed.RemoveOption("file.formt"))
    assert "`file.format`" in caught.value.hint
    assert table.schema.id == 0
    table.alter(lakebed.RemoveOption("file.format"))
    assert "file.format" not in table.options


def test_a_dropped_table_has_no_snapshots_to_list() -> None:
    """A handle that outlives its table says so."""
    lake = lakebed.connect("memory://dropped")
    table = lake.create_table("t", {"a": "INT"})
    lake.drop_table("t")
    with pytest.raises(NotFound, match="does not exist any more"):
        table.snapshots()
