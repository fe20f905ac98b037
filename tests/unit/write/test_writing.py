"""Writing a table: kinds of data, upserts, overwrites, replays, defaults, and what a commit leaves behind."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.types.logical import DataField, parse_type

COLUMNS = {"id": "INT", "v": "STRING"}
ROWS = pa.table({"id": ints(1, 2), "v": ["a", "b"]})
KEYED = {"primary_key": ["id"], "options": {"bucket": "1"}}


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_batches(max_chunksize=1),
        tuple(ROWS.to_batches()),
        ROWS.to_reader(),
        ROWS.to_struct_array().combine_chunks(),
        ROWS.select(["v", "id"]),
        ROWS.to_pandas(),
        pl.from_arrow(ROWS),
        pd.DataFrame({"id": [1.0, 2.0], "v": pd.Categorical(["a", "b"])}),
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_kinds_of_data(warehouse: Warehouse, data: object) -> None:
    """Everything that is rows in Arrow's eyes is written, columns matched by name."""
    table = warehouse.table("t", COLUMNS)
    snapshot = table.write(data)
    assert snapshot is not None
    assert snapshot.total_record_count == 2
    assert table.to_arrow().to_pylist() == ROWS.to_pylist()


def test_nothing_to_write(warehouse: Warehouse) -> None:
    """Zero rows make no snapshot, in whatever form they come."""
    table = warehouse.table("t", COLUMNS)
    assert table.write(ROWS.slice(0, 0)) is None
    assert table.write(table.arrow_schema.empty_table()) is None
    assert table.write(ROWS.to_batches()[0].slice(0, 0)) is None
    with table.writer():
        pass
    assert table.snapshots() == []


def test_upserts(warehouse: Warehouse) -> None:
    """In a keyed table the last row of a key counts, within a batch and over commits; deletes take rows away."""
    table = warehouse.table("t", COLUMNS, **KEYED)
    table.write(pa.table({"id": ints(1, 2, 1), "v": ["a", "b", "c"]}))
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "c"}, {"id": 2, "v": "b"}]
    table.write(pa.table({"id": ints(2, 3), "v": [None, "d"], "k": ["-D", "+I"]}), row_kind="k")
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "c"}, {"id": 3, "v": "d"}]


def test_row_kinds_in_a_column_of_the_table(warehouse: Warehouse) -> None:
    """`rowkind.field` takes the kind from the rows themselves."""
    options = {"bucket": "1", "rowkind.field": "op"}
    table = warehouse.table("t", {"id": "INT", "op": "STRING"}, primary_key=["id"], options=options)
    table.write(pa.table({"id": ints(1, 2), "op": ["+I", "+I"]}))
    table.write(pa.table({"id": ints(1), "op": ["-D"]}))
    assert table.to_arrow().to_pylist() == [{"id": 2, "op": "+I"}]


def test_many_batches_one_commit(warehouse: Warehouse) -> None:
    """A writer's batches become visible together at the end of its block, and not at all after an error."""
    table = warehouse.table("t", COLUMNS)
    with table.writer() as writer:
        writer.write(ROWS)
        writer.write(ROWS)
        assert table.to_arrow().num_rows == 0
    assert table.to_arrow().num_rows == 4
    assert len(table.snapshots()) == 1
    before = warehouse.contents()

    def fail() -> None:
        with table.writer() as writer:
            writer.write(ROWS)
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fail()
    assert warehouse.contents() == before


def test_replayed_commits(warehouse: Warehouse) -> None:
    """A commit with a number its user has committed already changes nothing."""
    table = warehouse.table("t", COLUMNS)
    for identifier, rows in [(1, 2), (1, 2), (2, 4), (1, 4), (2, 4), (3, 6)]:
        with table.writer(commit_user="stream", commit_identifier=identifier) as writer:
            writer.write(ROWS)
        assert table.to_arrow().num_rows == rows
    with table.writer(commit_user="another", commit_identifier=1) as writer:
        writer.write(ROWS)
    assert table.to_arrow().num_rows == 8
    assert [snapshot.commit_identifier for snapshot in table.snapshots()] == [1, 2, 3, 1]


@pytest.mark.parametrize("more", [{}, KEYED], ids=["append", "keyed"])
def test_overwriting_a_table(warehouse: Warehouse, more: dict[str, object]) -> None:
    """overwrite=True replaces all rows; False and None add; earlier snapshots keep theirs."""
    table = warehouse.table("t", COLUMNS, ROWS, **more)
    table.write(pa.table({"id": ints(9), "v": ["z"]}), overwrite=True)
    assert table.to_arrow().to_pylist() == [{"id": 9, "v": "z"}]
    table.write(ROWS, overwrite=False)
    assert table.to_arrow().num_rows == 3
    assert table.at(snapshot=1).to_arrow().num_rows == 2


