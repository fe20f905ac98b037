"""The streaming source, driven as Spark drives it: what a batch takes, and that a query may die anywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark_types
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows, ReadMinRows
from tests.unit.spark.stream_engine import Crash, Engine, Events

import lakebed
from lakebed.checksums import unsealed
from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported
from lakebed.schema.changes import AddColumn, DropColumn, RenameColumn, SetOption, UpdateColumnType
from lakebed.spark.stream.batches import StreamOffset, task_pieces
from lakebed.spark.stream.columns import stream_schema
from lakebed.spark.stream.source import TableStreamReader, stream_columns, stream_reader
from lakebed.table.plans import plan_stream

KEYED = {"id": "BIGINT NOT NULL", "v": "INT"}


def keyed(producer: str = "none", **options: str) -> lakebed.Table:
    lake = lakebed.connect(f"memory://{uuid4()}")
    return lake.create_table(
        "t", KEYED, primary_key=["id"], options={"bucket": "2", "changelog-producer": producer, **options}
    )


def appended(**options: str) -> lakebed.Table:
    return lakebed.connect(f"memory://{uuid4()}").create_table("t", {"id": "BIGINT", "v": "INT"}, options=options)


def write(table: lakebed.Table, *rows: Any) -> None:
    """Rows as (id, v), or (kind, id, v)."""
    kinds, ids, values = zip(*(row if len(row) == 3 else ("+I", *row) for row in rows), strict=True)
    columns = {"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.int32())}
    if table.primary_key:
        table.write(pa.table(columns | {"kind": pa.array(kinds)}), row_kind="kind")
    else:
        table.write(pa.table(columns))


def followed(table: lakebed.Table, options: dict[str, Any] | None = None) -> Events:
    """What the same stream brings in a Python loop."""
    return [tuple(row.values()) for part in table.follow(options=options) for row in part.to_pylist()]


def by_key(events: Events) -> dict[Any, Events]:
    return {key: [event for event in events if event[1] == key] for key in {event[1] for event in events}}


def replayed(events: Events) -> dict[Any, Any]:
    state: dict[Any, Any] = {}
    for kind, key, value, *_ in events:
        if kind in ("-U", "-D"):
            state.pop(key, None)
        else:
            state[key] = value
    return state


def rows_of(table: lakebed.Table) -> dict[Any, Any]:
    return {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}


# --- what a batch takes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scan.mode": "latest"},
        {"scan.mode": "latest-full"},
        {"scan.mode": "compacted-full"},
        {"scan.mode": "from-snapshot", "scan.snapshot-id": "3"},
        {"scan.snapshot-id": "3"},
        {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "3"},
        {"scan.mode": "from-timestamp", "scan.timestamp-millis": "1"},
        {"scan.mode": "from-creation-timestamp", "scan.creation-time-millis": "1"},
        {"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": "1"},
        {"scan.mode": "incremental"},
    ],
    ids=str,
)
@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_every_mode_begins_where_it_should(options: dict[str, str], producer: str) -> None:
    """8.1: a query sees what a Python loop sees that begins in the same mode, then what comes later."""
    table = keyed(producer)
    for number in range(4):
        write(table, (1, number), (2, number), (10 + number, number))
    stream = table.follow(options=options)
    expected = [tuple(row.values()) for part in stream for row in part.to_pylist()]
    engine = Engine(table, options).drain()
    assert by_key(engine.events) == by_key(expected)
    write(table, ("-D", 1, 3), (20, 20))
    expected += [tuple(row.values()) for part in stream for row in part.to_pylist()]
    assert by_key(engine.drain().events) == by_key(expected)


@pytest.mark.parametrize("mode", ["latest-delta", "incremental"])
def test_modes_for_reads_that_end_are_refused(mode: str) -> None:
    """8.1: what has no stream says so before a query starts."""
    options = {"scan.mode": mode} | ({"incremental-between": "1,2"} if mode == "incremental" else {})
    with pytest.raises(InvalidArgument, match="for reads that end"):
        Engine(keyed(), options).run()


def test_a_batch_takes_all_there_is() -> None:
    """Without limits one batch spans all snapshots, and then there is none until something comes."""
    table = keyed("lookup")
    engine = Engine(table, {"scan.mode": "latest"})
    assert not engine.run()
    for number in range(3):
        write(table, (1, number))
    assert engine.run()
    assert engine.events == [("+I", 1, 0), ("-U", 1, 0), ("+U", 1, 1), ("-U", 1, 1), ("+U", 1, 2)]
    assert not engine.run()


def test_a_new_query_keeps_its_beginning() -> None:
    """Spark asks for the beginning again until there is a batch: what was committed meanwhile is not passed over."""
    table = keyed()
    write(table, (1, 1))
    engine = Engine(table, {"scan.mode": "latest"})
    assert not engine.run()
    write(table, (2, 2))
    assert engine.drain().events == [("+I", 2, 2)]


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        ({"read.stream.maxFilesPerTrigger": "1"}, [1, 1, 1, 1, 1, 1]),
        ({"read.stream.maxFilesPerTrigger": "4"}, [4, 2]),
        ({"read.stream.maxRowsPerTrigger": "3"}, [3, 3]),
        ({"read.stream.maxBytesPerTrigger": "1"}, [1, 1, 1, 1, 1, 1]),
        ({"read.stream.maxBytesPerTrigger": "1000000000", "read.stream.maxRowsPerTrigger": "5"}, [5, 1]),
    ],
)
def test_limits_end_a_batch_anywhere(limit: dict[str, str], sizes: list[int]) -> None:
    """8.2: no batch takes more than the options allow, also if that ends it inside a snapshot; nothing is lost."""
    table = keyed()
    for number in range(3):
        write(table, (1, number), (3, number))  # one row in each of the two buckets
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
    engine = Engine(table, options | limit).drain()
    assert [len(batch) for batch in engine.batches] == sizes
    assert by_key(engine.events) == by_key(followed(table, options))


def test_a_limit_is_told_to_spark() -> None:
    """Spark hands back the limit it was given, or asks for everything: then limits do not count."""
    table = keyed()
    for number in range(3):
        write(table, (number, number))
    for options, expected in (
        ({}, ReadAllAvailable()),
        ({"read.stream.maxFilesPerTrigger": "2"}, ReadMaxFiles(2)),
        ({"read.stream.maxRowsPerTrigger": "7", "read.stream.maxFilesPerTrigger": "2"}, ReadMaxRows(7)),
        ({"read.stream.minRowsPerTrigger": "9", "read.stream.maxTriggerDelayMs": "5"}, ReadMinRows(9)),
    ):
        assert Engine(table, options).start().getDefaultReadLimit() == expected
    limited = {"scan.snapshot-id": "1", "read.stream.maxRowsPerTrigger": "1"}
    assert [len(batch) for batch in Engine(table, limited).drain(is_once=True).batches] == [3]


def test_waiting_for_enough_rows() -> None:
    """8.2: fewer rows than asked for wait, but not longer than allowed; a first state does not wait."""
    table = keyed()
    write(table, (1, 1))
    patient = {"read.stream.minRowsPerTrigger": "3", "read.stream.maxTriggerDelayMs": "3600000"}
    engine = Engine(table, patient)
    assert engine.run()  # the state
    write(table, (2, 2))
    assert not engine.run()
    write(table, (3, 3), (4, 4))
    assert engine.run()
    assert len(engine.batches[-1]) == 3
    write(table, (5, 5))
    assert not engine.run()
    engine.kill()
    engine.options = patient | {"read.stream.maxTriggerDelayMs": "1"}
    time.sleep(0.01)
    assert engine.run()
    write(table, (6, 6))
    engine.kill()
    engine.options = patient
    engine.start().prepareForTriggerAvailableNow()
    assert engine.drain().batches[-1] == [("+I", 6, 6)]


def test_available_now_ends() -> None:
    """A query of what is there now takes its batches and ends, although more is written meanwhile."""
    table = keyed()
    for number in range(4):
        write(table, (1, number))
    engine = Engine(table, {"read.stream.maxFilesPerTrigger": "1", "scan.snapshot-id": "1"})
    engine.start().prepareForTriggerAvailableNow()
    while engine.run():
        write(table, (1, 99))
    assert [event[2] for event in engine.events] == [0, 1, 2, 3]
    engine.kill()
    engine.start().prepareForTriggerAvailableNow()
    assert [event[2] for event in engine.drain().events] == [0, 1, 2, 3, 99, 99, 99, 99]


def test_a_watermark_ends_the_stream() -> None:
    """`scan.bounded.watermark`: nothing of snapshots past it is read."""
    table = keyed()
    for number in range(3):
        write(table, (1, number))
    stores = table._opened.context.stores
    path = stores.paths.snapshot_file(3)
    members = unsealed(json.loads(stores.fileio.read_bytes(path)))
    stores.fileio.overwrite(path, json.dumps({**members, "watermark": 70}).encode())
    for bound, values in (("69", [0, 1]), ("70", [0, 1, 2])):
        engine = Engine(table, {"scan.snapshot-id": "1", "scan.bounded.watermark": bound}).drain()
        assert [event[2] for event in engine.events] == values


# --- what survives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash_at", ["planned", "read"])
@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
def test_a_query_that_dies_in_every_batch_loses_nothing(producer: str, crash_at: str) -> None:
    """Killed in every batch, also inside snapshots and in the first one, it brings every event once and in order."""
    table = keyed(producer)
    for number in range(3):
        write(table, (1, number), (3, number), (5 + number, number))
    expected = by_key(followed(table))
    engine = Engine(table, {"read.stream.maxFilesPerTrigger": "1"})
    while True:
        with suppress(Crash):
            if not engine.run(crash_at=crash_at):
                break
        assert engine.run()
        engine.kill()
    assert by_key(engine.events) == expected
    assert len(engine.batches) > 1


def test_the_first_batch_comes_again_although_the_table_went_on() -> None:
    """What was planned for the first batch is read after a restart, whatever the mode would begin with by then."""
    for options in ({}, {"scan.mode": "latest"}):
        table = keyed()
        write(table, (1, 1))
        engine = Engine(table, options)
        engine.run()
        if options:
            write(table, (2, 2))
        else:
            engine = Engine(table, options)
        with suppress(Crash):
            engine.run(crash_at="planned")
        write(table, (3, 3))
        write(table, (4, 4))
        first = ("+I", 2, 2) if options else ("+I", 1, 1)
        assert engine.drain().batches == [[first], [("+I", 3, 3), ("+I", 4, 4)]]


def test_options_that_cut_otherwise_are_noticed_inside_a_snapshot() -> None:
    """A position counts pieces: where these are others now, going on would lose rows or bring them twice."""
    table = appended(**{"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"})
    for number in range(4):
        write(table, (number, number))
    engine = Engine(table, {"read.stream.maxFilesPerTrigger": "1"})
    assert engine.run()
    engine.kill()
    table.alter(SetOption("source.split.target-size", "1 gb"))
    with pytest.raises(InvalidArgument, match="cut into other pieces"):
        engine.run()
    engine.kill()
    table.alter(SetOption("source.split.target-size", "1 b"))
    assert sorted(event[1] for event in engine.drain().events) == [0, 1, 2, 3]


def test_an_expired_position_says_how_to_go_on() -> None:
    """8.1: changes that are gone are an error that names the ways on, for the driver and for tasks."""
    table = keyed(**{"write-only": "true"})
    write(table, (1, 1))
    engine = Engine(table).drain()
    for number in range(4):
        write(table, (1, number))
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(NotFound, match="has expired") as caught:
        engine.run()
    assert "new checkpoint directory" in caught.value.hint
    assert "consumer-id" in caught.value.hint
    planned = Engine(table, {"scan.snapshot-id": "5"})
    with suppress(Crash):
        planned.run(crash_at="planned")
    write(table, (1, 9))
    partitions = planned.start().partitions(planned._begin(), json.loads(planned.offsets[0]))
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.with_options({"write-only": "false"}).compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(NotFound, match="has expired"):
        list(planned.start().read(partitions[0]))


def test_a_rollback_is_noticed() -> None:
    """A stream that has read what is not true any more stops, also if the ids it knows are there again."""
    table = keyed()
    for number in range(3):
        write(table, (1, number))
    engine = Engine(table).drain()
    table.rollback_to(2)
    with pytest.raises(NotFound, match="rolled back"):
        engine.run()
    write(table, (1, 9))
    with pytest.raises(NotFound, match="rolled back"):
        engine.run()


def test_a_consumer_has_only_whole_snapshots() -> None:
    """8.2: progress is recorded when a batch is done, never inside a snapshot or before the first state is through."""
    table = keyed(**{"source.split.target-size": "1 b"})
    write(table, (1, 0), (3, 0))
    engine = Engine(table, {"consumer-id": "me", "read.stream.maxFilesPerTrigger": "1"})
    consumers = table._opened.context.stores.consumers
    assert engine.run()
    assert consumers.next_snapshot("me") is None
    assert engine.run()
    assert consumers.next_snapshot("me") == 2
    write(table, (1, 1), (3, 1))
    assert engine.run()
    assert consumers.next_snapshot("me") == 2
    assert engine.run()
    assert consumers.next_snapshot("me") == 3
    write(table, (1, 2))
    another = Engine(table, {"consumer-id": "me"}).drain()  # a query of its own goes on where the consumer stands
    assert another.events == [("+I", 1, 2)]


def test_compactions_make_no_batches() -> None:
    """Snapshots without changes are passed over in silence, a few at a time, and may expire meanwhile."""
    table = keyed(**{"write-only": "true"})
    write(table, (1, 0))
    engine = Engine(table).drain()
    compactor = table.with_options({"write-only": "false"})
    write(table, (1, 1))
    assert engine.run()
    done = engine.commits
    compactor.compact(full=True)
    assert not engine.run()
    table.write(table.arrow_schema.empty_table(), overwrite=True)
    assert not engine.run()
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not engine.run()
    write(table, (7, 7))
    assert engine.run()
    assert engine.batches[-1] == [("+I", 7, 7)]
    for _ in range(6):
        table.write(table.arrow_schema.empty_table(), overwrite=True)
        write(table, (8, 8))
        engine.drain()
    assert engine.commits == done + 7


def test_many_quiet_snapshots_move_the_checkpoint() -> None:
    """A stream that sees nothing but quiet snapshots does not stay so far behind that its position expires."""
    table = keyed()
    write(table, (1, 0))
    engine = Engine(table).drain()
    for number in range(7):
        table.write(pa.table({"id": [number], "v": pa.array([1], pa.int32())}), overwrite=True)
    while engine.run():
        assert engine.batches[-1] == []
    assert StreamOffset.from_members(json.loads(engine.offsets[-1])).position.snapshot > 4


CHANGES: dict[str, tuple[list[Any], Events]] = {
    "added": ([AddColumn("w", "STRING")], [("+I", 2, 2)]),
    "renamed": ([RenameColumn("v", "value")], [("+I", 2, 2)]),
    "dropped": ([DropColumn("v")], [("+I", 2, None)]),
    "widened": ([UpdateColumnType("v", "BIGINT")], [("+I", 2, 2)]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_goes_on_while_columns_change(change: str) -> None:
    """A running query keeps the columns it began with; a new DataFrame has those of today."""
    changes, expected = CHANGES[change]
    table = keyed("lookup")
    write(table, (1, 1))
    engine = Engine(table).drain()
    old = engine.start()._columns.wanted
    table.alter(*changes)
    values = {"v": [2], "w": ["x"], "value": [2], "id": [2]}
    schema = table.schema.arrow_schema
    table.write(pa.table({name: pa.array(values[name], schema.field(name).type) for name in schema.names}))
    engine.drain()
    assert engine.batches[-1] == expected
    reader = stream_reader(table, {"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}, old)
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, ReadAllAvailable())
    again = [row for part in reader.partitions(begin, end) for batch in reader.read(part) for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in again] == expected
    engine.kill()
    assert engine.start()._columns.wanted.names == ["rowkind", *table.schema.field_names]


def test_values_that_do_not_fit_the_old_column_are_an_error() -> None:
    """A column that became wider brings values that a running query can not show: it stops, and says where."""
    table = keyed()
    write(table, (1, 1))
    engine = Engine(table).drain()
    table.alter(UpdateColumnType("v", "BIGINT"))
    table.write(pa.table({"id": [2], "v": [1 << 40]}))
    with pytest.raises(InvalidData, match="column `v` was int32 when the stream began") as caught:
        engine.run()
    assert "start the query again with its checkpoint" in caught.value.hint
    engine.kill()
    assert engine.drain().events == [("+I", 1, 1), ("+I", 2, 1 << 40)]


EVOLVED: list[tuple[str, str, Any, Any]] = [
    ("INT", "BIGINT", 7, 7),
    ("FLOAT", "DOUBLE", 0.5, 0.5),
    ("FLOAT", "DOUBLE", float("nan"), float("nan")),
    ("FLOAT", "DOUBLE", 0.1, InvalidData),
    ("DECIMAL(5, 2)", "DECIMAL(9, 2)", Decimal("1.25"), Decimal("1.25")),
    ("DECIMAL(5, 2)", "DECIMAL(9, 2)", Decimal("1234567.25"), InvalidData),
    ("INT", "STRING", "12", 12),
    ("INT", "STRING", "a dozen", InvalidData),
    ("VARCHAR(3)", "VARCHAR(9)", "longer", "longer"),
    ("TIMESTAMP(3)", "TIMESTAMP(9)", datetime(2024, 1, 2), datetime(2024, 1, 2)),
    ("DATE", "TIMESTAMP(3)", datetime(2024, 1, 2, 3), InvalidData),
]


@pytest.mark.parametrize(("old", "new", "value", "expected"), EVOLVED)
def test_values_of_a_changed_type_come_whole_or_not_at_all(old: str, new: str, value: Any, expected: Any) -> None:
    """A running query shows a newer value as its old type if nothing is lost by that."""
    table = lakebed.connect(f"memory://{uuid4()}").create_table("t", {"id": "INT", "v": old})
    engine = Engine(table)
    engine.run()
    table.alter(UpdateColumnType("v", new))
    schema = table.schema.arrow_schema
    table.write(pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([value], schema.field("v").type)}))
    if expected is InvalidData:
        with pytest.raises(InvalidData, match=r"column `v` was .* when the stream began"):
            engine.run()
    else:
        assert engine.run()
        (row,) = engine.events
        assert repr(row[2]) == repr(expected)


def test_members_of_a_row_that_change() -> None:
    """Inside a row, members may come, go and be renamed; one of another type is an error."""
    table = lakebed.connect(f"memory://{uuid4()}").create_table("t", {"r": "ROW<a INT, b STRING>"})
    engine = Engine(table)
    engine.run()
    table.alter(AddColumn(("r", "c"), "INT"), RenameColumn(("r", "b"), "bb"))
    table.write(pa.table({"r": pa.array([{"a": 1, "bb": "x", "c": 2}], table.schema.arrow_schema.field("r").type)}))
    assert engine.drain().events == [("+I", {"a": 1, "b": "x"})]
    table.alter(UpdateColumnType(("r", "a"), "BIGINT"))
    table.write(pa.table({"r": pa.array([{"a": 1 << 40}], table.schema.arrow_schema.field("r").type)}))
    with pytest.raises(InvalidData, match="column `r` of table"):
        engine.run()


def test_a_column_that_could_not_be_null_when_the_stream_began() -> None:
    """Spark does not look for nulls where it was told that there are none: they are refused."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    table = lake.create_table("t", {"id": "INT", "v": "INT NOT NULL"})
    table.write(pa.table({"id": pa.array([1], pa.int32()), "v": pa.array([1], pa.int32())}))
    reader = stream_reader(table, {"scan.snapshot-id": "1"}, stream_columns(table, {}))
    begin = reader.initialOffset()
    table.alter(DropColumn("v"))
    table.write(pa.table({"id": pa.array([2], pa.int32())}))
    partitions = reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))
    with pytest.raises(InvalidData, match="column `v` was NOT NULL when the stream began"):
        [list(reader.read(part)) for part in partitions]


