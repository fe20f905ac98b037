"""Topics of a real Kafka with messages of every format become tables: rows, deletes, schemas that change, outages."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.brokers import shared_broker
from tests.cdc.pipeline.local_sync import LocalSync
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.cdc.arguments import SyncArguments
from lakebed.cdc.sources.kafka import KafkaSource
from lakebed.errors import InvalidData, NotFound
from lakebed.testing.kafka_server import KafkaServer
from lakebed.testing.schema_registry import SchemaRegistry

pytestmark = pytest.mark.spark

_KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
_ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "v", "type": "string"}]}
_WIDE = {**_ROW, "fields": [*_ROW["fields"], {"name": "w", "type": ["null", "double"], "default": None}]}

Message = tuple[bytes | None, bytes | None]


@pytest.fixture(scope="module")
def broker() -> KafkaServer:
    return shared_broker()


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as found:
        yield found


class Topic:
    """A topic of its own, and syncs of it into a lake of its own."""

    def __init__(self, broker: KafkaServer, place: Path, spark: Any, partitions: int = 1) -> None:
        self.name = f"t{uuid4().hex[:12]}"
        self.lake = lakebed.connect(place / "warehouse", spark=spark)
        self._address, self._place = broker.address, place
        broker.create_topic(self.name, partitions)

    def send(self, messages: Iterable[Message], headers: Any = None) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._address, "log_level": 0})
        for key, body in messages:
            producer.produce(self.name, key=key, value=body, headers=headers)
        assert not producer.flush(PATIENCE_S)

    def start(self, form: str, trigger: Any = None, **more: Any) -> lakebed.cdc.SyncRun:
        rules = {name: more.pop(name) for name in list(more) if name in SyncArguments.__annotations__}
        options = {"bootstrap_servers": self._address, "topics": [self.name], "format": form, **more}
        return lakebed.cdc.sync(
            self.lake,
            "kafka",
            "lk",
            "t",
            source_options=options,
            checkpoint=self._place / "checkpoint",
            trigger=trigger or {"availableNow": True},
            **rules,
        )

    def sync(self, form: str, **more: Any) -> lakebed.cdc.SyncProgress:
        run = self.start(form, **more)
        assert run.wait(PATIENCE_S)
        return run.progress

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.lake.table("lk.t").to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def _text(body: Any) -> bytes | None:
    return None if body is None else json.dumps(body).encode()


def test_changes_of_goldengate(broker: KafkaServer, spark: Any, tmp_path: Path) -> None:
    """Inserts, an update that changes the key, and deletes arrive once, the key is that of the messages; a restart
    goes on, and a new column is added."""
    topic = Topic(broker, tmp_path, spark)

    def told(op: str, before: Any, after: Any) -> Message:
        body = {"table": "S.T", "op_type": op, "op_ts": "2024-01-02 03:04:05.000000", "primary_keys": ["id"]}
        return b"k", _text(body | {"before": before, "after": after})

    topic.send([told("I", None, {"id": n, "v": "a"}) for n in range(5)])
    assert topic.sync("ogg-json").rows == 5
    moved = told("U", {"id": 1, "v": "a"}, {"id": 9, "v": "b", "w": 1.5})
    topic.send([moved, told("D", {"id": 2, "v": "a"}, None)])
    assert topic.sync("ogg-json").rows == 3
    assert topic.lake.table("lk.t").primary_key == ("id",)
    assert topic.rows() == [
        {"id": "0", "v": "a", "w": None},
        {"id": "3", "v": "a", "w": None},
        {"id": "4", "v": "a", "w": None},
        {"id": "9", "v": "b", "w": "1.5"},
    ]


def test_changes_of_dms_in_a_topic_and_in_directories(broker: KafkaServer, spark: Any, tmp_path: Path) -> None:
    """The same messages from a topic, and as lines of files in directories below the one that is followed, are the
    same rows."""

    def told(op: str, data: Any) -> bytes:
        metadata = {"record-type": "data", "operation": op, "schema-name": "s", "table-name": "t"}
        return _text({"data": data, "metadata": metadata | {"timestamp": "2024-01-02T03:04:05Z"}}) or b""

    first = [told("load", {"id": n, "v": "a"}) for n in range(4)]
    second = [told("update", {"id": 1, "v": "b"}), told("update", {"id": 7, "v": "c", "BI_id": 2, "BI_v": "a"})]
    second += [told("delete", {"id": 3, "v": "a"}), told("insert", {"id": 8, "v": "d"})]
    topic = Topic(broker, tmp_path / "topic", spark)
    files = lakebed.connect(tmp_path / "files", spark=spark)
    for number, messages in enumerate((first, second)):
        topic.send([(None, each) for each in messages])
        topic.sync("aws-dms-json", primary_keys=["id"])
        hour = tmp_path / f"in/2024/01/0{number}"
        hour.mkdir(parents=True)
        (tmp_path / "whole").write_bytes(b"\n".join(messages))
        (tmp_path / "whole").rename(hour / f"stream-{number}")
        options = {"path": str(tmp_path / "in"), "format": "aws-dms-json", "recursive": True, "name_pattern": "*"}
        run = lakebed.cdc.sync(
            files,
            "files",
            "lk",
            source_options=options,
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            primary_keys=["id"],
        )
        assert run.wait(PATIENCE_S)
    expected = [{"id": "0", "v": "a"}, {"id": "1", "v": "b"}, {"id": "7", "v": "c"}, {"id": "8", "v": "d"}]
    assert topic.rows() == expected
    assert sorted(files.table("lk.t").to_arrow().to_pylist(), key=lambda row: row["id"]) == expected


def test_rows_in_files_are_tables_by_their_directories(spark: Any, tmp_path: Path) -> None:
    """Lines of files are rows whose table is called like the directory; later ones take the places of those with their
    key; bad lines are counted."""
    lake = lakebed.connect(tmp_path / "lake", spark=spark)
    options = {"path": str(tmp_path / "in"), "format": "json", "recursive": True, "skip_corrupt_records": True}
    for number in range(2):
        for table in ("orders", "line items"):
            place = tmp_path / "in" / table
            place.mkdir(parents=True, exist_ok=True)
            lines = [{"id": n, "v": f"{table} {number}"} for n in range(number, number + 2)]
            (tmp_path / "whole").write_text("\n".join([*map(json.dumps, lines), "[1]"]))
            (tmp_path / "whole").rename(place / f"{number}.json")
        run = lakebed.cdc.sync(
            lake,
            "files",
            "lk",
            source_options=options,
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            primary_keys=["id"],
        )
        assert run.wait(PATIENCE_S)
        assert run.progress.skipped_records == 2
    for table in ("orders", "line items"):
        found = lake.table(f"lk.`{table}`").to_arrow().to_pylist()
        assert sorted(found, key=lambda row: row["id"]) == [
            {"id": str(n), "v": f"{table} {min(n, 1)}"} for n in range(3)
        ]


@pytest.mark.parametrize("key_format", ["json", "text"])
def test_a_topic_of_rows_is_a_table(broker: KafkaServer, spark: Any, tmp_path: Path, key_format: str) -> None:
    """A random history of rows and tombstones over partitions, in several syncs, some of deletes alone, leaves what a
    plain model says."""
    topic = Topic(broker, tmp_path, spark, partitions=2)
    chance = random.Random(3)
    given: dict[str, Any] = {"key_format": key_format, "messages_per_batch": 40}
    given |= {"key_columns": ["id"]} if key_format == "text" else {}
    model: dict[str, Any] = {}
    for step in range(4):
        messages = []
        for number in range(60):
            key = str(chance.randint(0, 30))
            told = key.encode() if key_format == "text" else _text({"id": int(key)})
            if step == 2 or chance.random() < 0.3:
                model.pop(key, None)
                messages.append((told, None))
            else:
                row = {"v": f"{step}.{number}"} | ({"w": number} if step == 3 else {})
                model[key] = row
                messages.append((told, _text(row)))
        topic.send(messages)
        topic.sync("json", **given)
    found = {row["id"]: (row["v"], row["w"]) for row in topic.rows()}
    assert found == {key: (row["v"], None if "w" not in row else str(row["w"])) for key, row in model.items()}
    assert topic.lake.table("lk.t").primary_key == ("id",)


def test_rows_fill_the_types_of_a_table_that_is_there(broker: KafkaServer, spark: Any, tmp_path: Path) -> None:
    """Deletes that come first find nothing; values have the types that the table has; what is known of a message, its
    headers too, stands beside the row; without a key format the key is that which is named."""
    topic = Topic(broker, tmp_path, spark)
    columns = {"id": "BIGINT NOT NULL", "amount": "DECIMAL(10, 2)", "tags": "ARRAY<STRING>"}
    topic.lake.create_database("lk")
    topic.lake.create_table("lk.t", columns, primary_key=["id"])
    topic.send([(b"1", None)])
    body = {"id": 1, "amount": 1.5, "tags": ["a", "b"]}
    topic.send(
        [(b"1", _text(body)), (b"2", _text({**body, "id": 2})), (b"2", None)], headers=[("h", b"\xff"), ("h", b"x")]
    )
    given: dict[str, Any] = {"key_format": "text", "key_columns": ["id"]}
    topic.sync("json", metadata_columns=["topic", "partition", "offset", "timestamp", "key", "headers"], **given)
    (row,) = topic.rows()
    assert (row["id"], str(row["amount"]), row["tags"]) == (1, "1.50", ["a", "b"])
    assert (row["topic"], row["partition"], row["offset"], row["key"]) == (topic.name, 0, 1, "1")
    assert row["headers"] == [("h", b"x")]
    assert row["timestamp"].year > 2000


def test_rows_whose_messages_have_no_keys(broker: KafkaServer, spark: Any, tmp_path: Path) -> None:
    """The key is columns of the body that are named; a message without a body stops the sync with what to say."""
    topic = Topic(broker, tmp_path, spark)
    topic.send(
        [(None, _text({"id": 1, "v": "a"})), (None, _text({"id": 2, "v": "b"})), (None, _text({"id": 1, "v": "c"}))]
    )
    topic.sync("json", primary_keys=["id"])
    assert topic.rows() == [{"id": "1", "v": "c"}, {"id": "2", "v": "b"}]
    topic.send([(b"1", None)])
    with pytest.raises(InvalidData, match="nothing says what keys are"):
        topic.sync("json", primary_keys=["id"])
    topic.sync("json", primary_keys=["id"], key_format="json", key_columns=["id"])
    assert topic.rows() == [{"id": "2", "v": "b"}]


def test_a_key_that_is_more_than_that_of_the_messages_is_refused(
    broker: KafkaServer, spark: Any, tmp_path: Path
) -> None:
    """Rows of one message key could stand under two keys of the table, so the sync says that it needs old rows."""
    topic = Topic(broker, tmp_path, spark)
    topic.send([(b"1", _text({"day": "x", "v": "a"}))])
    given: dict[str, Any] = {"key_format": "text", "key_columns": ["id"], "primary_keys": ["id", "day"]}
    with pytest.raises(InvalidData, match="without the old row"):
        topic.sync("json", **given)


def test_deletes_that_come_before_any_row_make_no_table(broker: KafkaServer, spark: Any, tmp_path: Path) -> None:
    """Nobody knows its columns; the first row brings them, with the types that are its own."""
    with SchemaRegistry() as registry:
        registry.add(1, _ROW)
        topic = Topic(broker, tmp_path, spark)
        given: dict[str, Any] = {"key_format": "text", "key_columns": ["id"], "registry": registry.url}
        topic.send([(b"1", None)])
        topic.sync("avro", **given)
        with pytest.raises(NotFound):
            topic.rows()
        topic.send([(b"1", registry.message(1, {"id": 1, "v": "a"})), (b"2", registry.message(1, {"id": 2, "v": "b"}))])
        topic.sync("avro", **given)
        topic.send([(b"2", None)])
        topic.sync("avro", drop="follow", **given)
        assert topic.rows() == [{"id": 1, "v": "a"}]


def test_rows_in_avro_with_schemas_that_change(
    broker: KafkaServer, registry: SchemaRegistry, spark: Any, tmp_path: Path
) -> None:
    """Columns and types are those of the schema of each message, the key is that of its key; tombstones delete; bad
    messages are counted with their reason, or stop the sync with their place."""
    topic = Topic(broker, tmp_path, spark)
    for number, schema in ((1, _ROW), (2, _WIDE), (7, _KEY)):
        registry.add(number, schema)

    def told(number: int, **row: Any) -> Message:
        return registry.message(7, {"id": row["id"]}), registry.message(number, row)

    given: dict[str, Any] = {"key_format": "avro", "registry": registry.url}
    topic.send([told(1, id=1, v="a"), told(2, id=2, v="b", w=2.5), told(1, id=2, v="c"), told(2, id=3, v="d", w=None)])
    topic.sync("avro", **given)
    topic.send([(told(1, id=1, v="")[0], None), told(2, id=4, v="e", w=0.5)])
    topic.sync("avro", **given)
    expected = [{"id": 2, "v": "c", "w": None}, {"id": 3, "v": "d", "w": None}, {"id": 4, "v": "e", "w": 0.5}]
    assert topic.rows() == expected
    assert [str(field.type) for field in topic.lake.table("lk.t").schema.fields] == [
        "BIGINT NOT NULL",
        "STRING NOT NULL",
        "DOUBLE",
    ]
    good = told(1, id=5, v="f")
    topic.send([(good[0], b"\0\0\0\0\x09" + b"what"), (good[0], (good[1] or b"")[:-1]), good])
    with pytest.raises(InvalidData, match=r"offset 6: .* does not know schema 9"):
        topic.sync("avro", **given)
    progress = topic.sync("avro", **given, skip_corrupt_records=True)
    assert (progress.rows, progress.skipped_records) == (1, 2)
    assert topic.rows() == [*expected, {"id": 5, "v": "f", "w": None}]


def _envelope(*fields: dict[str, Any]) -> dict[str, Any]:
    value = {"type": "record", "name": "Value", "fields": list(fields)}
    source = [{"name": "db", "type": "string"}, {"name": "table", "type": "string"}, {"name": "ts_ms", "type": "long"}]
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", value]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": {"type": "record", "name": "Source", "fields": source}},
            {"name": "op", "type": "string"},
        ],
    }


def test_changes_of_debezium_in_avro_outlast_a_registry_that_is_away(
    broker: KafkaServer, registry: SchemaRegistry, spark: Any, tmp_path: Path
) -> None:
    """A registry that needs a login and is away when the sync starts is waited for; a column whose type grows is
    followed under its new schema; each change counts once."""
    topic = Topic(broker, tmp_path, spark)
    key, v = {"name": "id", "type": "long"}, {"name": "v", "type": ["null", "int"]}
    registry.add(1, _envelope(key, v))
    registry.add(2, _envelope(key, {**v, "type": ["null", "long"]}, {"name": "w", "type": ["null", "string"]}))
    registry.add(7, _KEY)

    def told(schema: int, op: str, before: Any, after: Any) -> Message:
        source = {"db": "shop", "table": "t", "ts_ms": 1_700_000_000_000}
        body = {"before": before, "after": after, "source": source, "op": op}
        return registry.message(7, {"id": (after or before)["id"]}), registry.message(schema, body)

    topic.send([told(1, "c", None, {"id": n, "v": n}) for n in range(4)])
    registry.stop()
    run = topic.start("debezium-avro", "200 milliseconds", registry=registry.url, give_up_after="forever")
    with run:
        _until(run, lambda: "registry" in str(run.progress.trouble))
        registry.start()
        _until(run, lambda: topic.lake.has_table("lk.t") and len(topic.rows()) == 4)
        old = {"id": 1, "v": 1}
        wide = {"id": 1, "v": 1 << 40, "w": "x"}
        topic.send([told(2, "u", {**old, "w": None}, wide), told(1, "d", {"id": 2, "v": 2}, None)])
        _until(run, lambda: len(topic.rows()) == 3)
    assert topic.rows() == [{"id": 0, "v": 0, "w": None}, wide, {"id": 3, "v": 3, "w": None}]
    assert topic.lake.table("lk.t").primary_key == ("id",)


@pytest.mark.parametrize("form", ["json", "avro", "debezium-avro"])
def test_a_sync_that_dies_anywhere_has_each_message_once(
    broker: KafkaServer, registry: SchemaRegistry, spark: Any, tmp_path: Path, form: str
) -> None:
    """Random histories over partitions, in small batches of which a step in seven dies and is repeated or started
    anew, under schemas that take turns, leave what a plain model says."""
    topic = Topic(broker, tmp_path, spark, partitions=2)
    key, v, w = (
        {"name": name, "type": kind} for name, kind in (("id", "long"), ("v", "string"), ("w", ["null", "int"]))
    )
    for number, fields in ((1, (key, v)), (2, (key, v, w))):
        plain = {"type": "record", "name": "Row", "fields": list(fields)}
        registry.add(number, plain if form == "avro" else _envelope(*fields))
    registry.add(7, _KEY)
    chance = random.Random(form)
    model: dict[int, dict[str, Any]] = {}
    given: dict[str, Any] = {} if form == "json" else {"registry": registry.url}
    given |= {"key_format": "json"} if form == "json" else {"key_format": "avro"} if form == "avro" else {}
    source = KafkaSource(broker.address, topic.name, format=form, messages_per_batch=15, **given)
    sync = LocalSync(topic.lake, source, tmp_path / "checkpoint", seed=4, dies=0.15, table="t")
    for _ in range(6):
        messages = []
        for number in range(40):
            place, schema = chance.randint(1, 12), chance.choice((1, 2))
            old, row = model.get(place), {"id": place, "v": f"v{number}"} | ({"w": number} if schema == 2 else {})
            is_gone = old is not None and chance.random() < 0.3
            if is_gone:
                del model[place]
            else:
                model[place] = {**row, "w": row.get("w")}
            name = _text({"id": place}) if form == "json" else registry.message(7, {"id": place})
            if form == "json":
                body = None if is_gone else _text(row)
            elif form == "avro":
                body = None if is_gone else registry.message(schema, row)
            else:
                before = None if old is None else {part: old[part] for part in (("id", "v", "w")[: schema + 1])}
                told = {"before": before, "after": None if is_gone else row}
                told["op"] = "d" if is_gone else "c" if old is None else "u"  # type: ignore[assignment]
                body = registry.message(schema, {**told, "source": {"db": "d", "table": "t", "ts_ms": 5}})
            messages.append((name, body))
        topic.send(messages)
        for _ in range(chance.randint(1, 4)):
            sync.step()
    while sync.step():
        pass
    sync.stop()
    found = [{name: row[name] for name in ("id", "v", "w")} for row in topic.rows()]
    expected = [
        {**row, "id": str(row["id"]), "w": None if row["w"] is None else str(row["w"])} if form == "json" else row
        for row in model.values()
    ]
    assert found == sorted(expected, key=lambda row: str(row["id"]))


def _until(run: lakebed.cdc.SyncRun, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert not run.wait(0.1), "it ended"  # also makes it go on after an outage
        assert time.monotonic() < deadline
