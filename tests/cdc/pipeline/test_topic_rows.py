"""Messages that are rows: read from offset to offset, typed as declared, each once."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import uuid4

import pytest
from tests.cdc.pipeline.test_on_spark import Kafka

import lakebed
from lakebed.connectors import RowInsert, landing_insert, reader, reading_query
from lakebed.connectors.kafka import TopicReader, change_source_options
from lakebed.errors import InvalidData, InvalidOption, NotFound
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.session import connector_tables


@pytest.fixture
def lake() -> lakebed.Lake:
    return lakebed.connect(f"memory://{uuid4().hex}/warehouse")


def _defined(lake: lakebed.Lake, columns: str, **options: str) -> ConnectorTable:
    given = {"connector": "kafka", "topic": "rows", "format": "json", **options}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    lake.sql(f"CREATE OR REPLACE TABLE k ({columns}) WITH ({listed})")
    return connector_tables(lake)["default", "k"]


def _topic(kafka: Kafka, **more: str) -> dict[str, str]:
    return {"properties.bootstrap.servers": kafka.address, "properties.group.id": "g", **more}


def test_rows_of_json_messages(lake: lakebed.Lake) -> None:
    """Values of all kinds; what is missing is null, what is more is left out, empty messages are none."""
    kafka = Kafka()
    body = {"id": 1, "v": "a\nb", "d": 1.25, "n": {"x": [1, 2]}, "at": "2024-01-02 03:04:05", "more": {"a": 1}}
    kafka.send_bytes("rows", json.dumps(body, indent=2).encode(), b'{"id": "2"}')
    kafka._producer.produce("rows", value=None, key="k")
    kafka._producer.flush(10)
    columns = "id BIGINT, v STRING, d DECIMAL(10, 2), n ROW<x ARRAY<INT>>, at TIMESTAMP(3), "
    columns += "p INT METADATA FROM 'partition' VIRTUAL, `offset` BIGINT METADATA VIRTUAL, twice AS id * 2"
    table = _defined(lake, columns, **_topic(kafka))
    rows, place, is_end = reader(table).read(None, 100)
    assert not is_end
    assert rows.schema.names == ["id", "v", "d", "n", "at", "p", "offset"]
    found = sorted(rows.to_pylist(), key=lambda row: row["id"])
    assert (found[0]["v"], float(found[0]["d"]), found[0]["n"]) == ("a\nb", 1.25, {"x": [1, 2]})
    assert found[0]["at"].isoformat() == "2024-01-02T03:04:05"
    assert [found[1][name] for name in ("id", "v", "d", "n", "at")] == [2, None, None, None, None]
    assert reader(table).read(place, 100)[0].num_rows == 0
    assert reader(table).progress(place)[0] == reader(table).progress(place)[1]
    lake.sql("CREATE TABLE t (id BIGINT, twice BIGINT, p INT)")
    one = RowInsert(lake, table, "t", "SELECT id, twice, p FROM k WHERE v IS NOT NULL", name="n", database="default")
    one.check()
    assert one.step().inserted == 1
    landed = landing_insert(lake, table)
    landed.check()
    assert landed.step().inserted == 2
    assert sorted(lake.query(f"SELECT id, twice FROM ({reading_query(lake, table)})").fetchall()) == [(1, 2), (2, 4)]


def test_any_position_goes_on(lake: lakebed.Lake) -> None:
    """Random steps by new readers, with messages that come between, give each message once."""
    kafka = Kafka()
    chance = random.Random(2)
    sent, found = 0, []
    place: str | None = None
    kafka.send_bytes("rows", b'{"id": 0}')
    sent += 1
    table = _defined(lake, "id BIGINT", **_topic(kafka))
    for _ in range(12):
        count = chance.randint(0, 30)
        kafka.send_bytes("rows", *(json.dumps({"id": sent + n}).encode() for n in range(count)))
        sent += count
        rows, place, _ = TopicReader(table).read(place, chance.randint(1, 25))
        found += rows["id"].to_pylist()
    while len(found) < sent:
        rows, place, _ = TopicReader(table).read(place, 40)
        assert rows.num_rows
        found += rows["id"].to_pylist()
    assert sorted(found) == list(range(sent))


def test_bad_messages_are_named_or_left_out(lake: lakebed.Lake) -> None:
    """Topic, partition and offsets are named; with the option, good messages beside them are read."""
    kafka = Kafka()
    bodies = [b'{"id": 1}', b"no json", b'{"id": "x"}', b'{"id": 4}', b"[1]"]
    kafka.send_bytes("rows", *bodies)
    strict = _defined(lake, "id BIGINT", **_topic(kafka))
    with pytest.raises(InvalidData, match="topic `rows`"):
        reader(strict).read(None, 10)
    lenient = _defined(lake, "id BIGINT", **_topic(kafka, **{"json.ignore-parse-errors": "true"}))
    rows, _, _ = reader(lenient).read(None, 10)
    assert sorted(rows["id"].to_pylist()) == [1, 4]


def test_lines_of_csv(lake: lakebed.Lake) -> None:
    """Columns by position, a delimiter of one's own."""
    kafka = Kafka()
    kafka.send_bytes("rows", b"1;a", b'2;"b;c"')
    table = _defined(lake, "id INT, v STRING", **_topic(kafka, format="csv", **{"csv.field-delimiter": ";"}))
    rows, _, _ = reader(table).read(None, 10)
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == [(1, "a"), (2, "b;c")]


def test_where_it_begins(lake: lakebed.Lake) -> None:
    """From now on, if so asked; a topic that is not there is named."""
    kafka = Kafka()
    kafka.send_bytes("rows", b'{"id": 1}')
    table = _defined(lake, "id INT", **_topic(kafka, **{"scan.startup.mode": "latest-offset"}))
    rows, place, _ = reader(table).read(None, 10)
    assert rows.num_rows == 0
    kafka.send_bytes("rows", b'{"id": 2}')
    assert reader(table).read(place, 10)[0]["id"].to_pylist() == [2]
    lake.sql("CREATE TABLE t (id INT)")
    one = RowInsert(lake, table, "t", "SELECT id FROM k", name="n", database="default")
    assert one.step().way == "none"
    kafka.send_bytes("rows", b'{"id": 3}')
    assert one.step().inserted == 1
    missing = _defined(lake, "id INT", **_topic(kafka, topic="rows;nope"))
    with pytest.raises(NotFound, match="`nope`"):
        reader(missing).read(None, 10)


def test_java_words_for_a_login(lake: lakebed.Lake) -> None:
    """User and password are taken out of a JAAS text; one without them is refused, and not repeated."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'
    options: dict[str, Any] = {
        "properties.bootstrap.servers": "b",
        "format": "maxwell-json",
        "properties.sasl.jaas.config": jaas,
        "properties.security.protocol": "SASL_SSL",
    }
    table = _defined(lake, "id INT, PRIMARY KEY (id) NOT ENFORCED", **options)
    assert change_source_options(table)["properties"] == {
        "sasl.username": "u",
        "sasl.password": "hunter2",
        "security.protocol": "SASL_SSL",
    }
    assert "hunter2" not in str(lake.sql("SHOW CREATE TABLE k").collect())
    wrong = _defined(
        lake, "id INT, PRIMARY KEY (id) NOT ENFORCED", **{**options, "properties.sasl.jaas.config": "hunter2"}
    )
    with pytest.raises(InvalidOption, match="username") as raised:
        change_source_options(wrong)
    assert "hunter2" not in str(raised.value)
