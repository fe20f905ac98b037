"""Reads the log through SQL: looks at what the slot holds without taking it away.

Stateless and repeatable, so any task can do it, as often as it likes. Each call scans the log from where the slot
begins; a stream that runs on keeps a connection instead (`replication`). Results come through a cursor of the server,
so that a transaction of any size passes in pieces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.connect import connect, translated
from lakebed.cdc.sources.postgres.log.messages import Messages
from lakebed.cdc.sources.postgres.names import format_lsn, quote_name
from lakebed.cdc.sources.postgres.server.slot import require_slot, slot_in_use
from lakebed.cdc.sources.postgres.settings import PostgresSettings

if TYPE_CHECKING:
    import psycopg

MESSAGES_PER_CHUNK = 16_384
_BYTES_PER_CHUNK = 32 << 20
_MOST_FETCHED, _FEWEST_FETCHED = 1024, 8
_FETCH_BYTES = 16 << 20
_RETRY_S = 0.2
_QUERY = (
    "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, NULL, "
    "'proto_version', '1', 'publication_names', %s)"
)


def peek(settings: PostgresSettings, start: int, end: int) -> Iterator[Messages]:
    """Messages of all transactions that were committed from `start` to `end`, and perhaps of some around.

    The decoder drops those around: a message does not say where its transaction ends, its Begin does.
    """
    import psycopg

    with connect(settings, autocommit=False, patient=True) as connection:
        require_slot(connection, settings, start)
        connection.rollback()
        cursor = _opened(connection, settings, end)
        try:
            yield from _chunks(cursor)
        except psycopg.Error as error:
            raise translated(settings, error) from error
        finally:
            cursor.close()


def _opened(connection: psycopg.Connection[Any], settings: PostgresSettings, end: int) -> _Fetched:
    """The cursor. A task that was given up may hold the slot for a moment longer."""
    import psycopg

    deadline = time.monotonic() + settings.wait_ms / 1000
    while True:
        cursor = connection.cursor("lakebed", binary=True)
        try:
            cursor.execute(_QUERY, [settings.slot, format_lsn(end), quote_name(settings.publication)])
            # The server runs it at the first fetch, which is where a busy slot shows.
            first = cursor.fetchmany(_FEWEST_FETCHED)
        except psycopg.errors.ObjectInUse as error:
            _close(cursor)
            connection.rollback()
            if time.monotonic() > deadline:
                raise slot_in_use(settings, error) from error
            time.sleep(_RETRY_S)
        except psycopg.Error as error:
            _close(cursor)
            raise translated(settings, error) from error
        else:
            return _Fetched(cursor, first)


def _close(cursor: Any) -> None:
    """Lets go of a cursor; a server that went away has done so itself."""
    import psycopg

    try:
        cursor.close()
    except psycopg.Error:
        cursor.connection.close()
        cursor.close()


class _Fetched:
    """A cursor whose first rows are there already."""

    def __init__(self, cursor: Any, first: list[Any]) -> None:
        self._cursor = cursor
        self._first = first

    def fetch(self, count: int) -> list[Any]:
        first, self._first = self._first, []
        rows: list[Any] = first or self._cursor.fetchmany(count)
        return rows

    def close(self) -> None:
        _close(self._cursor)


def _chunks(cursor: _Fetched) -> Iterator[Messages]:
    gathered: list[bytes] = []
    size_bytes, count = 0, _FEWEST_FETCHED
    while rows := cursor.fetch(count):
        fetched = [row[0] for row in rows]
        fetched_bytes = sum(map(len, fetched))
        gathered += fetched
        size_bytes += fetched_bytes
        # Long rows are fetched few at a time, so that memory is bounded whatever they are.
        count = min(_MOST_FETCHED, count * 4, max(_FEWEST_FETCHED, _FETCH_BYTES * len(rows) // max(fetched_bytes, 1)))
        if len(gathered) >= MESSAGES_PER_CHUNK or size_bytes >= _BYTES_PER_CHUNK:
            yield Messages.of(gathered)
            gathered, size_bytes = [], 0
    if gathered:
        yield Messages.of(gathered)


__all__ = ["MESSAGES_PER_CHUNK", "peek"]
