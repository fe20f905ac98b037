"""How far an INSERT into a topic is: the last record of a topic of its own, written in the transaction of the rows.

Not the offsets of a consumer group, which a cluster forgets after some days without a reader, and which hold no more
than 4 KB of text: what is forgotten would all be sent again. A compacted topic keeps the last record of a key for ever.
It has one partition and one writer, whom the transactional id of the same name fences. So nothing in it is open once
that writer has begun, and the last record is found from the end.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from lakebed.cdc.sources.kafka.client import confluent
from lakebed.connectors.kafka_client import PATIENCE_S, Cluster, admin_tools, code
from lakebed.errors import CorruptFile, InvalidOption, StorageError

_NAME_CHARACTERS: Final = 200
"""Kafka takes 249 for a topic."""
MOST_BYTES: Final = 16 << 20
"""How long a record may be: the position in many files is long."""
_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(32 << 20),
    "max.message.bytes": str(MOST_BYTES),
}
_FIRST_LOOK: Final = 64
"""So many offsets before the end are looked at first: aborted steps leave some behind."""


def state_name(prefix: str, insert: str) -> str:
    """The topic of an INSERT, and the id of its transactions."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", prefix + insert)
    if plain == prefix + insert and len(plain) <= _NAME_CHARACTERS:
        return plain
    return f"{plain[:_NAME_CHARACTERS]}-{hashlib.sha256((prefix + insert).encode()).hexdigest()[:12]}"


class StateTopic:
    """The topic that says how far one INSERT is."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name

    def make(self) -> None:
        """Makes the topic if it is not there; raises if it would forget."""
        tools = admin_tools()
        admin = self._cluster.opened(tools.AdminClient)
        with self._cluster.asked():
            wanted = tools.NewTopic(self.name, num_partitions=1, config=_CONFIG)
            try:
                admin.create_topics([wanted], request_timeout=PATIENCE_S)[self.name].result()
            except confluent().KafkaException as error:
                if code(error) != confluent().KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            found = self._configuration(tools, admin)
        # INVARIANT: a topic that deletes old records forgets how far the INSERT was, and all rows would be sent again.
        policy = found["cleanup.policy"].value
        if policy != "compact":
            raise InvalidOption(
                f"table `{self._cluster.table}`: topic `{self.name}` is to say how far the INSERT is, and may forget "
                f"it: its `cleanup.policy` is `{policy}`",
                hint="set it to `compact`",
            )

    def _configuration(self, tools: Any, admin: Any) -> Any:
        """What is set for the topic. A broker may hear of a new one a moment later than whoever made it."""
        resource = tools.ConfigResource(tools.ResourceType.TOPIC, self.name)
        for pause_s in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2):
            try:
                return admin.describe_configs([resource], request_timeout=PATIENCE_S)[resource].result()
            except confluent().KafkaException as error:
                if code(error) != confluent().KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            time.sleep(pause_s)
        return admin.describe_configs([resource], request_timeout=PATIENCE_S)[resource].result()

    def last(self) -> dict[str, str] | None:
        """What was written last and counts; None if nothing was. Only for who has begun, so that nothing is open."""
        kafka = confluent()
        reader = self._cluster.opened(
            kafka.Consumer,
            group_id="lakebed",
            enable_auto_commit=False,
            auto_offset_reset="error",
            isolation_level="read_committed",
            enable_partition_eof=True,
        )
        try:
            with self._cluster.asked():
                return self._told(self._newest(reader))
        finally:
            reader.close()

    def _newest(self, reader: Any) -> bytes | None:
        low, end = self._ends(reader)
        span = _FIRST_LOOK
        while True:
            start = max(low, end - span)
            found = self._last_between(reader, start, end)
            if found is not None or start == low:
                return found
            span *= 16

    def _ends(self, reader: Any) -> tuple[int, int]:
        """The first offset and the end, which is that of all that was written: nothing is open."""
        kafka, tools = confluent(), admin_tools()
        place = kafka.TopicPartition(self.name, 0)
        admin = self._cluster.opened(tools.AdminClient)
        written = admin.list_offsets(
            {place: tools.OffsetSpec.latest()},
            isolation_level=kafka.IsolationLevel.READ_UNCOMMITTED,
            request_timeout=PATIENCE_S,
        )[place].result()
        until = time.monotonic() + PATIENCE_S
        while True:
            low, high = reader.get_watermark_offsets(place, timeout=PATIENCE_S)
            # INVARIANT: what is not settled may be a step that counts.
            if high >= written.offset:
                return low, high
            if time.monotonic() > until:
                raise StorageError(
                    f"table `{self._cluster.table}`: a transaction in topic `{self.name}` is open, so how far the "
                    "INSERT is can not be known",
                    hint="wait until it has timed out; keep the `sink.delivery-guarantee` that it was begun with",
                )
            reader.poll(0.2)

    def _last_between(self, reader: Any, start: int, end: int) -> bytes | None:
        kafka = confluent()
        if start >= end:
            return None
        reader.assign([kafka.TopicPartition(self.name, 0, start)])
        found: bytes | None = None
        until = time.monotonic() + PATIENCE_S
        while True:
            message = reader.poll(1.0)
            if message is None:
                if time.monotonic() > until:
                    raise StorageError(
                        f"table `{self._cluster.table}`: topic `{self.name}` can not be read",
                        hint="check that the cluster runs; it goes on when the cluster answers",
                    )
                continue
            until = time.monotonic() + PATIENCE_S
            if message.error() is None:
                found = message.value()
                if message.offset() + 1 >= end:
                    return found
            elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                return found
            else:
                raise kafka.KafkaException(message.error())

    def _told(self, body: bytes | None) -> dict[str, str] | None:
        if body is None:
            return None
        try:
            return {str(key): str(value) for key, value in json.loads(body).items()}
        except (ValueError, AttributeError) as error:
            raise CorruptFile(
                f"table `{self._cluster.table}`: the last record of topic `{self.name}` can not be read",
                hint="another program writes there: choose another `sink.transactional-id-prefix`",
            ) from error


def as_record(words: Mapping[str, str]) -> bytes:
    """The record that says how far an INSERT is."""
    return json.dumps(dict(words), ensure_ascii=False).encode()


__all__ = ["MOST_BYTES", "StateTopic", "as_record", "state_name"]
