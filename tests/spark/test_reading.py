"""Tables as DataFrames: native files, merged files and both give the rows that the table has."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.spark import read
from lakebed.spark import read as marked
from lakebed.table.plans import plan_read

EVERYTHING = {
    "id": "BIGINT NOT NULL",
    "b": "BOOLEAN",
    "t": "TINYINT",
    "s": "SMALLINT",
    "i": "INT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "n": "DECIMAL(12, 3)",
    "c": "CHAR(3)",
    "v": "STRING",
    "y": "BYTES",
    "day": "DATE",
    "ms": "TIMESTAMP(3)",
    "us": "TIMESTAMP(6)",
    "ltz": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "arr": "ARRAY<INT>",
    "m": "MAP<STRING, BIGINT>",
    "r": "ROW<x INT, y ARRAY<STRING>>",
}


def _rows(table: lakebed.Table, ids: range) -> pa.Table:
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123000)
    return pa.Table.from_pylist(
        [
            {
                "id": number,
                "b": number % 2 == 0,
                "t": number % 100,
                "s": number,
                "i": number,
                "f": number / 4,
                "d": number / 8,
                "n": decimal.Decimal(number) / 8,
                "c": "abc",
                "v": f"text {number}",
                "y": bytes([number % 256]),
                "day": dt.date(2024, 1, 1) + dt.timedelta(days=number),
                "ms": moment,
                "us": moment + dt.timedelta(microseconds=number),
                "ltz": moment.replace(tzinfo=dt.UTC),
                "arr": [number, None],
                "m": [("a", number)],
                "r": {"x": number, "y": ["z", None]},
            }
            if number % 7
            else {"id": number}
            for number in ids
        ],
        schema=table.arrow_schema,
    )


@pytest.fixture(params=["small", "large"])
def threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the way of small tables and that of large ones."""
    if request.param == "large":
        monkeypatch.setattr(read, "LOCAL_ROWS", -1)


def _collected(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: row[0])


def _expected(table: lakebed.Table) -> list[tuple[Any, ...]]:
    rows = []
    for row in table.to_arrow().to_pylist():
        row["ltz"] = row["ltz"].astimezone().replace(tzinfo=None) if row["ltz"] else None
        row["m"] = dict(row["m"]) if row["m"] is not None else None
        row["r"] = (row["r"]["x"], row["r"]["y"]) if row["r"] is not None else None
        row["y"] = bytearray(row["y"]) if row["y"] is not None else None
        rows.append(tuple(row.values()))
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_every_type_arrives(lake: lakebed.Lake, format_name: str) -> None:
    """Values of all types, and nulls, are the same in Spark as in Arrow, whichever way they are read."""
    options = {"bucket": "2", "file.format": format_name}
    table = lake.create_table("t", EVERYTHING, primary_key=["id"], options=options)
    table.write(_rows(table, range(50)))
    assert _collected(table.to_spark()) == _expected(table)
    table.write(_rows(table, range(40, 60)))
    assert _collected(table.to_spark()) == _expected(table)


