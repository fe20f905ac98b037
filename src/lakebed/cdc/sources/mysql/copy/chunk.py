"""Part of a table as it was at a position of the log, although it is read later.

The part is read in an ordinary snapshot, without locks. What changed between the position and the snapshot is then
taken back with the help of the log, which carries every changed row as it was before: the first change of a key after
the position tells what the key was at the position. So the snapshot's own place need not be known, only that it lies
between the position and a later one; a copy that is made again gives the same rows; and the stream goes on from the
position as if the rows had been there all the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.cdc.envelope import CHANGED_AT, Description, cut_payload, moments
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.copy.keys import KeyRange, range_condition, within
from lakebed.cdc.sources.mysql.copy.text_rows import quoted, rows_of_query, selected
from lakebed.cdc.sources.mysql.log.ddl import table_changes
from lakebed.cdc.sources.mysql.log.reader import LogReader
from lakebed.cdc.sources.mysql.log.transactions import Rows
from lakebed.cdc.sources.mysql.server.catalog import read_tables
from lakebed.cdc.sources.mysql.server.changes import ChangeReader, TableChanges
from lakebed.cdc.sources.mysql.server.mapping import describe
from lakebed.cdc.sources.mysql.server.server import Server, execute, value
from lakebed.cdc.sources.mysql.settings import ServerSettings
from lakebed.errors import StorageError
from lakebed.metadata.source_position import MariaDbPosition, MySqlPosition
from lakebed.types.row_kind import RowKind

_NUMBER = "number"
_ATTEMPTS = 3

CopiedRows = tuple[Description, dict[str, pa.Array], int]
"""Rows of one description: their columns and how many they are."""


class ChunkReader:
    """Reads parts of tables as of positions."""

    def __init__(
        self,
        settings: ServerSettings,
        modes: tuple[str, ...],
        zone: str,
        replica_id: int,
        *,
        tells_times: bool = False,
    ) -> None:
        self._tells_times = tells_times
        self.read_at_us: int | None = None
        """When the last part was read, by the clock of the server, if somebody keeps the past."""
        self.settings = settings
        self.modes = modes
        self.zone = zone
        self.replica_id = replica_id

    def look_at_clock(self, connection: Any) -> None:
        """Notes when rows are read."""
        if self._tells_times:
            micros = value(connection, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)")
            self.read_at_us = max(int(micros), self.read_at_us or 0)

    def cut(self) -> bytes | None:
        """The payload of the TRUNCATE with which a new copy begins."""
        if self.read_at_us is None:
            return None
        return cut_payload(None, {CHANGED_AT: moments(np.array([self.read_at_us], np.int64))})

    def read_patiently(self, part: KeyRange, position: MariaDbPosition | MySqlPosition) -> list[CopiedRows]:
        """`read`, again if the server goes away meanwhile: the result is the same each time."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.read(part, position)
            except StorageError:
                continue
        return self.read(part, position)

    def read(self, part: KeyRange, position: MariaDbPosition | MySqlPosition) -> list[CopiedRows]:
        """The rows of a part. Empty if the table is gone, or another has its name: the stream will tell so."""
        connection = self.settings.connect_patiently()
        try:
            server = Server.of(connection)
            server.start_snapshot(position)
            self.look_at_clock(connection)
            tables = read_tables(connection, [(part.database, part.table)], mariadb=server.mariadb)
            if not tables:
                return []
            later = server.position()  # all that the snapshot sees lies before
            description, columns, count = self._select(connection, tables[0], part)
            execute(connection, "COMMIT")
            if str(later) == str(position):
                return [(description, columns, count)]
            touched = self._touched(server, tables[0], position, later)
            if touched is None:
                return []
            return self._taken_back(connection, tables[0], part, (description, columns, count), touched)
        finally:
            connection.close()

    def _select(self, connection: Any, table: TableColumns, part: KeyRange) -> CopiedRows:
        description = describe(table, self.modes)
        query = (
            f"SELECT {', '.join(selected(column) for column in table.columns)} "
            f"FROM {quoted(table.database)}.{quoted(table.table)} "
            f"WHERE {range_condition(connection, table, part.low, part.high)}"
        )
        targets = [column.type for column in description.columns]
        pieces = list(rows_of_query(connection, query, table.columns, targets, self.zone))
        schema = description.payload_schema()
        columns = {
            name: pa.concat_arrays([piece[i] for piece in pieces]) if pieces else pa.array([], schema.field(i + 2).type)
            for i, name in enumerate(description.names)
        }
        return description, columns, len(next(iter(columns.values())))

    def _touched(
        self,
        server: Server,
        table: TableColumns,
        position: MariaDbPosition | MySqlPosition,
        later: MariaDbPosition | MySqlPosition,
    ) -> list[TableChanges] | None:
        """The changes of the table between two positions; None if it is not the same table at both."""
        name = (table.database, table.table)
        changes = ChangeReader(
            lambda database, other: (database, other) == name,
            lambda *_: table,
            self.modes,
            mariadb=server.mariadb,
            zone=self.zone,
        )
        reader = LogReader(self.settings, position, self.replica_id)
        found: list[TableChanges] = []
        try:
            for piece in reader.read_to(later):
                if isinstance(piece, Rows):
                    found += changes.read(piece)
                elif any(each.is_another and (each.database, each.table) == name for each in table_changes(piece)):
                    return None
        finally:
            reader.close()
        return found

    def _taken_back(
        self, connection: Any, table: TableColumns, part: KeyRange, copied: CopiedRows, touched: list[TableChanges]
    ) -> list[CopiedRows]:
        """The copied rows without those of touched keys, and what those keys were before their first change."""
        description, columns, _ = copied
        key = table.primary_key
        keys = [_key_table(change.columns, key) for change in touched if len(change)]
        if not keys:
            return [copied]
        all_keys = pa.concat_tables(keys, promote_options="permissive")
        numbered = all_keys.append_column(_NUMBER, pa.array(np.arange(len(all_keys))))
        firsts = numbered.group_by(all_keys.column_names, use_threads=False).aggregate([(_NUMBER, "min")])
        is_first = np.zeros(len(all_keys), bool)
        is_first[np.asarray(firsts.column(f"{_NUMBER}_min"))] = True
        before: list[CopiedRows] = []
        at = 0
        for change in touched:
            first, at = is_first[at : at + len(change)], at + len(change)
            rows = change.filter(first & np.isin(change.kinds, (RowKind.UPDATE_BEFORE, RowKind.DELETE)))
            rows = rows.filter(
                within(connection, table, {name: rows.columns[name] for name in key}, part.low, part.high)
            )
            if len(rows):
                before.append((rows.description, rows.columns, len(rows)))
        untouched = _not_among(_key_table(columns, key), firsts.select(all_keys.column_names))
        kept = {name: values.take(untouched) for name, values in columns.items()}
        return [(description, kept, len(untouched)), *before]


def _key_table(columns: dict[str, pa.Array], key: tuple[str, ...]) -> pa.Table:
    """The key's columns, under names that can not clash."""
    return pa.table({f"key{i}": columns[name] for i, name in enumerate(key)})


def _not_among(keys: pa.Table, others: pa.Table) -> pa.Array:
    """The numbers of the keys that are not among the others, in order."""
    names = keys.column_names
    others = others.cast(keys.schema)
    numbered = keys.append_column(_NUMBER, pa.array(np.arange(len(keys))))
    left = numbered.join(others, keys=names, join_type="left anti", use_threads=False)
    return pa.array(np.sort(np.asarray(left.column(_NUMBER))))


__all__ = ["ChunkReader", "CopiedRows"]
