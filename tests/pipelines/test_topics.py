"""Topics of a real Kafka as sinks: each change once, whoever is killed, fenced, or away."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.brokers import shared_broker
from tests.pipelines.topic_worker import ROWS, inserts

import lakebed
from lakebed.connectors import SinkInsertTarget, kafka_client, kafka_sink
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, NotFound, StorageError
from lakebed.sql.session import connector_tables
from lakebed.testing.kafka_server import KafkaServer
from lakebed.views.insert import StreamingInsert

_ROOT = Path(__file__).parents[2]
_TOTALS = "SELECT cust, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cust"
_COLUMNS = "cust INT, n BIGINT, total BIGINT"


@pytest.fixture(scope="module")
def broker() -> KafkaServer:
    """A running one."""
    return shared_broker()


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """One with a table of orders."""
    made = lakebed.connect(tmp_path / "lake")
    made.sql(
        "CREATE TABLE orders (id INT, cust INT, amount INT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('bucket' = '1', 'changelog-producer' = 'lookup')"
    )
    made.sql("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 5), (3, 2, 7)")
    return made


def _sink(broker: KafkaServer, topic: str, form: str = "debezium-json", more: str = "") -> str:
    broker.create_topic(topic)
    servers = f"'properties.bootstrap.servers' = '{broker.address}', 'topic' = '{topic}'"
    if form == "upsert":
        return f"'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', {servers}{more}"
    return f"'connector' = 'kafka', 'format' = '{form}', {servers}{more}"


def _insert(lake: lakebed.Lake, options: str, name: str, query: str = _TOTALS) -> StreamingInsert:
    lake.sql(f"CREATE OR REPLACE TABLE k ({_COLUMNS}, PRIMARY KEY (cust) NOT ENFORCED) WITH ({options})")
    into = SinkInsertTarget(connector_tables(lake)["default", "k"], name)
    return StreamingInsert(lake, "k", query, name=name, database="default", into=into)


def _folded(broker: KafkaServer, topic: str) -> dict[int, Any]:
    """The rows that messages of changes leave; each must fit what was before."""
    rows: dict[int, Any] = {}
    for _, value in broker.messages(topic):
        assert value is not None
        change = json.loads(value)
        old, new, op = change["before"], change["after"], change["op"]
        key = (new or old)["cust"]
        assert rows.get(key) == old, change
        assert op == {(True, False): "c", (False, False): "u", (False, True): "d"}[old is None, new is None]
        rows[key] = new
    return {key: row for key, row in rows.items() if row is not None}


def _expected(lake: lakebed.Lake) -> dict[int, Any]:
    return {row["cust"]: row for row in lake.query(_TOTALS).arrow().to_pylist()}


def test_a_pipeline_runs_once(lake: lakebed.Lake, broker: KafkaServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Changes, last rows and rows of a source come to topics; a second run sends nothing, one after changes those."""
    broker.create_topic("once-c", 3)
    text = f"""
    CREATE TABLE c ({_COLUMNS}, PRIMARY KEY (cust) NOT ENFORCED) WITH ({_sink(broker, "once-c")});
    CREATE TABLE u ({_COLUMNS}, PRIMARY KEY (cust) NOT ENFORCED) WITH ({_sink(broker, "once-u", "upsert")});
    CREATE TABLE p ({_COLUMNS}) WITH ('connector' = 'print');
    CREATE TABLE g (id INT) WITH ('connector' = 'datagen', 'number-of-rows' = '5', 'fields.id.kind' = 'sequence',
      'fields.id.start' = '1', 'fields.id.end' = '5');
    CREATE TABLE r (id INT, twice INT) WITH ({_sink(broker, "once-r", "json", ", 'key.fields' = 'id'")});
    INSERT INTO c {_TOTALS};
    INSERT INTO u {_TOTALS};
    INSERT INTO p {_TOTALS};
    INSERT INTO r SELECT id, id * 2 FROM g WHERE id <> 3;
    """

    def run() -> dict[str, int]:
        states = lakebed.pipeline(lake, text).run(once=True).states
        assert [state.error for state in states.values()] == [None] * len(states)
        return {name[8]: state.rows for name, state in states.items()}

    planned = {each.name[8]: each for each in lakebed.pipeline(lake, text).check()}
    assert {name: each.is_new for name, each in planned.items()} == {"c": None, "u": None, "p": True, "r": None}
    assert "topic once-c, each step is a transaction" in planned["c"].plan
    assert run() == {"c": 2, "u": 2, "p": 2, "r": 4}
    assert run() == {"c": 0, "u": 0, "p": 2, "r": 0}
    lake.sql("INSERT INTO orders VALUES (1, 2, 10), (4, 3, 1)")
    lake.sql("DELETE FROM orders WHERE id = 2")
    assert run() == {"c": 3, "u": 3, "p": 2, "r": 0}
    assert "+I[2, 2, 17]" in capsys.readouterr().out
    assert _folded(broker, "once-c") == _expected(lake)
    last = dict(broker.messages("once-u"))
    assert last[b'{"cust":1}'] is None
    assert {json.loads(key)["cust"]: json.loads(row) for key, row in last.items() if key and row} == _expected(lake)
    assert sorted(broker.messages("once-r")) == [
        (b'{"id":%d}' % n, b'{"id":%d,"twice":%d}' % (n, n * 2)) for n in (1, 2, 4, 5)
    ]