# --- columns -----------------------------------------------------------------------------------------------------


@pytest.fixture
def updated() -> lakebed.Table:
    table = keyed("lookup")
    write(table, (1, 1))
    write(table, (1, 2))
    write(table, ("-D", 1, 2))
    return table


def fields(**columns: spark_types.DataType) -> spark_types.StructType:
    return spark_types.StructType([spark_types.StructField(name, kind) for name, kind in columns.items()])


def shown(table: lakebed.Table, wanted: spark_types.StructType, **options: str) -> list[tuple[Any, ...]]:
    options = {"scan.snapshot-id": "1"} | {key.replace("__", "-").replace("_", "."): v for key, v in options.items()}
    reader = stream_reader(table, options, wanted)
    begin = reader.initialOffset()
    parts = reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert all(list(row) == wanted.names for row in rows)
    return [tuple(row.values()) for row in rows]


LONG, INT, TEXT = spark_types.LongType(), spark_types.IntegerType(), spark_types.StringType()


def test_without_kinds_there_are_no_retracts(updated: lakebed.Table) -> None:
    """8.2: a plain stream shows rows that came; `read.changelog`, or a column of kinds, brings those that went."""
    assert shown(updated, fields(id=LONG, v=INT)) == [(1, 1), (1, 2)]
    everything = [("+I", 1), ("-U", 1), ("+U", 2), ("-D", 2)]
    assert shown(updated, fields(rowkind=TEXT, v=INT), read_changelog="true") == everything
    assert shown(updated, fields(rowkind=TEXT, v=INT)) == everything
    assert shown(updated, fields(rowkind=TEXT)) == [(kind,) for kind, _ in everything]
    assert shown(updated, fields(id=LONG), read_changelog="true") == [(1,)] * 4
    names = stream_columns(updated, {"read.changelog": "true"}).names
    assert names == ["rowkind", "id", "v"]