def test_native_and_merged_parts_together(spark: Any, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with compacted and with overlapping buckets is read by Spark in one part and by us in the other."""
    monkeypatch.setattr(read, "LOCAL_ROWS", -1)
    table = lake.create_table("t", EVERYTHING, primary_key=["id"], options={"bucket": "4"})
    table.write(_rows(table, range(200)))
    table.compact(full=True)
    table.write(_rows(table, range(1)))
    planned = plan_read(table)
    assert isinstance(planned, tuple)
    native, _, merged = read.HybridRead(*planned)._by_path(spark)
    assert native
    assert merged
    assert _collected(table.to_spark()) == _expected(table)
    assert table.to_spark(["v", "id"]).columns == ["v", "id"]


@pytest.mark.parametrize("bits", ["false", "true"], ids=["32", "64"])
@pytest.mark.parametrize("key", [(), ("id",)], ids=["append", "keyed"])
def test_files_with_marked_rows_are_read_by_spark(
    spark: Any, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...], bits: str
) -> None:
    """Deleted rows are left out by Spark, whatever the columns and the filter; other files are read beside them."""
    monkeypatch.setattr(read, "LOCAL_ROWS", -1)
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": bits}
    options |= {"bucket": "2", **({} if key else {"bucket-key": "id"}), "file.block-size": "1 kb"}
    table = lake.create_table("t", EVERYTHING, primary_key=key, options=options)
    for start in (0, 300, 600):
        table.write(_rows(table, range(start, start + 300)))
    if key:
        table.compact(full=True)
        gone = _rows(table, range(0, 450, 9))
        table.write(gone.append_column("kind", [["-D"] * len(gone)]), row_kind="kind")
        table.write(_rows(table, range(1000, 1010)))
    else:
        table.delete_where([("id", "<", 450), ("s", "in", list(range(0, 450, 9)))])
    planned = plan_read(table)
    assert isinstance(planned, tuple)
    _, with_marks, merged = read.HybridRead(*planned)._by_path(spark)
    assert with_marks
    assert not merged
    assert _collected(table.to_spark()) == _expected(table)
    for condition in ([("id", ">", 400), ("id", "<", 500)], [("i", "in", [8, 9, 10, 18])], [("v", "=", "text 11")]):
        wanted = sorted(table.to_arrow(["id"], filter=condition)["id"].to_pylist())
        assert sorted(row[0] for row in table.to_spark(["id"], filter=condition).collect()) == wanted
    assert table.to_spark([]).count() == table.to_arrow(["id"]).num_rows


def test_marked_files_that_spark_can_not_tell_apart(
    spark: Any, lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two marked files of the same size, and files that are too many, are read by us; the rows are the same."""
    monkeypatch.setattr(read, "LOCAL_ROWS", -1)
    table = lake.create_table("t", {"id": "INT", "v": "INT"}, options={"deletion-vectors.enabled": "true"})
    for _ in range(3):
        table.write(pa.table({"id": list(range(100)), "v": [1] * 100}, schema=table.arrow_schema))
    table.write(pa.table({"id": list(range(500)), "v": [2] * 500}, schema=table.arrow_schema))
    table.delete_where([("id", "in", [5, 7, 99])])

    def ways() -> tuple[int, int]:
        planned = plan_read(table)
        assert isinstance(planned, tuple)
        _, with_marks, merged = read.HybridRead(*planned)._by_path(spark)
        return len(with_marks), sum(len(split.files) for split in merged)

    assert ways() == (1, 3)
    assert sorted(map(tuple, table.to_spark().collect())) == sorted(
        tuple(row.values()) for row in table.to_arrow().to_pylist()
    )
    monkeypatch.setattr(marked, "MOST_ROWS", 100)
    assert ways() == (0, 4)
    assert table.to_spark().count() == 800 - 12


@pytest.mark.usefixtures("threshold")
def test_filters_hold(lake: lakebed.Lake) -> None:
    """A filter gives the same rows as in Arrow, on keys, values and floating-point columns with NaN."""
    table = lake.create_table("t", {"id": "INT NOT NULL", "v": "STRING", "d": "DOUBLE"}, primary_key=["id"])
    rows = {"id": list(range(20)), "v": [None if i % 5 == 0 else f"v{i}" for i in range(20)]}
    numbers = [float("nan") if i == 3 else i / 2 for i in range(20)]
    table.write(pa.table({**rows, "d": numbers}, schema=table.arrow_schema))
    table.compact(full=True)
    for condition in (
        [("id", ">", 4)],
        [("v", "=", "v7")],
        [("d", ">", 3.0)],
        [("v", "in", ["v1", "v2"])],
        [("id", "<", 9), ("v", "!=", "v8")],
    ):
        wanted = sorted(table.to_arrow(["id"], filter=condition)["id"].to_pylist())
        assert sorted(row[0] for row in table.to_spark(["id"], filter=condition).collect()) == wanted


@pytest.mark.usefixtures("threshold")
def test_a_frame_keeps_its_snapshot(lake: lakebed.Lake) -> None:
    """What a DataFrame shows does not depend on later commits, nor on what was asked of it before."""
    table = lake.create_table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1, 2, 3], "v": [1, 1, 1]}, schema=table.arrow_schema))
    frame = table.to_spark()
    assert frame.filter("id = 2").count() == 1
    table.write(pa.table({"id": [1, 4], "v": [2, 2]}, schema=table.arrow_schema))
    assert sorted(tuple(row) for row in frame.collect()) == [(1, 1), (2, 1), (3, 1)]
    assert table.to_spark().count() == 4
    assert table.at(snapshot=1).to_spark().count() == 3


@pytest.mark.usefixtures("threshold")
def test_schema_evolution_shows(lake: lakebed.Lake) -> None:
    """Files from before a change of the schema are read under the new one."""
    table = lake.create_table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1], "v": [10]}, schema=table.arrow_schema))
    table.alter(lakebed.RenameColumn(("v",), "w"), lakebed.AddColumn(("x",), "STRING"))
    assert [tuple(row) for row in table.to_spark().collect()] == [(1, 10, None)]


def test_views_of_changes(lake: lakebed.Lake) -> None:
    """The audit log and an incremental read come as DataFrames too."""
    table = lake.create_table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": [1], "v": [10]}, schema=table.arrow_schema))
    table.write(pa.table({"id": [2], "v": [20]}, schema=table.arrow_schema))
    log = lake.table("t$audit_log").to_spark()
    assert sorted(tuple(row) for row in log.collect()) == [("+I", 1, 10), ("+I", 2, 20)]
    between = table.with_options({"incremental-between": "1,2"}).to_spark()
    assert [tuple(row) for row in between.collect()] == [(2, 20)]


def test_a_table_in_memory_is_refused_when_large(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers can not see the memory of this process: that is said, not found out in a task."""
    lake = lakebed.connect("memory://spark-reading", spark=spark)
    table = lake.create_table("t", {"id": "INT"})
    table.write(pa.table({"id": [1]}, schema=table.arrow_schema))
    assert table.to_spark().count() == 1
    monkeypatch.setattr(read, "LOCAL_ROWS", -1)
    with pytest.raises(lakebed.errors.Unsupported, match="memory"):
        table.to_spark()
