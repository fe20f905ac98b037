"""Rows of the binary log as payloads: one batch of changes per table, described as the lake will have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import MOST_ROWS, Description, SourceName, payload_rows
from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.log.row_layout import find_rows
from lakebed.cdc.sources.mysql.log.row_values import ColumnReader
from lakebed.cdc.sources.mysql.log.table_map import LoggedTables, TableMap, table_numbers
from lakebed.cdc.sources.mysql.log.transactions import Rows
from lakebed.cdc.sources.mysql.server.counted import CountedChanges
from lakebed.cdc.sources.mysql.server.mapping import describe
from lakebed.cdc.sources.mysql.values.gather import Array
from lakebed.errors import LakebedError, StorageError
from lakebed.records import dataclass
from lakebed.types.row_kind import RowKind


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Changes of one table, in order."""

    name: SourceName
    description: Description
    text: str
    """Of the description, made once."""
    kinds: Array
    times_ms: Array
    columns: dict[str, pa.Array]
    about: dict[str, pa.Array] = field(default_factory=dict)
    """What is told of their transactions, if somebody asks."""

    def __len__(self) -> int:
        return len(self.kinds)

    def filter(self, keep: Array) -> TableChanges:
        """Some of the changes."""
        if keep.all():
            return self
        mask = pa.array(keep)
        columns = {name: values.filter(mask) for name, values in self.columns.items()}
        about = {name: values.filter(mask) for name, values in self.about.items()}
        return replace(self, kinds=self.kinds[keep], times_ms=self.times_ms[keep], columns=columns, about=about)

    def batches(self) -> list[pa.RecordBatch]:
        """Payloads of at most about `MOST_ROWS` changes; the two halves of an update stay together."""
        times = pa.array(self.times_ms).cast(pa.timestamp("ms", tz="UTC"))
        whole = payload_rows(self.kinds, times, self.columns, about=self.about)
        batches: list[pa.RecordBatch] = []
        at = 0
        while at < len(self):
            end = min(at + MOST_ROWS, len(self))
            if end < len(self) and self.kinds[end] == RowKind.UPDATE_AFTER:
                end += 1
            batches.append(whole.slice(at, end - at))
            at = end
        return batches


@dataclass(frozen=True, slots=True)
class _KnownTable:
    """A table of the log, ready to be read."""

    logged: TableMap
    name: SourceName
    description: Description
    text: str
    readers: list[ColumnReader]


class ChangeReader:
    """Reads row events.

    `catalog` tells what only the catalog knows of a table; `follows` which tables are wanted by their names, `accepts`
    by what they are; `booleans` names columns that once were TINYINT(1).
    """

    def __init__(
        self,
        follows: Callable[[str, str], bool],
        catalog: Callable[[str, str], TableColumns | None],
        modes: tuple[str, ...],
        *,
        mariadb: bool,
        zone: str = "UTC",
        accepts: Callable[[TableColumns], bool] = lambda table: True,
        booleans: Callable[[str, str], Iterable[str]] = lambda database, table: (),
        troubles: Callable[[SourceName, LakebedError], None] | None = None,
        transactions: CountedChanges | None = None,
    ) -> None:
        self._follows = follows
        self._catalog = catalog
        self._modes = modes
        self._mariadb = mariadb
        self._zone = zone
        self._accepts = accepts
        self._booleans = booleans
        self._troubles = troubles
        self._transactions = transactions
        self._known: dict[tuple[LoggedTables, int], _KnownTable | None] = {}

    def forget(self) -> None:
        """Tables may have changed: ask the catalog again."""
        self._known.clear()

    def read(self, rows: Rows) -> list[TableChanges]:
        """The changes of each wanted table, in the order in which the tables appear."""
        segment = rows.segment
        numbers = table_numbers(segment, rows.events)
        distinct, first = np.unique(numbers, return_index=True)
        changes: list[TableChanges] = []
        for number in distinct[np.argsort(first)].tolist():
            try:
                known = self._table(segment.tables, number)
                if known is not None:
                    changes.append(self._changes(rows, numbers == number, known))
            except LakebedError as error:
                name = segment.tables.name(number)
                if self._troubles is None or name is None or isinstance(error, StorageError):
                    raise
                self._troubles(SourceName(name[0], "", name[1]), error)
        return [change for change in changes if len(change)]

    def _changes(self, rows: Rows, mine: Array, known: _KnownTable) -> TableChanges:
        segment, events = rows.segment, rows.events[mine]
        found = find_rows(segment, events, known.logged)
        columns = {
            reader.column.name: reader.read(
                segment.bytes, found.places[i], found.lengths[i], found.valid[i], found.partial.get(i)
            )
            for i, reader in enumerate(known.readers)
        }
        kinds = _with_key_changes(found.kinds, columns, known.description.primary_key)
        about: dict[str, pa.Array] = {}
        if self._transactions is not None and rows.begins is not None and rows.ids is not None:
            begins = rows.begins[mine][found.events]
            about = self._transactions.told(known.name, rows.ids, begins, found.kinds != RowKind.UPDATE_AFTER)
        return TableChanges(known.name, known.description, known.text, kinds, found.times_s * 1000, columns, about)

    def _table(self, tables: LoggedTables, number: int) -> _KnownTable | None:
        key = (tables, number)
        if key not in self._known:
            name = tables.name(number)
            wanted = name is not None and self._follows(*name)
            self._known[key] = self._describe(tables.table(number, mariadb=self._mariadb)) if wanted else None
        return self._known[key]

    def _describe(self, logged: TableMap) -> _KnownTable | None:
        name = (logged.table.database, logged.table.table)
        table = logged.table.informed_by(self._catalog(*name)).with_booleans(self._booleans(*name))
        if not self._accepts(table):
            return None
        description = describe(table, self._modes)
        readers = [
            ColumnReader(column, code, meta, described.type, self._zone)
            for column, code, meta, described in zip(
                table.columns, logged.codes, logged.metas, description.columns, strict=True
            )
        ]
        return _KnownTable(
            logged, SourceName(table.database, "", table.table), description, description.to_text(), readers
        )


def _with_key_changes(kinds: Array, columns: dict[str, pa.Array], key: tuple[str, ...]) -> Array:
    """An update that changes the key is a delete and an insert."""
    before = np.flatnonzero(kinds == RowKind.UPDATE_BEFORE)
    if not len(before):
        return kinds
    old, new = pa.array(before), pa.array(before + 1)
    changed = np.zeros(len(before), bool)
    for name in key:
        values = columns[name]
        changed |= np.asarray(pc.fill_null(pc.not_equal(values.take(old), values.take(new)), False))
    kinds = kinds.copy()
    kinds[before[changed]] = RowKind.DELETE
    kinds[before[changed] + 1] = RowKind.INSERT
    return kinds


__all__ = ["ChangeReader", "TableChanges"]
