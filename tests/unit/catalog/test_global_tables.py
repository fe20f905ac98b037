"""Database `sys`: tables about all tables."""

from __future__ import annotations

import pyarrow as pa
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed.errors import InvalidArgument, NotFound, Unsupported


def filled(warehouse: Warehouse) -> None:
    """Three tables in two databases, one of them empty and one with partitions."""
    warehouse.lake.create_database("db")
    warehouse.table("db.empty", {"a": "INT"})
    columns = {"k": "INT NOT NULL", "p": "STRING NOT NULL"}
    data = pa.table({"k": ints(1, 2), "p": ["a/b", ""]})
    warehouse.table("db.keyed", columns, data, primary_key=["k", "p"], partition_by=["p"], options={"bucket": 1})


def test_tables(warehouse: Warehouse) -> None:
    """Every table is one row, with what its latest snapshot holds."""
    filled(warehouse)
    columns = ["database_name", "table_name", "table_type", "partitioned", "primary_key", "record_count", "file_count"]
    shown = warehouse.lake.table("sys.tables").to_arrow(columns).to_pylist()
    assert [tuple(row.values()) for row in shown] == [
        ("db", "empty", "table", False, False, None, None),
        ("db", "keyed", "table", True, True, 2, 2),
        ("default", "bystander", "table", False, False, 3, 1),
    ]
    sizes = warehouse.lake.table("sys.tables").to_arrow(["file_size_in_bytes", "last_file_creation_time", "owner"])
    assert [row["file_size_in_bytes"] is None for row in sizes.to_pylist()] == [True, False, False]
    assert sizes["last_file_creation_time"].null_count == 1
    assert sizes["owner"].null_count == 3


def test_partitions(warehouse: Warehouse) -> None:
    """Partitions of partitioned tables, by the names of their directories."""
    filled(warehouse)
    shown = warehouse.lake.table("sys.partitions").to_arrow(["table_name", "partition_name", "record_count", "done"])
    assert sorted(tuple(row.values()) for row in shown.to_pylist()) == [
        ("keyed", "p=__DEFAULT_PARTITION__", 1, False),
        ("keyed", "p=a/b", 1, False),
    ]


def test_options(warehouse: Warehouse) -> None:
    """All options of all tables, their paths included."""
    filled(warehouse)
    shown = warehouse.lake.table("sys.all_table_options").to_arrow(filter=[("table_name", "==", "keyed")])
    location = warehouse.lake.table("db.keyed").location
    assert [tuple(row.values()) for row in shown.to_pylist()] == [
        ("db", "keyed", "bucket", "1"),
        ("db", "keyed", "path", location),
    ]
    assert warehouse.lake.table("sys.catalog_options").to_arrow().to_pydict() == {
        "key": ["warehouse"],
        "value": [warehouse.root],
    }


def test_the_database_can_be_used(warehouse: Warehouse) -> None:
    """It is there for those who ask, but is no database of the user's."""
    assert warehouse.lake.tables("sys") == ["all_table_options", "catalog_options", "health", "partitions", "tables"]
    assert warehouse.lake.databases() == ["default"]
    warehouse.lake.use("sys")
    assert warehouse.lake.table("tables").name == "sys.tables"
    assert warehouse.lake.has_table("sys.TABLES")
    assert not warehouse.lake.has_table("sys.other")


def test_what_is_refused(warehouse: Warehouse) -> None:
    """Nothing is made, dropped, renamed or written in it, and it has no past."""
    lake = warehouse.lake
    tables = lake.table("sys.tables")
    with warehouse.refuses(NotFound, "did you mean `tables`?"):
        lake.table("sys.table")
    with warehouse.refuses(NotFound, "sys.tables$files"):
        lake.table("sys.tables$files")
    for call in (
        lambda: lake.create_database("sys"),
        lambda: lake.create_database("sys", if_not_exists=True),
        lambda: lake.drop_database("sys", cascade=True),
        lambda: lake.create_table("sys.mine", {"a": "INT"}),
        lambda: lake.drop_table("sys.tables"),
        lambda: lake.rename_table("sys.tables", "mine"),
        lambda: lake.rename_table("bystander", "sys.mine"),
        lambda: tables.write(pa.table({"a": ints(1)})),
        lambda: tables.create_tag("x"),
    ):
        with warehouse.refuses(InvalidArgument, "sys"):
            call()
    for call in (lambda: tables.at(snapshot=1), lambda: tables.with_options({}), tables.pinned, tables.scan):
        with warehouse.refuses(Unsupported, "sys.tables"):
            call()
