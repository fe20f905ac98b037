"""Syncs on a real Spark: messages in files and in a Kafka cluster become tables, each change exactly once."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.patience import PATIENCE_S
from tests.sessions import IS_CONNECT

import lakebed
import lakebed.cdc
from lakebed.cdc.schema import backfill
from lakebed.errors import InvalidArgument, InvalidData, NotFound
from lakebed.options import LAKEBED_CDC_BACKFILL
from lakebed.schema.changes import AddColumn, SetOption

pytestmark = pytest.mark.spark


def message(kind: str, data: dict[str, Any], old: dict[str, Any] | None = None, table: str = "t") -> str:
    body = {"database": "d", "table": table, "type": kind, "ts": 5, "data": data, "primary_key_columns": ["id"]}
    return json.dumps(body | ({} if old is None else {"old": old}))


class Files:
    """A directory of messages, and syncs of it into a lake."""

    def __init__(self, place: Path, spark: Any) -> None:
        self.place = place
        self.directory = place / "in"
        self.directory.mkdir()
        self.lake = lakebed.connect(place / "warehouse", spark=spark)
        self._count = 0

    def put(self, *messages: str) -> None:
        self._count += 1
        scratch = self.place / f"{self._count:03}.json"
        scratch.write_text("\n".join(messages))
        scratch.rename(self.directory / scratch.name)

    def sync(self, **more: Any) -> lakebed.cdc.SyncRun:
        options = {"path": str(self.directory), "format": "maxwell-json"}
        arguments: dict[str, Any] = {"trigger": {"availableNow": True}, "table_conf": {"bucket": "2"}, **more}
        return lakebed.cdc.sync(
            self.lake, "files", "lk", source_options=options, checkpoint=self.place / "checkpoint", **arguments
        )

    def rows(self, table: str = "t") -> list[dict[str, Any]]:
        return sorted(self.lake.table(f"lk.{table}").to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.fixture
def files(tmp_path: Path, spark: Any) -> Files:
    return Files(tmp_path, spark)


def test_files_become_tables_and_a_restart_goes_on(files: Files) -> None:
    """New columns and new tables are picked up; a second sync with the same checkpoint reads only what is new."""
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = files.lake.spark.conf.get(setting)
    files.put(message("insert", {"id": "1", "v": "a"}), message("insert", {"id": "2", "v": "b"}))
    files.put(message("update", {"id": "1", "v": "c", "w": "x"}, {"v": "a"}), message("delete", {"id": "2", "v": "b"}))
    run = files.sync()
    assert run.wait(PATIENCE_S)
    assert files.rows() == [{"id": "1", "v": "c", "w": "x"}]
    assert (run.progress.rows, run.progress.tables[0].table) == (5, "lk.t")
    assert files.lake.spark.conf.get(setting) == before
    files.put(message("insert", {"id": "9"}, table="new"))
    assert files.sync(here_bytes=-1).wait(PATIENCE_S)
    assert files.rows("new") == [{"id": "9"}]
    assert len([s for s in files.lake.table("lk.t").snapshots() if s.commit_kind == "APPEND"]) == 1


@pytest.mark.parametrize("here_bytes", [1 << 30, -1], ids=["here", "in-tasks"])
def test_a_sync_that_dies_at_any_step_is_made_up_for(files: Files, here_bytes: int) -> None:
    """The query fails with the error itself; started again it has each change once."""
    expected = []
    for number, step in enumerate(("schema", "write", "commit", "committed")):
        expected.append({"id": str(number), "v": step})
        files.put(message("insert", expected[-1]), message("insert", expected[-1], table="u"))

        def fail(name: str, wanted: str = step) -> None:
            if name == wanted:
                raise RuntimeError(f"died at {name}")

        # From another process, only the words of an error that is none of ours come back.
        with pytest.raises(Exception if IS_CONNECT else RuntimeError, match=f"died at {step}"):
            files.sync(on_step=fail, here_bytes=here_bytes).wait(PATIENCE_S)
        if number % 2:
            assert files.sync(here_bytes=here_bytes).wait(PATIENCE_S)
    assert files.sync(here_bytes=here_bytes).wait(PATIENCE_S)
    assert files.rows() == files.rows("u") == expected
    appends = [s for s in files.lake.table("lk.t").snapshots() if s.commit_kind == "APPEND"]
    assert [snapshot.commit_identifier for snapshot in appends] == sorted({s.commit_identifier for s in appends})


def test_a_message_that_is_none_stops_the_sync_with_our_error(files: Files) -> None:
    """What a worker finds wrong comes back as the error it is, without a stack."""
    files.put('{"broken":')
    with pytest.raises(InvalidData) as caught:
        files.sync().wait(PATIENCE_S)
    assert "can not be read" in caught.value.message
    assert "Traceback" not in str(caught.value)


def test_wrong_arguments_are_refused_before_anything_is_made(files: Files) -> None:
    """Nothing is created by a call that can not work."""
    with pytest.raises(InvalidArgument, match="computed column"):
        files.sync(computed_columns=["x=yeer(id)"])
    with pytest.raises(InvalidArgument, match="type mapping"):
        files.sync(type_mapping=["to-strng"])
    with pytest.raises(InvalidArgument, match="trigger"):
        files.sync(trigger={"often": True})
    with pytest.raises(NotFound):
        lakebed.cdc.sync(files.lake, "files", source_options={"path": "/no/such"}, checkpoint=files.place / "x")
    assert not (files.place / "checkpoint").exists()
    assert not (files.place / "warehouse").exists()


def test_large_tables_are_filled_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all types get the value of a new column, in a job, once; the changelog tells it."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    columns = {"id": "INT NOT NULL", "t": "TIME(3)", "ts": "TIMESTAMP(9)", "d": "DECIMAL(30, 3)", "a": "ARRAY<INT>"}
    conf = {"bucket": "2", "changelog-producer": "input"}
    table = lake.create_table("t", columns, primary_key=["id"], options=conf)
    row = {"t": dt.time(1, 2, 3), "ts": dt.datetime(2024, 1, 1, 1), "d": Decimal("1.5"), "a": [1, None]}
    table.write(pa.Table.from_pylist([{"id": i, **row} for i in range(50)], schema=table.arrow_schema))
    before = table.to_arrow().to_pylist()
    table.alter(AddColumn("w", "STRING"), SetOption(LAKEBED_CDC_BACKFILL.key, '{"5": "x"}'))
    monkeypatch.setattr(backfill, "_HERE_ROWS", 0)
    assert backfill.fill_waiting(table, "user", 3, spark)
    found = sorted(table.to_arrow().to_pylist(), key=lambda each: each["id"])
    assert found == [{**each, "w": "x"} for each in sorted(before, key=lambda each: each["id"])]
    kinds = table.changes(1)["rowkind"].to_pylist()
    assert (kinds.count("-D"), kinds.count("+I")) == (50, 50)


class Kafka:
    """A cluster in this process, and messages into it."""

    def __init__(self) -> None:
        confluent = pytest.importorskip("confluent_kafka")
        self._producer = confluent.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._producer.list_topics(timeout=PATIENCE_S).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def send(self, topic: str, *messages: str | None) -> None:
        for body in messages:
            key = "" if body is None else json.loads(body)["data"]["id"]
            self._producer.produce(topic, value=None if body is None else body.encode(), key=key)
        self._producer.flush(10)

    def send_bytes(self, topic: str, *bodies: bytes) -> None:
        for body in bodies:
            self._producer.produce(topic, value=body)
        self._producer.flush(10)


def test_topics_become_tables(spark: Any, tmp_path: Path) -> None:
    """Changes of all partitions arrive once, with their places; tombstones are nothing, and what is bad is counted."""
    kafka = Kafka()
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    options = {
        "bootstrap_servers": kafka.address,
        "topics": ["shop"],
        "format": "maxwell-json",
        "messages_per_batch": 20,
        "skip_corrupt_records": True,
    }

    def sync() -> lakebed.cdc.SyncProgress:
        run = lakebed.cdc.sync(
            lake,
            "kafka",
            "lk",
            source_options=options,
            checkpoint=tmp_path / "cp",
            trigger={"availableNow": True},
            metadata_columns=["topic", "partition", "offset", "timestamp", "timestamp_type", "key"],
            metadata_column_prefix="k_",
        )
        assert run.wait(PATIENCE_S)
        return run.progress

    kafka.send("shop", *(message("insert", {"id": str(i), "v": "a"}) for i in range(50)), None)
    kafka.send_bytes("shop", b"{broken", b"\xff\xfe")
    progress = sync()
    assert (progress.rows, progress.skipped_records) == (50, 2)
    assert "can not be read" in progress.skipped_why
    first = lake.table("lk.t").to_arrow()
    assert set(first["k_topic"].to_pylist()) == {"shop"}
    assert first["k_key"].to_pylist() == first["id"].to_pylist()
    places = set(zip(first["k_partition"].to_pylist(), first["k_offset"].to_pylist(), strict=True))
    assert len(places) == 50
    assert set(first["k_timestamp_type"].to_pylist()) == {"CreateTime"}
    assert all(moment.year > 2000 for moment in first["k_timestamp"].to_pylist())
    kafka.send("shop", *(message("update", {"id": str(i), "v": "b"}, {"v": "a"}) for i in range(25)))
    kafka.send("shop", *(message("delete", {"id": str(i), "v": "a"}) for i in range(25, 30)))
    sync()
    rows = {int(row["id"]): row["v"] for row in lake.table("lk.t").to_arrow().to_pylist()}
    assert rows == dict.fromkeys(range(25), "b") | dict.fromkeys(range(30, 50), "a")
    snapshot = lake.table("lk.t").latest_snapshot()
    assert snapshot is not None


def test_a_topic_that_is_not_there_is_named(spark: Any, tmp_path: Path) -> None:
    """A mistyped topic is refused before anything is made."""
    kafka = Kafka()
    kafka.send("shop", message("insert", {"id": "1"}))
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    options = {"bootstrap_servers": kafka.address, "topic_pattern": "nothing.*"}
    with pytest.raises(NotFound, match="no topic matches"):
        lakebed.cdc.sync(lake, "kafka", "lk", source_options=options, checkpoint=tmp_path / "cp")
