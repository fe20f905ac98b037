"""Envelopes, positions, progress, failures and the ends of Kafka batches."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.cdc.batches import ChunkMaker, description

import lakebed
from lakebed.cdc.batch.batch import position_of
from lakebed.cdc.envelope import Description, SourceName, chunks_from_arrow, chunks_to_arrow, decode_rows, encode_rows
from lakebed.cdc.progress import ProgressBoard, ProgressFile, SyncProgress
from lakebed.cdc.schema.backfill import fill_waiting
from lakebed.cdc.sources import open_source, source_class
from lakebed.cdc.sources.kafka.client import KafkaSettings
from lakebed.errors import InvalidArgument, InvalidData
from lakebed.options import LAKEBED_CDC_BACKFILL
from lakebed.schema.changes import AddColumn, SetOption
from lakebed.spark.errors import cause_of
from lakebed.spark.stream.query import query_id_of


def test_descriptions_and_chunks_survive_their_text() -> None:
    """What goes into an envelope comes out as it was."""
    described = description(
        {"id": "INT NOT NULL", "a": "ARRAY<DECIMAL(10, 2)>", "r": "ROW<x INT>"}, defaults={"a": "[]"}
    )
    assert Description.from_text(described.to_text()) == described
    chunks = [ChunkMaker().rows(described, ("+I", 1, None, None)), ChunkMaker().truncate(described)]
    assert chunks_from_arrow(chunks_to_arrow(chunks)) == chunks


def test_payloads_may_be_compressed_and_empty() -> None:
    """Any Arrow stream is a payload, also one of many batches or none."""
    rows = pa.record_batch({"a": pa.array([1, 2])})
    assert decode_rows(encode_rows(rows, "lz4")).equals(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema):
        pass
    assert decode_rows(bytes(sink.getvalue())).num_rows == 0
    with pytest.raises(InvalidData):
        decode_rows(b"nothing")


def test_a_description_that_is_none_is_an_error() -> None:
    """Text that is no description is not let through as a KeyError."""
    for text in ("", "[]", '{"columns": [{"name": "a"}]}'):
        with pytest.raises(InvalidData):
            Description.from_text(text)


def test_the_position_is_the_last_line_of_sparks_note(tmp_path: Path) -> None:
    """Id and offsets are read from the checkpoint; a note that is not there is no position."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text('{"id":"abc"}')
    (tmp_path / "offsets" / "7").write_text('v1\n{"batchWatermarkMs":0}\n{"lsn":"0/1"}')
    spark: Any = None
    assert query_id_of(spark, str(tmp_path)) == "abc"
    assert position_of(spark, f"file://{tmp_path}", 7) == '{"lsn":"0/1"}'
    assert position_of(spark, str(tmp_path), 8) is None


def test_progress_has_rates_and_plain_data() -> None:
    """Rows per second are those of the last half minute."""
    moments = iter([0.0, 10.0])
    board = ProgressBoard(lambda: next(moments))
    board.table_committed("lk.t", 5, "stream", 1, 2.0)
    board.batch_done(5, "stream", "p1")
    board.batch_done(50, "", None)
    board.table_skipped("lk.x", "no key")
    now = board.now
    assert (now.rows, now.rows_per_second, now.lag_seconds) == (55, 5.0, 2.0)
    assert (now.position, now.phase, now.skipped) == ("p1", "stream", {"lk.x": "no key"})
    assert json.loads(json.dumps(now.to_json()))["tables"][0]["table"] == "lk.t"


def test_progress_comes_through_a_file_beside_the_checkpoint(tmp_path: Path) -> None:
    """What another process has told last is read as it was; a file that is not there tells of a beginning."""
    file = ProgressFile(str(tmp_path / "checkpoint"))
    assert file.read() == SyncProgress()
    board = pickle.loads(pickle.dumps(ProgressBoard()))
    board.table_committed("lk.t", 5, "copy", 0, None)
    board.batch_done(5, "copy", "p1")
    board.table_skipped("lk.x", "no key")
    for _ in range(2):
        file.write(board.now)
        assert file.read() == board.now
    file.remove()
    assert file.read() == SyncProgress()


