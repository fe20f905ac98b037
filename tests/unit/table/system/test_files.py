"""`t$files` and what else is made of data files: ranges, partitions, buckets, manifests, file indexes."""

from __future__ import annotations

import datetime as dt
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, changed_elsewhere, ints

import lakebed
from lakebed.errors import CorruptFile
from lakebed.table.system import file_indexes
from lakebed.table.system.base import TableState

STATS = ["null_value_counts", "min_value_stats", "max_value_stats"]


def rows(table: Any, *columns: str, **more: Any) -> list[tuple[Any, ...]]:
    """Rows of a table as tuples of these columns."""
    found = table.to_arrow(list(columns), **more).to_pydict()
    return sorted(zip(*found.values(), strict=True), key=str)


def evolved(warehouse: Warehouse, **more: Any) -> lakebed.Table:
    """A table with files of three schemas: columns were added, dropped and renamed in between."""
    columns = {"id": "INT", "pt": "INT", "bv": "BIGINT", "cs": "STRING"}
    table = warehouse.table("f", columns, partition_by=["pt"], **more)
    table.write(pa.table({"id": ints(3, 1), "pt": ints(1, 1), "bv": [4, 2], "cs": ["S2", "S1"]}))
    table.alter(*(lakebed.AddColumn(name, "INT") for name in ("dn", "en", "fn")))
    second = {"id": ints(5, 10), "pt": ints(1, 1), "bv": [6, 11], "cs": ["S3", "S4"]}
    table.write(pa.table({**second, "dn": ints(7, 12), "en": ints(8, 13), "fn": ints(9, 14)}))
    table.alter(lakebed.DropColumn("cs"), lakebed.DropColumn("en"))
    table.alter(lakebed.RenameColumn("dn", "dd"), lakebed.RenameColumn("bv", "bw"))
    third = {"id": ints(19, 15, 23), "pt": ints(1, 1, 2), "bw": [20, 16, 24]}
    table.write(pa.table({**third, "dd": ints(21, 17, 25), "fn": ints(22, 18, 26)}))
    return table


@pytest.mark.parametrize("primary_key", [[], ["id", "pt"]], ids=["append", "keyed"])
def test_statistics_follow_the_schema(warehouse: Warehouse, primary_key: list[str]) -> None:
    """Columns are found by id: renamed ones have values, added ones are null in all rows of old files."""
    options = {"bucket": 1} if primary_key else {}
    evolved(warehouse, primary_key=primary_key, options=options)
    files = warehouse.lake.table("f$files")
    assert rows(files, "partition", "record_count", *STATS) == [
        (
            "{1}",
            2,
            "{bw=0, dd=0, fn=0, id=0, pt=0}",
            "{bw=16, dd=17, fn=18, id=15, pt=1}",
            "{bw=20, dd=21, fn=22, id=19, pt=1}",
        ),
        (
            "{1}",
            2,
            "{bw=0, dd=0, fn=0, id=0, pt=0}",
            "{bw=6, dd=7, fn=9, id=5, pt=1}",
            "{bw=11, dd=12, fn=14, id=10, pt=1}",
        ),
        (
            "{1}",
            2,
            "{bw=0, dd=2, fn=2, id=0, pt=0}",
            "{bw=2, dd=null, fn=null, id=1, pt=1}",
            "{bw=4, dd=null, fn=null, id=3, pt=1}",
        ),
        (
            "{2}",
            1,
            "{bw=0, dd=0, fn=0, id=0, pt=0}",
            "{bw=24, dd=25, fn=26, id=23, pt=2}",
            "{bw=24, dd=25, fn=26, id=23, pt=2}",
        ),
    ]
    keys = rows(files, "min_key", "max_key")
    assert keys == (
        [("[15]", "[19]"), ("[1]", "[3]"), ("[23]", "[23]"), ("[5]", "[10]")] if primary_key else [(None, None)] * 4
    )


def test_an_earlier_state_under_its_own_schema(warehouse: Warehouse) -> None:
    """Time travel by option, `at` and tag shows the files of then with the columns of then."""
    table = evolved(warehouse)
    table.create_tag("second", 2)
    files = warehouse.lake.table("f$files")
    expected = [
        ("{bv=2, cs=S1, dn=null, en=null, fn=null, id=1, pt=1}", 0),
        ("{bv=6, cs=S3, dn=7, en=8, fn=9, id=5, pt=1}", 1),
    ]
    for handle in (files.with_options({"scan.snapshot-id": 2}), files.at(snapshot=2), files.at(tag="second")):
        assert rows(handle, "min_value_stats", "schema_id") == expected