def test_where_a_change_comes_from(updated: lakebed.Table) -> None:
    """`read.change-feed` tells the kind in words, the snapshot and its time."""
    context = plan_stream(updated, options={"read.change-feed": "true"}).context
    wanted = stream_schema(context, context.schema.fields)
    assert wanted.names == ["id", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    told = shown(updated, wanted, read_change__feed="true")
    words = ["insert", "update_preimage", "update_postimage", "delete"]
    assert [row[:4] for row in told] == list(zip([1] * 4, [1, 1, 2, 2], words, [2, 4, 4, 6], strict=True))
    times = {snapshot.id: snapshot.time_millis for snapshot in updated.snapshots()}
    assert [int(row[4].timestamp() * 1000) for row in told] == [times[row[3]] for row in told]


def test_columns_that_are_not_there(updated: lakebed.Table) -> None:
    """A schema of the user's own must name columns of the table, with their types."""
    with pytest.raises(InvalidArgument, match="no column `w`"):
        shown(updated, fields(w=INT))
    with pytest.raises(InvalidArgument, match=r"column `v` of table `default\.t` is int, not bigint"):
        shown(updated, fields(v=LONG))
    table = lakebed.connect(f"memory://{uuid4()}").create_table("t", {"_change_type": "INT"})
    context = plan_stream(table, options={"read.change-feed": "true"}).context
    with pytest.raises(InvalidArgument, match="would be there twice"):
        stream_schema(context, context.schema.fields)


def test_views_and_branches() -> None:
    """A stream of `t$audit_log` is one with kinds; of a branch it is that branch's; other views have none."""
    lake = lakebed.connect(f"memory://{uuid4()}")
    table = lake.create_table("t", KEYED, primary_key=["id"], options={"bucket": "1"})
    write(table, (1, 1))
    table.create_tag("x")
    table.create_branch("b", tag="x")
    write(lake.table("t$branch_b"), (2, 2))
    assert Engine(lake.table("t$audit_log")).drain().events == [("+I", 1, 1)]
    assert stream_columns(lake.table("t$audit_log"), {}).names == ["rowkind", "id", "v"]
    for engine in (Engine(lake.table("t$branch_b")), Engine(table, {"branch": "b"})):
        assert engine.drain().events == [("+I", 1, 1), ("+I", 2, 2)]
    for name in ("t$binlog", "t$snapshots", "t$ro"):
        with pytest.raises(Unsupported):
            Engine(lake.table(name)).start()


def test_every_type_travels() -> None:
    """Batches have just the Arrow types that Spark expects of their columns, nested ones and nullability included."""
    moment = datetime(2024, 1, 2, 3, 4, 5)
    values = {
        "BIGINT NOT NULL": 1,
        "ARRAY<INT NOT NULL>": [1, 2],
        "MAP<STRING, INT>": [("k", 1)],
        "MULTISET<STRING>": [("k", 2)],
        "ROW<x INT, y TIMESTAMP(9)>": {"x": 1, "y": moment},
        "TIMESTAMP(9)": moment,
        "TIMESTAMP(3) WITH LOCAL TIME ZONE": moment.replace(tzinfo=UTC),
        "TIME(3)": moment.time(),
        "DATE": moment.date(),
        "DECIMAL(10, 2)": Decimal("1.50"),
        "CHAR(3)": "abc",
        "BINARY(2)": b"12",
        "BOOLEAN": True,
        "FLOAT": 0.5,
    }
    columns = {f"c{number}": kind for number, kind in enumerate(values)}
    table = lakebed.connect(f"memory://{uuid4()}").create_table("t", columns)
    arrays = [pa.array([value], part.type) for value, part in zip(values.values(), table.arrow_schema, strict=True)]
    table.write(pa.Table.from_arrays(arrays, schema=table.arrow_schema))
    wanted = stream_columns(table, {"read.changelog": "true"})
    reader = stream_reader(table, {"read.changelog": "true"}, wanted)
    begin = reader.initialOffset()
    (part,) = reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))
    (batch,) = reader.read(part)
    assert batch.schema.equals(to_arrow_schema(wanted, timezone="UTC"))
    assert list(batch.to_pylist()[0].values()) == ["+I", *values.values()]


