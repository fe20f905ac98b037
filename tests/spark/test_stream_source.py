"""Tables as streams of Spark queries: every event once and in order, whatever happens to the query or the table."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.schema.changes import AddColumn, RenameColumn

COLUMNS = {"id": "BIGINT NOT NULL", "v": "INT"}


@pytest.fixture
def table(lake: lakebed.Lake) -> lakebed.Table:
    """A table that tells its changes."""
    options = {"bucket": "2", "changelog-producer": "lookup"}
    return lake.create_table("t", COLUMNS, primary_key=["id"], options=options)


def write(table: lakebed.Table, *rows: tuple[int, int]) -> None:
    ids, values = zip(*rows, strict=True)
    table.write(pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.int32())}))


def sink(place: Path) -> Callable[[Any, int], None]:
    """Keeps each batch in a file of its own, so that one that comes again replaces itself; fails while told to."""
    directory = str(place)
    Path(directory).mkdir(exist_ok=True)

    def keep(frame: Any, batch_id: int) -> None:
        rows = [list(row) for row in frame.collect()]
        fails = Path(directory) / "fail"
        if fails.exists() and batch_id >= int(fails.read_text()):
            raise RuntimeError("the sink is broken")
        (Path(directory) / f"{batch_id:04}.json").write_text(json.dumps(rows, default=str))

    return keep


def kept(place: Path) -> list[list[list[Any]]]:
    return [json.loads(file.read_text()) for file in sorted(place.glob("*.json"))]


def started(frame: Any, home: Path, **trigger: Any) -> Any:
    writer = frame.writeStream.option("checkpointLocation", str(home / "checkpoint"))
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.foreachBatch(sink(home / "out")).start()


def drained(frame: Any, home: Path) -> list[list[list[Any]]]:
    """The batches of a query that reads what is there now."""
    home.mkdir(exist_ok=True)
    started(frame, home, availableNow=True).awaitTermination()
    return kept(home / "out")


def by_key(batches: list[list[list[Any]]]) -> dict[int, list[Any]]:
    events = [row for batch in batches for row in batch]
    return {key: [(kind, value) for kind, other, value in events if other == key] for _, key, _ in events}


def test_state_first_then_changes(table: lakebed.Table, tmp_path: Path) -> None:
    """A query brings the table, then every change with its old row, run after run; if it comes too late, it says so."""
    write(table, (1, 1), (2, 2))
    frame = table.read_stream()
    assert frame.isStreaming
    assert frame.columns == ["rowkind", "id", "v"]
    assert by_key(drained(frame, tmp_path / "q")) == {1: [("+I", 1)], 2: [("+I", 2)]}
    write(table, (1, 5))
    table.write(pa.table({"id": [2], "v": pa.array([2], pa.int32()), "kind": ["-D"]}), row_kind="kind")
    batches = drained(table.read_stream(), tmp_path / "q")
    assert by_key(batches[1:]) == {1: [("-U", 1), ("+U", 5)], 2: [("-D", 2)]}
    assert len(batches) == 2
    for number in range(2):
        write(table, (1, number))
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(StreamingQueryException) as caught:
        drained(table.read_stream(), tmp_path / "q")
    assert "has expired" in str(caught.value)
    assert "start it with a new checkpoint directory" in str(caught.value)


def test_options_of_a_stream(table: lakebed.Table, tmp_path: Path) -> None:
    """Options by name or as keywords, columns, and a filter of events; what is wrong is said before Spark is asked."""
    for number in range(3):
        write(table, (1, number))
    options = {"scan.mode": "from-snapshot", "read.change-feed": "true"}
    frame = table.read_stream(["v"], [("rowkind", "=", "-U"), ("id", "=", 1)], options=options, scan_snapshot_id=1)
    assert frame.columns == ["rowkind", "v", "_change_type", "_commit_version", "_commit_timestamp"]
    rows = [row for batch in drained(frame, tmp_path / "q") for row in batch]
    assert [row[:4] for row in rows] == [["-U", 0, "update_preimage", 4], ["-U", 1, "update_preimage", 6]]
    assert table.read_stream(read_changelog=False).columns == ["id", "v"]
    with pytest.raises(InvalidOption, match="scan_mod"):
        table.read_stream(scan_mod="latest")
    with pytest.raises(InvalidArgument, match="for reads that end"):
        table.read_stream(scan_mode="latest-delta")
    with pytest.raises(InvalidArgument, match="does not change"):
        table.at(snapshot=1).read_stream()
    with pytest.raises(NotFound, match="`w`"):
        table.read_stream(["w"])


def test_a_table_in_memory_has_no_stream(spark: Any) -> None:
    """Spark's processes do not see this one's memory."""
    table = lakebed.connect("memory://stream", spark=spark).create_table("t", {"id": "INT"})
    with pytest.raises(Unsupported, match="in this process's memory"):
        table.read_stream()


def test_format_lakebed(spark: Any, table: lakebed.Table, tmp_path: Path) -> None:
    """`readStream.format("lakebed")` takes Paimon's options; kinds are shown if `read.changelog` or the name asks."""
    write(table, (1, 1))
    write(table, (1, 2))

    def load(path: str = table.location, **options: str) -> Any:
        return spark.readStream.format("lakebed").options(**{"scan.snapshot-id": "1"} | options).load(path)

    assert load().columns == ["id", "v"]
    assert drained(load(), tmp_path / "plain") == [[[1, 1], [1, 2]]]
    limited = load(**{"read.changelog": "true", "read.stream.maxFilesPerTrigger": "1"})
    assert drained(limited, tmp_path / "limited") == [[["+I", 1, 1]], [["-U", 1, 1], ["+U", 1, 2]]]
    reader = spark.readStream.format("lakebed").schema("v int, rowkind string")
    assert drained(reader.load(table.location), tmp_path / "schema") == [[[2, "+I"]]]
    since = spark.readStream.format("lakebed").option("scan.timestamp-millis", "1").load(table.location + "$audit_log")
    assert since.columns == ["rowkind", "id", "v"]
    shown = spark.read.format("lakebed").option("read.changelog", "true").load(table.location)
    assert [tuple(row) for row in shown.collect()] == [("+I", 1, 2)]


