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

from lakebed.cdc.envelope import RAW_KEY
from lakebed.cdc.formats.reading import KeyForm, Reading
from lakebed.cdc.formats.registry import USER_INFO, Registry
from lakebed.errors import InvalidArgument, MissingDependency, NotFound, StorageError
from lakebed.records import dataclass

Partition = tuple[str, int]
_BLOCK_MESSAGES: Final = 16_384
_BLOCK_BYTES: Final = 16 << 20
_MESSAGES_AT_ONCE: Final = 1024
"""A block is full with so many messages, or so many bytes; so many are taken from the client at a time."""
_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.2
"""A short one: behind the last message come marks of transactions, which no message tells of."""
_REGISTRY: Final = "schema.registry.url"
_NOT_OF_KAFKA: Final = ("schema.registry.", "basic.auth.")
"""Properties of the registry of schemas."""
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
    key_format: str | None = None
    key_columns: tuple[str, ...] = ()
    registry: str | None = None
    registry_auth_env: str | None = None
    registry_auth_file: str | None = None

    def to_text(self) -> str:
        """JSON for Spark's options."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Inverse of `to_text`."""
        body: dict[str, Any] = json.loads(text)
        body |= {key: tuple(value) for key, value in body.items() if isinstance(value, list)}
        return cls(**body)

    def follows(self, topic: str) -> bool:
        """Whether a topic is one of those to follow."""
        if self.topic_pattern is None:
            return topic in self.topics
        return re.fullmatch(self.topic_pattern, topic) is not None

    def reading(self) -> Reading:
        """What is said of keys and of schemas. The properties may tell of the registry, as those of Java's clients."""
        given = self._all_properties()
        key = None if self.key_format is None else KeyForm(self.key_format, self.key_columns)
        url = self.registry or given.get(_REGISTRY)
        if url is None:
            return Reading(key)
        file = self.registry_auth_file
        if file is None and self.registry_auth_env is None and USER_INFO in given:
            file = self.properties_file
        return Reading(key, Registry(url, self.registry_auth_env, file))

    def properties(self) -> dict[str, str]:
        """Properties of the client, secrets among them."""
        return {key: value for key, value in self._all_properties().items() if not key.startswith(_NOT_OF_KAFKA)}

    def _all_properties(self) -> dict[str, str]:
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
"""Bodies of messages as bytes, and what is known of each beside it."""
_BYTES: Final = pa.binary()
_HEADERS: Final = pa.map_(pa.string(), pa.binary())


def message_blocks(settings: KafkaSettings, topic: str, partition: int, start: int, end: int) -> Iterator[Block]:
    """Messages from one offset up to another, some thousand at a time."""
    kafka = confluent()
    with consumer(settings) as client:
        place = kafka.TopicPartition(topic, partition, start)
        client.assign([place])
        position, waited = start, time.monotonic()
        while position < end:
            messages = _block(client, end - position)
            wanted = []
            for message in messages:
                if message.error() is not None:
                    raise _gone(settings, topic, partition, start, message.error())
                if message.offset() < end:
                    wanted.append(message)
                position = message.offset() + 1
            if wanted:
                yield pa.array([message.value() for message in wanted], pa.binary()), _about(wanted, topic, partition)
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


def _block(client: Any, most: int) -> list[Any]:
    """The next messages, as many as a block has, or those that are there. Memory is bounded by bytes, too."""
    found: list[Any] = []
    size_bytes = 0
    while len(found) < min(_BLOCK_MESSAGES, most) and size_bytes < _BLOCK_BYTES:
        asked = min(_MESSAGES_AT_ONCE, most - len(found))
        some = client.consume(asked, timeout=_POLL_S)
        found += some
        if len(some) < asked:
            break
        size_bytes += sum(map(len, some))
    return found


def texts_of(bodies: pa.Array) -> pa.Array:
    """Bodies as texts; bytes that are no UTF-8 show as such, so that what reads them says which message it was."""
    try:
        return bodies.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if body is None else body.decode(errors="backslashreplace") for body in bodies.to_pylist()]
        return pa.array(texts, pa.string())


def _about(messages: list[Any], topic: str, partition: int) -> pa.RecordBatch:
    """What the log itself says of messages."""
    times = [message.timestamp() for message in messages]
    keys = pa.array([key.encode() if isinstance(key := message.key(), str) else key for message in messages], _BYTES)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([topic] * len(messages), pa.string()),
            "partition": pa.array([partition] * len(messages), pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array([at if kind else None for kind, at in times], pa.timestamp("ms", tz="UTC")),
            "timestamp_type": pa.array([_TIMES.get(kind) for kind, _ in times], pa.string()),
            "key": texts_of(keys),
            "headers": _headers(messages),
            RAW_KEY: keys,
        }
    )


def _headers(messages: list[Any]) -> pa.Array:
    """What writers have put beside messages; of a name that is there twice the last one counts."""
    found = [message.headers() for message in messages]
    if not any(found):
        return pa.nulls(len(found), _HEADERS)
    return pa.array([None if each is None else list(dict(each).items()) for each in found], _HEADERS)


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
