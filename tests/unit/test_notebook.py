"""How lakes, tables and snapshots look, and what they say to a mistyped member."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.read.reader import SplitReader


@pytest.fixture
def house(warehouse: Warehouse) -> Warehouse:
    warehouse.table("t", {"a": "BIGINT NOT NULL", "b<i>": "STRING"}, [{"a": 1, "b<i>": "x"}], primary_key=["a"])
    return warehouse


def test_texts_are_short(house: Warehouse) -> None:
    """A table of a hundred columns, a list of snapshots and what write returns fit on a line or two."""
    wide = house.lake.create_table("wide", {f"column_{i}": "INT" for i in range(100)})
    assert repr(wide).endswith("column_7, … (100 columns)>")
    assert repr(wide.where("column_1 > 3")).endswith("where column_1 > 3")
    table = house.lake["t"]
    written = table.write({"a": [2, 3], "b<i>": ["y", None]})
    assert repr(written).startswith("<snapshot 2: WRITE, +2 records of 3, 20")
    assert repr(table.snapshots()).count("<snapshot") == 2
    assert len(repr(table.snapshots())) < 200
    assert repr(table.at(snapshot=1)) == "<lakebed table default.t at snapshot 1: a, b<i>>"


def test_notebooks_show_tables(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTML names columns, keys and snapshots, escapes what users chose, and reads no row for it."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr(SplitReader, "read", refuse)
    table = house.lake["t"]
    shown = table._repr_html_()
    assert all(word in shown for word in ("default.t", "b&lt;i&gt;", "BIGINT NOT NULL", "primary key"))
    assert "b<i>" not in shown
    assert "default.t at snapshot 1" in table.at(snapshot=1)._repr_html_()
    assert "where a &gt; 1" in table.where("a > 1")._repr_html_()
    assert "bystander" in house.lake._repr_html_()
    assert "WRITE" in table.snapshots()._repr_html_()  # type: ignore[attr-defined]
    last = table.latest_snapshot()
    assert last is not None
    assert "WRITE" in last._repr_html_()
    assert "rowkind" in house.lake["t$audit_log"]._repr_html_()
    assert "snapshot_id" in house.lake["t$snapshots"]._repr_html_()
    wide = house.lake.create_table("wide", {f"column_{i}": "INT" for i in range(100)})
    assert "column_39" in wide._repr_html_()
    assert "column_40" not in wide._repr_html_()
    assert "and 60 more" in wide._repr_html_()


def test_lists_of_snapshots_are_lists(house: Warehouse) -> None:
    """What a notebook shows as a table is a list all the same."""
    found = house.lake["t"].snapshots()
    assert isinstance(found, list)
    assert found == list(found)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("to_panda", "did you mean `to_pandas`?"),
        ("snapshot", "did you mean `snapshots`?"),
        ("filter", "t.where(filter)"),
        ("append", "t.write(rows)"),
        ("show", "t.head()"),
        ("update", "t.write(rows) for rows by key"),
        ("to_csv", "t.to_pandas().to_csv(path)"),
        ("to_parquet", "t.scan_polars().sink_parquet(path)"),
        ("add_column", "t.alter(lakebed.AddColumn(name, type))"),
        ("rename_column", "lakebed.RenameColumn(name, new_name)"),
        ("drop_column", "lakebed.DropColumn(name)"),
        ("delete", "lake.sql('DELETE FROM ... WHERE ...')"),
        ("undo", "t.rollback_to(snapshot)"),
        ("dtypes", "t.arrow_schema"),
    ],
)
def test_mistyped_members_name_the_right_one(house: Warehouse, name: str, hint: str) -> None:
    """A member that is not there is told with the nearest, or with what other libraries' word is here."""
    table = house.lake["t"]
    with pytest.raises(AttributeError) as raised:
        getattr(table, name)
    assert hint in str(raised.value)
    assert not hasattr(table, name)
    assert not hasattr(table.where("a > 1"), name)


def test_a_lake_names_the_right_member(house: Warehouse) -> None:
    """A lake answers in the same way."""
    with pytest.raises(AttributeError, match="did you mean `tables`"):
        _ = house.lake.tabels  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"lake\.tables"):
        _ = house.lake.list_tables  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"lake\.drop_table"):
        _ = house.lake.drop  # type: ignore[attr-defined]


def test_words_that_resemble_nothing(house: Warehouse) -> None:
    """A lake does not guess a member that somebody can not have meant, and knows how others join and ask."""
    with pytest.raises(
        AttributeError, match=r'a table is lake\["orders"\], if there is one; lake.tables\(\) lists them'
    ):
        _ = house.lake.orders  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"lake.create_table\(name, df\); or join in DuckDB"):
        _ = house.lake.register  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"lake.query\(text\).df\(\)"):
        _ = house.lake.cursor  # type: ignore[attr-defined]


def test_columns_are_no_members(house: Warehouse) -> None:
    """Who takes a table for a DataFrame is told how to read; other libraries see that it can not be gone through."""
    table = house.lake["t"]
    with pytest.raises(AttributeError, match=r"t.to_arrow\(columns=\['a'\]\), .* t.where\(\"a = ...\"\)"):
        _ = table.a
    with pytest.raises(TypeError, match=r"t.to_arrow\(columns=\['a'\]\)"):
        table["a"]
    with pytest.raises(TypeError, match=r"t.to_pandas\(\)"):
        table[0]
    assert not isinstance(table, Iterable | Sequence)


def test_probing_finds_nothing(house: Warehouse) -> None:
    """Copies, pickles and what notebooks look for work as if there were no such help."""
    table = house.lake["t"]
    for name in ("_ipython_canary_method_should_not_exist_", "_repr_mimebundle_", "__dataframe__", "__array__"):
        assert not hasattr(table, name)
    assert copy.copy(table).count() == 1
    assert copy.deepcopy(house.lake["t$snapshots"].to_arrow()).num_rows == 1
    assert pa.table(table).num_rows == 1


def test_the_schema_is_short(warehouse: Warehouse) -> None:
    """What a table is stands on one line, in the words of SQL."""
    table = warehouse.table(
        "t", {"id": "INT", "day": "STRING"}, primary_key=["id", "day"], partition_by=["day"], options={"bucket": "1"}
    )
    shown = "<schema 0: id INT NOT NULL, day STRING NOT NULL; primary key id, day; partitioned by day; "
    assert repr(table.schema) == f"{shown}options {{'bucket': '1'}}>"
    wide = warehouse.lake.create_table("wide", {f"column_{i}": "INT" for i in range(100)})
    assert repr(wide.schema).endswith("column_7 INT, … (100 columns)>")


def test_tables_are_no_attributes(warehouse: Warehouse) -> None:
    """Who asks a lake for a table as for an attribute is told how to get it."""
    with pytest.raises(AttributeError, match='write lake\\["bystander"\\]'):
        warehouse.lake.bystander  # noqa: B018
