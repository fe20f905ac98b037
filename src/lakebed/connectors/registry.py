"""The connectors by name: how each is read, and how each is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import pyarrow as pa

from lakebed.connectors.kafka import TopicReader
from lakebed.connectors.kafka_sink import TopicSink
from lakebed.connectors.outputs import BlackholeSink, PrintSink
from lakebed.errors import Unsupported
from lakebed.records import dataclass
from lakebed.sql.connectors.datagen import DATAGEN
from lakebed.sql.connectors.definition import ConnectorDefinition
from lakebed.sql.connectors.filesystem import FILESYSTEM
from lakebed.sql.connectors.kafka import KAFKA, UPSERT_KAFKA, is_change_log
from lakebed.sql.connectors.outputs import BLACKHOLE, PRINT
from lakebed.sql.connectors.registry import DEFINITIONS, definition_of, local_reader
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.views.inserts.sink import Takes


class RowReader(Protocol):
    """Reads the rows of a source by position."""

    schema: pa.Schema
    """The columns of the source, then those of metadata, by the names of the definition."""

    def read(self, position: str | None, limit_rows: int) -> tuple[pa.Table, str, bool]:
        """Rows from a position (None: the beginning) on, the position after them, and whether the source has ended.

        The same position gives the same rows again, or more of them: what is kept with the rows that it led to makes
        each row count once.
        """
        ...

    def progress(self, position: str | None) -> tuple[int, int]:
        """How much is read at a position, and how much there is: rows, files or messages."""
        ...


class Sink(Protocol):
    """Takes rows with their kinds, and knows how far the INSERT is that sends them."""

    @property
    def takes(self) -> Takes:
        """Which rows can be sent to it."""
        ...

    @property
    def anew(self) -> str:
        """What has to be done for all rows to be sent again."""
        ...

    @property
    def says(self) -> str:
        """How rows get there, for those who look before it runs."""
        ...

    def known(self) -> Mapping[str, str] | None:
        """The words of the last write as far as they are known here; nobody is asked."""
        ...

    def begin(self) -> Mapping[str, str] | None:
        """Becomes the one who writes as this INSERT; the words of the last write that counts, None if there is none."""
        ...

    def write(self, batch: pa.Table, words: Mapping[str, str]) -> None:
        """Takes the rows of a step; the first column, `_row_kind`, is `+I`, `-U`, `+U` or `-D`. The words say how far
        it leads: where something is kept, rows and words count together or not at all."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


@dataclass(frozen=True)
class Connector:
    """One connector: what SQL knows of it, and what stands behind it. One without a reader lands by a sync."""

    definition: ConnectorDefinition
    reader: Callable[[ConnectorTable], RowReader] | None = None
    sink: Callable[[ConnectorTable, str], Sink] | None = None

    @property
    def keeps(self) -> bool:
        """Whether its sink keeps how far an INSERT is, beyond the process."""
        return self.sink is TopicSink


_READERS: Final[dict[str, Callable[[ConnectorTable], RowReader]]] = {
    DATAGEN.name: local_reader,
    FILESYSTEM.name: local_reader,
    KAFKA.name: TopicReader,
}
_SINKS: Final[dict[str, Callable[[ConnectorTable, str], Sink]]] = {
    KAFKA.name: TopicSink,
    UPSERT_KAFKA.name: TopicSink,
    PRINT.name: PrintSink,
    BLACKHOLE.name: BlackholeSink,
}

CONNECTORS: Final = {
    name: Connector(definition, _READERS.get(name), _SINKS.get(name)) for name, definition in DEFINITIONS.items()
}
"""All connectors."""


def is_row_source(table: ConnectorTable) -> bool:
    """Whether rows of a table only come, and are read by position; else its changes are landed, or it is a sink."""
    found = CONNECTORS[definition_of(table.connector, table.full_name).name]
    return found.reader is not None and not (table.connector == KAFKA.name and is_change_log(table))


def reader(table: ConnectorTable) -> RowReader:
    """Who reads the rows of a table by position."""
    make = CONNECTORS[table.connector].reader
    if make is None or not is_row_source(table):
        raise Unsupported(
            f"table `{table.full_name}` of connector `{table.connector}` is not read row by row",
            hint="it tells changes, which land in a table of the lake first"
            if CONNECTORS[table.connector].definition.is_source
            else "it is a table to write to",
        )
    return make(table)


def sink(table: ConnectorTable, insert: str) -> Sink:
    """Who takes rows for a table from an INSERT of that name."""
    make = CONNECTORS[table.connector].sink
    if make is None:
        sinks = ", ".join(f"`{name}`" for name, each in CONNECTORS.items() if each.sink is not None)
        raise Unsupported(
            f"table `{table.full_name}`: connector `{table.connector}` is read, not written",
            hint=f"insert into a table of the lake, or use one of {sinks}",
        )
    return make(table, insert)
