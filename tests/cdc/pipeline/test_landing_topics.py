"""Topics of a real Kafka that SQL defines, with messages of changes and of rows by key, land in the lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.brokers import shared_broker
from tests.patience import PATIENCE_S

import lakebed
from lakebed.connectors import SinkInsertTarget, is_synced, land, reader, reading_query
from lakebed.errors import InvalidData, InvalidOption, InvalidSchema, LakebedError, StorageError, Unsupported
from lakebed.sql.session import connector_tables
from lakebed.testing.kafka_server import KafkaServer
from lakebed.testing.schema_registry import SchemaRegistry
from lakebed.views.insert import StreamingInsert

pytestmark = pytest.mark.spark

_LOGIN = "ada:s3cret"


@pytest.fixture(scope="module")
def broker() -> KafkaServer:
    return shared_broker()


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry(_LOGIN) as found:
        yield found


class Shop:
    """A lake, a topic, and a table over it."""

    def __init__(self, broker: KafkaServer, place: Path, spark: Any) -> None:
        self.lake = lakebed.connect(place / "warehouse", spark=spark)
        self._place, self._address, self._broker = place, broker.address, broker
        self.topic = ""
        self.another_topic()

    def another_topic(self) -> None:
        self.topic = f"t{uuid4().hex[:12]}"
        self._broker.create_topic(self.topic)

    def define(self, name: str, columns: str, **options: str) -> Any:
        given = {"topic": self.topic, "properties.bootstrap.servers": self._address, **options}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        self.lake.sql(f"CREATE OR REPLACE TABLE {name} ({columns}) WITH ({listed})")
        return connector_tables(self.lake)["default", name]

    def send(self, *messages: tuple[bytes | None, bytes | None], headers: Any = None) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._address, "log_level": 0})
        for key, body in messages:
            producer.produce(self.topic, key=key, value=body, headers=headers)
        assert not producer.flush(PATIENCE_S)

    def landed(self, table: Any) -> list[tuple[Any, ...]]:
        run = land(self.lake, [table], str(self._place / f"checkpoint-{table.name}"), trigger={"availableNow": True})
        assert run.wait(PATIENCE_S)
        return sorted(self.lake.query(reading_query(self.lake, table), engine="duckdb").fetchall())


@pytest.fixture
def shop(broker: KafkaServer, tmp_path: Path, spark: Any) -> Shop:
    return Shop(broker, tmp_path, spark)


def test_what_upsert_kafka_writes_it_reads(shop: Shop) -> None:
    """Totals that change and go are the same rows when the topic is read back, with the declared types, and with what
    is known of each message."""
    lake = shop.lake
    lake.sql("CREATE TABLE orders (id INT, cust INT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) "
             "WITH ('bucket' = '1', 'changelog-producer' = 'lookup')")  # fmt: skip
    lake.sql("INSERT INTO orders VALUES (1, 1, 10.5), (2, 1, 5), (3, 2, 7)")
    options = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    key = "PRIMARY KEY (cust) NOT ENFORCED"
    sink = shop.define("out_", f"cust INT, total DECIMAL(20, 2), {key}", **options)
    query = "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"
    insert = StreamingInsert(lake, "out_", query, name="n", database="default", into=SinkInsertTarget(sink, "n"))
    insert.check()
    insert.step()
    columns = f"total DECIMAL(20, 2), cust INT, `offset` BIGINT METADATA VIRTUAL, {key}"
    source = shop.define("back", columns, **options)
    assert is_synced(source)
    assert [(float(total), cust) for total, cust, _ in shop.landed(source)] == [(7.0, 2), (15.5, 1)]
    lake.sql("DELETE FROM orders WHERE id = 3")
    lake.sql("INSERT INTO orders VALUES (4, 1, 1)")
    insert.step()
    ((total, cust, offset),) = shop.landed(source)
    assert (float(total), cust, offset >= 2) == (16.5, 1, True)


@pytest.mark.parametrize("key_format", ["raw", "avro-confluent"])
def test_rows_by_key_in_avro(
    shop: Shop, registry: SchemaRegistry, key_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies of Avro with keys that are texts or Avro, and a login that comes from the environment."""
    monkeypatch.setenv("SHOP_REGISTRY", _LOGIN)
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": {"type": "int", "logicalType": "date"}}]
    registry.add(1, {"type": "record", "name": "Row", "fields": fields})
    registry.add(2, {"type": "record", "name": "Key", "fields": fields[:1]})
    table = shop.define(
        "t",
        "id STRING, at DATE, PRIMARY KEY (id) NOT ENFORCED",
        **{"connector": "upsert-kafka", "key.format": key_format, "value.format": "avro-confluent"},
        **{"avro-confluent.url": registry.url, "avro-confluent.basic-auth.user-info": "${env:SHOP_REGISTRY}"},
    )
    a, b = (name.encode() if key_format == "raw" else registry.message(2, {"id": name}) for name in "ab")
    shop.send((a, registry.message(1, {"id": "a", "at": 1})), (b, registry.message(1, {"id": "b", "at": 2})), (a, None))
    assert [(key, str(at)) for key, at in shop.landed(table)] == [("b", "1970-01-03")]


