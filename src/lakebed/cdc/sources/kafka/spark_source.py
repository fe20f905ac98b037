"""The Spark streaming source of change messages in Kafka: one task reads what a batch has of one partition.

An offset is the next message of every partition: `{"topic": {"0": 17}}`. Partitions that appear later are read from
their beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from lakebed.cdc.envelope import ENVELOPE_DDL, chunks_to_arrow
from lakebed.cdc.formats import message_format
from lakebed.cdc.sources.kafka.client import KafkaSettings, Partition, message_blocks, texts_of, watermarks
from lakebed.errors import InvalidOption, NotFound
from lakebed.records import dataclass
from lakebed.spark.session import prepare_worker

_MOST_CHUNKS: Final = 1 << 32
"""Ordinals of one partition are below those of the next by so many."""

Offsets = dict[Partition, int]


class KafkaChanges(DataSource):  # type: ignore[misc]
    """Change messages by the format name `lakebed-kafka`."""

    @classmethod
    def name(cls) -> str:
        """The word in `format(...)`."""
        return "lakebed-kafka"

    def schema(self) -> str:
        """The envelope's columns."""
        return ENVELOPE_DDL

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of the stream."""
        if "settings" not in self.options:
            raise InvalidOption("option `settings` is missing", hint="start the stream with lakebed.cdc.sync(...)")
        return _KafkaStreamReader(KafkaSettings.from_text(self.options["settings"]))


@dataclass
class _Range(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    number: int
    topic: str
    partition: int
    start: int
    end: int


class _KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans on the driver, reads in tasks. Kafka forgets by itself, so nothing is told to it."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._final: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new stream begins."""
        is_first = self._settings.start == "earliest"
        return to_json({place: low if is_first else high for place, (low, high) in watermarks(self._settings).items()})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How many messages a batch has at most."""
        return ReadMaxRows(self._settings.messages_per_batch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """How far the next batch goes."""
        begin = from_json(start)
        now = watermarks(self._settings)
        ends = {place: high for place, (_, high) in now.items()}
        if self._final is not None:
            ends = {place: min(end, self._final[place]) for place, end in ends.items() if place in self._final}
        lows = {place: low for place, (low, _) in now.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._settings.messages_per_batch
        return to_json(next_ends(begin, lows, ends, None if isinstance(limit, ReadAllAvailable) else most))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The stream ends with what is there now."""
        self._final = {place: high for place, (_, high) in watermarks(self._settings).items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What tasks read for a batch."""
        begin, ends = from_json(start), from_json(end)
        lows = {place: low for place, (low, _) in watermarks(self._settings).items()}
        found = []
        for number, (place, last) in enumerate(sorted(ends.items())):
            first = begin.get(place, lows.get(place, 0))
            if first < lows.get(place, first):
                raise NotFound(
                    f"topic `{place[0]}`, partition {place[1]}: offset {first} is not there any more",
                    hint="the topic has deleted messages that were not read: keep them longer, and sync anew with a "
                    "new checkpoint into new tables",
                )
            if first < last:
                found.append(_Range(number, *place, first, last))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The envelope rows of one partition; in a task."""
        assert isinstance(partition, _Range)
        prepare_worker()
        form = message_format(self._settings.format, self._settings.modes, self._settings.reading())
        ordinal = partition.number * _MOST_CHUNKS
        blocks = message_blocks(self._settings, partition.topic, partition.partition, partition.start, partition.end)
        read = form.readable_chunks if self._settings.skip_corrupt_records else form.all_chunks
        for bodies, about in blocks:
            chunks = read(bodies if form.is_binary else texts_of(bodies), ordinal, about)
            ordinal += len(chunks)
            yield chunks_to_arrow(chunks)

    def commit(self, end: dict[str, Any]) -> None:
        """A batch is in the lake; Kafka need not know."""

    def stop(self) -> None:
        """The query ended; clients are closed after each use."""


def next_ends(start: Offsets, lows: Offsets, ends: Offsets, most: int | None) -> Offsets:
    """The ends of a batch: everything, or about so many messages, each partition by its share of what waits."""
    begin = {place: start.get(place, lows.get(place, 0)) for place in {*start, *ends}}
    waiting = {place: max(0, ends.get(place, first) - first) for place, first in begin.items()}
    total = sum(waiting.values())
    if most is None or total <= most:
        return {place: first + waiting[place] for place, first in begin.items()}
    return {
        place: first + min(waiting[place], max(1, waiting[place] * most // total)) for place, first in begin.items()
    }


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as JSON, in the order of topics and partitions."""
    body: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        body.setdefault(topic, {})[str(partition)] = offset
    return body


def from_json(body: dict[str, Any]) -> Offsets:
    """Inverse of `to_json`."""
    return {(topic, int(number)): int(offset) for topic, each in body.items() for number, offset in each.items()}


__all__ = ["KafkaChanges", "from_json", "next_ends", "to_json"]