def test_statistics_that_were_not_kept(warehouse: Warehouse) -> None:
    """Without statistics nothing is known, and null says so."""
    data = pa.table({"a": ints(1), "b": ints(2)})
    warehouse.table("t", {"a": "INT", "b": "INT"}, data, options={"metadata.stats-mode": "none"})
    unknown = "{a=null, b=null}"
    assert rows(warehouse.lake.table("t$files"), *STATS) == [(unknown, unknown, unknown)]


def test_bounds_that_no_longer_fit(warehouse: Warehouse) -> None:
    """A bound that today's type can not hold is unknown; the others stay."""
    table = warehouse.table("t", {"a": "STRING", "b": "INT"}, pa.table({"a": ["x", "y"], "b": ints(1, 2)}))
    changed_elsewhere(table, lakebed.UpdateColumnType("a", "INT"))
    assert rows(warehouse.lake.table("t$files"), "min_value_stats") == [("{a=null, b=1}",)]


def test_values_are_spelled_as_java_prints_them(warehouse: Warehouse) -> None:
    """Dates are days, times milliseconds, timestamps ISO with a T, booleans lower case; bytes have no bounds."""
    schema = {"d": "DATE", "t": "TIME", "s": "TIMESTAMP(6)", "o": "BOOLEAN", "f": "DOUBLE", "c": "DECIMAL(9, 2)"}
    data = {
        "d": [dt.date(2024, 1, 1)],
        "t": pa.array([dt.time(1, 2, 3)], pa.time32("ms")),
        "s": [dt.datetime(2024, 1, 1, 0, 0, 1)],
        "o": [True],
        "f": [1e10],
        "c": pa.array(["1.50"]).cast(pa.decimal128(9, 2)),
    }
    warehouse.table("t", {**schema, "x": "BYTES"}, pa.table({**data, "x": [b"ab"]}))
    assert rows(warehouse.lake.table("t$files"), "min_value_stats") == [
        ("{c=1.50, d=19723, f=1.0E10, o=true, s=2024-01-01T00:00:01, t=3723000, x=null}",)
    ]


def test_keys_of_several_columns(warehouse: Warehouse) -> None:
    """A key is spelled as a list, partition columns left out."""
    columns = {"p": "INT NOT NULL", "k": "STRING NOT NULL", "d": "DATE NOT NULL"}
    data = pa.table({"p": ints(1, 1), "k": ["a", "b"], "d": [dt.date(1970, 1, 2)] * 2})
    warehouse.table("t", columns, data, primary_key=["k", "p", "d"], partition_by=["p"], options={"bucket": 1})
    for name in ("files", "file_key_ranges"):
        assert rows(warehouse.lake.table(f"t${name}"), "min_key", "max_key") == [("[a, 1]", "[b, 1]")]


def test_levels_sources_and_places(warehouse: Warehouse) -> None:
    """A compaction's files are said to be its own; every path leads to a file of that size."""
    table = warehouse.table("t", {"k": "INT NOT NULL"}, primary_key=["k"], options={"bucket": 1})
    table.write(pa.table({"k": ints(1, 2)}))
    table.write(pa.table({"k": ints(2, 3)}))
    table.compact(full=True)
    table.write(pa.table({"k": ints(2), "kind": ["-D"]}), row_kind="kind")
    files = warehouse.lake.table("t$files")
    shown = rows(files, "level", "file_source", "deleteRowCount", "file_format", "bucket")
    assert shown == [(0, "APPEND", 1, "parquet", 0), (5, "COMPACT", 0, "parquet", 0)]
    for path, size in rows(files, "file_path", "file_size_in_bytes"):
        assert len(warehouse.fileio.read_bytes(path)) == size


def test_filters_and_columns(warehouse: Warehouse) -> None:
    """Filters work on any column, shown or not; columns come in the order asked for."""
    columns = {"k": "INT NOT NULL", "p": "INT NOT NULL"}
    table = warehouse.table("t", columns, primary_key=["k", "p"], partition_by=["p"], options={"bucket": 2})
    table.write(pa.table({"k": ints(1, 4, 7), "p": ints(2, 5, 8)}))
    files = warehouse.lake.table("t$files")
    assert files.to_arrow(["level", "partition"], [("partition", "==", "{2}")]).to_pydict() == {
        "level": [0],
        "partition": ["{2}"],
    }
    buckets = rows(files, "bucket")
    assert rows(files, "bucket", filter=[("bucket", "==", 0)]) == [b for b in buckets if b == (0,)]
    assert files.to_arrow(filter=[("level", ">", 0)]).num_rows == 0
    assert files.to_arrow([], [("bucket", ">=", 0)]).num_rows == 3


