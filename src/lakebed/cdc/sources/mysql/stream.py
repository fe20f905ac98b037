"""The binary log between two positions as envelope rows: changes, truncated tables, tables that look different now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from lakebed.cdc.envelope import (
    ROWS,
    SCHEMA,
    STREAM,
    TRUNCATE,
    Chunk,
    Description,
    NameChanges,
    SourceColumn,
    SourceName,
    encode_rows,
    trouble_chunk,
)
from lakebed.cdc.formats.mysql_types import mysql_type
from lakebed.cdc.sources.mysql.columns import BLOBS, INTEGERS, TEXTS, Column, TableColumns
from lakebed.cdc.sources.mysql.copy.arrivals import ArrivalReader
from lakebed.cdc.sources.mysql.copy.chunk import ChunkReader
from lakebed.cdc.sources.mysql.copy.keys import within
from lakebed.cdc.sources.mysql.copy.state import CopyState
from lakebed.cdc.sources.mysql.log.ddl import ColumnChanges, TableChange, table_changes
from lakebed.cdc.sources.mysql.log.events import Statement
from lakebed.cdc.sources.mysql.log.reader import LogReader
from lakebed.cdc.sources.mysql.server.catalog import Name, read_tables, was_made_since
from lakebed.cdc.sources.mysql.server.changes import ChangeReader, TableChanges
from lakebed.cdc.sources.mysql.server.check import table_fault
from lakebed.cdc.sources.mysql.server.counted import CountedChanges, cut_of
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.known_booleans import Booleans, table_key
from lakebed.cdc.sources.mysql.server.mapping import default_text, describe
from lakebed.cdc.sources.mysql.server.server import Server, value
from lakebed.cdc.sources.mysql.values.moments import moment_text
from lakebed.errors import InvalidOption, LakebedError, StorageError, Unsupported
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition

_KINDS: Final = {
    *INTEGERS, *TEXTS, *BLOBS, "decimal", "float", "double", "char", "varchar", "date", "time", "datetime", "timestamp",
    "year", "enum", "set", "binary", "varbinary", "bit",
}  # fmt: skip
"""Types whose name in statements is their name in the catalog."""


class StreamReader:
    """Turns pieces of the log into envelope rows, while some tables may still be copied."""

    def __init__(self, connection: Any, follow: Follow, copied: CopyState, booleans: Booleans | None = None) -> None:
        self._server = Server.of(connection)
        self._follow = follow
        self._copied = copied
        self._tables: dict[Name, TableColumns | None] = {}
        self._dropped: set[Name] = set()
        self._arrived: dict[Name, None] = {}
        self._ordinal = 0
        self._changes = ChangeReader(
            self._follows,
            self._catalog,
            follow.type_mapping,
            mariadb=self._server.mariadb,
            zone=follow.zone,
            accepts=self._accepts,
            booleans=lambda database, table: (booleans or {}).get(table_key(database, table), ()),
            troubles=None if follow.on_error == "stop" else self._note_trouble,
            transactions=CountedChanges() if follow.tells_times else None,
        )
        self._troubles: list[Chunk] = []

    def read(self, reader: LogReader, end: MariaDbPosition | MySqlPosition) -> Iterator[list[Chunk]]:
        """Envelope rows of everything up to a position, in order."""
        for piece in reader.read_to(end):
            chunks: list[Chunk] = []
            if isinstance(piece, Statement):
                for change in table_changes(piece):
                    with self._noting(change.database, change.table):
                        chunks += self._of_statement(change, piece)
            else:
                for rows in self._changes.read(piece):
                    chunks += self._of_rows(rows)
            if chunks:
                yield chunks
            yield from self._noted()

    def read_arrivals(self, reader: ChunkReader, end: MariaDbPosition | MySqlPosition) -> Iterator[list[Chunk]]:
        """Envelope rows of tables that were renamed to a followed name, as of the position up to which was read."""
        arrivals = ArrivalReader(reader, self._follow, self._copied, self._accepts)
        for name in self._arrived:
            with self._noting(*name):
                for chunk in arrivals.read(self._server.connection, name, end):
                    yield [self._numbered(chunk)]
            yield from self._noted()

    @contextmanager
    def _noting(self, database: str, table: str) -> Iterator[None]:
        """Makes a table's own trouble a part of the stream, unless it is to stop it."""
        try:
            yield
        except LakebedError as error:
            if self._follow.on_error == "stop" or isinstance(error, StorageError):
                raise
            self._note_trouble(SourceName(database, "", table), error)

    def _note_trouble(self, name: SourceName, error: LakebedError) -> None:
        self._troubles.append(trouble_chunk(name, STREAM, error))

    def _noted(self) -> Iterator[list[Chunk]]:
        found, self._troubles = self._troubles, []
        if found:
            yield [self._numbered(chunk) for chunk in found]

    def _of_rows(self, changes: TableChanges) -> list[Chunk]:
        copied = self._copied
        if (changes.name.database, changes.name.table) == copied.current:
            table = self._catalog(changes.name.database, changes.name.table)
            if table is not None:
                keys = {name: changes.columns[name] for name in table.primary_key}
                changes = changes.filter(within(self._server.connection, table, keys, None, copied.after))
        return [
            self._chunk(changes.name, ROWS, changes.text, encode_rows(batch))
            for batch in changes.batches()
            if batch.num_rows
        ]

    def _of_statement(self, change: TableChange, said: Statement) -> list[Chunk]:
        name = (change.database, change.table)
        if change.arrived or name in self._arrived or self._is_made_by(change, said):
            self._note_arrival(change)
            return []
        if not self._follows(*name):
            return []
        if change.is_untold:
            if self._catalog(*name) is None:
                return []  # only a word
            raise InvalidOption(
                f"a statement that may change {change.database}.{change.table} is in the binary log as text, so its "
                "rows are not known",
                hint="a session had binlog_format STATEMENT or MIXED: SET GLOBAL binlog_format = 'ROW', let it connect "
                "anew, and start again with a new checkpoint",
            )
        self._tables.pop(name, None)
        self._changes.forget()
        if change.dropped:
            self._dropped.add(name)
            return []
        if change.partly_emptied and self._follow.dropped_partitions == "fail":
            raise Unsupported(
                f"a partition of {change.database}.{change.table} was emptied; the log does not tell which rows it had",
                hint="start again with a new checkpoint, which copies the tables again; or delete the rows in the lake "
                "yourself and go on with dropped_partitions='ignore'",
            )
        table = self._catalog(*name)
        chunks: list[Chunk] = []
        source = SourceName(change.database, "", change.table)
        is_new = change.created or name in self._dropped
        if change.emptied or is_new:
            untold = Description((), changes=NameChanges())  # of the columns; the catalog may be ahead of the log
            told = cut_of(said) if self._follow.tells_times else None
            chunks.append(self._chunk(source, TRUNCATE, untold.to_text(), told))
            self._dropped.discard(name)
        described = self._described(change, said, table, is_new=is_new)
        if described is not None:
            chunks.append(self._chunk(source, SCHEMA, described.to_text(), None))
        return chunks

    def _described(
        self, change: TableChange, said: Statement, table: TableColumns | None, *, is_new: bool
    ) -> Description | None:
        """What a statement says of the columns of a table; None if nothing."""
        if change.emptied and not is_new:
            return None
        if table is None:
            # It is gone by now, but rows that were logged before have the names that the statement gave.
            told = change.columns or ColumnChanges()
            changes = NameChanges(told.renamed, told.dropped)
            return None if is_new or changes == NameChanges() else Description((), changes=changes)
        if not self._accepts(table):
            return None
        described = describe(self._as_of(table, said), self._follow.type_mapping)
        if change.columns is not None:
            described = _about(described, table, change.columns, self._follow.type_mapping)
        return replace(described, changes=NameChanges(is_new_table=True)) if is_new else described

    def _is_made_by(self, change: TableChange, said: Statement) -> bool:
        """Whether a table may be another since this statement, although the statement does not say so.

        Its rows are in the log, but if it is the one that was there all the time, what the lake has is right as well.
        """
        name = (change.database, change.table)
        if not change.perhaps_created or name in self._dropped or not self._follows(*name):
            return False
        return was_made_since(self._server.connection, name, said.time_s)

    def _note_arrival(self, change: TableChange) -> None:
        """A table that is copied at the end: until then it only matters whether it still has the name."""
        name = (change.database, change.table)
        if change.dropped:
            del self._arrived[name]
            self._dropped.add(name)
        elif self._follows(*name):
            self._arrived[name] = None
            self._dropped.discard(name)
        self._tables.pop(name, None)
        self._changes.forget()

    def _as_of(self, table: TableColumns, said: Statement) -> TableColumns:
        """The table with the moment of a statement as the default of columns that are made with CURRENT_TIMESTAMP."""
        columns = []
        for column in table.columns:
            if column.default_is_now:
                zone = self._follow.zone if column.kind == "timestamp" else said.zone or "UTC"
                if zone == "SYSTEM":
                    zone = str(value(self._server.connection, "SELECT @@system_time_zone"))
                column = replace(column, default=moment_text(said.time_s, said.micros, column.scale, zone))
            columns.append(column)
        return replace(table, columns=tuple(columns))

    def _chunk(self, name: SourceName, kind: str, text: str, payload: bytes | None) -> Chunk:
        return self._numbered(Chunk(0, name, kind, text, STREAM, payload))

    def _numbered(self, chunk: Chunk) -> Chunk:
        self._ordinal += 1
        return replace(chunk, ordinal=self._ordinal)

    def _follows(self, database: str, table: str) -> bool:
        if (database, table) in self._arrived or self._copied.waits(database, table):
            return False
        return self._follow.matches(database, table)

    def _accepts(self, table: TableColumns) -> bool:
        fault = table_fault(table, self._follow)
        if fault is None:
            return True
        policy = self._follow.unsupported_types if table.primary_key else self._follow.tables_without_key
        if policy == "skip":
            return False
        raise fault

    def _catalog(self, database: str, table: str) -> TableColumns | None:
        name = (database, table)
        if name not in self._tables:
            found = read_tables(self._server.connection, [name], mariadb=self._server.mariadb)
            self._tables[name] = found[0] if found else None
        return self._tables[name]


