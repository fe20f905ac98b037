"""`kafka`: messages of changes are followed by a sync; messages that are rows are read from offset to offset."""

from __future__ import annotations

import json
import weakref
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.formats.reading import Reading
from lakebed.cdc.formats.registry import USER_INFO
from lakebed.cdc.formats.rows import AvroRows, runs
from lakebed.cdc.rows.shape import converted
from lakebed.cdc.sources.kafka.client import KafkaSettings, message_blocks, texts_of, watermarks
from lakebed.cdc.sources.kafka.source import KafkaSource
from lakebed.connectors.kafka_client import properties_of, servers_of
from lakebed.errors import CorruptFile, InvalidData, LakebedError, NotFound, Unsupported
from lakebed.formats import FORMATS, Written
from lakebed.sql.connectors.kafka import (
    AVRO_CHANGES,
    AVRO_ROWS,
    KAFKA,
    TEXT_KEY,
    UPSERT_FORMATS,
    UPSERT_KAFKA,
    is_change_log,
    message_format,
)
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField

_MESSAGES: Final = "messages"
"""What stands for the name of a file where messages are read as one."""
_NAMES: Final = {AVRO_CHANGES: "debezium-avro", AVRO_ROWS: "avro"}
"""What formats are called where Flink's name is another."""
_KEYS: Final = {"json": "json", TEXT_KEY: "text", AVRO_ROWS: "avro"}
_STARTS: Final = {"earliest-offset": "earliest", "latest-offset": "latest"}


def is_synced(table: ConnectorTable) -> bool:
    """Whether messages of a table are changes, or rows by key, which a sync lands."""
    return table.connector == UPSERT_KAFKA.name or (table.connector == KAFKA.name and is_change_log(table))


def change_source_options(table: ConnectorTable) -> dict[str, Any]:
    """Arguments of the source of changes."""
    form = message_format(table)
    is_upsert = table.connector == UPSERT_KAFKA.name
    return {
        "bootstrap_servers": servers_of(table),
        "topics": _topics(table),
        "format": _NAMES.get(form, form),
        "start": _STARTS["earliest-offset" if is_upsert else table.required("scan.startup.mode")],
        "properties": properties_of(table) | _login(table),
        "skip_corrupt_records": table.truth(f"{form}.ignore-parse-errors"),
        "registry": _registry_of(table),
        **(_key_arguments(table) if is_upsert else {}),
    }


def _key_arguments(table: ConnectorTable) -> dict[str, Any]:
    """What is said of the keys of messages whose rows go by them."""
    for option, readable in (("key.format", _KEYS), ("value.format", UPSERT_FORMATS)):
        if table.options[option] not in readable:
            raise Unsupported(
                f"table `{table.full_name}`: messages whose `{option}` is `{table.options[option]}` are written, not "
                "read",
                hint=f"read the table of the lake that the rows come from, or write them as {', '.join(readable)}",
            )
    return {"key_format": _KEYS[table.options["key.format"]], "key_columns": table.primary_key}


def _is_avro(table: ConnectorTable) -> bool:
    """Whether messages are rows of Avro."""
    return message_format(table) == AVRO_ROWS


def _registry_of(table: ConnectorTable) -> str | None:
    """Where the schemas of messages stand."""
    return next((url for each in _NAMES if (url := table.option(f"{each}.url"))), None)


def _login(table: ConnectorTable) -> dict[str, str]:
    """User and password of the registry, which go where those of the cluster go."""
    given = next((text for each in _NAMES if (text := table.option(f"{each}.basic-auth.user-info"))), None)
    return {} if given is None else {USER_INFO: given}


def _topics(table: ConnectorTable) -> list[str]:
    return [name.strip() for name in table.required("topic").split(";") if name.strip()]


class TopicReader:
    """Reads messages that are rows. A position is the next offset of each partition."""

    def __init__(self, table: ConnectorTable) -> None:
        self._table = table
        servers, properties = servers_of(table), properties_of(table) | _login(table)
        form: dict[str, Any] = {}
        if _is_avro(table):
            form = {"format": _NAMES[AVRO_ROWS], "registry": _registry_of(table)}
        self._source = KafkaSource(servers, _topics(table), properties=properties or None, **form)
        weakref.finalize(self, self._source.close)  # the file with the properties goes with the reader
        self._start = _STARTS[table.required("scan.startup.mode")]
        self._parser = _AvroParser(table, self._source.settings.reading()) if form else _RowParser(table)
        self.schema = self._parser.schema
        """The columns of what it reads."""

    def read(self, position: str | None, limit_rows: int) -> tuple[pa.Table, str, bool]:
        """Rows from a position on, the position after them, and False: a topic never ends."""
        settings: KafkaSettings = self._source.settings
        place: dict[str, int] = {} if position is None else {key: int(at) for key, at in json.loads(position).items()}
        found: list[pa.Table] = []
        left = limit_rows
        ends = watermarks(settings)
        missing = [name for name in settings.topics if not any(topic == name for topic, _ in ends)]
        if missing:
            raise NotFound(
                f"table `{self._table.full_name}`: there is no topic `{missing[0]}`", hint="create it, or check `topic`"
            )
        for (topic, partition), (low, high) in sorted(ends.items()):
            key = f"{topic}/{partition}"
            # A partition that is new while the table is read is read from its beginning.
            begins_late = position is None and self._start == "latest"
            at = place.get(key, high if begins_late else low)
            until = min(high, at + left)
            if until > at:
                for bodies, about in message_blocks(settings, topic, partition, at, until):
                    found.append(self._parser.rows(bodies if _is_avro(self._table) else texts_of(bodies), about))
                left -= until - at
            place[key] = max(at, until)
        return pa.concat_tables([self.schema.empty_table(), *found]), json.dumps(place, sort_keys=True), False

    def progress(self, position: str | None) -> tuple[int, int]:
        """Messages that are read, and how many there are; both since the beginning of the topics."""
        place: dict[str, int] = {} if position is None else json.loads(position)
        ends = watermarks(self._source.settings)
        read = sum(int(place.get(f"{topic}/{number}", low)) for (topic, number), (low, _) in ends.items())
        return read, sum(high for _, high in ends.values())