def test_our_error_is_found_behind_sparks() -> None:
    """Also if it comes as the text of a worker's stack."""
    ours = InvalidData("bad row", hint="mend it")
    wrapped = RuntimeError("job failed")
    wrapped.__cause__ = ours
    assert cause_of(wrapped) is ours
    text = "Traceback ...\nlakebed.errors.InvalidData: a text\nof two lines\n  -> mend it\n\n\tat org.apache"
    found = cause_of(RuntimeError(text))
    assert isinstance(found, InvalidData)
    assert (found.message, found.hint) == ("a text\nof two lines", "mend it")
    other = RuntimeError("lakebed.errors.Nothing: x\n  -> y")
    assert cause_of(other) is other


def test_sources_are_found_by_name_and_tell_no_secret() -> None:
    """A mistyped source brings the one that was meant; what a source was given is not in its text."""
    with pytest.raises(InvalidArgument) as caught:
        source_class("postgre")
    assert "postgres" in caught.value.hint
    source = open_source("kafka", bootstrap_servers="h:1", topics="t", properties={"sasl.password": "hidden"})
    shown = repr(source) + str(source.reader_options())
    assert "hidden" not in shown
    path = KafkaSettings.from_text(source.reader_options()["settings"]).properties_file
    assert path is not None
    assert Path(path).stat().st_mode & 0o077 == 0
    source.close()
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "options",
    [
        {"topics": "t", "topic_pattern": "x"},
        {},
        {"topics": "t", "start": "middle"},
        {"topics": "t", "format": "jsn"},
        {"topics": "t", "messages_per_batch": 0},
        {"topic_pattern": "("},
    ],
)
def test_wrong_settings_of_kafka_are_refused(options: dict[str, Any]) -> None:
    """Before anything is connected."""
    with pytest.raises(InvalidArgument):
        open_source("kafka", bootstrap_servers="h:1", **options)


def test_batches_of_kafka_are_shared_by_what_waits() -> None:
    """Every partition gets on, none goes beyond its end, and new ones begin where they begin."""
    pytest.importorskip("pyspark")
    from lakebed.cdc.sources.kafka.spark_source import from_json, next_ends, to_json

    start, lows = {("a", 0): 5, ("a", 1): 0}, {("a", 0): 0, ("a", 1): 0, ("b", 0): 3}
    ends = {("a", 0): 105, ("a", 1): 1, ("b", 0): 13}
    assert next_ends(start, lows, ends, None) == ends
    some = next_ends(start, lows, ends, 11)
    assert some == {("a", 0): 14, ("a", 1): 1, ("b", 0): 4}
    assert from_json(to_json(some)) == some
    assert next_ends(ends, lows, {("a", 0): 105}, 10) == ends


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_rows_are_filled_whatever_the_merge_engine(tmp_path: Path, engine: str) -> None:
    """Only the new column changes: sums are not added twice. The note of what was to be done is gone afterwards."""
    lake = lakebed.connect(tmp_path)
    options = {"bucket": "1", "merge-engine": engine}
    if engine == "aggregation":
        options["fields.v.aggregate-function"] = "sum"
    table = lake.create_table("t", {"id": "INT NOT NULL", "v": "INT"}, primary_key=["id"], options=options)
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([10, 20], pa.int32())}))
    table.alter(AddColumn("w", "STRING"), SetOption(LAKEBED_CDC_BACKFILL.key, '{"2": "x", "99": "gone"}'))  # type: ignore[arg-type]
    assert fill_waiting(table, "user", 3, None)
    assert not fill_waiting(table, "user", 3, None)
    assert [tuple(row.values()) for row in table.to_arrow().to_pylist()] == [(1, 10, "x"), (2, 20, "x")]


def test_full_names_leave_out_what_is_empty() -> None:
    """Sources without schemas have names of two parts."""
    assert str(SourceName("d", "", "t")) == "d.t"