def test_a_query_that_fails_in_its_batches_loses_nothing(table: lakebed.Table, tmp_path: Path) -> None:
    """After failures inside snapshots and in the first batch, with new commits between, each event came once."""
    for number in range(3):
        write(table, (1, number), (3, number))
    home = tmp_path / "q"
    home.mkdir()
    limit = {"read.stream.maxFilesPerTrigger": 1}
    for fails_at in (0, 2):
        sink(home / "out")
        (home / "out" / "fail").write_text(str(fails_at))
        with pytest.raises(StreamingQueryException):
            started(table.read_stream(options=limit), home, availableNow=True).awaitTermination()
        write(table, (1, 10 + fails_at))
    (home / "out" / "fail").unlink()
    batches = drained(table.read_stream(options=limit), home)
    pairs = [pair for old, new in pairwise([2, 10, 12]) for pair in (("-U", old), ("+U", new))]
    assert by_key(batches) == {1: [("+I", 2), *pairs], 3: [("+I", 2)]}


def test_a_consumer_protects_what_it_has_not_read(table: lakebed.Table, tmp_path: Path) -> None:
    """Progress is kept in the table: snapshots stay until they are read, and a query of its own goes on there."""
    write(table, (1, 1))
    write(table, (1, 2))
    options = {"consumer-id": "me", "read.stream.maxFilesPerTrigger": 1, "scan.snapshot-id": 1}
    drained(table.read_stream(options=options), tmp_path / "q")
    # Spark says that a batch is done when it plans the next one.
    assert table._opened.context.stores.consumers.next_snapshot("me") == 4
    write(table, (1, 3))
    table.expire_snapshots(retain_max=1, retain_min=1)
    batches = drained(table.read_stream(consumer_id="me"), tmp_path / "other")
    assert by_key(batches) == {1: [("-U", 1), ("+U", 2), ("-U", 2), ("+U", 3)]}


