"""Messages of Debezium from a real Kafka: how many a core takes in, against what the client library only receives.

    python -m benchmarks.kafka_messages [--messages 1000000] [--small] [--json]

One topic of one partition for each format, with changes of a row of 12 columns: every other one an update with both
rows. `receive` is the client library alone: it hands over messages, which are dropped. `task` is what one task of a
sync does: messages are received, decoded and put into chunks. `lake` is the whole way into a table of one bucket,
with its commits and its compactions, in this process, without Spark. Time is CPU time of the process, the client's own
threads included, so that a number is of one core; the best of some runs counts, since others use the machine.
`of_receive` is how many times as long as the client alone it takes. Ends with an error if a message is missing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.brokers import shared_broker
from tests.cdc.pipeline.local_sync import LocalSync

import lakebed
from lakebed.cdc.envelope import chunks_to_arrow
from lakebed.cdc.formats import message_format
from lakebed.cdc.sources.kafka import KafkaSource
from lakebed.cdc.sources.kafka.client import consumer, message_blocks, texts_of
from lakebed.testing.kafka_server import KafkaServer
from lakebed.testing.schema_registry import SchemaRegistry

KINDS = {
    "id": "long", "a": ["null", "int"], "b": "int", "c": "string", "d": ["null", "string"], "e": "string",
    "f": {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"},
    "g": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
    "h": "boolean", "i": "double", "j": {"type": "int", "connect.name": "io.debezium.time.Date"}, "k": "string",
}  # fmt: skip
FORMATS = ("debezium-json", "debezium-avro")
TIMES = 3
PATIENCE_S = 600


def envelope() -> dict[str, Any]:
    """The schema of a change."""
    value = {"type": "record", "name": "Value", "fields": [{"name": n, "type": kind} for n, kind in KINDS.items()]}
    source = [{"name": name, "type": "string"} for name in ("connector", "name", "db", "schema", "table")]
    source += [{"name": "ts_ms", "type": "long"}, {"name": "lsn", "type": "long"}]
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", value]},
            {"name": "after", "type": ["null", "Value"]},
            {"name": "source", "type": {"type": "record", "name": "Source", "fields": source}},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": "long"},
        ],
    }


def changes(count: int) -> Iterator[dict[str, Any]]:
    """A new row, then a change of it, and so on."""
    for number in range(count):
        key = number // 2
        row = {
            "id": key, "a": number % 1000, "b": number % 77, "c": f"{key * 7919:032x}", "d": f"{number * 104729:064x}",
            "e": f"{number % 9999}.25", "f": "2024-01-02T03:04:05.123456Z", "g": 1_700_000_000_000_000 + number,
            "h": number % 2 == 0, "i": number / 3, "j": 19_000 + number % 300, "k": f"item {key}",
        }  # fmt: skip
        source = {"connector": "postgresql", "name": "s", "db": "shop", "schema": "public", "table": "t"}
        told = {"source": {**source, "ts_ms": 1_700_000_000_000, "lsn": number}, "ts_ms": 1_700_000_000_001}
        is_update = number % 2 == 1
        yield {"before": {**row, "a": 0} if is_update else None, "after": row, "op": "cu"[is_update], **told}


def fill(broker: KafkaServer, registry: SchemaRegistry, topic: str, form: str, count: int) -> None:
    """A topic with all messages."""
    from confluent_kafka import Producer

    broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0, "queue.buffering.max.messages": 200_000})
    for change in changes(count):
        body = json.dumps(change).encode() if form == "debezium-json" else registry.message(1, change)
        while True:
            try:
                producer.produce(topic, value=body)
                break
            except BufferError:
                producer.poll(0.1)
    assert not producer.flush(PATIENCE_S)


def receive(source: KafkaSource, topic: str, count: int) -> int:
    """The client library alone."""
    from confluent_kafka import TopicPartition

    found = 0
    with consumer(source.settings) as client:
        client.assign([TopicPartition(topic, 0, 0)])
        while found < count:
            found += len(client.consume(16_384, timeout=1))
    return found


def task(source: KafkaSource, topic: str, count: int) -> int:
    """What a task does with a partition; how many rows that are new or changed come out."""
    form = message_format(source.settings.format, reading=source.settings.reading())
    rows = 0
    for bodies, about in message_blocks(source.settings, topic, 0, 0, count):
        chunks = form.all_chunks(bodies if form.is_binary else texts_of(bodies), 0, about)
        chunks_to_arrow(chunks)
        rows += len(bodies)
    return rows


def to_lake(source: KafkaSource, count: int) -> int:
    """The whole way; the rows of the table stand for two messages each."""
    with tempfile.TemporaryDirectory() as place:
        lake = lakebed.connect(Path(place) / "lake")
        more = {"primary_keys": ["id"], "table_conf": {"bucket": "1"}}
        sync = LocalSync(lake, source, Path(place) / "checkpoint", **more)
        while sync.step():
            pass
        sync.stop()
        return 2 * lake.table("lk.t").to_arrow(["id"]).num_rows


def measured(work: Callable[[], int], count: int, times: int) -> float:
    """Messages in a minute of CPU time."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        found = work()
        best = min(best, time.process_time() - begin)
        if found != count:
            raise SystemExit(f"{found} messages came of {count}")
    return count / best * 60


def run(count: int, times: int) -> dict[str, Any]:
    """All numbers."""
    broker = shared_broker()
    found: dict[str, Any] = {"messages": count}
    with SchemaRegistry() as registry:
        registry.add(1, envelope())
        for form in FORMATS:
            topic = f"bench-{form}"
            fill(broker, registry, topic, form, count)
            url = registry.url if form == "debezium-avro" else None
            source = KafkaSource(broker.address, topic, format=form, registry=url)
            rates = {
                "receive": measured(lambda s=source, t=topic: receive(s, t, count), count, times),
                "task": measured(lambda s=source, t=topic: task(s, t, count), count, times),
                "lake": measured(lambda s=source: to_lake(s, count), count, 1),
            }
            found[form] = {f"{name}_per_minute": rate for name, rate in rates.items()}
            found[form] |= {f"{name}_of_receive": rates["receive"] / rates[name] for name in ("task", "lake")}
    return found


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--small", action="store_true", help="some thousand messages, once")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = run(4_000, 1) if given.small else run(given.messages, TIMES)
    if given.json:
        print(json.dumps({"benchmark": "kafka_messages", **found}))
        return
    print(f"{found['messages']:,} messages a format; of one core:")
    for form in FORMATS:
        told = found[form]
        for name in ("receive", "task", "lake"):
            times = f", {told[f'{name}_of_receive']:.1f} times the client's CPU" if name != "receive" else ""
            print(f"{form:14} {name:8} {told[f'{name}_per_minute'] / 1e6:8.2f} M messages/min{times}")


if __name__ == "__main__":
    main()