def test_changes_in_avro_and_of_goldengate(shop: Shop, registry: SchemaRegistry) -> None:
    """Flink's name for Debezium in Avro lands with the types of the schema and shows no login; GoldenGate's messages
    land with those that are declared."""
    value = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, {"name": "v", "type": "int"}]}
    source = {
        "type": "record",
        "name": "S",
        "fields": [
            {"name": "db", "type": "string"},
            {"name": "table", "type": "string"},
            {"name": "ts_ms", "type": "long"},
        ],
    }
    fields = [{"name": "before", "type": ["null", value]}, {"name": "after", "type": ["null", "Value"]}]
    fields += [{"name": "source", "type": source}, {"name": "op", "type": "string"}]
    registry.add(1, {"type": "record", "name": "Envelope", "fields": fields})
    table = shop.define(
        "t",
        "id INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED",
        **{"connector": "kafka", "format": "debezium-avro-confluent", "debezium-avro-confluent.url": registry.url},
        **{"debezium-avro-confluent.basic-auth.user-info": _LOGIN},
    )
    told = {"before": None, "after": {"id": 1, "v": 2}, "op": "c", "source": {"db": "d", "table": "t", "ts_ms": 1}}
    shop.send((None, registry.message(1, told)))
    assert shop.landed(table) == [(1, 2)]
    assert "s3cret" not in str(shop.lake.sql("SHOW CREATE TABLE t").collect())
    shop.another_topic()
    body = {"table": "S.T", "op_type": "I", "op_ts": "2024-01-02 03:04:05", "primary_keys": ["id"]}
    columns = "id INT, v DECIMAL(4, 1), PRIMARY KEY (id) NOT ENFORCED"
    other = shop.define("o", columns, connector="kafka", format="ogg-json")
    shop.send((None, json.dumps(body | {"after": {"id": 7, "v": 1.5}}).encode()))
    assert [(key, float(v)) for key, v in shop.landed(other)] == [(7, 1.5)]


def test_rows_in_avro_that_only_come(shop: Shop, registry: SchemaRegistry) -> None:
    """Each message is read with its own schema, columns by their names in the declared types, headers beside them; a
    bad one is named, or left out, and a registry that is away is an outage."""
    fields = [{"name": "id", "type": "int"}, {"name": "v", "type": "string"}]
    registry.add(1, {"type": "record", "name": "Row", "fields": fields})
    registry.add(2, {"type": "record", "name": "Row", "fields": [fields[1], fields[0], {"name": "w", "type": "int"}]})
    options = {
        "connector": "kafka",
        "format": "avro-confluent",
        "avro-confluent.url": registry.url,
        "avro-confluent.basic-auth.user-info": _LOGIN,
    }
    columns = "id BIGINT, w INT, h MAP<STRING, BYTES> METADATA FROM 'headers' VIRTUAL"
    table = shop.define("t", columns, **options)
    rows = [registry.message(1, {"id": 1, "v": "a"}), registry.message(2, {"id": 2, "v": "b", "w": 3})]
    shop.send(*((None, row) for row in (*rows, rows[0])), headers=[("k", b"x")])
    registry.stop()
    with pytest.raises(StorageError, match="does not answer"):
        reader(table).read(None, 10)
    registry.start()
    found, place, _ = reader(table).read(None, 10)
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (1, None, [("k", b"x")]),
        (2, 3, [("k", b"x")]),
        (1, None, [("k", b"x")]),
    ]
    shop.send((None, rows[0]), (None, b"\0\0\0\0\1"), (None, rows[1]))
    with pytest.raises(InvalidData, match="offsets 3 to 5"):
        reader(table).read(place, 10)
    lenient = shop.define("t", columns, **options, **{"avro-confluent.ignore-parse-errors": "true"})
    assert reader(lenient).read(place, 10)[0]["id"].to_pylist() == [1, 2]


def test_what_can_not_be_read_or_written_is_refused(shop: Shop) -> None:
    """Formats that are written only are refused when a topic is to land, those that are read only when it is to be
    written; a registry, and a text key of several columns, are missed by name."""
    key = "PRIMARY KEY (a) NOT ENFORCED"
    upsert = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    avro = {"connector": "kafka", "format": "debezium-avro-confluent"}
    wrong: list[tuple[type[LakebedError], str, str, dict[str, str]]] = [
        (InvalidOption, "`avro-confluent.url`", f"a INT, {key}", {**upsert, "value.format": "avro-confluent"}),
        (InvalidOption, "one text", "a INT, b INT, PRIMARY KEY (a, b) NOT ENFORCED", {**upsert, "key.format": "raw"}),
        (InvalidOption, "`debezium-avro-confluent.url`", f"a INT, {key}", avro),
        (InvalidSchema, "has a primary key", f"a INT, {key}", {"connector": "kafka", "format": "json"}),
        (Unsupported, "`debezium-avro-confluent.subject`", f"a INT, {key}",
         {"connector": "kafka", "format": "debezium-json", "debezium-avro-confluent.subject": "x"}),
    ]  # fmt: skip
    for kind, part, columns, options in wrong:
        with pytest.raises(kind) as caught:
            shop.define("w", columns, **options)
        assert part in f"{caught.value.message} {caught.value.hint}"
    for option in ("key.format", "value.format"):
        with pytest.raises(Unsupported, match="written, not read"):
            shop.landed(shop.define("r", f"a INT, {key}", **{**upsert, option: "csv"}))
    with pytest.raises(Unsupported, match="read, not written"):
        SinkInsertTarget(shop.define("s", f"a STRING, {key}", **{**upsert, "key.format": "raw"}), "n")
