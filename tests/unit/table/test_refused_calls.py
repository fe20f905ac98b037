"""Calls on a table that make no sense: each is refused by name, with the next step, and changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed import (
    AddColumn,
    After,
    DropColumn,
    First,
    RemoveOption,
    RenameColumn,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from lakebed.errors import AlreadyExists, InvalidArgument, InvalidOption, InvalidSchema, LakebedError, NotFound

ROWS = pa.table({"id": ints(1, 2), "v": ["a", "b"]})


@pytest.fixture(scope="module")
def table(lasting: Warehouse) -> Table:
    made = lasting.table("t", {"id": "INT", "v": "STRING"}, ROWS, primary_key=["id"], options={"bucket": "1"})
    made.write(ROWS)
    made.create_tag("monday", snapshot=1)
    return made


@pytest.mark.parametrize(
    ("point", "kind", "texts"),
    [
        ({}, InvalidArgument, ["exactly one of snapshot, tag and timestamp, not 0"]),
        ({"snapshot": 1, "tag": "monday"}, InvalidArgument, ["not 2"]),
        ({"snapshot": 9}, NotFound, ["snapshot 9", "1 to 2"]),
        ({"snapshot": 0}, InvalidArgument, ["0 is no snapshot id"]),
        ({"snapshot": -1}, InvalidArgument, ["-1 is no snapshot id"]),
        ({"snapshot": "1"}, InvalidArgument, ["'1' is no snapshot id"]),
        ({"snapshot": True}, InvalidArgument, ["True"]),
        ({"snapshot": 1.5}, InvalidArgument, ["1.5"]),
        ({"tag": "mondey"}, NotFound, ["default.t", "`mondey`", "did you mean `monday`?"]),
        ({"tag": "../tag-monday"}, InvalidArgument, ["'../tag-monday'", "slashes"]),
        ({"tag": ""}, InvalidArgument, ["''"]),
        ({"tag": 5}, InvalidArgument, ["5 is no text"]),
        ({"timestamp": "yesterday"}, InvalidArgument, ["`yesterday`", "2024-05-14"]),
        ({"timestamp": 0}, NotFound, ["default.t", "1970-01-01", "earliest snapshot, 1"]),
        ({"timestamp": "2001-01-01"}, NotFound, ["2001-01-01"]),
        ({"timestamp": 1.5}, InvalidArgument, ["1.5"]),
        ({"timestamp": True}, InvalidArgument, ["True"]),
        ({"timestamp": dt.datetime.min}, InvalidArgument, ["0001-01-01", "out of the range"]),
    ],
    ids=str,
)
def test_points_in_time(
    lasting: Warehouse, table: Table, point: dict[str, Any], kind: type[LakebedError], texts: list[str]
) -> None:
    """at() takes one point that exists, of the right type."""
    with lasting.refuses(kind, *texts):
        table.at(**point)


@pytest.mark.parametrize(
    ("since", "until", "kind", "text"),
    [
        (-1, None, InvalidArgument, "since=-1"),
        ("1", None, InvalidArgument, "since='1'"),
        (None, None, InvalidArgument, "since=None"),
        (True, None, InvalidArgument, "since=True"),
        (1.5, None, InvalidArgument, "since=1.5"),
        (3, None, NotFound, "no snapshot 3 yet: its latest is 2"),
        (0, 3, NotFound, "no snapshot 3 yet: its latest is 2"),
        (2, 1, InvalidArgument, "until=1"),
        (0, -1, InvalidArgument, "until=-1"),
        (0, "2", InvalidArgument, "until='2'"),
        (0, True, InvalidArgument, "until=True"),
        (0, 1.5, InvalidArgument, "until=1.5"),
    ],
)
def test_ranges_of_changes(
    lasting: Warehouse, table: Table, since: Any, until: Any, kind: type[LakebedError], text: str
) -> None:
    """changes() takes snapshot ids that exist, in order."""
    with lasting.refuses(kind, text):
        table.changes(since, until)


@pytest.mark.parametrize(
    ("given", "kind", "texts"),
    [
        ("id = ", InvalidArgument, ["`id = `", "no condition in SQL"]),
        ("idd = 1", NotFound, ["`idd`", "did you mean `id`?"]),
        ("upper(v) = 'A'", InvalidArgument, ["`UPPER(v)`", "comparison of a column with a constant", "pc.field"]),
        ("id = 'x'", InvalidArgument, ["'x' is no BIGINT"]),
        (pl.col("id") + 1 > 2, InvalidArgument, ["more than a table can evaluate", "scan_polars"]),
        (5, InvalidArgument, ["int"]),
        ({"id": 1}, InvalidArgument, ["dict"]),
        (True, InvalidArgument, ["bool"]),
        ([], InvalidArgument, ["[]"]),
        ([("id", "=")], InvalidArgument, ["('id', '=')", "(column, op, value)"]),
        ([("idd", "=", 1)], NotFound, ["`idd`", "did you mean `id`?"]),
        ([("id", "~", 1)], InvalidArgument, ["`~`", "valid choices"]),
        ([("id", "=", "x")], InvalidArgument, ["`id`", "'x'", "int32"]),
        ([("id", "=", None)], InvalidArgument, ["`id`", "None"]),
        ([("id", "in", 5)], InvalidArgument, ["`id`", "5"]),
        ([("id", "=", int)], InvalidArgument, ["`id`", "no Arrow type"]),
        ([("v", ">", 5)], InvalidArgument, ["`v`", "string"]),
        (pc.field("idd") == 1, NotFound, ["`idd`"]),
        (pc.field("id") == "x", InvalidArgument, ["`id`"]),
        (pc.field("id"), InvalidArgument, ["bool"]),
        (pc.field(0) == 1, InvalidArgument, ["by position"]),
        (pc.add(pc.field("id"), pc.field("v")) == 1, InvalidArgument, ["can not be evaluated"]),
    ],
    ids=str,
)
def test_filters(lasting: Warehouse, table: Table, given: Any, kind: type[LakebedError], texts: list[str]) -> None:
    """A filter names columns that exist and compares them with values of their type, in every way to read."""
    reads: list[Callable[[], object]] = [
        lambda: table.to_arrow(filter=given),
        lambda: table.to_batches(filter=given),
        lambda: table.scan(filter=given),
    ]
    for read in reads:
        with lasting.refuses(kind, *texts):
            read()


@pytest.mark.parametrize(
    ("columns", "kind", "texts"),
    [
        ("id", InvalidArgument, ["'id'", "a list"]),
        (5, InvalidArgument, ["columns is 5"]),
        ([1], InvalidArgument, ["columns holds 1"]),
        ([None], InvalidArgument, ["None"]),
        ([["id"]], InvalidArgument, ["['id']"]),
        (["idd"], NotFound, ["`idd`", "did you mean `id`?"]),
        (["id", "id"], InvalidArgument, ["twice"]),
        (["_SEQUENCE_NUMBER"], NotFound, ["`_SEQUENCE_NUMBER`"]),
        (["_KEY_id"], NotFound, ["`_KEY_id`"]),
    ],
    ids=str,
)
def test_columns(lasting: Warehouse, table: Table, columns: Any, kind: type[LakebedError], texts: list[str]) -> None:
    """A projection is a list of columns of the table, each named once."""
    for read in (table.to_arrow, table.to_batches, table.to_pandas):
        with lasting.refuses(kind, *texts):
            read(columns=columns)


@pytest.mark.parametrize(
    ("options", "kind", "texts"),
    [
        ({"scan.snapshot-id": "9"}, NotFound, ["snapshot 9"]),
        ({"scan.snapshot-id": "x"}, InvalidOption, ["`scan.snapshot-id`", "`x`"]),
        ({"scan.snapshot-id": "1", "scan.tag-name": "monday"}, InvalidArgument, ["`scan.tag-name`", "only one"]),
        ({"scan.tag-name": "tuesday"}, NotFound, ["default.t", "`tuesday`"]),
        ({"scan.tag-name": "../x"}, InvalidArgument, ["'../x'"]),
        ({"scan.timestamp": "yesterday"}, InvalidOption, ["`scan.timestamp`", "`yesterday`"]),
        ({"scan.version": "tuesday"}, NotFound, ["`tuesday`"]),
        ({"bukcet": "1"}, InvalidOption, ["`bukcet`", "did you mean `bucket`?"]),
        ({"primary-key": "v"}, InvalidOption, ["`primary-key`", "created"]),
        ({"merge-engine": "no-such-engine"}, InvalidOption, ["`merge-engine`", "`no-such-engine`"]),
        ({"path": "/etc"}, InvalidOption, ["`path`"]),
        ({"branch": "b"}, NotFound, ["no branch `b`"]),
        ({"file.format": "parqet"}, InvalidOption, ["`file.format`", "did you mean `parquet`?"]),
        ({"read.batch-size": "0"}, InvalidOption, ["`read.batch-size`"]),
        ({5: "1"}, InvalidOption, ["5 is no text"]),
        ({"bucket": None}, InvalidOption, ["`bucket`", "NoneType"]),
        (["bucket"], InvalidArgument, ["['bucket']", "dict"]),
    ],
    ids=str,
)
def test_options_of_a_handle(
    lasting: Warehouse, table: Table, options: Any, kind: type[LakebedError], texts: list[str]
) -> None:
    """with_options takes what exists, is honoured, and fits."""
    with lasting.refuses(kind, *texts):
        table.with_options(options)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "", "  ", "a\0b", "a\nb", "x" * 300, None, 5])
def test_tag_names(lasting: Warehouse, table: Table, name: Any) -> None:
    """A tag's name can not leave its directory, or be too long for a file."""
    with lasting.refuses(InvalidArgument, repr(name)[:10], "name"):
        table.create_tag(name)


