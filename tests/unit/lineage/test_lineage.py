"""Events of lineage: who gets them, what is in them, and that nothing depends on them."""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import LakebedError
from lakebed.lineage import sender
from lakebed.lineage.sender import sender_to

Event = dict[str, Any]


class Receiver:
    """A server of lineage on a loopback address."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.status = 201
        self.pause_s = 0.0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(receiver.pause_s)
                receiver.requests.append((self.path, dict(self.headers)))
                receiver.events.append(json.loads(body))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def of(self, kind: str) -> list[Event]:
        """All events of this kind of job, once they have come."""
        assert sender_to(self.url).flush(30)
        return [event for event in self.events if event["job"]["facets"]["jobType"]["jobType"] == kind]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Gets all events from now on."""
    found = Receiver()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", found.url)
    yield found
    sender_to(found.url).flush(30)
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """Two tables, made before anybody is told."""
    lake = lakebed.connect(tmp_path / "lake")
    lake.create_table("src", pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["hunter2", "b"]}))
    lake.create_table("dst", {"id": "BIGINT", "v": "STRING"}, primary_key=["id"], options={"bucket": "1"})
    return lake


def check(event: Event) -> None:
    """What the specification requires of a run event and of each facet."""
    assert event["eventType"] in {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}
    assert dt.datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["producer"].startswith("https://")
    assert event["schemaURL"].startswith("https://openlineage.io/spec/2-0-2/OpenLineage.json#/")
    assert uuid.UUID(event["run"]["runId"])
    assert event["job"]["namespace"]
    assert event["job"]["name"]
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for dataset in (*event["inputs"], *event["outputs"]):
        assert dataset["namespace"]
        assert dataset["name"]
        for field in dataset["facets"].get("schema", {"fields": []})["fields"]:
            assert field.keys() <= {"name", "type", "description"}
            assert all(isinstance(value, str) for value in field.values())
    for name, facet in ((name, each) for holder in holders for name, each in holder["facets"].items()):
        assert facet["_producer"].startswith("https://"), name
        assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/"), name
    job_type = event["job"]["facets"]["jobType"]
    assert job_type["processingType"] in {"BATCH", "STREAMING"}
    assert job_type["integration"] == "LAKEBED"


def names(datasets: list[dict[str, Any]]) -> list[str]:
    """The names in the lake."""
    return sorted(each["facets"]["symlinks"]["identifiers"][0]["name"] for each in datasets)


def pair(events: list[Event], end: str = "COMPLETE") -> Event:
    """The end of the one run among them."""
    for event in events:
        check(event)
    assert [event["eventType"] for event in events] == ["START", end]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert len({event["job"]["name"] for event in events}) == 1
    return events[1]