def _about(described: Description, table: TableColumns, changes: ColumnChanges, modes: tuple[str, ...]) -> Description:
    """What a statement says of a table, of which later statements may have made something else since.

    Only columns that the statement defines are described, as they are now; not those that have another type by now.
    Those that it gives a value in rows that are there have it, whatever their name, type and default are by now.
    """
    kinds = {column.name.lower(): column.kind for column in table.columns}
    defined = {name.lower() for name, kind in changes.defined if kind not in _KINDS or kinds.get(name.lower()) == kind}
    columns = {column.name.lower(): column for column in described.columns if column.name.lower() in defined}
    for filled in changes.filled:
        key, kind = filled.name.lower(), filled.type.partition(" ")[0]
        if key not in columns and kind in _KINDS:
            columns[key] = SourceColumn(filled.name, mysql_type(filled.type, modes))
        if key in columns and kind != "bit":
            value = default_text(Column(filled.name, kind, default=filled.value), columns[key].type)
            columns[key] = replace(columns[key], default=value)
    spelled = {name.lower(): name for name in described.names}
    renamed = tuple((old, spelled.get(new.lower(), new)) for old, new in changes.renamed if old.lower() != new.lower())
    return replace(described, columns=tuple(columns.values()), changes=NameChanges(renamed, changes.dropped))


__all__ = ["StreamReader"]