def test_partitions_and_buckets(warehouse: Warehouse) -> None:
    """Files are added up by partition and by bucket, sorted; partitions without files are not shown."""
    table = warehouse.table("t", {"a": "INT", "p1": "DATE", "p2": "INT"}, partition_by=["p1", "p2"])
    days = pa.array([dt.date(2024, 10, 10), None, dt.date(2024, 10, 10)], pa.date32())
    table.write(pa.table({"a": ints(1, 2, 3), "p1": days, "p2": ints(1, 1, 1)}))
    table.write(pa.table({"a": ints(4), "p1": days[:1], "p2": ints(1)}))
    partitions, buckets = warehouse.lake.table("t$partitions"), warehouse.lake.table("t$buckets")
    assert partitions.to_arrow(["partition", "record_count", "file_count"]).to_pydict() == {
        "partition": ["p1=2024-10-10/p2=1", "p1=__DEFAULT_PARTITION__/p2=1"],
        "record_count": [3, 1],
        "file_count": [2, 1],
    }
    assert (
        partitions.to_arrow(["done", "total_buckets", "deleted_record_count"]).to_pylist()
        == [{"done": False, "total_buckets": -1, "deleted_record_count": 0}] * 2
    )
    assert buckets.to_arrow(["partition", "bucket", "record_count"]).to_pydict() == {
        "partition": ["{2024-10-10, 1}", "{null, 1}"],
        "bucket": [0, 0],
        "record_count": [3, 1],
    }
    newest = max(entry.file.creation_time_ms or 0 for entry in TableState(table._opened.current()).files)
    assert buckets.to_arrow(["last_update_time"]).column(0).cast(pa.int64())[0].as_py() == newest
    table.write(table.arrow_schema.empty_table(), overwrite={"p2": 1})
    assert partitions.to_arrow().num_rows == buckets.to_arrow().num_rows == 0


def test_manifests(warehouse: Warehouse) -> None:
    """One row per manifest, with counts and the range of its partitions."""
    table = warehouse.table("t", {"a": "INT", "p": "INT"}, partition_by=["p"])
    assert warehouse.lake.table("t$manifests").to_arrow().num_rows == 0
    table.write(pa.table({"a": ints(1, 2), "p": ints(5, 7)}))
    table.write(pa.table({"a": ints(1), "p": ints(6)}))
    shown = rows(
        warehouse.lake.table("t$manifests"),
        "num_added_files",
        "num_deleted_files",
        "schema_id",
        "min_partition_stats",
        "max_partition_stats",
    )
    assert shown == [(1, 0, 0, "{6}", "{6}"), (2, 0, 0, "{5}", "{7}")]


def container(*columns: tuple[str, list[tuple[str, int, int]]]) -> bytes:
    """A file index with nothing but its table of contents."""
    body = struct.pack(">i", len(columns))
    for name, indexes in columns:
        body += struct.pack(">H", len(name)) + name.encode() + struct.pack(">i", len(indexes))
        for kind, start, length in indexes:
            body += struct.pack(">H", len(kind)) + kind.encode() + struct.pack(">ii", start, length)
    return struct.pack(">qii", 1493475289347502, 1, 16 + len(body) + 4) + body + struct.pack(">i", 0)


def test_file_indexes(warehouse: Warehouse) -> None:
    """Indexes in the manifest and beside the file are listed with their sizes; empty ones have none."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    assert warehouse.lake.table("t$file_indexes").to_arrow().num_rows == 0
    state = TableState(table._opened.current())
    (entry,) = state.files
    data = container(("a", [("bloom-filter", 80, 40), ("bitmap", -1, 0)]))
    embedded = replace(entry, file=replace(entry.file, embedded_index=data))
    beside = replace(entry, file=replace(entry.file, extra_files=("data.index",)))
    path = f"{table.location}/bucket-0/data.index"
    warehouse.fileio.write_bytes(path, data)
    object.__setattr__(state, "files", [embedded, beside])
    found = file_indexes.FILE_INDEXES.read(state, None, None).to_pylist()
    names = ["column_name", "index_type", "storage_type", "index_file_path", "index_size_in_bytes", "is_empty"]
    assert [tuple(row[name] for name in names) for row in found] == [
        ("a", "bloom-filter", "EMBEDDED", None, 40, False),
        ("a", "bitmap", "EMBEDDED", None, 0, True),
        ("a", "bloom-filter", "FILE", path, 40, False),
        ("a", "bitmap", "FILE", path, 0, True),
    ]
    assert {row["index_container_size_in_bytes"] for row in found} == {len(data)}


@pytest.mark.parametrize("data", [b"", bytes(40), container(("a", [("bloom-filter", 1, 1)]))[:30]])
def test_damaged_file_indexes(data: bytes) -> None:
    """What is no index, or the beginning of one, is named with its file."""
    with pytest.raises(CorruptFile, match=r"data\.index"):
        file_indexes.contents(data, "data.index")
