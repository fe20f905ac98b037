"""A Kafka cluster as the source sees it: topics, the ends of their partitions, and messages between two offsets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from lakebed.errors import InvalidArgument, MissingDependency, NotFound, StorageError
from lakebed.records import dataclass

Partition = tuple[str, int]
_BLOCK_MESSAGES: Final = 16_384
_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.2
"""A short one: behind the last message come marks of transactions, which no message tells of."""
_TIMES: Final = {0: "NoTimestampType", 1: "CreateTime", 2: "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """All that a task has to know; no secret."""

    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    format: str = "debezium-json"
    modes: tuple[str, ...] = ()
    start: str = "earliest"
    messages_per_batch: int = 200_000
    properties_file: str | None = None
    wait_ms: int = 60_000
    skip_corrupt_records: bool = False

    def to_text(self) -> str:
        """JSON for Spark's options."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Inverse of `to_text`."""
        body = json.loads(text)
        return cls(**{**body, "topics": tuple(body["topics"]), "modes": tuple(body["modes"])})

    def follows(self, topic: str) -> bool:
        """Whether a topic is one of those to follow."""
        if self.topic_pattern is None:
            return topic in self.topics
        return re.fullmatch(self.topic_pattern, topic) is not None

    def properties(self) -> dict[str, str]:
        """Properties of the client, secrets among them."""
        if self.properties_file is None:
            return {}
        try:
            body = json.loads(Path(self.properties_file).read_text())
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"{self.properties_file} can not be read as JSON", hint="it holds one object: names and texts"
            ) from error
        return {str(key): str(value) for key, value in body.items()}


@contextmanager
def consumer(settings: KafkaSettings) -> Iterator[Any]:
    """A client that belongs to no group and commits nothing: the offsets are Spark's."""
    kafka = confluent()
    made = kafka.Consumer(
        {
            **settings.properties(),
            "bootstrap.servers": settings.bootstrap_servers,
            "group.id": "lakebed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        yield made
    except kafka.KafkaException as error:
        raise StorageError(
            f"Kafka at {settings.bootstrap_servers}: {error.args[0].str() if error.args else error}",
            hint="check bootstrap_servers, the security properties, and that the cluster runs",
        ) from None
    finally:
        made.close()


def list_topics(settings: KafkaSettings) -> dict[str, list[int]]:
    """All topics with their partitions."""
    with consumer(settings) as client:
        return _topics(client)


def _topics(client: Any) -> dict[str, list[int]]:
    return {name: sorted(topic.partitions) for name, topic in client.list_topics(timeout=_TIMEOUT_S).topics.items()}


def watermarks(settings: KafkaSettings) -> dict[Partition, tuple[int, int]]:
    """The first offset that is there, and the next that will be written, of each partition that is followed."""
    kafka = confluent()
    found = {}
    with consumer(settings) as client:
        for topic, partitions in sorted(_topics(client).items()):
            if settings.follows(topic):
                for number in partitions:
                    place = kafka.TopicPartition(topic, number)
                    found[topic, number] = client.get_watermark_offsets(place, timeout=_TIMEOUT_S)
    return found


Block = tuple[pa.Array, pa.RecordBatch]
"""Bodies of messages, and what is known of each beside it."""


def message_blocks(settings: KafkaSettings, topic: str, partition: int, start: int, end: int) -> Iterator[Block]:
    """Messages from one offset up to another, some thousand at a time."""
    kafka = confluent()
    with consumer(settings) as client:
        place = kafka.TopicPartition(topic, partition, start)
        client.assign([place])
        position, waited = start, time.monotonic()
        while position < end:
            messages = client.consume(min(_BLOCK_MESSAGES, end - position), timeout=_POLL_S)
            wanted = []
            for message in messages:
                if message.error() is not None:
                    raise _gone(settings, topic, partition, start, message.error())
                if message.offset() < end:
                    wanted.append(message)
                position = message.offset() + 1
            if wanted:
                yield texts_of([message.value() for message in wanted]), _about(wanted, topic, partition)
            if not messages:
                # Marks of transactions and messages that were compacted away are passed over without a word.
                position = max(position, client.position([place])[0].offset)
                if time.monotonic() - waited > settings.wait_ms / 1000:
                    raise StorageError(
                        f"topic `{topic}`, partition {partition}: nothing came after offset {position} of {end}",
                        hint="a transaction may be open for long; start the sync again when it has ended",
                    )
            else:
                waited = time.monotonic()


def texts_of(bodies: list[bytes | None]) -> pa.Array:
    """Bodies as texts; bytes that are no UTF-8 show as such, so that what reads them says which message it was."""
    values = pa.array(bodies, pa.binary())
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if body is None else body.decode(errors="backslashreplace") for body in bodies])


def _about(messages: list[Any], topic: str, partition: int) -> pa.RecordBatch:
    """What the log itself says of messages."""
    times = [message.timestamp() for message in messages]
    keys: list[bytes | None] = [message.key() for message in messages]
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic] * len(messages), pa.string()),
            "partition": pa.array([partition] * len(messages), pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array([at if kind else None for kind, at in times], pa.timestamp("ms", tz="UTC")),
            "timestamp_type": pa.array([_TIMES.get(kind) for kind, _ in times], pa.string()),
            "key": texts_of([key.encode() if isinstance(key, str) else key for key in keys]),
        }
    )


def _gone(settings: KafkaSettings, topic: str, partition: int, start: int, error: Any) -> Exception:
    kafka = confluent()
    if error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
        return NotFound(
            f"topic `{topic}`, partition {partition}: offset {start} is not there any more",
            hint="the topic has deleted messages that were not read: keep them longer, and sync anew with a new "
            "checkpoint into new tables",
        )
    return StorageError(
        f"topic `{topic}`, partition {partition}: {error.str()}", hint="check that the cluster runs, and start again"
    )


def confluent() -> Any:
    """The client of Kafka, if it is installed."""
    try:
        import confluent_kafka  # optional: the extra `cdc`
    except ImportError as error:
        raise MissingDependency(
            "confluent-kafka is not installed", hint='install it with: pip install "lakebed[cdc]"'
        ) from error
    return confluent_kafka


__all__ = [
    "Block",
    "KafkaSettings",
    "Partition",
    "confluent",
    "consumer",
    "list_topics",
    "message_blocks",
    "texts_of",
    "watermarks",
]