def test_a_running_query_goes_on_while_columns_change(table: lakebed.Table, tmp_path: Path) -> None:
    """It shows the columns it began with; started again from a new DataFrame it shows those of today."""
    write(table, (1, 1))
    query = started(table.read_stream(), tmp_path, processingTime="0 seconds")
    try:
        query.processAllAvailable()
        table.alter(RenameColumn("v", "value"), AddColumn("note", "STRING"))
        rows = {"id": [1], "value": pa.array([2], pa.int32()), "note": ["x"]}
        table.write(pa.table(rows))
        query.processAllAvailable()
    finally:
        query.stop()
    table.write(pa.table({**rows, "note": ["y"]}))
    frame = table.read_stream()
    assert frame.columns == ["rowkind", "id", "value", "note"]
    batches = drained(frame, tmp_path)
    assert batches[:2] == [[["+I", 1, 1]], [["-U", 1, 1], ["+U", 1, 2]]]
    assert batches[2] == [["-U", 1, 2, "x"], ["+U", 1, 2, "y"]]


@pytest.mark.parametrize("producer", ["lookup", pytest.param("full-compaction", marks=pytest.mark.nightly)])
def test_a_stream_into_another_table_makes_the_same_table(lake: lakebed.Lake, tmp_path: Path, producer: str) -> None:
    """Changes of one table, written to another by their kinds, give the same rows, whatever the limits."""
    options = {"bucket": "3", "changelog-producer": producer}
    source = lake.create_table("source", COLUMNS, primary_key=["id"], options=options)
    target = lake.create_table("target", COLUMNS, primary_key=["id"], options={"bucket": "2"})
    for number in range(6):
        ids = pa.array(range(number, number + 20), pa.int64())
        kinds = pa.array(["-D" if key % 7 == number else "+I" for key in ids.to_pylist()])
        values = pa.array([number] * 20, pa.int32())
        source.write(pa.table({"id": ids, "v": values, "kind": kinds}), row_kind="kind")
        if number % 3 == 2:
            frame = source.read_stream(read_stream_max_files_per_trigger=2)
            query = target.write_stream(frame, checkpoint=tmp_path / "c", trigger={"availableNow": True})
            query.awaitTermination()
    found, expected = (table.to_arrow().sort_by("id") for table in (target, source))
    assert found.to_pydict() == expected.to_pydict()
    assert found.num_rows > 15


def test_buckets_without_a_key_keep_their_order_beside_a_compactor(lake: lakebed.Lake, tmp_path: Path) -> None:
    """A query that follows a table of buckets without a key gets each bucket's rows in the order of their writing."""
    options = {"bucket": "2", "bucket-key": "id", "write-only": "true", "compaction.min.file-num": "2"}
    table = lake.create_table("t", {"id": "BIGINT", "v": "INT"}, options=options)
    write(table, *((key, 0) for key in range(8)))
    compactor, is_over = table.with_options({"write-only": "false"}), threading.Event()
    compactions: list[Any] = []

    def compact() -> None:
        while not is_over.wait(0.05):
            compactions.append(compactor.compact(full=True))
        compactions.append("over")

    beside = threading.Thread(target=compact)
    query = started(table.read_stream(read_stream_max_files_per_trigger=3), tmp_path, processingTime="0 seconds")
    beside.start()
    try:
        for number in range(1, 30):
            write(table, *((key, number) for key in range(8)))
        query.processAllAvailable()
    finally:
        is_over.set()
        beside.join()
        query.stop()
    assert compactions[-1] == "over"  # it met no error
    assert any(compactions[:-1])
    found = by_key(kept(tmp_path / "out"))
    assert found == {key: [("+I", number) for number in range(30)] for key in range(8)}
