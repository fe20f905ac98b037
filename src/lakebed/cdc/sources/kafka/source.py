"""Change messages in topics of a Kafka cluster, as a source. Secrets stay in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lakebed.cdc.envelope import SourceTable
from lakebed.cdc.formats import message_format
from lakebed.cdc.routing import compiled
from lakebed.cdc.rows.metadata import MESSAGE_COLUMNS
from lakebed.cdc.rules import type_modes
from lakebed.cdc.sources.base import ChangeSource, no_transactions, truth
from lakebed.cdc.sources.kafka.client import KafkaSettings, list_topics, watermarks
from lakebed.errors import InvalidArgument, LakebedError, NotFound, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

_STARTS: Final = ("earliest", "latest")


class KafkaSource(ChangeSource):
    """Topics by their names or by a pattern.

    `properties` are those of librdkafka (`security.protocol`, `sasl.username`, …). They are put into a private file;
    on a cluster name one that the workers have too, with `properties_file`: JSON with the same names. With
    `skip_corrupt_records` messages that can not be read are left out, counted and told in the progress.

    Of messages that are rows `key_format` (`json`, `text`, `avro`) says what their keys are, and `key_columns` which
    columns. Formats of Avro ask `registry` for schemas; `registry_auth_env` and `registry_auth_file` name where
    `user:password` for it stands.
    """

    name = "kafka"
    place = "bootstrap_servers"
    list_settings = frozenset({"topics", "key_columns"})
    metadata_columns = ("database_name", "schema_name", "table_name", "op_ts", *MESSAGE_COLUMNS)

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str] | str | None = None,
        *,
        topic_pattern: str | None = None,
        format: str = "debezium-json",  # noqa: A002
        start: str = "earliest",
        messages_per_batch: int = 200_000,
        properties: Mapping[str, str] | None = None,
        properties_file: str | None = None,
        type_mapping: Collection[str] = (),
        wait_ms: int = 60_000,
        skip_corrupt_records: bool | str = False,
        key_format: str | None = None,
        key_columns: Sequence[str] | str = (),
        registry: str | None = None,
        registry_auth_env: str | None = None,
        registry_auth_file: str | None = None,
    ) -> None:
        names = [topics] if isinstance(topics, str) else list(topics or ())
        if bool(names) == (topic_pattern is not None):
            raise InvalidArgument(
                "a Kafka source follows topics or a topic_pattern", hint="give `topics` or `topic_pattern`, one of them"
            )
        if start not in _STARTS:
            raise InvalidArgument(f"start is {start!r}", hint=did_you_mean(start, _STARTS))
        if messages_per_batch < 1:
            raise InvalidArgument(f"messages_per_batch is {messages_per_batch}", hint="pass a number from 1")
        if topic_pattern is not None:
            compiled(topic_pattern, "topic_pattern")
        if properties is not None and properties_file is not None:
            raise InvalidArgument("properties are given twice", hint="give either properties or properties_file")
        if key_columns and key_format is None:
            raise InvalidArgument(
                "key_columns are given, and nothing says what keys of messages are",
                hint="set key_format to json, text or avro",
            )
        self._made_file = None if properties is None else _private_file(properties)
        self.settings = KafkaSettings(
            bootstrap_servers,
            tuple(names),
            topic_pattern,
            format,
            tuple(sorted(type_modes(type_mapping))),
            start,
            messages_per_batch,
            properties_file or self._made_file,
            wait_ms,
            truth("skip_corrupt_records", skip_corrupt_records),
            key_format,
            (key_columns,) if isinstance(key_columns, str) else tuple(key_columns),
            registry,
            registry_auth_env,
            registry_auth_file,
        )
        try:
            form = message_format(format, self.settings.modes, self.settings.reading())
        except LakebedError:
            self.close()
            raise
        self.settings = replace(self.settings, format=form.name)

    @property
    def origin(self) -> str:
        """The server."""
        return f"kafka://{self.settings.bootstrap_servers}"

    def check(self) -> None:
        """The cluster has to answer, and the topics have to be there."""
        found = list_topics(self.settings)
        missing = [name for name in self.settings.topics if name not in found]
        if missing:
            raise NotFound(f"there is no topic `{missing[0]}`", hint=did_you_mean(missing[0], found))
        pattern = self.settings.topic_pattern
        if pattern is not None and not any(re.fullmatch(pattern, name) for name in found):
            raise NotFound(f"no topic matches {pattern!r}", hint=f"there are {', '.join(sorted(found)[:10])}")

    def tell_times(self, *, changes: bool) -> None:
        """Messages have the time of their change. Not all of them tell of a transaction."""
        if changes:
            raise no_transactions(self.name)

    def tables(self) -> list[SourceTable]:
        """Tables show with their first message."""
        return []

    def data_source(self) -> type[DataSource]:
        """The Spark data source."""
        from lakebed.cdc.sources.kafka.spark_source import KafkaChanges  # needs PySpark

        return KafkaChanges

    def reader_options(self) -> Mapping[str, str]:
        """Settings without secrets."""
        return {"settings": self.settings.to_text()}

    def messages_behind(self, position: str) -> int:
        """How many messages are there after a position."""
        read = json.loads(position)
        now = watermarks(self.settings)
        return sum(
            max(0, high - int(read.get(topic, {}).get(str(partition), low)))
            for (topic, partition), (low, high) in now.items()
        )

    def close(self) -> None:
        """Removes the file with the properties, if this source made one."""
        if self._made_file is not None and os.path.exists(self._made_file):
            os.unlink(self._made_file)

    def __repr__(self) -> str:
        return f"<KafkaSource {self.settings.bootstrap_servers}>"


def _private_file(properties: Mapping[str, Any]) -> str:
    handle, path = tempfile.mkstemp(prefix="lakebed-kafka-", suffix=".json")  # readable by its owner only
    with os.fdopen(handle, "w") as file:
        json.dump({str(key): str(value) for key, value in properties.items()}, file)
    return path


__all__ = ["KafkaSource"]
