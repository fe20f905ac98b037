"""Topics as sinks: each step is one transaction, which holds its messages and how far the INSERT is after them.

Whoever begins with an INSERT's transactional id settles what its predecessor left open and fences it. So a step that
was cut off counts whole or not at all, and of two runners the later one goes on and the other says so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lakebed.cdc.sources.kafka.client import confluent
from lakebed.connectors.kafka_client import PATIENCE_S, Cluster, admin_tools, code, reason
from lakebed.connectors.kafka_state import MOST_BYTES, StateTopic, as_record, state_name
from lakebed.connectors.messages import Block, Messages
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, LakebedError, NotFound, StorageError
from lakebed.sql.connectors.kafka import EXACTLY_ONCE
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.views.inserts.sink import Takes

_SETTLE_S: Final = 60.0
"""How long a transaction may take to begin or to end."""
_TRANSACTION_MS: Final = 900_000
"""How long a transaction may be open: what brokers allow at most, unless they are told otherwise."""
_TOPIC, _TOPIC_ID = "topic", "topic_id"


class TopicSink:
    """Writes messages, exactly once unless it is told that at least once is enough."""

    def __init__(self, table: ConnectorTable, insert: str) -> None:
        self._table = table
        self._insert = insert
        self._messages = Messages(table)
        self._topic = table.required("topic").strip()
        if ";" in self._topic:
            raise InvalidOption(
                f"table `{table.full_name}`: `topic` names several, and rows go to one", hint="define a table for each"
            )
        self._is_exact = table.required("sink.delivery-guarantee") == EXACTLY_ONCE
        self._partition = 0 if table.required("sink.partitioner") == "fixed" else -1
        self._name = state_name(table.required("sink.transactional-id-prefix"), insert)
        self._producer: Any = None
        self._words: Mapping[str, str] | None = None
        self._topic_id = ""
        self._undelivered: Any = None
        self._taken_over: LakebedError | None = None
        self._began = 0.0

    @property
    def takes(self) -> Takes:
        """Which rows there are messages for."""
        return self._messages.takes

    @property
    def anew(self) -> str:
        """What has to be done for all rows to be sent again."""
        return f"empty topic `{self._topic}`, and delete topic `{self._name}`: it sends all rows again then"

    @property
    def says(self) -> str:
        """How rows get there."""
        how = "each step is a transaction" if self._is_exact else "a step may be sent again"
        return f"topic {self._topic}, {how}; how far it is stands in topic {self._name}"

    def known(self) -> Mapping[str, str] | None:
        """What `begin` and later steps have found, without asking the cluster."""
        return self._words

    def begin(self) -> Mapping[str, str] | None:
        """Becomes the one who writes as this INSERT, and says how far it is."""
        if self._taken_over is not None:
            raise self._taken_over
        if self._producer is None:
            self._open()
        return self._words

    def close(self) -> None:
        """Ends what is open."""
        producer, self._producer = self._producer, None
        if producer is not None and self._is_exact and self._began:
            self._began = 0.0
            try:
                producer.abort_transaction(PATIENCE_S)
            except confluent().KafkaException:
                pass  # who begins next settles it

    # --- beginning -----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        kafka = confluent()
        cluster = Cluster.of(self._table)
        limits = {"message.max.bytes": str(MOST_BYTES), "delivery.timeout.ms": str(int(_SETTLE_S * 1000))}
        if self._is_exact:
            limits["transaction.timeout.ms"] = str(_TRANSACTION_MS)
        own: dict[str, Any] = {"enable_idempotence": True, "delivery_report_only_error": True}
        if self._is_exact:
            own["transactional_id"] = self._name
        told = Cluster(
            cluster.table, cluster.servers, {"partitioner": "murmur2_random", **limits, **cluster.properties}
        )
        state = StateTopic(cluster, self._name)
        producer = told.opened(kafka.Producer, **own)
        with cluster.asked():
            self._topic_id = self._found_topic(producer, cluster)
            state.make()
            if self._is_exact:
                _settled(producer.init_transactions)
        # INVARIANT: read after init_transactions: only then is the outcome of a transaction that was cut off known, and
        # nobody else can write any more.
        words = state.last()
        self._check_same_topic(words)
        self._producer, self._words = producer, words
        self._timeout_ms = int(told.properties.get("transaction.timeout.ms", "0"))

    def _found_topic(self, producer: Any, cluster: Cluster) -> str:
        """The id of the topic, which is another if it is made anew. A cluster may make it now, if that is its way."""
        kafka = confluent()
        until = time.monotonic() + PATIENCE_S
        while (error := producer.list_topics(self._topic, PATIENCE_S).topics[self._topic].error) is not None:
            if error.code() not in (kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, kafka.KafkaError.LEADER_NOT_AVAILABLE):
                raise kafka.KafkaException(error)
            if time.monotonic() > until:
                raise NotFound(
                    f"table `{self._table.full_name}`: there is no topic `{self._topic}`",
                    hint="create it, or check `topic`",
                )
            producer.poll(0.2)
        admin = cluster.opened(admin_tools().AdminClient)
        asked = kafka.TopicCollection([self._topic])
        found = admin.describe_topics(asked, request_timeout=PATIENCE_S)[self._topic].result()
        return str(found.topic_id)

    def _check_same_topic(self, words: Mapping[str, str] | None) -> None:
        if words is None:
            return
        written, made = words.get(_TOPIC, ""), words.get(_TOPIC_ID, "")
        if written != self._topic:
            raise InvalidArgument(
                f"INSERT `{self._insert}` into `{self._table.full_name}` has written to topic `{written}`, not to "
                f"`{self._topic}`",
                hint="give the table another `sink.transactional-id-prefix`: it sends all rows again then",
            )
        if made != self._topic_id:
            raise InvalidArgument(
                f"topic `{self._topic}` is not the one that INSERT `{self._insert}` has written to: it was made anew",
                hint=f"delete topic `{self._name}`: it sends all rows again then",
            )

    # --- a step --------------------------------------------------------------------------------------------------

    def write(self, batch: pa.Table, words: Mapping[str, str]) -> None:
        """Sends the rows of a step with the words that say how far it leads: both count, or none."""
        kafka = confluent()
        self.begin()
        self._undelivered = None
        told = {**words, _TOPIC: self._topic, _TOPIC_ID: self._topic_id}
        try:
            if self._is_exact:
                self._producer.begin_transaction()
            self._began = time.monotonic()
            for block in self._messages.blocks(batch):
                self._send(self._topic, block, self._partition)
            if not self._is_exact:
                self._flush()  # what says that rows are there comes behind them
            self._send(self._name, ([self._insert.encode()], [as_record(told)]), 0)
            if self._is_exact:
                _settled(self._producer.commit_transaction)
            else:
                self._flush()
            self._began, self._words = 0.0, told
        except kafka.KafkaException as error:
            raise self._failed(error) from None
        finally:
            if self._began:  # cut off: whoever begins next settles it
                self.close()

    def _send(self, topic: str, block: Block, partition: int) -> None:
        produce = self._producer.produce
        for key, value in zip(*block, strict=True):  # the client takes one message at a time
            while True:
                try:
                    produce(topic, value, key, partition, on_delivery=self._not_delivered)
                    break
                except BufferError:
                    self._producer.poll(0.2)
                    self._check_delivered()
        self._producer.poll(0)
        self._check_delivered()

    def _flush(self) -> None:
        if self._producer.flush(_SETTLE_S):
            raise confluent().KafkaException(confluent().KafkaError(confluent().KafkaError._TIMED_OUT))
        self._check_delivered()

    def _not_delivered(self, error: Any, message: Any) -> None:
        self._undelivered = self._undelivered or error

    def _check_delivered(self) -> None:
        if self._undelivered is not None:
            raise confluent().KafkaException(self._undelivered)

    def _failed(self, error: Any) -> LakebedError:
        """What it means that a step did not go through. The next one begins anew, unless another process goes on."""
        errors = confluent().KafkaError
        took_ms = (time.monotonic() - self._began) * 1000
        if self._undelivered is not None and code(error) not in (errors._FENCED, errors.PRODUCER_FENCED):
            error = self._undelivered
        fenced = (errors._FENCED, errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH)
        if self._is_exact and code(error) in fenced:
            self._began = 0.0
            self.close()
            if took_ms >= self._timeout_ms:
                return StorageError(
                    f"table `{self._table.full_name}`: the cluster has given up a transaction of {took_ms / 1000:,.0f} "
                    "seconds; nothing of it counts",
                    hint="raise `properties.transaction.timeout.ms`, and `transaction.max.timeout.ms` of the brokers",
                )
            self._taken_over = CommitConflict(
                f"another process has taken over the INSERT into `{self._table.full_name}` (transactional id "
                f"`{self._name}`); nothing of this step counts",
                hint="run it once only: stop one of the two, and start this one again if the other ends",
            )
            return self._taken_over
        self.close()
        if code(error) == errors.MSG_SIZE_TOO_LARGE:
            return StorageError(
                f"table `{self._table.full_name}`: topic `{self._topic}` does not take so long a message: "
                f"{reason(error)}",
                hint="raise `max.message.bytes` of the topic",
            )
        return Cluster.of(self._table).failed(error)


def _settled(ask: Any) -> None:
    """Asks until it is done, as long as the client says that asking again helps."""
    until = time.monotonic() + _SETTLE_S
    while True:
        try:
            ask(PATIENCE_S)
            return
        except confluent().KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until:
                raise


__all__ = ["TopicSink"]
