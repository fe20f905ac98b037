"""A real broker of Kafka for all tests of a process that need one; skips them where its jars can not be had."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

import pytest
from tests.compat.judges.at_hand import prepared_jars

from lakebed.testing.kafka_server import KafkaServer


def shared_broker() -> KafkaServer:
    """The one that is running: whoever stops it starts it again."""
    pytest.importorskip("confluent_kafka")
    jars = prepared_jars("kafka")
    return _started(tuple(jars))


@cache
def _started(jars: tuple[Path, ...]) -> KafkaServer:
    server = KafkaServer(jars)
    atexit.register(server.remove)
    return server.start()