def test_tags_there_are_not(lasting: Warehouse, table: Table) -> None:
    """A tag is made once, of a snapshot that exists; only one that exists can be deleted."""
    with lasting.refuses(AlreadyExists, "`monday`", "another name"):
        table.create_tag("monday")
    with lasting.refuses(NotFound, "snapshot 9"):
        table.create_tag("tuesday", snapshot=9)
    with lasting.refuses(InvalidArgument, "'1' is no snapshot id"):
        table.create_tag("tuesday", snapshot="1")  # type: ignore[arg-type]
    with lasting.refuses(NotFound, "default.t", "`mondey`", "did you mean `monday`?"):
        table.delete_tag("mondey")
    with lasting.refuses(InvalidArgument, "'../x'"):
        table.delete_tag("../x")


def test_tagging_an_empty_table(warehouse: Warehouse) -> None:
    """A table without snapshots has nothing to tag."""
    empty = warehouse.table("empty", {"id": "INT"})
    with warehouse.refuses(NotFound, "default.empty", "write to the table first"):
        empty.create_tag("x")
    with warehouse.refuses(NotFound, "default.empty", "no snapshots"):
        empty.at(timestamp="2024-01-01")
    with warehouse.refuses(NotFound, "snapshot 1"):
        empty.at(snapshot=1)