def test_of_two_runners_one_is_fenced(lake: lakebed.Lake, broker: KafkaServer) -> None:
    """The later one goes on; the first says so, again and again, and sends nothing."""
    first, second = (_insert(lake, _sink(broker, "two"), "two") for _ in range(2))
    assert first.step().inserted == 2
    assert second.step().way == "none"
    lake.sql("INSERT INTO orders VALUES (4, 3, 1)")
    for _ in range(2):
        with pytest.raises(CommitConflict, match="another process has taken over") as raised:
            first.step()
        assert "stop one of the two" in str(raised.value)
    assert second.step().inserted == 1
    assert _folded(broker, "two") == _expected(lake)


def test_steps_that_send_nothing_are_kept(lake: lakebed.Lake, broker: KafkaServer) -> None:
    """Snapshots that change nothing of the result are seen, and that is written down before they may expire."""
    big = _TOTALS.replace("GROUP BY", "WHERE amount > 6 GROUP BY")
    insert = _insert(lake, _sink(broker, "quiet"), "quiet", big)
    insert.step()
    ways = []
    for number in range(12):
        lake.sql(f"INSERT INTO orders VALUES ({10 + number}, 1, 1)")
        ways.append(insert.step().way)
    assert "incremental" in ways
    assert "none" in ways
    insert.close()
    lake.sql("INSERT INTO orders VALUES (30, 1, 9)")
    assert _insert(lake, _sink(broker, "quiet"), "quiet", big).step().updated == 1
    assert len(broker.messages("quiet")) == 3


