"""Tables whose schema Lakebed changed between commits, read at every point of their history by all judges."""

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed import AddColumn, After, DropColumn, First, RenameColumn, UpdateColumnPosition, UpdateColumnType

from . import ours
from .judges import JavaJudge, Judge, Row, assert_same_rows
from .matrix_data import FORMATS

JUDGES = ["pypaimon", "rust", "java"]
SCHEMA = {
    "id": "INT NOT NULL",
    "a": "INT",
    "b": "STRING",
    "c": "DECIMAL(9, 2)",
    "f": "FLOAT",
    "gone": "BIGINT",
    "r": "ROW<x INT, y STRING>",
    "l": "ARRAY<ROW<x INT>>",
}
FIRST: list[Row] = [
    {"id": 1, "a": -7, "b": "one", "c": "1.50", "f": 0.5, "gone": 9, "r": {"x": 1, "y": "q"}, "l": [{"x": 1}]},
    {"id": 2, "a": None, "b": None, "c": None, "f": None, "gone": None, "r": None, "l": None},
    {
        "id": 3,
        "a": 2147483647,
        "b": "",
        "c": "-9999999.99",
        "f": "-Infinity",
        "gone": 1,
        "r": {"x": None, "y": None},
        "l": [],
    },
]
CHANGES = {
    "add": [AddColumn("n", "DOUBLE"), AddColumn("m", "MAP<STRING, INT>", position=First())],
    "drop": [DropColumn("gone")],
    "rename": [RenameColumn("b", "text")],
    "widen": [
        UpdateColumnType("a", "BIGINT"),
        UpdateColumnType("f", "DOUBLE"),
        UpdateColumnType("c", "DECIMAL(20, 5)"),
    ],
    "reorder": [UpdateColumnPosition("l", First()), UpdateColumnPosition("a", After("c"))],
    "nested": [AddColumn(("r", "z"), "BIGINT"), AddColumn(("l", "element", "y"), "STRING")],
    "drop_and_add": [DropColumn("gone"), AddColumn("gone", "STRING")],
    "swap_names": [RenameColumn("a", "t"), RenameColumn("f", "a"), RenameColumn("t", "f")],
    "to_text": [UpdateColumnType("a", "STRING"), UpdateColumnType("c", "STRING")],
}


def after(name: str, row: Row) -> Row:
    """A row written before the change, as it reads after it."""
    row = dict(row)
    match name:
        case "add":
            row |= {"n": None, "m": None}
        case "drop":
            del row["gone"]
        case "rename":
            row["text"] = row.pop("b")
        case "widen":
            row["c"] = row["c"] and f"{row['c']}000"
        case "nested":
            row["r"] = row["r"] and row["r"] | {"z": None}
            row["l"] = row["l"] and [item | {"y": None} for item in row["l"]]
        case "drop_and_add":
            row["gone"] = None
        case "swap_names":
            row["a"], row["f"] = row["f"], row["a"]
        case "to_text":
            row["a"] = None if row["a"] is None else str(row["a"])
    return row


def fresh(name: str, identity: int) -> Row:
    """A row written after the change."""
    row = after(name, FIRST[0]) | {"id": identity}
    new: dict[str, dict[str, Any]] = {
        "add": {"n": 1.5, "m": [["k", 1]]},
        "widen": {"a": 2**40, "c": "123456789012345.12345", "f": 0.1},
        "nested": {"r": {"x": 1, "y": "q", "z": 2**40}, "l": [{"x": 1, "y": "w"}, None]},
        "drop_and_add": {"gone": "back"},
        "to_text": {"a": "text", "c": "x"},
    }
    return row | new.get(name, {})


def altered(warehouse: Path, name: str, file_format: str, *, keyed: bool) -> tuple[lakebed.Table, list[Row]]:
    """A table with a commit before the change and one after it, and its rows now."""
    table = ours.create(
        warehouse,
        "t",
        SCHEMA,
        primary_key=["id"] if keyed else [],
        options={"file.format": file_format} | ({"bucket": "2"} if keyed else {}),
    )
    ours.write(table, FIRST)
    table.alter(*CHANGES[name])
    second = [fresh(name, 1), fresh(name, 10)] if keyed else [fresh(name, 10)]
    ours.write(table, second)
    kept = [after(name, row) for row in FIRST if not keyed or row["id"] != 1]
    return table, kept + second


@pytest.mark.parametrize("keyed", [True, False], ids=["key", "append"])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("file_format", FORMATS)
def test_judges_read_altered_tables(
    file_format: str, name: str, keyed: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All judges read the table after the change, and the snapshot before it, as Lakebed does."""
    table, rows = altered(tmp_path, name, file_format, keyed=keyed)
    assert_same_rows(table.to_arrow(), rows)
    assert_same_rows(table.at(snapshot=1).to_arrow(), FIRST)
    for judge_name in JUDGES:
        judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
        assert_same_rows(judge.read(tmp_path, "db", "t"), rows)
        assert_same_rows(judge.read(tmp_path, "db", "t", snapshot=1), FIRST)


@pytest.mark.parametrize("name", CHANGES)
def test_java_writes_on_altered_tables(name: str, java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java commits to the altered table and compacts it, and every row stays what it was."""
    table, rows = altered(tmp_path, name, "parquet", keyed=True)
    java_judge.append(tmp_path, "db", "t", [fresh(name, 20)])
    rows.append(fresh(name, 20))
    assert_same_rows(table.to_arrow(), rows)
    java_judge.compact(tmp_path, "db", "t")
    assert_same_rows(table.to_arrow(), rows)
    ours.write(table, [fresh(name, 30)])
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), [*rows, fresh(name, 30)])
    assert_same_rows(java_judge.read(tmp_path, "db", "t", snapshot=1), FIRST)
