"""What tests keep of a followed database: rows in dictionaries, changed by envelope rows and by nothing else.

Every change must fit what is there: an insert meets no row, an update and a delete meet the very row they speak of.
So a lost or repeated change shows at once, not only in the end. Only a replica that is not strict takes all changes:
names whose tables change while they are read are right in the end, and need not be before.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxBytes

from lakebed.cdc.envelope import KIND, OP_TS, ROWS, SCHEMA, TRUNCATE, Chunk, Description
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader, Offset
from lakebed.types.row_kind import RowKind

from .conftest import chunks_of

Row = dict[str, Any]


class Replica:
    """Tables by name, rows by key."""

    def __init__(self) -> None:
        self.is_strict = True
        self.tables: dict[str, dict[tuple[Any, ...], Row]] = {}
        self.descriptions: dict[str, Description] = {}

    def apply(self, chunks: list[Chunk]) -> None:
        """Applies the chunks of a batch, in their order."""
        for chunk in sorted(chunks, key=lambda chunk: chunk.ordinal):
            table = self.tables.setdefault(chunk.name.table, {})
            self._describe(chunk.name.table, Description.from_text(chunk.columns))
            if chunk.kind == TRUNCATE:
                table.clear()
            elif chunk.kind == ROWS:
                for row in chunk.rows().to_pylist():
                    self._change(chunk.name.table, table, row)
            else:
                assert chunk.kind == SCHEMA

    def _describe(self, name: str, description: Description) -> None:
        before = self.descriptions.get(name)
        if description.changes is None or before is None:
            self.descriptions[name] = description
        if before is None:
            return
        for column in description.columns:
            if column.name not in before.names:
                for row in self.tables[name].values():
                    row.setdefault(column.name, int(column.default) if column.default is not None else None)

    def _change(self, name: str, table: dict[tuple[Any, ...], Row], row: Row) -> None:
        kind = row.pop(KIND)
        row.pop(OP_TS)
        key = tuple(row[column] for column in self.descriptions[name].primary_key)
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            assert key not in table or not self.is_strict, f"{name}: {key} is there already"
            table[key] = row
        elif not self.is_strict:
            table.pop(key, None)
        else:
            assert key in table, f"{name}: {key} is not there"
            old = table.pop(key)
            assert {column: old.get(column) for column in row} == row, f"{name}: {key} is another row"

    def rows(self, name: str) -> list[Row]:
        """The rows of a table, in order of their keys."""
        table = self.tables.get(name, {})
        return [table[key] for key in sorted(table)]


class Follower:
    """Does what Spark does with a source: plans a batch, notes its end, reads it, and may have to read it again."""

    def __init__(self, reader: MySqlStreamReader) -> None:
        self.reader = reader
        self.replica = Replica()
        self.offset: dict[str, str] | None = None
        self.batches = 0

    def step(self, crashes: int = 0) -> bool:
        """One batch, which fails so many times before it succeeds; False if there was nothing to do."""
        if self.offset is None:
            self.offset = self.reader.initialOffset()
        end = self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
        assert isinstance(self.reader.getDefaultReadLimit(), ReadMaxBytes)
        if end == self.offset:
            return False
        for _ in range(crashes):
            self._read(end)
        self.replica.apply(self._read(end))
        self.reader.commit(end)
        self.offset = end
        self.batches += 1
        return True

    def catch_up(self) -> None:
        """Batches until there is nothing left."""
        while self.step():
            pass

    @property
    def is_copied(self) -> bool:
        """Whether the copy is over."""
        return self.offset is not None and Offset.from_dict(self.offset).copy.is_done

    def _read(self, end: dict[str, str]) -> list[Chunk]:
        assert self.offset is not None
        tasks = self.reader.partitions(self.offset, end)
        return [chunk for task in tasks for chunk in chunks_of(list(self.reader.read(task)))]
