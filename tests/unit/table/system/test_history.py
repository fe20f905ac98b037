"""System tables about a table's history and setup: snapshots, schemas, options, tags, branches, consumers and so on."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import CorruptFile
from lakebed.metadata.index_manifest import DeletionVectorRange, GlobalIndex, IndexEntry
from lakebed.table.system.base import TableState
from lakebed.table.system.partitions import PARTITIONS
from lakebed.table.system.table_indexes import TABLE_INDEXES
from lakebed.table.system.texts import duration_text, local_time_ms
from lakebed.types.binary_row import EMPTY_ROW


def test_snapshots(warehouse: Warehouse) -> None:
    """One row per snapshot, filters included; times are those of the local clock."""
    table = warehouse.table("t", {"a": "INT"})
    view = warehouse.lake.table("t$snapshots")
    assert view.to_arrow().num_rows == 0
    for _ in range(3):
        table.write(pa.table({"a": ints(1)}))
    assert view.to_arrow(["snapshot_id", "schema_id", "commit_kind"]).to_pylist() == [
        {"snapshot_id": n, "schema_id": 0, "commit_kind": "APPEND"} for n in (1, 2, 3)
    ]
    assert view.to_arrow(["snapshot_id"], [("snapshot_id", "in", [1, 3])]).to_pydict() == {"snapshot_id": [1, 3]}
    assert view.to_arrow(["total_record_count"], [("snapshot_id", ">", 2)]).to_pydict() == {"total_record_count": [3]}
    latest = table.latest_snapshot()
    assert latest is not None
    shown = view.at(snapshot=3).to_arrow(["commit_time", "commit_user", "delta_manifest_list"]).to_pylist()
    assert len(shown) == 3, "a history does not depend on where one looks from"
    local = dt.datetime.fromtimestamp(latest.time_millis / 1000)
    assert abs(shown[2]["commit_time"] - local) < dt.timedelta(milliseconds=1)
    assert shown[2]["commit_user"] == latest.commit_user
    assert shown[2]["delta_manifest_list"] == latest.delta_manifest_list


def test_local_time_is_a_wall_clock() -> None:
    """A TIMESTAMP column shows what a clock on the wall showed, not UTC."""
    moment = dt.datetime(2024, 7, 1, 12, 30)
    shown = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=local_time_ms(int(moment.timestamp() * 1000)))
    assert shown == moment


def test_schemas_and_options(warehouse: Warehouse) -> None:
    """Every version is shown as JSON; options are the latest ones."""
    table = warehouse.table(
        "t", {"id": "INT NOT NULL", "n": "ARRAY<INT>"}, primary_key=["id"], options={"bucket": 1}, comment="ü"
    )
    table.alter(lakebed.SetOption("snapshot.time-retained", "5 h"))
    shown = warehouse.lake.table("t$schemas").to_arrow().to_pylist()
    assert [row["schema_id"] for row in shown] == [0, 1]
    assert shown[0]["fields"] == (
        '[{"id":0,"name":"id","type":"INT NOT NULL"},{"id":1,"name":"n","type":{"type":"ARRAY","element":"INT"}}]'
    )
    assert (shown[0]["partition_keys"], shown[0]["primary_keys"], shown[0]["comment"]) == ("[]", '["id"]', "ü")
    assert shown[0]["options"] == '{"bucket":"1"}'
    options = {"key": ["bucket", "snapshot.time-retained"], "value": ["1", "5 h"]}
    assert warehouse.lake.table("t$options").to_arrow().to_pydict() == options
    table.write(pa.table({"id": ints(1), "n": pa.array([[1]], pa.list_(pa.int32()))}))
    assert warehouse.lake.table("t$options").at(snapshot=1).to_arrow().to_pydict() == options


def test_tags(warehouse: Warehouse) -> None:
    """Tags come by name; those with a time to live say when they were made and how long they live."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    table.write(pa.table({"a": ints(2)}))
    table.create_tag("z", 1)
    made = dt.datetime(2024, 1, 2, 3, 4, 5, 678000)
    latest = table.latest_snapshot()
    assert latest is not None
    table._opened.current().stores.tags.create("a", latest, create_time=made, retained=dt.timedelta(days=2))
    view = warehouse.lake.table("t$tags")
    columns = ["tag_name", "snapshot_id", "record_count", "create_time", "time_retained"]
    assert [tuple(row.values()) for row in view.to_arrow(columns).to_pylist()] == [
        ("a", 2, 2, made, "PT48H"),
        ("z", 1, 1, None, None),
    ]
    assert view.to_arrow(["snapshot_id"], [("tag_name", "==", "z")]).to_pydict() == {"snapshot_id": [1]}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "PT0S"),
        (0.5, "PT0.5S"),
        (90, "PT1M30S"),
        (5400, "PT1H30M"),
        (3601, "PT1H1S"),
        (172800, "PT48H"),
        (-60, "PT-1M"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Time spans are spelled in hours, minutes and seconds, whatever is zero left out."""
    assert duration_text(dt.timedelta(seconds=seconds)) == text


def test_branches(disk: Warehouse) -> None:
    """Branches other than the main one are listed with the time their directory was made, from any branch."""
    table = disk.table("t", {"a": "INT"})
    assert disk.lake.table("t$branches").to_arrow().num_rows == 0
    context = table._opened.current()
    for name in ("b2", "b1"):
        directory = context.paths.on_branch(name).schema_directory
        disk.fileio.write_bytes(f"{directory}/schema-0", context.schema.to_json().encode())
    shown = disk.lake.table("t$branches").to_arrow().to_pydict()
    assert shown["branch_name"] == ["b1", "b2"]
    assert all(abs(time - dt.datetime.now()) < dt.timedelta(minutes=5) for time in shown["create_time"])
    assert disk.lake.table("t$branch_b1$branches").to_arrow().to_pydict() == shown


def test_system_tables_of_a_branch(disk: Warehouse) -> None:
    """A branch has snapshots and options of its own."""
    table = disk.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    context = table._opened.current()
    branch = replace(context.schema, options={"snapshot.time-retained": "1 h"})
    directory = context.paths.on_branch("b").schema_directory
    disk.fileio.write_bytes(f"{directory}/schema-0", branch.to_json().encode())
    assert disk.lake.table("t$branch_b$options").to_arrow().to_pydict()["value"] == ["1 h"]
    assert disk.lake.table("t$branch_b$snapshots").to_arrow().num_rows == 0
    assert disk.lake.table("t$snapshots").to_arrow().num_rows == 1


def test_branches_where_directories_have_no_time(warehouse: Warehouse) -> None:
    """On an object store the branch's first file tells its time."""
    table = warehouse.table("t", {"a": "INT"})
    context = table._opened.current()
    directory = context.paths.on_branch("b").schema_directory
    warehouse.fileio.write_bytes(f"{directory}/schema-0", context.schema.to_json().encode())
    (shown,) = warehouse.lake.table("t$branches").to_arrow().to_pylist()
    assert abs(shown["create_time"] - dt.datetime.now()) < dt.timedelta(minutes=5)


def test_consumers(warehouse: Warehouse) -> None:
    """Readers that keep their progress are listed with the snapshot they read next."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    list(table.follow(options={"consumer-id": "me"}))
    assert warehouse.lake.table("t$consumers").to_arrow().to_pydict() == {
        "consumer_id": ["me"],
        "next_snapshot_id": [2],
    }


def test_aggregation_fields(warehouse: Warehouse) -> None:
    """Each column is shown with the options that name it."""
    options = {
        "bucket": 1,
        "merge-engine": "aggregation",
        "fields.s.aggregate-function": "listagg",
        "fields.s.list-agg-delimiter": ";",
    }
    warehouse.table("t", {"k": "INT NOT NULL", "s": "STRING"}, primary_key=["k"], options=options)
    assert warehouse.lake.table("t$aggregation_fields").to_arrow().to_pylist() == [
        {"field_name": "k", "field_type": "INT NOT NULL", "function": "[]", "function_options": "[]", "comment": None},
        {
            "field_name": "s",
            "field_type": "STRING",
            "function": "[listagg, ;]",
            "function_options": "[fields.s.aggregate-function, fields.s.list-agg-delimiter]",
            "comment": None,
        },
    ]


def _analysed(warehouse: Warehouse, body: object) -> lakebed.Table:
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1, 2)}))
    context = table._opened.current()
    latest = table.latest_snapshot()
    assert latest is not None
    warehouse.fileio.write_bytes(context.paths.statistics_file("stat-1"), json.dumps(body).encode())
    context.stores.snapshots.publish(replace(latest, id=2, statistics="stat-1"))
    return table


def test_statistics(warehouse: Warehouse) -> None:
    """The latest analysis is one row, its columns as JSON; snapshots before it have none."""
    column = {"colId": 0, "distinctCount": 2, "avgLen": 4.5}
    body = {"snapshotId": 1, "schemaId": 0, "mergedRecordCount": 2, "mergedRecordSize": 20, "colStats": {"a": column}}
    _analysed(warehouse, body)
    view = warehouse.lake.table("t$statistics")
    (shown,) = view.to_arrow().to_pylist()
    assert (shown["snapshot_id"], shown["mergedRecordCount"], shown["mergedRecordSize"]) == (1, 2, 20)
    assert json.loads(shown["colstat"]) == {"a": column}
    assert view.at(snapshot=1).to_arrow().num_rows == 0


def test_statistics_without_columns(warehouse: Warehouse) -> None:
    """An analysis of no columns shows an empty object as Java prints it."""
    _analysed(warehouse, {"snapshotId": 1, "schemaId": 0, "mergedRecordCount": 2, "colStats": {}})
    assert warehouse.lake.table("t$statistics").to_arrow(["colstat"]).to_pydict() == {"colstat": ["{ }"]}


def test_damaged_statistics(warehouse: Warehouse) -> None:
    """A file that is no analysis is named."""
    _analysed(warehouse, {"snapshotId": 1, "schemaId": 0, "colStats": 7})
    with pytest.raises(CorruptFile, match="stat-1"):
        warehouse.lake.table("t$statistics").to_arrow()


def test_table_indexes_and_deleted_rows(warehouse: Warehouse) -> None:
    """Index files are listed with their deletion vectors; partitions add up what the vectors hide."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1, 2)}))
    assert warehouse.lake.table("t$table_indexes").to_arrow().num_rows == 0
    vectors = (DeletionVectorRange("f1", 1, 20, 3), DeletionVectorRange("f2", 21, 20, 4))
    entries = [
        IndexEntry(EMPTY_ROW, 0, "HASH", "index-1", 12, 3),
        IndexEntry(EMPTY_ROW, 0, "DELETION_VECTORS", "index-2", 40, 2, vectors),
        IndexEntry(EMPTY_ROW, 0, "btree", "index-3", 9, 9, None, None, GlobalIndex(0, 8, 0)),
        IndexEntry(EMPTY_ROW, 0, "btree", "index-4", 9, 9, None, None, GlobalIndex(0, 8, 77)),
    ]
    state = TableState(table._opened.current())
    object.__setattr__(state, "index_files", entries)
    shown = TABLE_INDEXES.read(state, None, None).to_pylist()
    assert [row["index_type"] for row in shown] == ["HASH", "DELETION_VECTORS", "btree", "btree"]
    assert (shown[0]["partition"], shown[0]["file_size"], shown[0]["row_count"]) == ("{}", 12, 3)
    assert shown[0]["dv_ranges"] is None
    assert shown[1]["dv_ranges"][1] == {"f0": "f2", "f1": 21, "f2": 20, "_CARDINALITY": 4}
    assert [(row["row_range_start"], row["row_range_end"], row["index_field_name"]) for row in shown[2:]] == [
        (0, 8, "a"),
        (0, 8, None),
    ]
    assert PARTITIONS.read(state, ["deleted_record_count"], None).to_pydict() == {"deleted_record_count": [7]}
    entries[1] = replace(entries[1], deletion_vector_ranges=(*vectors, DeletionVectorRange("f3", 41, 20)))
    assert PARTITIONS.read(state, ["deleted_record_count"], None).to_pydict() == {"deleted_record_count": [None]}
