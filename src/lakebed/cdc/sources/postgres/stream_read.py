"""Messages in, envelope rows out: decodes a piece of the log, leaves out what the copy holds, describes the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.cdc.envelope import (
    SCHEMA,
    STREAM,
    TRUNCATE,
    Chunk,
    SourceName,
    chunks_from_arrow,
    chunks_to_arrow,
    trouble_chunk,
)
from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.copy.filter import TableFilter, with_moved_values
from lakebed.cdc.sources.postgres.log.chunk_rows import cut_of, streamed_chunks
from lakebed.cdc.sources.postgres.log.messages import Messages, Relation
from lakebed.cdc.sources.postgres.log.pgoutput import DecodedRows, PgOutputDecoder, Truncation
from lakebed.cdc.sources.postgres.log.relations import RelationBook
from lakebed.cdc.sources.postgres.server.catalog import Catalog
from lakebed.cdc.sources.postgres.server.columns import seen_columns
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.records import dataclass

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class SchemaNotice:
    """A table's description that no row has told yet. Behind `lsn`, no change has an older form."""

    lsn: int
    name: SourceName
    columns: str


def read_stream(
    settings: PostgresSettings,
    state: SourceState,
    start: int,
    end: int,
    messages: Iterable[Messages],
    filters: Mapping[int, TableFilter],
    notices: Sequence[SchemaNotice],
) -> Iterator[pa.RecordBatch]:
    """Envelope rows of the transactions with `start <= commit_lsn < end`."""
    with session(settings, patient=True) as connection:
        catalog = Catalog(connection, settings)
        book = RelationBook(catalog, settings, catalog.publication(), lambda oid: seen_columns(state, oid))
        reading = _Reading(settings, state, book, filters, connection)
        decoder = PgOutputDecoder(reading.book.key, start, end)
        waiting = _Waiting(notices)
        for some in messages:
            for event in decoder.decode(some):
                for item in waiting.before_rows(event):
                    yield from reading.envelopes(item)
        for notice in waiting.rest():
            yield from reading.envelopes(notice)


class _Waiting:
    """Notices that wait for their turn: a table's is due before its first change that was committed behind it."""

    def __init__(self, notices: Sequence[SchemaNotice]) -> None:
        self._of: dict[tuple[str, str], list[SchemaNotice]] = {}
        for notice in sorted(notices, key=lambda notice: notice.lsn):
            self._of.setdefault((notice.name.schema, notice.name.table), []).append(notice)

    def before_rows(self, event: DecodedRows | Truncation) -> Iterator[DecodedRows | Truncation | SchemaNotice]:
        """The event, with the notices that come before it or before a part of its rows."""
        if isinstance(event, Truncation):
            for relation in event.relations:
                yield from self._until(relation, event.commit_lsn)
            yield event
            return
        mine = self._of.get((event.relation.schema, event.relation.name))
        while mine and mine[0].lsn <= event.commit_lsns[-1]:
            is_before = event.commit_lsns < mine[0].lsn
            if is_before.any():
                yield event.filter(is_before)
                event = event.filter(~is_before)
            yield mine.pop(0)
        yield event

    def _until(self, relation: Relation, lsn: int) -> Iterator[SchemaNotice]:
        mine = self._of.get((relation.schema, relation.name))
        while mine and mine[0].lsn <= lsn:
            yield mine.pop(0)

    def rest(self) -> Iterator[SchemaNotice]:
        """Those of tables without later changes."""
        for mine in self._of.values():
            yield from mine


class _Reading:
    """One pass over the log: numbers its chunks."""

    def __init__(
        self,
        settings: PostgresSettings,
        state: SourceState,
        book: RelationBook,
        filters: Mapping[int, TableFilter],
        connection: psycopg.Connection[Any],
    ) -> None:
        self.book = book
        self._connection = connection
        self._settings = settings
        self._state = state
        self._filters = filters
        self._ordinal = 0

    def numbered(self, chunk: Chunk) -> Chunk:
        """The chunk with the next number."""
        self._ordinal += 1
        return replace(chunk, ordinal=self._ordinal)

    def envelopes(self, item: DecodedRows | Truncation | SchemaNotice) -> Iterator[pa.RecordBatch]:
        """Envelope rows of what comes next."""
        if isinstance(item, SchemaNotice):
            yield chunks_to_arrow([self.numbered(Chunk(0, item.name, SCHEMA, item.columns, STREAM))])
            return
        for chunk in self.chunks(item):
            yield chunks_to_arrow([chunk])

    def chunks(self, event: DecodedRows | Truncation) -> Iterator[Chunk]:
        """Chunks of an event."""
        if isinstance(event, Truncation):
            yield from self._emptied(event)
            return
        table = self.book.table(event.relation)
        if table is None:
            yield from self._troubles(event.relation)
            return
        filtered = self._filters.get(event.relation.oid)
        if filtered is not None:
            keep = filtered.keep(event, table)
            if not keep.any():
                return
            if not keep.all():
                event = with_moved_values(event, keep, table, self._connection).filter(keep)
        for chunk in streamed_chunks(event, table, self._settings):
            yield self.numbered(chunk)

    def _troubles(self, relation: Relation) -> Iterator[Chunk]:
        """What is wrong with a table that can not be read."""
        error = self.book.troubles.get(relation)
        if error is not None:
            name = SourceName(self._settings.database, relation.schema, relation.name)
            yield self.numbered(trouble_chunk(name, STREAM, error))

    def _emptied(self, event: Truncation) -> Iterator[Chunk]:
        for relation in event.relations:
            table = self.book.table(relation)
            if table is None:
                continue
            filtered = self._filters.get(relation.oid)
            later = filtered.holding(event) if filtered is not None else []
            if filtered is not None and len(later) == len(filtered.parts):
                continue  # all of the copy is newer
            payload = cut_of(event) if self._settings.tells_times else None
            yield self.numbered(Chunk(0, table.name, TRUNCATE, table.description.to_text(), STREAM, payload))
            # Parts that were copied afterwards go with the rest, and come back as they were: no change of theirs
            # can have been streamed before, since whoever truncates waits for all who change the table.
            for copied in later:
                for batch in self._state.rows(copied):
                    for chunk in chunks_from_arrow(batch):
                        yield self.numbered(chunk)


__all__ = ["SchemaNotice", "read_stream"]
