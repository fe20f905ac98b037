"""Rows of plain Python: written and made tables of, with no value changed or lost."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed.errors import AlreadyExists, InvalidArgument, InvalidData, InvalidSchema, LakebedError

COLUMNS = {"id": "INT NOT NULL", "v": "STRING", "m": "MAP<STRING, INT>", "r": "ROW<x INT, y STRING>"}


@dataclass
class Place:
    street: str
    number: int | None = None


@dataclass
class Order:
    id: int
    name: str | None
    price: Annotated[Decimal, "DECIMAL(10, 2)"]
    tags: list[str]
    place: Place | None
    when: dt.datetime
    day: dt.date | None = None
    state: Literal["new", "paid"] = "new"
    seen: Annotated[int | None, pa.int16()] = None
    counts: dict[str, int] = field(default_factory=dict)


class Model:
    """What a pydantic model looks like to others."""

    model_fields: dict[str, object] = {"id": object(), "name": object()}  # noqa: RUF012
    id: int
    name: str | None

    def __init__(self, number: int, name: str | None) -> None:
        self.id, self.name = number, name

    def model_dump(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name}


ORDER = Order(1, None, Decimal("1.10"), ["a"], Place("x"), dt.datetime(2020, 1, 1), counts={"k": 1})


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "v": "a", "m": {"k": 1}, "r": {"x": 1, "y": "p"}}, {"id": 2}],
        [{"id": 2}, {"r": {"x": 1, "y": "p"}, "m": [("k", 1)], "v": "a", "id": 1}],
        {"id": [1, 2], "v": ["a", None], "m": [{"k": 1}, None], "r": [{"x": 1, "y": "p"}, None]},
        {"id": ints(1, 2), "v": ["a", None], "m": [[("k", 1)], None], "r": [{"x": 1, "y": "p"}, None]},
    ],
)
def test_rows_are_written(warehouse: Warehouse, rows: Any) -> None:
    """Dicts of columns and lists of dicts give the rows that they say; a key that a row lacks is null."""
    table = warehouse.table("t", COLUMNS, rows)
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "v": "a", "m": [("k", 1)], "r": {"x": 1, "y": "p"}},
        {"id": 2, "v": None, "m": None, "r": None},
    ]
    assert table.write([]) is None
    with table.writer() as writer:
        writer.write(rows)
    assert table.count() == 4


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([{"id": 1, "v": "a", "m": {"a": "x"}, "r": None}], ["`m`", "'x'"]),
        ([{"id": 1, "v": "a", "m": {}, "r": {"x": 1, "z": 3}}], ["`r`", "`z`"]),
        ([{"id": 1}], ["lacks column `v`"]),
        ([{"id": 1, "v": "a", "m": None, "r": None, "w": 1}], ["`w`", "has not"]),
        ({"id": [1, 2], "v": ["a"]}, ["`id` has 2, `v` has 1"]),
        ({1: [1]}, ["column name 1"]),
        ([1, 2], ["list"]),
        ([{"id": 1}, 2], ["list"]),
        ([{"id": "x", "v": "a", "m": {}, "r": None}], ["`id`"]),
        ([{"id": 1, "v": [1, "a"], "m": {}, "r": None}], ["`v`", "'a'"]),
        ([{"id": 2**40, "v": "a", "m": {}, "r": None}], ["`id`"]),
        ([{"id": 1.5, "v": "a", "m": {}, "r": None}], ["`id`"]),
        ("text", ["str"]),
    ],
    ids=str,
)
def test_rows_that_do_not_fit(warehouse: Warehouse, rows: Any, texts: list[str]) -> None:
    """A value of another type, an unknown key or a column of another length is named, and nothing is written."""
    table = warehouse.table("t", COLUMNS)
    with warehouse.refuses(InvalidData, *texts):
        table.write(rows)


def test_classes_tell_columns(warehouse: Warehouse) -> None:
    """A dataclass makes a table by its annotations and writes its instances; what may be None is nullable."""
    table = warehouse.lake.create_table("t", Order, primary_key=["id"])
    types = {field.name: str(field.type) for field in table.schema.fields}
    assert types == {
        "id": "BIGINT NOT NULL",
        "name": "STRING",
        "price": "DECIMAL(10, 2) NOT NULL",
        "tags": "ARRAY<STRING NOT NULL> NOT NULL",
        "place": "ROW<`street` STRING NOT NULL, `number` BIGINT>",
        "when": "TIMESTAMP(6) NOT NULL",
        "day": "DATE",
        "state": "STRING NOT NULL",
        "seen": "SMALLINT",
        "counts": "MAP<STRING NOT NULL, BIGINT NOT NULL> NOT NULL",
    }
    table.write([ORDER])
    (row,) = table.to_arrow().to_pylist()
    assert row["price"] == Decimal("1.10")
    assert (row["place"], row["counts"]) == ({"street": "x", "number": None}, [("k", 1)])
    made = warehouse.lake.create_table("made", [ORDER, ORDER])
    assert made.arrow_schema == table.arrow_schema
    assert made.count() == 2


def test_models_of_pydantic(warehouse: Warehouse) -> None:
    """A pydantic model makes a table, and its instances are rows."""
    table = warehouse.lake.create_table("t", Model)
    table.write([Model(1, "a"), Model(2, None)])
    assert table.to_arrow().to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    assert str(table.schema.field("id").type) == "BIGINT NOT NULL"


def test_annotations_without_a_type(warehouse: Warehouse) -> None:
    """An annotation that stands for no column type is named, with how to say one."""

    @dataclass
    class Priced:
        price: Decimal

    with warehouse.refuses(InvalidSchema, "`Priced.price`", "DECIMAL(10, 2)"):
        warehouse.lake.create_table("t", Priced)


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        ({"id": 3, "name": "x"}, "[row]"),
        (Model(3, "x"), "[row]"),
        ([(3, "x"), (4, "y")], "dict(zip(t.columns, row))"),
        ([3, 4], "a list of dicts"),
    ],
)
def test_what_is_nearly_rows(warehouse: Warehouse, rows: Any, hint: str) -> None:
    """One row without a list, and rows without names, are told how they are written."""
    table = warehouse.lake.create_table("t", Model)
    with warehouse.refuses(InvalidData, "can not be written", hint):
        table.write(rows)


WITH_ROWS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    "polars": lambda: pl.DataFrame({"a": [1, 2], "b": ["x", None]}),
    "arrow": lambda: pa.table({"a": [1, 2], "b": ["x", None]}),
    "batch": lambda: pa.record_batch({"a": [1, 2], "b": ["x", None]}),
    "reader": lambda: pa.table({"a": [1, 2], "b": ["x", None]}).to_reader(),
    "columns": lambda: {"a": [1, 2], "b": ["x", None]},
    "dicts": lambda: [{"a": 1, "b": "x"}, {"a": 2}],
}


@pytest.mark.parametrize("kind", WITH_ROWS)
def test_tables_of_rows(warehouse: Warehouse, kind: str) -> None:
    """A table made of rows has their columns and holds them; of another table of the lake it is a copy."""
    table = warehouse.lake.create_table("t", WITH_ROWS[kind](), primary_key=["a"], options={"bucket": "1"})
    assert table.to_arrow().to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert table.primary_key == ("a",)
    assert warehouse.lake.create_table("copy", table).to_arrow().to_pylist() == table.to_arrow().to_pylist()
    again = warehouse.lake.create_table("t", WITH_ROWS[kind](), if_not_exists=True)
    assert (again.count(), len(again.snapshots())) == (2, 1)
    with warehouse.refuses(AlreadyExists, "`default.t`"):
        warehouse.lake.create_table("t", WITH_ROWS[kind]())


@pytest.mark.parametrize(
    ("rows", "more", "kind"),
    [
        (pd.DataFrame({"a": [1, 2]}, index=[5, 6]), {}, InvalidArgument),
        (pa.table({"a": [1, None]}), {"primary_key": ["a"]}, InvalidData),
        (pa.table({"a": [None]}), {}, InvalidSchema),
        ([{"a": 1}, {"a": "x"}], {}, InvalidData),
        (pa.table({"a": [1]}), {"options": {"bucket": "x"}}, LakebedError),
    ],
)
def test_no_table_is_left_behind(warehouse: Warehouse, rows: Any, more: dict[str, Any], kind: Any) -> None:
    """When rows can not be written there is no table, and its name is free."""
    with pytest.raises(kind):
        warehouse.lake.create_table("t", rows, **more)
    assert "t" not in warehouse.lake
    assert warehouse.lake.create_table("t", {"a": [1]}).count() == 1


def test_a_lake_is_a_mapping_of_tables(warehouse: Warehouse) -> None:
    """Tables are found by subscript and by `in`, and a lake lists their names."""
    lake = warehouse.lake
    lake.create_table("t", {"a": [1]})
    assert lake["t"].count() == lake["default.t"].count() == 1
    assert "t" in lake
    assert "nope" not in lake
    assert 5 not in lake
    assert list(lake) == ["bystander", "t"]
    with pytest.raises(LakebedError, match="nope"):
        lake["nope"]