def test_truncating(warehouse: Warehouse) -> None:
    """truncate() leaves an empty table with its history."""
    table = warehouse.table("t", COLUMNS, ROWS)
    assert table.truncate() is not None
    assert table.to_arrow().num_rows == 0
    assert table.at(snapshot=1).to_arrow().num_rows == 2
    table.write(ROWS)
    assert table.to_arrow().num_rows == 2
    assert warehouse.table("empty", COLUMNS).truncate() is None


def test_overwriting_partitions(warehouse: Warehouse) -> None:
    """A dict replaces the partitions it names, also by text; True replaces those of the new rows."""
    days = [dt.date(2024, 5, 1), dt.date(2024, 5, 2)]
    table = warehouse.table("t", {"id": "INT", "day": "DATE", "p": "STRING"}, partition_by=["day", "p"])
    all_rows = pa.table(
        {"id": ints(1, 2, 3, 4), "day": [days[0], days[0], days[1], days[1]], "p": ["a", "b", "a", None]}
    )

    def ids() -> list[int]:
        return sorted(table.to_arrow()["id"].to_pylist())

    def row(number: int, day: dt.date, p: str | None) -> pa.Table:
        return pa.table({"id": ints(number), "day": [day], "p": pa.array([p], pa.string())})

    table.write(all_rows)
    table.write(row(5, days[0], "c"), overwrite={"day": days[0]})
    assert ids() == [3, 4, 5]
    table.write(row(6, days[1], "a"), overwrite={"day": "2024-05-02", "p": "a"})
    assert ids() == [4, 5, 6]
    table.write(row(7, days[1], None), overwrite={"p": None})
    assert ids() == [5, 6, 7]
    table.write(row(8, days[0], "c"), overwrite=True)
    assert ids() == [6, 7, 8]
    table.with_options({"dynamic-partition-overwrite": "false"}).write(row(9, days[0], "c"), overwrite=True)
    assert ids() == [9]
    table.write(all_rows.slice(0, 0), overwrite={"day": dt.datetime(2024, 5, 1)})
    assert ids() == []


def test_defaults_fill_nulls(warehouse: Warehouse) -> None:
    """A column's default takes the place of nulls that are written, not of those that were."""
    fields = [
        DataField(0, "id", parse_type("INT")),
        DataField(1, "state", parse_type("STRING"), default_value="'new'"),
        DataField(2, "n", parse_type("BIGINT"), default_value="7"),
    ]
    table = warehouse.lake.create_table("t", fields)
    table.write(pa.table({"id": ints(1, 2), "state": [None, "old"], "n": pa.nulls(2)}))
    assert [tuple(row.values()) for row in table.to_arrow().to_pylist()] == [(1, "new", 7), (2, "old", 7)]
    table.alter(lakebed.AddColumn("d", "DATE", default="2024-05-01"), lakebed.UpdateColumnDefault("n", None))
    table.write(pa.table({"id": ints(3), "state": ["x"], "n": pa.nulls(1), "d": pa.nulls(1)}))
    rows = table.to_arrow().sort_by("id").to_pylist()
    assert [row["d"] for row in rows] == [None, None, dt.date(2024, 5, 1)]
    assert rows[2]["n"] is None


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_nested_columns(warehouse: Warehouse, file_format: str) -> None:
    """Lists, maps and rows come back as written, merged by key and projected."""
    columns = {"id": "INT", "tags": "ARRAY<STRING>", "m": "MAP<STRING, INT>", "r": "ROW<x INT, l ARRAY<INT>>"}
    options = {"bucket": "1", "file.format": file_format}
    table = warehouse.table("t", columns, primary_key=["id"], options=options)
    first = {"id": 1, "tags": ["a", None], "m": [("k", 1)], "r": {"x": 1, "l": [1, None]}}
    second = {"id": 2, "tags": None, "m": [], "r": None}
    table.write(pa.Table.from_pylist([first, second], schema=table.arrow_schema))
    changed = {**first, "tags": [], "m": None}
    table.write(pa.Table.from_pylist([changed], schema=table.arrow_schema))
    assert table.to_arrow().to_pylist() == [changed, second]
    assert table.to_arrow(columns=["r"]).to_pylist() == [{"r": first["r"]}, {"r": None}]


def test_files_of_the_wanted_size(warehouse: Warehouse) -> None:
    """`target-file-row-num` cuts files by rows; each stays readable in order."""
    table = warehouse.table("t", {"id": "INT"}, options={"target-file-row-num": "10"})
    table.write(pa.table({"id": ints(*range(25))}))
    assert [file.row_count for file in table.scan().files] == [10, 10, 5]
    assert table.to_arrow()["id"].to_pylist() == list(range(25))