# --- which task reads what ---------------------------------------------------------------------------------------


def test_a_bucket_is_read_by_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of a bucket stay together in their order; a state, and rows without buckets, are shared out."""
    monkeypatch.setattr("lakebed.spark.stream.batches._TASK_BYTES", 1)
    table = keyed(**{"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"})
    write(table, *((number, number) for number in range(20)))
    table.compact(full=True)
    for number in range(3):
        write(table, *((key, number) for key in range(20)))
    options = {"scan.snapshot-id": "3"}
    reader = Engine(table, options).start()
    begin = reader.initialOffset()
    parts = reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))
    assert len(parts) == 2
    for part in parts:
        rows = [row for batch in reader.read(part) for row in batch.to_pylist()]
        assert [row["v"] for row in rows] == [number for number in range(3) for _ in range(len(rows) // 3)]
    free = appended(**{"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"})
    for number in range(4):
        write(free, (number, number))
    for options in ({}, {"scan.snapshot-id": "1"}):
        reader = Engine(free, options).start()
        begin = reader.initialOffset()
        assert len(reader.partitions(begin, reader.latestOffset(begin, ReadAllAvailable()))) == 4
    assert task_pieces(plan_stream(free).context, ()) == []


def test_a_large_piece_without_buckets_is_shared_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece of many files is read by several tasks; each row once, and the next batch goes on behind it."""
    monkeypatch.setattr("lakebed.spark.stream.batches._TASK_BYTES", 1)
    monkeypatch.setattr("lakebed.spark.read._LEAST_TASK_BYTES", 1)
    table = appended()
    for number in range(4):
        write(table, (number, number))
    reader = Engine(table, {}).start()
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, ReadAllAvailable())
    parts = reader.partitions(begin, end)
    assert len(parts) == 4
    found = [row["id"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert sorted(found) == [0, 1, 2, 3]
    write(table, (9, 9))
    (after,) = reader.partitions(end, reader.latestOffset(end, ReadAllAvailable()))
    assert [row["id"] for batch in reader.read(after) for row in batch.to_pylist()] == [9]


@pytest.mark.parametrize("options", [{}, {"read.stream.maxFilesPerTrigger": "2"}, {"scan.snapshot-id": "1"}], ids=str)
def test_buckets_without_a_key_keep_the_order_of_writing(options: dict[str, str]) -> None:
    """Rows of a bucket come in the order in which they were written, whatever is compacted before and meanwhile."""
    table = appended(**{"bucket": "2", "bucket-key": "id"})
    engine = Engine(table, options)
    for number in range(12):
        write(table, *((key, number) for key in range(6)))
        if number > 5:
            engine.run()
    engine.drain()
    found = {key: [event[2] for event in events] for key, events in by_key(engine.events).items()}
    assert found == {key: list(range(12)) for key in range(6)}
    assert "COMPACT" in [snapshot.commit_kind for snapshot in table.snapshots()]


def test_an_overwrite_that_moves_keys_to_other_buckets() -> None:
    """Where overwrites are told, what was in a partition goes before anything comes, also with fewer buckets."""
    table = keyed(**{"bucket": "4"})
    write(table, *((key, 0) for key in range(12)))
    engine = Engine(table, {"streaming-read-overwrite": "true", "read.stream.maxFilesPerTrigger": "3"}).drain()
    table.alter(SetOption("bucket", "2"))
    rows = {"id": pa.array(range(12), pa.int64()), "v": pa.array([1] * 12, pa.int32())}
    table.write(pa.table(rows), overwrite=True)
    assert replayed(engine.drain().events) == rows_of(table) == dict.fromkeys(range(12), 1)
    whole = Engine(table, {"streaming-read-overwrite": "true", "scan.snapshot-id": "1"}).drain()
    assert [kind for kind, *_ in whole.events] == ["+I"] * 12 + ["-D"] * 12 + ["+I"] * 12


def test_how_often_a_quiet_table_is_looked_at() -> None:
    """`continuous.discovery-interval`, if it is set, spares the storage while nothing comes."""
    table = keyed()
    write(table, (1, 1))
    engine = Engine(table, {"continuous.discovery-interval": "1 h"})
    assert engine.run()
    assert not engine.run()
    write(table, (2, 2))
    assert not engine.run()
    engine.kill()
    assert engine.run()


# --- all of it ---------------------------------------------------------------------------------------------------

ROWS = st.lists(st.tuples(st.sampled_from(["+I", "+I", "-D"]), st.integers(0, 4), st.integers(0, 99)), max_size=6)
STEPS = st.lists(
    st.one_of(ROWS, st.sampled_from(["compact", "full", "read", "read", "planned", "kill"])), min_size=4, max_size=12
)


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@settings(max_examples=10, deadline=None)
@given(steps=STEPS, limit=st.sampled_from([None, 1, 2]), mode=st.sampled_from(["latest-full", "from-snapshot"]))
def test_what_a_query_brings_gives_the_table(producer: str, steps: list[Any], limit: int | None, mode: str) -> None:
    """Applied in their order, the events of a query that is killed now and then make up the table."""
    table = keyed(producer, **{"num-sorted-run.compaction-trigger": "3"})
    limits = {} if limit is None else {"read.stream.maxFilesPerTrigger": str(limit)}
    start = {"scan.snapshot-id": "1"} if mode == "from-snapshot" else {}
    engine = Engine(table, {"scan.mode": mode} | start | limits)
    acts: dict[str, Callable[[], Any]] = {
        "compact": table.compact,
        "full": lambda: table.compact(full=True),
        "read": engine.run,
        "planned": lambda: engine.run(crash_at="planned"),
        "kill": engine.kill,
    }
    for step in [*steps, "full"]:
        if isinstance(step, list):
            if step:
                write(table, *step)
        else:
            with suppress(Crash):
                acts[step]()
    engine.drain()
    assert replayed(engine.events) == rows_of(table)


def test_readers_travel_without_what_they_planned() -> None:
    """Tasks get the reader as it was made: no plan of the driver goes with it."""
    table = keyed()
    write(table, (1, 1))
    engine = Engine(table)
    assert isinstance(engine.start(), TableStreamReader)
    size = len(engine._worker)
    engine.drain()
    assert len(engine._worker) == size