STATEMENTS = {
    "INSERT": ("INSERT INTO dst SELECT id, v FROM src WHERE v <> 'topsecret' AND id < 77", ["default.src"]),
    "UPDATE": ("UPDATE dst SET v = 'topsecret' WHERE id IN (SELECT id FROM src)", ["default.src"]),
    "DELETE": ("DELETE FROM dst WHERE v = 'topsecret'", []),
    "MERGE": (
        "MERGE INTO dst USING src ON dst.id = src.id WHEN MATCHED AND src.v = 'topsecret' THEN UPDATE SET v = src.v "
        "WHEN NOT MATCHED THEN INSERT *",
        ["default.src"],
    ),
    "CREATE TABLE AS SELECT": ("CREATE TABLE dst2 AS SELECT id, 'topsecret' AS s FROM src", ["default.src"]),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements(lake: lakebed.Lake, receiver: Receiver, kind: str) -> None:
    """Each that writes is a run with what it reads and writes, columns included; values are in no event."""
    text, inputs = STATEMENTS[kind]
    lake.sql(text)
    end = pair(receiver.of(kind))
    table = "default.dst2" if kind.startswith("CREATE") else "default.dst"
    assert names(end["inputs"]) == inputs
    assert names(end["outputs"]) == [table]
    (output,) = end["outputs"]
    assert output["namespace"] == "file"
    assert output["name"] == lake.table(table).location
    assert [(each["name"], each["type"]) for each in output["facets"]["schema"]["fields"]] == [
        (each.name, str(each.type)) for each in lake.table(table).schema.fields
    ]
    assert "topsecret" not in json.dumps(receiver.events)
    assert "77" not in json.dumps(end["job"])
    assert receiver.requests[0][0] == "/api/v1/lineage"


def test_the_query_is_told_without_its_values(lake: lakebed.Lake, receiver: Receiver) -> None:
    """What is left shows what is read and how."""
    lake.sql("INSERT INTO dst SELECT id, v FROM src WHERE v <> 'topsecret' AND id < 77")
    query = pair(receiver.of("INSERT"))["job"]["facets"]["sql"]["query"]
    assert query == "SELECT id, v FROM src WHERE v <> ? AND id < ?"


def test_reads_are_no_runs(lake: lakebed.Lake, receiver: Receiver) -> None:
    """Nor is a statement that writes no rows."""
    lake.sql("SHOW TABLES")
    lake.sql("CREATE TABLE other (id INT)")
    lake.query("SELECT * FROM src").arrow()
    assert sender_to(receiver.url).flush(30)
    assert receiver.events == []


def test_a_statement_that_fails(lake: lakebed.Lake, receiver: Receiver) -> None:
    """Its run fails with the message; of a row that does not fit, the value stays here."""
    with pytest.raises(LakebedError):
        lake.sql("INSERT INTO nowhere SELECT id, v FROM src")
    end = pair(receiver.of("INSERT"), "FAIL")
    assert "nowhere" in end["run"]["facets"]["errorMessage"]["message"]
    assert end["run"]["facets"]["errorMessage"]["programmingLanguage"] == "python"
    assert end["outputs"] == []
    receiver.events.clear()
    with pytest.raises(LakebedError):
        lake.sql("INSERT INTO dst SELECT CAST(v AS BIGINT), v FROM src")
    pair(receiver.of("INSERT"), "FAIL")
    assert "hunter2" not in json.dumps(receiver.events)


def test_a_materialized_table(lake: lakebed.Lake, receiver: Receiver) -> None:
    """Each refresh is a run, the first one too."""
    lake.materialize("v", "SELECT v, count(*) AS n FROM src WHERE v <> 'topsecret' GROUP BY v")
    end = pair(receiver.of("REFRESH"))
    assert (names(end["inputs"]), names(end["outputs"])) == (["default.src"], ["default.v"])
    assert end["job"]["name"] == "refresh.default.v"
    assert "topsecret" not in json.dumps(receiver.events)
    receiver.events.clear()
    lake.refresh("v")
    pair(receiver.of("REFRESH"))
    receiver.events.clear()
    lake.alter_materialized("v", query="SELECT v, max(id) AS m FROM src GROUP BY v")
    end = pair(receiver.of("REFRESH"))
    assert (end["job"]["name"], names(end["outputs"])) == ("refresh.default.v", ["default.v"])
    assert end["outputs"][0]["name"] == lake.table("v").location


def test_a_pipeline(lake: lakebed.Lake, receiver: Receiver) -> None:
    """A streaming INSERT is one run from its start to its end; that it was tried out before is not told."""
    insert = "INSERT INTO dst SELECT id, max(v) FROM src GROUP BY id"
    lakebed.pipeline(lake, f"{insert}; CREATE MATERIALIZED TABLE v AS SELECT count(*) AS n FROM src").run(once=True)
    end = pair(receiver.of("INSERT"))
    assert (names(end["inputs"]), names(end["outputs"])) == (["default.src"], ["default.dst"])
    assert end["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    pair(receiver.of("REFRESH"))
    assert "memory://" not in json.dumps(receiver.events)


def test_a_server_that_refuses(
    lake: lakebed.Lake, receiver: Receiver, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said once, without what may be a secret, and statements go on."""
    receiver.status = 500
    place = receiver.url.replace("http://", "http://user:topsecret@") + "/lineage?key=topsecret"
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", place)
    with caplog.at_level(logging.WARNING, "lakebed.lineage"):
        lake.sql("DELETE FROM dst")
        lake.sql("DELETE FROM dst")
        assert sender_to(place).flush(30)
    (record,) = caplog.records
    assert "topsecret" not in record.getMessage()
    assert receiver.url in record.getMessage()


def test_a_server_that_is_not_there(
    lake: lakebed.Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same."""
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", "http://127.0.0.1:9")
    with caplog.at_level(logging.WARNING, "lakebed.lineage"):
        lake.sql("DELETE FROM dst")
        lake.sql("DELETE FROM dst")
        assert sender_to("http://127.0.0.1:9").flush(30)
    assert len(caplog.records) == 1


def test_a_slow_server_delays_nobody(
    lake: lakebed.Lake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Statements do not wait for it; what does not fit into the queue is dropped, and said once."""
    receiver.pause_s = 0.3
    monkeypatch.setattr(sender, "_MOST_WAITING", 2)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "lakebed.lineage"):
        for _ in range(4):
            lake.sql("DELETE FROM dst")
    assert time.monotonic() - began < 8 * receiver.pause_s
    receiver.pause_s = 0.0
    assert 2 <= len(receiver.of("DELETE")) < 8
    assert len(caplog.records) == 1


def test_into_a_file(lake: lakebed.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event in each line, under the namespace of the environment."""
    place = tmp_path / "events.jsonl"
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", str(place))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    lake.sql("DELETE FROM dst")
    assert sender_to(str(place)).flush(30)
    end = pair([json.loads(line) for line in place.read_text().splitlines()])
    assert end["job"]["namespace"] == "shop"


def test_a_key_goes_along(lake: lakebed.Lake, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the header that servers expect, and nowhere else; a path of one's own is kept."""
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "topsecret")
    place = f"{receiver.url}/own/path"
    monkeypatch.setenv("LAKEBED_OPENLINEAGE", place)
    lake.sql("DELETE FROM dst")
    assert sender_to(place).flush(30)
    path, headers = receiver.requests[0]
    assert (path, headers["Authorization"]) == ("/own/path", "Bearer topsecret")
    assert "topsecret" not in json.dumps(receiver.events)


def test_a_branch_is_a_dataset_of_its_own(lake: lakebed.Lake, receiver: Receiver) -> None:
    """What is written there is not told of the table; what a view of a table shows is told of it."""
    lake.table("dst").create_branch("b")
    lake.sql("INSERT INTO `dst$branch_b` SELECT id, v FROM `src$audit_log`")
    end = pair(receiver.of("INSERT"))
    assert names(end["inputs"]) == ["default.src"]
    assert names(end["outputs"]) == ["default.dst$branch_b"]
    assert end["outputs"][0]["name"].endswith("/dst/branch/branch-b")
