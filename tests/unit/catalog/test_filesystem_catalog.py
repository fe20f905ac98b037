"""Databases and tables as directories: what the catalog makes, finds, renames, drops and refuses."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import AlreadyExists, InvalidArgument, InvalidOption, InvalidSchema, LakebedError, NotFound

COLUMNS = {"id": "INT", "v": "STRING"}
ROWS = pa.table({"id": ints(1, 2), "v": ["a", "b"]})
TRICKS = ["../x", "../../x", "/etc/x", "a/b", "..", "a\0b", ".x", "x" * 300, "a\\b", " "]


def test_databases(disk: Warehouse) -> None:
    """A database is there from creation to drop, with its tables apart from those of others."""
    lake = disk.lake
    assert lake.databases() == ["default"]
    lake.create_database("sales")
    lake.create_database("sales", if_not_exists=True)
    assert lake.databases() == ["default", "sales"]
    assert lake.tables("sales") == []
    lake.create_table("sales.t", COLUMNS)
    lake.create_table("t", {"other": "INT"})
    assert lake.tables("sales") == ["t"]
    assert lake.table("sales.t").schema.field_names == ("id", "v")
    lake.drop_database("sales", cascade=True)
    assert lake.databases() == ["default"]
    assert lake.tables() == ["bystander", "t"]
    lake.drop_database("sales", if_exists=True)


def test_an_empty_database_is_there_in_memory_too(warehouse: Warehouse) -> None:
    """A database without tables is listed, wherever it lives."""
    warehouse.lake.create_database("empty")
    assert warehouse.reopened().databases() == ["default", "empty"]
    assert warehouse.reopened().tables("empty") == []


def test_use_changes_the_current_database(warehouse: Warehouse) -> None:
    """Plain names refer to the current database, which falls back to the default when dropped."""
    lake = warehouse.lake
    lake.create_database("sales")
    lake.use("sales")
    assert lake.current_database == "sales"
    lake.create_table("t", COLUMNS)
    assert lake.table("t").name == "sales.t"
    assert not lake.has_table("default.t")
    lake.drop_database("sales", cascade=True)
    assert lake.current_database == "default"


def test_tables(warehouse: Warehouse) -> None:
    """A table is there from creation to drop; creating it again with if_not_exists gives the one that is there."""
    lake = warehouse.lake
    made = lake.create_table("t", COLUMNS, comment="what it holds")
    made.write(ROWS)
    assert lake.has_table("t")
    assert lake.tables() == ["bystander", "t"]
    assert lake.table("default.t").comment == "what it holds"
    again = lake.create_table("t", {"other": "INT"}, if_not_exists=True)
    assert again.to_arrow().equals(ROWS.cast(made.arrow_schema))
    lake.drop_table("t")
    assert not lake.has_table("t")
    assert lake.tables() == ["bystander"]
    lake.drop_table("t", if_exists=True)
    fresh = lake.create_table("t", {"other": "INT"})
    assert fresh.to_arrow().num_rows == 0
    assert fresh.snapshots() == []


def test_dropping_leaves_no_file(disk: Warehouse) -> None:
    """A dropped table is gone from the disk."""
    before = disk.contents()
    disk.table("t", COLUMNS, ROWS)
    disk.lake.drop_table("t")
    assert disk.contents() == before


@pytest.mark.parametrize("place", ["warehouse", "disk"])
def test_renaming(place: str, request: pytest.FixtureRequest) -> None:
    """A renamed table keeps rows and history, under the new name only, also in another database."""
    warehouse: Warehouse = request.getfixturevalue(place)
    lake = warehouse.lake
    warehouse.table("old", COLUMNS, ROWS).create_tag("x")
    lake.create_database("archive")
    lake.rename_table("old", "archive.new")
    assert lake.tables() == ["bystander"]
    moved = lake.table("archive.new")
    assert moved.name == "archive.new"
    assert moved.at(tag="x").to_arrow().num_rows == 2
    moved.write(ROWS)
    assert moved.to_arrow().num_rows == 4


def test_foreign_directories_are_no_tables(disk: Warehouse) -> None:
    """Files and directories that somebody left in the warehouse are not mistaken for tables or databases."""
    database = Path(disk.root) / "default.db"
    (database / "empty").mkdir()
    (database / "notes.txt").write_text("hello")
    (database / "half" / "schema").mkdir(parents=True)
    (database / "half" / "schema" / "notes").write_text("hello")
    (Path(disk.root) / "plain").mkdir()
    assert disk.lake.tables() == ["bystander"]
    assert disk.lake.databases() == ["default"]
    assert not disk.lake.has_table("empty")


def test_one_of_many_creators_wins(disk: Warehouse) -> None:
    """Of several threads that create one table at the same time, one succeeds and the others are told."""
    outcomes: list[str] = []
    start = threading.Barrier(6)

    def create(number: int) -> None:
        start.wait()
        try:
            lakebed.connect(disk.path).create_table("t", {f"c{number}": "INT"})
            outcomes.append(f"c{number}")
        except AlreadyExists:
            outcomes.append("told")

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = set(outcomes) - {"told"}
    assert outcomes.count("told") == 5
    assert disk.lake.table("t").schema.field_names == (winner,)


@pytest.mark.parametrize(
    ("use", "kind", "texts"),
    [
        (lambda lake: lake.table("tabel"), NotFound, ["default.tabel", "did you mean `table`?", "create_table"]),
        (lambda lake: lake.table("sales.t"), NotFound, ["database `sales`", "create_database('sales')"]),
        (lambda lake: lake.table("defualt.t"), NotFound, ["`defualt`", "did you mean `default`?"]),
        (lambda lake: lake.table("table$branch_b"), NotFound, ["default.table", "branch `b`"]),
        (lambda lake: lake.has_table("a/b"), InvalidArgument, ["'a/b'"]),
        (lambda lake: lake.use("defualt"), NotFound, ["`defualt`", "did you mean `default`?"]),
        (lambda lake: lake.tables("sales"), NotFound, ["database `sales`"]),
        (lambda lake: lake.create_database("default"), AlreadyExists, ["`default`", "if_not_exists"]),
        (lambda lake: lake.drop_database("sales"), NotFound, ["database `sales`"]),
        (lambda lake: lake.drop_database("default"), InvalidArgument, ["`default`", "2 tables", "cascade=True"]),
        (lambda lake: lake.create_table("table", COLUMNS), AlreadyExists, ["default.table", "if_not_exists"]),
        (lambda lake: lake.create_table("sales.t", COLUMNS), NotFound, ["database `sales`"]),
        (lambda lake: lake.create_table("table$branch_b", COLUMNS), InvalidArgument, ["names a branch"]),
        (lambda lake: lake.drop_table("tabel"), NotFound, ["default.tabel"]),
        (lambda lake: lake.drop_table("table$branch_b"), InvalidArgument, ["names a branch"]),
        (lambda lake: lake.rename_table("tabel", "new"), NotFound, ["default.tabel"]),
        (lambda lake: lake.rename_table("table", "bystander"), AlreadyExists, ["default.bystander"]),
        (lambda lake: lake.rename_table("table", "table"), AlreadyExists, ["default.table"]),
        (lambda lake: lake.rename_table("table", "sales.t"), NotFound, ["database `sales`"]),
        (lambda lake: lake.rename_table("table", "t$branch_b"), InvalidArgument, ["branch"]),
    ],
)
def test_what_is_not_there_or_is_already(
    lasting: Warehouse, use: Any, kind: type[LakebedError], texts: list[str]
) -> None:
    """Unknown and taken names are refused with the nearest name there is, or the way to go on."""
    if not lasting.lake.has_table("table"):
        lasting.table("table", COLUMNS, ROWS)
    with lasting.refuses(kind, *texts):
        use(lasting.lake)


@pytest.mark.parametrize("name", TRICKS, ids=lambda name: repr(name)[:20])
def test_names_that_would_leave_the_warehouse(disk: Warehouse, name: str, tmp_path: Path) -> None:
    """No call takes a name as a path: nothing appears, moves or vanishes, inside the warehouse or out."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("mine")
    lake = disk.lake
    calls: list[Any] = [
        lambda: lake.create_table(name, COLUMNS),
        lambda: lake.table(name),
        lambda: lake.drop_table(name),
        lambda: lake.drop_table(name, if_exists=True),
        lambda: lake.rename_table("bystander", name),
        lambda: lake.rename_table(name, "new"),
        lambda: lake.create_database(name),
        lambda: lake.drop_database(name, cascade=True, if_exists=True),
        lambda: lake.tables(name) if name.strip() else lake.use(name),
        lambda: lake.use(name),
        lambda: lake.table(f"bystander$branch_{name}"),
    ]
    for call in calls:
        with disk.refuses(InvalidArgument, "name"):
            call()
    assert (tmp_path / "x" / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outer", "x"]


@pytest.mark.parametrize(
    ("columns", "more", "kind", "texts"),
    [
        (COLUMNS, {"options": {"bukcet": "1"}}, InvalidOption, ["`bukcet`", "did you mean `bucket`?"]),
        (COLUMNS, {"options": {"bucket": "four"}}, InvalidOption, ["`bucket`", "`four`", "whole number"]),
        (COLUMNS, {"options": {"bucket": None}}, InvalidOption, ["`bucket`", "NoneType"]),
        (COLUMNS, {"options": {1: "a"}}, InvalidOption, ["1 is no text"]),
        (COLUMNS, {"options": ["bucket"]}, InvalidArgument, ["['bucket']", "dict"]),
        (COLUMNS, {"options": {"target-file-size": "-1"}}, InvalidOption, ["`target-file-size`", "`-1`"]),
        (COLUMNS, {"options": {"file.format": "lance"}}, InvalidOption, ["`file.format`", "`lance`"]),
        (COLUMNS, {"options": {"file.compression": "zip"}}, InvalidOption, ["`file.compression`", "`zip`"]),
        (COLUMNS, {"options": {"file.compression.zstd-level": "99"}}, InvalidOption, ["zstd-level", "99"]),
        (COLUMNS, {"options": {"metadata.stats-mode": "truncate(x)"}}, InvalidOption, ["`metadata.stats-mode`"]),
        (COLUMNS, {"options": {"fields.zz.stats-mode": "none"}}, InvalidOption, ["fields.zz.stats-mode", "`zz`"]),
        (COLUMNS, {"options": {"data-file.prefix": "../x"}}, InvalidOption, ["`data-file.prefix`", "`../x`"]),
        (COLUMNS, {"options": {"partition.default-name": "../x"}}, InvalidOption, ["`partition.default-name`"]),
        (COLUMNS, {"options": {"path": "/etc"}}, InvalidOption, ["`path`"]),
        (COLUMNS, {"options": {"branch": "../x"}}, InvalidOption, ["`branch`"]),
        (COLUMNS, {"options": {"pk-clustering-override": "true"}}, InvalidOption, ["`pk-clustering-override`"]),
        (COLUMNS, {"options": {"bucket-key": "id"}}, InvalidOption, ["`bucket-key`", "`bucket`"]),
        (COLUMNS, {"options": {"bucket": "2"}}, InvalidOption, ["`bucket`", "`bucket-key`"]),
        (COLUMNS, {"options": {"bucket": "2", "bucket-key": "idd"}}, InvalidOption, ["`idd`", "did you mean `id`?"]),
        (COLUMNS, {"options": {"bucket": "-2"}}, InvalidOption, ["`bucket`", "primary key"]),
        (COLUMNS, {"options": {"sequence.field": "v"}}, InvalidOption, ["`sequence.field`", "primary key"]),
        (COLUMNS, {"options": {"rowkind.field": "v"}}, InvalidOption, ["`rowkind.field`", "primary key"]),
        (COLUMNS, {"primary_key": "id"}, InvalidArgument, ["primary_key is 'id'", "list"]),
        (COLUMNS, {"primary_key": [1]}, InvalidArgument, ["primary_key holds 1"]),
        (COLUMNS, {"partition_by": "v"}, InvalidArgument, ["partition_by is 'v'"]),
        (COLUMNS, {"partition_by": ["q"]}, InvalidSchema, ["partition", "`q`"]),
        (COLUMNS, {"partition_by": ["v", "v"]}, InvalidSchema, ["partition", "`v` 2 times"]),
        (COLUMNS, {"comment": 5}, InvalidArgument, ["comment is 5"]),
        ({"id": "INT", "r": "ROW<x INT>"}, {"partition_by": ["r"]}, InvalidSchema, ["partition", "`r`", "ROW"]),
        (None, {}, InvalidArgument, ["NoneType", "pyarrow schema"]),
        ([("id", "INT")], {}, InvalidArgument, ["list"]),
        ({}, {}, InvalidSchema, ["at least one column"]),
        (pa.schema([]), {}, InvalidSchema, ["at least one column"]),
        ({"id": "INTT"}, {}, InvalidSchema, ["`INTT`", "did you mean `INT`?"]),
        ({"id": "DECIMAL(39, 2)"}, {}, InvalidSchema, ["DECIMAL(39, 2)", "1 to 38"]),
        ({"id": "VARCHAR(0)"}, {}, InvalidSchema, ["length 0"]),
        ({"id": "ROW<>"}, {}, InvalidSchema, ["ROW", "member"]),
        ({"id": ""}, {}, InvalidSchema, ["ends too early"]),
        ({"id": 5}, {}, InvalidSchema, ["`id` is 5"]),
        ({1: "INT"}, {}, InvalidArgument, ["column name 1"]),
        ({"": "INT"}, {}, InvalidSchema, ["no name"]),
        ({"a\0b": "INT"}, {}, InvalidSchema, ["'a\\x00b'", "control character"]),
        ({"r": "ROW<`a\nb` INT>"}, {}, InvalidSchema, ["'a\\nb'"]),
        ({"_KEY_id": "INT"}, {}, InvalidSchema, ["`_KEY_id`", "reserved"]),
        ({"_SEQUENCE_NUMBER": "INT"}, {}, InvalidSchema, ["`_SEQUENCE_NUMBER`", "reserved"]),
        ({"_VALUE_KIND": "INT"}, {}, InvalidSchema, ["`_VALUE_KIND`", "reserved"]),
        ({"rowkind": "INT"}, {}, InvalidSchema, ["`rowkind`", "reserved"]),
        (pa.schema([("a", pa.int32()), ("a", pa.string())]), {}, InvalidSchema, ["2 columns named `a`"]),
        (pa.schema([("a", pa.uint64())]), {}, InvalidSchema, ["`a`", "uint64", "decimal128(20, 0)"]),
        (pa.schema([("a", pa.null())]), {}, InvalidSchema, ["`a`", "null"]),
        ({"a": pa.duration("s")}, {}, InvalidSchema, ["`a`", "duration"]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_tables_that_can_not_be(
    lasting: Warehouse, columns: Any, more: dict[str, Any], kind: type[LakebedError], texts: list[str]
) -> None:
    """Bad columns, types, keys and options are refused by name before anything exists of the table."""
    with lasting.refuses(kind, *texts):
        lasting.lake.create_table("bad", columns, **more)
    assert not lasting.lake.has_table("bad")


@pytest.mark.parametrize(
    ("columns", "key", "options", "kind", "texts"),
    [
        (COLUMNS, ["id"], {"bucket": "0"}, InvalidOption, ["`bucket`", "`0`"]),
        (COLUMNS, ["id"], {"bucket": "-3"}, InvalidOption, ["`bucket`", "-3"]),
        (COLUMNS, ["id"], {"bucket": "99999999999"}, InvalidOption, ["`bucket`", "99999999999"]),
        (COLUMNS, ["idd"], {"bucket": "1"}, InvalidSchema, ["`idd`", "did you mean `id`?"]),
        (COLUMNS, ["id", "id"], {"bucket": "1"}, InvalidSchema, ["`id` 2 times"]),
        (COLUMNS, ["id"], {"bucket": "1", "bucket-key": "v"}, InvalidOption, ["`bucket-key`", "`v`"]),
        (COLUMNS, ["id"], {"bucket": "1", "primary-key": "v"}, InvalidSchema, ["`primary-key`", "(v)", "(id)"]),
        (COLUMNS, ["id"], {"bucket": "1", "sequence.field": "zz"}, InvalidOption, ["`sequence.field`", "`zz`"]),
        (COLUMNS, ["id"], {"bucket": "1", "sequence.field": "v,v"}, InvalidOption, ["`sequence.field`", "twice"]),
        (COLUMNS, ["id"], {"bucket": "1", "rowkind.field": "zz"}, InvalidOption, ["`rowkind.field`", "`zz`"]),
        (COLUMNS, ["v"], {"bucket": "1", "rowkind.field": "id"}, InvalidSchema, ["`rowkind.field`", "`id`", "STRING"]),
        (COLUMNS, ["id"], {"bucket": "1", "merge-engine": "dedup"}, InvalidOption, ["`merge-engine`", "`dedup`"]),
        ({"a": "ARRAY<INT>"}, ["a"], {"bucket": "1"}, InvalidSchema, ["primary key", "`a`", "ARRAY<INT>"]),
        ({"m": "MAP<INT, INT>", "id": "INT"}, ["m"], {"bucket": "1"}, InvalidSchema, ["`m`"]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_keyed_tables_that_can_not_be(
    lasting: Warehouse,
    columns: Any,
    key: list[str],
    options: dict[str, str],
    kind: type[LakebedError],
    texts: list[str],
) -> None:
    """A primary key needs columns that exist and have an order, and a number of buckets that can be written."""
    with lasting.refuses(kind, *texts):
        lasting.lake.create_table("bad", columns, primary_key=key, options=options)


def test_a_key_of_partition_columns_only(lasting: Warehouse) -> None:
    """A primary key that is the same for all rows of a partition is refused."""
    with lasting.refuses(InvalidSchema, "(v)", "partition columns only"):
        lasting.lake.create_table("bad", COLUMNS, primary_key=["v"], partition_by=["v"], options={"bucket": "1"})
    with lasting.refuses(InvalidOption, "`bucket-key`", "partition column `v`"):
        lasting.lake.create_table("bad", COLUMNS, partition_by=["v"], options={"bucket": "1", "bucket-key": "v"})


def test_options_that_are_known_but_not_honoured(lasting: Warehouse) -> None:
    """Options that would silently not work are refused by name, with what to do instead."""
    from lakebed.options import OPTIONS

    refused = [
        option
        for option in OPTIONS
        if not (option.honoured or option.tuning)
        and "<" not in option.key
        and option.kind.value == "boolean"
        and option.default is False
    ]
    assert refused
    for option in refused:
        with lasting.refuses(InvalidOption, f"`{option.key}`"):
            lasting.lake.create_table("bad", COLUMNS, options={option.key: "true"})
        assert option.instead, option.key


@pytest.mark.parametrize(
    ("more", "text"),
    [({"comment": 5}, "comment is 5"), ({"primary_key": "id"}, "primary_key is 'id'"), ({"options": ["a"]}, "dict")],
)
def test_a_new_definition_is_checked_like_a_first_one(warehouse: Warehouse, more: dict[str, Any], text: str) -> None:
    """What is no definition for a new table is none for one that is replaced, and the old table stays."""
    warehouse.table("t", COLUMNS)
    with warehouse.refuses(InvalidArgument, text):
        warehouse.lake.replace_table("t", COLUMNS, **more)
    assert warehouse.lake.table("t").schema.field_names == tuple(COLUMNS)
