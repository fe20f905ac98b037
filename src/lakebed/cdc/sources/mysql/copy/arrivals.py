"""Tables that came under a followed name by RENAME: copied as a whole, since the log does not bring their rows.

The copy is one as of the end of the stretch of the log in which the table was renamed, so changes of it in that stretch
are passed over. It takes the place of whatever the lake has under the name. What is under the old name stays there: a
table that is renamed is for the lake one that is dropped, and another that is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from lakebed.cdc.envelope import (
    COPY,
    MOST_ROWS,
    ROWS,
    SCHEMA,
    TRUNCATE,
    Chunk,
    Description,
    NameChanges,
    SourceName,
    copied_rows,
    encode_rows,
)
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.copy.chunk import ChunkReader
from lakebed.cdc.sources.mysql.copy.keys import Cut, KeyRange, can_be_cut
from lakebed.cdc.sources.mysql.copy.state import CopyState, parts_of
from lakebed.cdc.sources.mysql.server.catalog import Name, read_tables
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.mapping import describe
from lakebed.cdc.sources.mysql.server.server import Server
from lakebed.errors import Unsupported
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.records import dataclass

_UNTOLD: Final = Description((), changes=NameChanges()).to_text()
"""Of the columns nothing is told."""


@dataclass(frozen=True, slots=True)
class ArrivalReader:
    """Copies tables as of a position. `accepts` says of a table whether it is followed, or raises why it can not be."""

    reader: ChunkReader
    follow: Follow
    copied: CopyState
    accepts: Callable[[TableColumns], bool]

    def read(self, connection: Any, name: Name, position: MariaDbPosition | MySqlPosition) -> Iterator[Chunk]:
        """All rows of a table, behind a TRUNCATE and its columns. Nothing if it is gone: the stream will tell why.

        Ordinals are counted from 0. Of a table that is just being copied only those rows are read whose turn is over.
        """
        server = Server.of(connection)
        tables = read_tables(connection, [name], mariadb=server.mariadb)
        if not tables or not self.accepts(tables[0]):
            return
        table, source = tables[0], SourceName(name[0], "", name[1])
        self.reader.look_at_clock(connection)
        yield Chunk(0, source, TRUNCATE, _UNTOLD, COPY, self.reader.cut())
        described = replace(describe(table, self.follow.type_mapping), changes=NameChanges(is_new_table=True))
        yield Chunk(1, source, SCHEMA, described.to_text(), COPY)
        ordinal = 2
        for part in parts_of(server, table, self._until(server, table), self.follow.copy_chunk_rows):
            for chunk in copied_chunks(self.reader, part, position):
                if chunk.kind == ROWS:
                    yield replace(chunk, ordinal=ordinal)
                    ordinal += 1

    def _until(self, server: Server, table: TableColumns) -> Cut | None:
        """Where the first copy of the table stands, if it is under way: rows behind it are still to come from there."""
        until = self.copied.after if (table.database, table.table) == self.copied.current else None
        if until is None:
            return None
        if can_be_cut(table, orders_keys=server.orders_keys) and len(until) == len(table.primary_key):
            return until
        raise Unsupported(
            f"another table was renamed to {table} while that was being copied, and has another primary key",
            hint="start again with a new checkpoint, after you have dropped the tables of the lake",
        )


def copied_chunks(reader: ChunkReader, part: KeyRange, position: MariaDbPosition | MySqlPosition) -> Iterator[Chunk]:
    """Rows of a part of a table as envelope rows, numbered from 0; the columns alone if the first part has none."""
    name = SourceName(part.database, "", part.table)
    ordinal = 0
    found = reader.read_patiently(part, position)
    read_at_us = reader.read_at_us
    if part.is_anew:
        yield Chunk(ordinal, name, TRUNCATE, _UNTOLD, COPY, reader.cut())
        ordinal += 1
    for description, columns, count in found:
        text = description.to_text()
        if count == 0 and part.low is None:
            yield Chunk(ordinal, name, SCHEMA, text, COPY)
            ordinal += 1
        for at in range(0, count, MOST_ROWS):
            piece = {column: values.slice(at, MOST_ROWS) for column, values in columns.items()}
            rows = copied_rows(piece, min(MOST_ROWS, count - at), read_at_us)
            yield Chunk(ordinal, name, ROWS, text, COPY, encode_rows(rows))
            ordinal += 1


__all__ = ["ArrivalReader", "copied_chunks"]