def test_what_was_written_must_be_what_is_there(
    lake: lakebed.Lake, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is not there or was made anew, another one than before, a state that may be forgotten: refused."""
    _insert(lake, _sink(broker, "same"), "same").step()
    with pytest.raises(InvalidArgument, match="has written to topic `same`, not to `other`"):
        _insert(lake, _sink(broker, "other"), "same").step()
    options = _sink(broker, "same")
    broker.delete_topic("same")
    with monkeypatch.context() as patched:
        patched.setattr(kafka_sink, "PATIENCE_S", 1.0)
        with pytest.raises(NotFound, match="there is no topic `same`"):
            _insert(lake, options, "same").step()
    with pytest.raises(InvalidArgument, match="made anew") as raised:
        _insert(lake, _sink(broker, "same"), "same").step()
    assert "delete topic `lakebed-same`" in str(raised.value)
    broker.delete_topic("lakebed-same")
    assert _insert(lake, _sink(broker, "same"), "same").step().inserted == 2
    broker.create_topic("lakebed-forgets", cleanup_policy="delete")
    with pytest.raises(InvalidOption, match=r"`cleanup\.policy` is `delete`"):
        _insert(lake, _sink(broker, "same"), "forgets").step()
    with pytest.raises(InvalidOption, match="No such configuration property"):
        _insert(lake, _sink(broker, "same", more=", 'properties.nope' = '1'"), "nope").step()


def test_at_least_once(lake: lakebed.Lake, broker: KafkaServer) -> None:
    """Without transactions a second run goes on as well, and readers need not wait for the end of a step."""
    options = _sink(broker, "least", more=", 'sink.delivery-guarantee' = 'at-least-once', 'sink.partitioner' = 'fixed'")
    assert _insert(lake, options, "least").step().inserted == 2
    assert _insert(lake, options, "least").step().way == "none"
    assert _folded(broker, "least") == _expected(lake)


def test_a_broker_that_is_away(lake: lakebed.Lake, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step fails with what to do; when the broker is back it goes on, with each change once."""
    for module in (kafka_client, kafka_sink):
        monkeypatch.setattr(module, "PATIENCE_S", 1.0)
    monkeypatch.setattr(kafka_sink, "_SETTLE_S", 2.0)
    insert, late = _insert(lake, _sink(broker, "away"), "away"), _insert(lake, _sink(broker, "away-2"), "away-2")
    insert.step()
    lake.sql("INSERT INTO orders VALUES (4, 3, 1)")
    broker.kill()
    try:
        for each in (insert, insert, late):
            with pytest.raises(StorageError, match=r"Kafka at 127\.0\.0\.1") as raised:
                each.step()
            assert "goes on when the cluster answers" in str(raised.value)
    finally:
        broker.start()
    monkeypatch.undo()
    assert (insert.step().inserted, late.step().inserted) == (1, 3)
    for topic in ("away", "away-2"):
        assert _folded(broker, topic) == _expected(lake)


@pytest.fixture
def worker(tmp_path: Path, broker: KafkaServer) -> Iterator[Any]:
    """Starts the process that is to be killed."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.pipelines.topic_worker", str(tmp_path / "lake"), broker.address],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.wait()
        assert each.stdout is not None
        each.stdout.close()


@pytest.mark.parametrize("kills", [2, pytest.param(25, marks=pytest.mark.nightly)])
def test_killed_processes_send_each_change_once(
    lake: lakebed.Lake, broker: KafkaServer, worker: Any, tmp_path: Path, kills: int
) -> None:
    """Kills fall anywhere in a step, and the broker is restarted meanwhile; who reads what counts sees each once."""
    chance = random.Random(kills)
    names = ("killed-rows", "killed-changes", "lakebed-killed-r", "lakebed-killed-c")
    for name in names:
        broker.delete_topic(name)
    for name in names[:2]:
        broker.create_topic(name)
    number, said = 10, 0
    for kill in range(kills):
        process = worker()
        for _ in range(chance.randint(1, 6)):
            rows = ", ".join(f"({number + n}, {chance.randint(1, 4)}, {chance.randint(1, 9)})" for n in range(3))
            lake.sql(f"INSERT INTO orders VALUES {rows}")
            if chance.random() < 0.3:
                lake.sql(f"DELETE FROM orders WHERE id < {number - 5}")
            number += 2
            said += bool(process.stdout.readline())
        if kill == kills // 2:
            broker.restart() if chance.random() < 0.5 else (broker.kill(), broker.start())
        time.sleep(chance.random() * 0.05)
        process.kill()
        process.wait()
    assert said
    rows, changes = inserts(lakebed.connect(tmp_path / "lake"), broker.address)
    while not rows.has_ended:
        rows.step(1000)
    changes.step()
    assert changes.step().way == "none"
    sent = [json.loads(value or b"")["id"] for _, value in broker.messages("killed-rows")]
    assert sent == list(range(1, ROWS + 1))
    assert _folded(broker, "killed-changes") == _expected(lake)