class _RowParser:
    """Rows of messages: JSON objects, or lines of CSV, with the declared columns and what is known of each message."""

    def __init__(self, table: ConnectorTable) -> None:
        self._table = table
        self._format = message_format(table)
        self._lenient = table.truth(f"{self._format}.ignore-parse-errors")
        self._spelling = {key: value for key, value in table.options.items() if key.startswith("csv.field-")}
        metadata = [DataField(n, name, column.type) for n, (name, column) in enumerate(table.metadata.items())]
        self.schema = to_arrow_schema([*table.columns, *metadata])
        """The columns of the source, then those of metadata."""

    def rows(self, bodies: pa.Array, about: pa.RecordBatch) -> pa.Table:
        """The rows of some messages. One without a body is none."""
        present = bodies.is_valid()
        return self._rows(bodies.filter(present), about.filter(present))

    def _rows(self, bodies: pa.Array, about: pa.RecordBatch) -> pa.Table:
        if not len(bodies):
            return self.schema.empty_table()
        try:
            rows = self._parsed(bodies)
        except (CorruptFile, InvalidData) as error:
            if not self._lenient:
                raise self._unreadable(about, error) from error
            if len(bodies) == 1:
                return self.schema.empty_table()
            # Few messages are bad: halves of the block are tried until they stand alone.
            half = len(bodies) // 2
            parts = [self._rows(bodies[:half], about[:half]), self._rows(bodies[half:], about[half:])]
            return pa.concat_tables(parts)
        facts = [
            about.column(column.key.replace("-", "_")).cast(self.schema.field(name).type)
            for name, column in self._table.metadata.items()
        ]
        columns = [*rows.columns, *facts]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _parsed(self, bodies: pa.Array) -> pa.Table:
        """The declared columns, read as a file of lines."""
        # A line feed in JSON stands between words: within a text it is spelled.
        lines = pc.replace_substring_regex(bodies, "[\r\n]+", " ") if self._format == "json" else bodies
        text = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")[0].as_py()
        fields = self._table.columns
        source = pa.BufferReader(text.encode())
        with FORMATS[self._format].open_reader(
            source, _MESSAGES, Written(fields, self._spelling, zoned=True)
        ) as reader:
            batches = [batch.cast(to_arrow_schema(fields)) for _, batch in reader.read(fields)]
        rows = pa.Table.from_batches(batches, schema=to_arrow_schema(fields))
        if rows.num_rows != len(bodies):
            raise InvalidData("a message is not one row", hint="send each row as a message of its own")
        return rows

    def _unreadable(self, about: pa.RecordBatch, error: LakebedError) -> InvalidData:
        topic, partition = about.column("topic")[0].as_py(), about.column("partition")[0].as_py()
        first, last = about.column("offset")[0].as_py(), about.column("offset")[-1].as_py()
        return InvalidData(
            f"table `{self._table.full_name}`: messages of topic `{topic}`, partition {partition}, offsets {first} to "
            f"{last} are no rows of format `{self._format}`: {error.message}",
            hint=f"correct the columns, or leave such messages out with '{self._format}.ignore-parse-errors' = 'true'",
        )


class _AvroParser(_RowParser):
    """Rows of Avro messages, each read with its own schema: the declared columns by their names, NULL without one."""

    def __init__(self, table: ConnectorTable, reading: Reading) -> None:
        super().__init__(table)
        self._avro = AvroRows(reading=reading)

    def _parsed(self, bodies: pa.Array) -> pa.Table:
        numbers = self._avro.schemas(bodies)
        parts = []
        for start, end in runs(numbers):
            found = self._avro.columns(bodies[start:end], int(numbers[start]))
            schema = to_arrow_schema(self._table.columns)
            columns = [
                pa.nulls(end - start, arrow.type)
                if (column := found.get(field.name)) is None
                else converted(column.values, column.type, field.type).cast(arrow.type)
                for field, arrow in zip(self._table.columns, schema, strict=True)
            ]
            parts.append(pa.Table.from_arrays(columns, schema=schema))
        return pa.concat_tables(parts)
