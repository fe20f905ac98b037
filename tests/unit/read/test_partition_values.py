"""Partition values become directory names. Whatever the value, the files stay inside the table and are found again."""

from __future__ import annotations

import datetime as dt
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import Table
from lakebed.errors import InvalidSchema, StorageError

TEXTS: list[str | None] = [
    "../../x",
    "../../../../../../tmp/x",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "..",
    ".",
    "a\0b",
    "a\n",
    "",
    "  ",
    None,
    "__DEFAULT_PARTITION__",
    "%2F",
    "a=b",
    "p=a",
    "ü",
    "u\u0308",
    "日本/東京",
    "A",
    "a",
    "x" * 240,
    "~",
    "$HOME",
    "C:",
    "\U0001f9d0",
]


@pytest.mark.parametrize("key", [["id", "p"], []], ids=["keyed", "append"])
def test_any_text_stays_inside_and_is_found_again(disk: Warehouse, key: list[str], tmp_path: Path) -> None:
    """Hostile, odd and non-ASCII values each come back from a filter on them, and no file appears outside the table."""
    texts = [text for text in TEXTS if text is not None or not key]
    options = {"bucket": "1"} if key else {}
    table = disk.table("t", {"id": "INT", "p": "STRING"}, partition_by=["p"], primary_key=key, options=options)
    outside = _outside(tmp_path, table)
    table.write(pa.table({"id": ints(*range(len(texts))), "p": pa.array(texts, pa.string())}))
    assert _outside(tmp_path, table) == outside
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": number, "p": text} for number, text in enumerate(texts)
    ]
    for number, text in enumerate(texts):
        found = pc.field("p").is_null() if text is None else pc.field("p") == text
        assert table.to_arrow(filter=found)["id"].to_pylist() == [number]
        assert len(table.scan(filter=found).files) == 1


def _outside(root: Path, table: Table) -> set[str]:
    """All paths below the test's directory that are not the table's."""
    paths = {os.path.join(folder, name) for folder, *names in os.walk(root) for part in names for name in part}
    return {path for path in paths if not path.startswith(table.location + "/")}


@pytest.mark.parametrize("text", ["x" * 300, "ü" * 130, "/" * 100])
def test_values_too_long_for_a_file_name(disk: Warehouse, text: str) -> None:
    """A value whose directory name no file system takes is refused before anything is committed; no file stays."""
    table = disk.table("t", {"id": "INT", "p": "STRING"}, partition_by=["p"])
    table.write(pa.table({"id": ints(1), "p": ["fine"]}))
    files = _files(disk)
    with pytest.raises(StorageError, match=r"too long.*\n.*shorten partition values") as raised:
        table.write(pa.table({"id": ints(2, 3), "p": ["also fine", text]}))
    assert f"{table.location}/p=" in raised.value.message
    assert _files(disk) == files
    assert table.to_arrow()["id"].to_pylist() == [1]
    disk.check_bystander()


def _files(warehouse: Warehouse) -> dict[str, str]:
    return {path: content for path, content in warehouse.contents().items() if content != "directory"}


@pytest.mark.parametrize("name", ["../x", "a/b", ".", "..", "a=b", "日本", "a b", "%2F"])
def test_any_column_name_stays_inside(disk: Warehouse, name: str, tmp_path: Path) -> None:
    """A partition column's name is escaped in directories as values are."""
    table = disk.table("t", {"id": "INT", name: "STRING"}, partition_by=[name])
    outside = _outside(tmp_path, table)
    table.write(pa.table({"id": ints(1), name: ["v"]}))
    assert _outside(tmp_path, table) == outside
    assert table.to_arrow(filter=[(name, "=", "v")]).to_pylist() == [{"id": 1, name: "v"}]


def test_names_no_directory_can_have(warehouse: Warehouse) -> None:
    """A partition column whose name leaves no room for a value is refused when the table is made."""
    with warehouse.refuses(InvalidSchema, "default.t", "too long", "120 bytes"):
        warehouse.table("t", {"id": "INT", "x" * 121: "STRING"}, partition_by=["x" * 121])
    with warehouse.refuses(InvalidSchema, "default.t", "`b`", "BYTES", "partition by another column"):
        warehouse.table("t", {"id": "INT", "b": "BYTES"}, partition_by=["b"])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("BOOLEAN", [True, False, None]),
        ("TINYINT", [-128, 127, None]),
        ("BIGINT", [-(2**63), 2**63 - 1, None]),
        ("FLOAT", [0.5, -1e10, None]),
        ("DOUBLE", [0.1, 1e300, None]),
        ("DECIMAL(38, 10)", [Decimal("0.1000000000"), Decimal("-12345678901234567890.5"), None]),
        ("DATE", [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        ("TIME(3)", [dt.time(0, 0), dt.time(23, 59, 59, 999000), None]),
        ("TIMESTAMP(6)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 5, 1), None]),
        ("TIMESTAMP_LTZ(3)", [dt.datetime(1999, 1, 1, tzinfo=dt.UTC), None]),
        ("CHAR(3)", ["abc", "a", None]),
    ],
)
def test_partitions_of_every_type(warehouse: Warehouse, text: str, values: list[Any]) -> None:
    """Partitions of each type that can be one are pruned by value, nulls included."""
    table = warehouse.table("t", {"id": "INT", "p": text}, partition_by=["p"])
    rows = pa.table({"id": ints(*range(len(values))), "p": pa.array(values, table.arrow_schema.field("p").type)})
    table.write(rows)
    assert table.to_arrow().sort_by("id").equals(rows.cast(table.arrow_schema))
    for number, value in enumerate(rows["p"]):
        found = pc.field("p") == value if value.is_valid else pc.field("p").is_null()
        assert table.to_arrow(filter=found)["id"].to_pylist() == [number]
        assert len(table.scan(filter=found).files) == 1


def test_a_hundred_partitions_in_one_batch(warehouse: Warehouse) -> None:
    """One batch with rows of many partitions in mixed order gives one file for each, all rows in their place."""
    table = warehouse.table("t", {"id": "INT", "p": "INT"}, partition_by=["p"])
    ids = list(range(1000))
    table.write(pa.table({"id": ints(*ids), "p": ints(*(number * 37 % 100 for number in ids))}))
    assert len(table.scan().files) == 100
    assert table.scan(filter=[("p", "=", 5)]).files[0].row_count == 10
    found = table.to_arrow(filter=[("p", "in", [5, 99])])
    assert found.sort_by("id")["id"].to_pylist() == [i for i in ids if i * 37 % 100 in (5, 99)]
    assert table.to_arrow().num_rows == 1000


@pytest.mark.parametrize("value", [math.nan, 0.0, -0.0])
def test_static_overwrite_of_odd_floats(value: float) -> None:
    """NaN names its partition, and the two zeros are partitions of their own."""
    lake = lakebed.connect(f"memory://odd-floats-{value}")
    table = lake.create_table("t", {"p": "DOUBLE", "v": "INT"}, partition_by=["p"])
    table.write(pa.table({"p": [math.nan, 0.0, -0.0, 1.0], "v": pa.array([1, 2, 3, 4], pa.int32())}))
    table.write(pa.table({"p": [value], "v": pa.array([9], pa.int32())}), overwrite={"p": value})
    replaced = {"nan": 1, "0.0": 2, "-0.0": 3}[str(value)]
    assert sorted(table.to_arrow()["v"].to_pylist()) == sorted({1, 2, 3, 4, 9} - {replaced})
