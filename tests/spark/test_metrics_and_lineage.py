"""Streams and syncs of a real Spark, as metrics and lineage see them: what tasks make is counted as it is committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE_S
from tests.sessions import IS_CONNECT

import lakebed
import lakebed.cdc
from lakebed.errors import InvalidData
from lakebed.lineage.sender import sender_to

Event = dict[str, Any]


def _events(place: Path, kind: str) -> list[Event]:
    assert sender_to(str(place)).flush(30)
    found = [json.loads(line) for line in place.read_text().splitlines()]
    return [event for event in found if event["job"]["facets"]["jobType"]["jobType"] == kind]


def _message(number: int) -> str:
    body = {"database": "d", "table": "orders", "type": "insert", "ts": 5, "data": {"id": str(number)}}
    return json.dumps({**body, "primary_key_columns": ["id"]})


@pytest.mark.nightly
@pytest.mark.skipif(IS_CONNECT, reason="batches are made on the server, in another process")
def test_streams_and_syncs(lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write by tasks, a stream between two tables, and a sync of files; one that fails says so."""
    place = tmp_path / "events"
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", str(place))
    lakebed.metrics.start()
    try:
        options = {"bucket": "2", "changelog-producer": "input"}
        source = lake.create_table("source", {"id": "BIGINT"}, primary_key=["id"], options=options)
        target = lake.create_table("target", {"id": "BIGINT"}, primary_key=["id"], options=options)
        source.write_spark(lake.spark.range(1000))
        stream = target.write_stream(
            source.read_stream(), checkpoint=str(tmp_path / "c"), trigger={"availableNow": True}
        )
        assert stream.awaitTermination(PATIENCE_S)
        folder = tmp_path / "changes"
        folder.mkdir()
        (folder / "1.json").write_text("\n".join(_message(number) for number in range(5)))

        def sync() -> lakebed.cdc.SyncRun:
            return lakebed.cdc.sync(
                lake,
                "files",
                "lk",
                source_options={"path": str(folder), "format": "maxwell-json"},
                checkpoint=tmp_path / "sync",
                trigger={"availableNow": True},
            )

        assert sync().wait(PATIENCE_S)
        (folder / "2.json").write_text("no message")
        with pytest.raises(InvalidData):
            sync().wait(PATIENCE_S)
        now = lakebed.metrics.snapshot()
    finally:
        lakebed.metrics.stop()

    def number(family: str, **labels: str) -> Any:
        (found,) = [each for each in now[family] if labels.items() <= each.items()]
        return found.get("value", found.get("count"))

    assert number("lakebed_write_rows_total", table=source.name, kind="data") == 1000
    assert number("lakebed_stream_written_rows_total", table=target.name, kind="query") == 1000
    assert number("lakebed_stream_write_duration_seconds", table=target.name, outcome="done") >= 1
    assert number("lakebed_cdc_rows_total", table="lk.orders") == 5
    assert number("lakebed_cdc_batch_duration_seconds", source="files", database="lk", outcome="done") >= 1

    start, end = _events(place, "STREAM")
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert end["outputs"][0]["name"] == target.location
    events = _events(place, "SYNC")
    assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "FAIL"]
    assert [event["job"]["name"] for event in events] == ["sync.files.lk"] * 4
    assert [each["name"] for each in events[1]["inputs"]] == ["d.orders"]
    assert events[1]["outputs"][0]["facets"]["symlinks"]["identifiers"][0]["name"] == "lk.orders"