@pytest.fixture(scope="module")
def nested(lasting: Warehouse) -> Table:
    columns = {
        "id": "INT NOT NULL",
        "p": "STRING",
        "s": "INT",
        "v": "STRING",
        "r": "ROW<x INT, y STRING>",
        "a": "ARRAY<ROW<z INT>>",
    }
    row = {"id": 1, "p": "a", "s": 1, "v": "x", "r": {"x": 1, "y": "q"}, "a": [{"z": 1}]}
    made = lasting.table(
        "nested",
        columns,
        primary_key=["id", "p"],
        partition_by=["p"],
        options={"bucket": "2", "sequence.field": "s"},
    )
    made.write(pa.Table.from_pylist([row], schema=made.arrow_schema))
    return made


@pytest.mark.parametrize(
    ("change", "kind", "texts"),
    [
        (AddColumn("v", "INT"), AlreadyExists, ["`v`"]),
        (AddColumn("w", "INT NOT NULL"), InvalidSchema, ["`w`", "NOT NULL"]),
        (AddColumn("_KEY_w", "INT"), InvalidSchema, ["`_KEY_w`", "reserved"]),
        (AddColumn("rowkind", "INT"), InvalidSchema, ["`rowkind`", "reserved"]),
        (AddColumn("", "INT"), InvalidSchema, ["no name"]),
        (AddColumn("a\0b", "INT"), InvalidSchema, ["'a\\x00b'"]),
        (AddColumn(5, "INT"), InvalidArgument, ["name of AddColumn is 5"]),
        (AddColumn("w", "INT", comment=5), InvalidArgument, ["comment of AddColumn is 5"]),
        (AddColumn("w", "INT", position="first"), InvalidArgument, ["position of AddColumn is 'first'"]),
        (AddColumn("w", "INT", default="abc"), InvalidSchema, ["`w`", "'abc'", "INT"]),
        (AddColumn("w", "INT", default=5), InvalidArgument, ["default of AddColumn is 5"]),
        (AddColumn("w", "INT", position=After("zz")), NotFound, ["`zz`"]),
        (AddColumn(("r", "x"), "INT"), AlreadyExists, ["`r.x`"]),
        (AddColumn(("q", "x"), "INT"), NotFound, ["`q`"]),
        (AddColumn(("v", "x"), "INT"), InvalidSchema, ["`v`", "STRING", "`x`"]),
        (DropColumn("vv"), NotFound, ["`vv`", "did you mean `v`?"]),
        (DropColumn("id"), InvalidSchema, ["primary key column `id`"]),
        (DropColumn("p"), InvalidSchema, ["partition column `p`"]),
        (DropColumn("s"), InvalidSchema, ["`s`", "`sequence.field`"]),
        (DropColumn(("r", "zz")), NotFound, ["`r.zz`"]),
        (DropColumn(("a", "element", "z")), InvalidSchema, ["`a.element.z`", "only one"]),
        (DropColumn(None), InvalidArgument, ["name of DropColumn is None"]),
        (RenameColumn("vv", "w"), NotFound, ["`vv`"]),
        (RenameColumn("p", "q"), InvalidSchema, ["partition column `p`"]),
        (RenameColumn("v", "id"), AlreadyExists, ["`id`"]),
        (RenameColumn("v", "_VALUE_KIND"), InvalidSchema, ["`_VALUE_KIND`"]),
        (RenameColumn("v", ""), InvalidSchema, ["no name"]),
        (RenameColumn("v", 5), InvalidArgument, ["new_name of RenameColumn is 5"]),
        (UpdateColumnType("id", "BIGINT"), InvalidSchema, ["primary key column `id`"]),
        (UpdateColumnType("p", "INT"), InvalidSchema, ["partition column `p`"]),
        (UpdateColumnType("v", "ARRAY<INT>"), InvalidSchema, ["`v`", "STRING", "ARRAY<INT>"]),
        (UpdateColumnType("r", "INT"), InvalidSchema, ["`r`"]),
        (UpdateColumnType("vv", "INT"), NotFound, ["`vv`"]),
        (UpdateColumnNullability("id", True), InvalidSchema, ["`id`", "nullable"]),
        (UpdateColumnNullability("v", False), InvalidSchema, ["`v`", "NOT NULL"]),
        (UpdateColumnNullability("v", "no"), InvalidArgument, ["nullable of UpdateColumnNullability is 'no'"]),
        (UpdateColumnComment("vv", "c"), NotFound, ["`vv`"]),
        (UpdateColumnDefault("s", "abc"), InvalidSchema, ["`s`", "'abc'"]),
        (UpdateColumnDefault("s", 5), InvalidArgument, ["default of UpdateColumnDefault is 5"]),
        (UpdateColumnDefault("r", "x"), InvalidSchema, ["`r`"]),
        (UpdateColumnPosition("vv", First()), NotFound, ["`vv`"]),
        (UpdateColumnPosition("v", After("v")), InvalidSchema, ["`v`", "itself"]),
        (UpdateColumnPosition("v", None), InvalidArgument, ["position of UpdateColumnPosition is None"]),
        (UpdateComment(5), InvalidArgument, ["comment of UpdateComment is 5"]),
        (SetOption("bukcet", "3"), InvalidOption, ["`bukcet`", "did you mean `bucket`?"]),
        (SetOption("bucket", "-1"), InvalidOption, ["`bucket`", "from `2` to `-1`"]),
        (SetOption("bucket", "x"), InvalidOption, ["`bucket`", "`x`"]),
        (SetOption(5, "x"), InvalidArgument, ["key of SetOption is 5"]),
        (SetOption("primary-key", "v"), InvalidOption, ["`primary-key`"]),
        (SetOption("partition", "v"), InvalidOption, ["`partition`"]),
        (SetOption("path", "/x"), InvalidOption, ["`path`"]),
        (SetOption("sequence.field", "zz"), InvalidOption, ["`sequence.field`", "`zz`"]),
        (SetOption("sequence.field", "r"), InvalidOption, ["`sequence.field`", "`r`", "no order"]),
        (SetOption("bucket-key", "id"), InvalidOption, ["`bucket-key`"]),
        (SetOption("file.format", "lance"), InvalidOption, ["`file.format`", "`lance`"]),
        (RemoveOption("bucket"), InvalidOption, ["`bucket`"]),
        ("drop the table", InvalidArgument, ["'drop the table'", "no schema change"]),
        (None, InvalidArgument, ["None"]),
        ([AddColumn("w", "INT")], InvalidArgument, ["no schema change"]),
        (DropColumn, InvalidArgument, ["no schema change"]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_changes_of_the_schema(
    lasting: Warehouse, nested: Table, change: Any, kind: type[LakebedError], texts: list[str]
) -> None:
    """Every change that a table with data can not take is refused, also as the second of two; no version is made."""
    with lasting.refuses(kind, *texts):
        nested.alter(change)
    with lasting.refuses(kind, *texts):
        nested.alter(AddColumn("fine", "INT"), change)
    assert nested.schema.id == 0


@pytest.mark.parametrize("given", [None, 5, "NO SUCH TYPE", "INT(", pa.uint8()])
def test_types_of_new_columns(given: Any) -> None:
    """A change names a type there is, or can not even be made."""
    with pytest.raises(InvalidSchema, match="type"):
        lakebed.AddColumn("w", given)


def test_a_table_that_was_dropped(warehouse: Warehouse) -> None:
    """A handle of a dropped table says so, and does not bring the table back."""
    made = warehouse.table("gone", {"id": "INT", "v": "STRING"}, ROWS)
    warehouse.lake.drop_table("gone")
    for use in (made.to_arrow, made.scan, lambda: made.write(ROWS), lambda: made.schema, made.alter, made.changes):
        with warehouse.refuses(NotFound, "default.gone", "dropped"):
            use()


@pytest.mark.parametrize(
    "options",
    [{"merge-engine": "first-row"}, {"sequence.snapshot-ordering": "true"}, {"rowkind.field": "v"}],
    ids=lambda options: next(iter(options)),
)
def test_handles_do_not_change_what_files_mean(warehouse: Warehouse, options: dict[str, str]) -> None:
    """Options that are fixed for a table can not be set for one handle, unless to what they are."""
    table = warehouse.table("t", {"id": "INT NOT NULL", "v": "STRING"}, primary_key=["id"], options={"bucket": "1"})
    with warehouse.refuses(InvalidOption, f"`{next(iter(options))}`", "for one handle"):
        table.with_options(options)
    with warehouse.refuses(InvalidOption, f"`{next(iter(options))}`", "for one handle"):
        table.follow(options=options)
    assert table.with_options({"merge-engine": "deduplicate", "force-lookup": "false"}).name == table.name
