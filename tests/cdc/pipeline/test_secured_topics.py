"""A real Kafka that asks who comes, and shows its certificate: properties of the client pass through to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.compat.judges.at_hand import prepared_jars

from lakebed.cdc.formats import message_format
from lakebed.cdc.sources.kafka import KafkaSource
from lakebed.cdc.sources.kafka.client import message_blocks, texts_of, watermarks
from lakebed.errors import LakebedError, StorageError
from lakebed.testing.kafka_server import PASSWORD, KafkaServer

_SCRAM_PASSWORD = "bob's word"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    """One with a topic of two messages."""
    confluent = pytest.importorskip("confluent_kafka")
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes a certificate, is not installed")
    with KafkaServer(prepared_jars("kafka"), secured=True) as server:
        server.create_topic("t")
        server.add_scram_user("bob", _SCRAM_PASSWORD)
        producer = confluent.Producer({"bootstrap.servers": server.address, "log_level": 0})
        for number in range(2):
            body = {"database": "d", "table": "t", "type": "insert", "ts": 1, "data": {"id": number}}
            producer.produce("t", value=json.dumps(body).encode())
        producer.flush(30)
        yield server


def _login(mechanism: str, user: str, password: str) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}


def _found(address: str, properties: dict[str, str]) -> list[Any]:
    """What a source with these properties reads."""
    source = KafkaSource(address, ["t"], format="maxwell-json", properties=properties)
    try:
        source.check()
        ((_, end),) = watermarks(source.settings).values()
        form = message_format("maxwell-json")
        return [
            row["id"]
            for bodies, about in message_blocks(source.settings, "t", 0, 0, end)
            for chunk in form.chunks(texts_of(bodies), 0, about)
            for row in pa.Table.from_batches([chunk.rows()]).to_pylist()
        ]
    finally:
        source.close()


@pytest.mark.parametrize(
    ("mechanism", "user", "password"), [("PLAIN", "ada", PASSWORD), ("SCRAM-SHA-512", "bob", _SCRAM_PASSWORD)]
)
def test_users_log_in(broker: KafkaServer, mechanism: str, user: str, password: str) -> None:
    """With user and password messages are read; with another password none are, and no text shows it."""
    protocol = {"security.protocol": "sasl_plaintext"}
    address = broker.door("SASL_PLAINTEXT")
    assert _found(address, protocol | _login(mechanism, user, password)) == ["0", "1"]
    with pytest.raises(StorageError) as caught:
        _found(address, protocol | _login(mechanism, user, "wrong word"))
    assert "wrong word" not in str(caught.value)


def test_certificates_are_looked_at(broker: KafkaServer) -> None:
    """TLS with the server's certificate reads messages, with and without a login; without it the server is not
    trusted."""
    trusted = {"ssl.ca.location": str(broker.certificate)}
    assert _found(broker.door("SSL"), {"security.protocol": "ssl", **trusted}) == ["0", "1"]
    both = {"security.protocol": "sasl_ssl", **trusted, **_login("SCRAM-SHA-512", "bob", _SCRAM_PASSWORD)}
    assert _found(broker.door("SASL_SSL"), both) == ["0", "1"]
    with pytest.raises(LakebedError):
        _found(broker.door("SSL"), {"security.protocol": "ssl"})


def test_properties_are_in_no_text(broker: KafkaServer, tmp_path: Path) -> None:
    """What Spark is told holds no password: the properties stand in a file that only its owner reads."""
    source = KafkaSource(broker.door("SASL_SSL"), ["t"], properties=_login("PLAIN", "ada", PASSWORD))
    try:
        told = source.reader_options()["settings"]
        assert PASSWORD not in told
        place = Path(json.loads(told)["properties_file"])
        assert place.stat().st_mode & 0o077 == 0
    finally:
        source.close()
    assert not place.exists()
