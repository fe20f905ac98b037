"""Copies one part of a table under an ordinary snapshot, without locks that anybody waits for.

The rows come as CSV, in the spelling of the stream. The table is held against ALTER and TRUNCATE only while its part is
read, and before the snapshot is taken, so that the snapshot sees what the lock let through.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from lakebed.cdc.envelope import (
    CHANGED_AT,
    COPY,
    MOST_ROWS,
    TRUNCATE,
    Chunk,
    SourceName,
    cut_payload,
    moments,
    trouble_chunk,
)
from lakebed.cdc.sources.postgres.connect import connect, first_line, session, translated
from lakebed.cdc.sources.postgres.log.chunk_rows import copied_chunks
from lakebed.cdc.sources.postgres.log.frames import CopyFrames, CopyRefused
from lakebed.cdc.sources.postgres.log.messages import Messages
from lakebed.cdc.sources.postgres.log.relations import followed_table
from lakebed.cdc.sources.postgres.names import format_lsn, parse_lsn, quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.server.catalog import Catalog, CatalogTable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import CopiedPart, CopyPart, SourceState
from lakebed.cleanup import on_failure
from lakebed.errors import LakebedError, StorageError

if TYPE_CHECKING:
    import psycopg


_BLOCK_BYTES = 8 << 20
_ORDINALS_PER_PART = 1 << 32
_POLL_S = 0.02


def copy_part(settings: PostgresSettings, state: SourceState, part: CopyPart) -> Iterator[pa.RecordBatch]:
    """The envelope rows of a part: copied now, unless some attempt has done it already."""
    copied = state.copied(part.index) or _copy(settings, state, part)
    yield from state.rows(copied)


def _copy(settings: PostgresSettings, state: SourceState, part: CopyPart) -> CopiedPart:
    import psycopg

    try:
        with connect(settings, autocommit=False, patient=True) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            table = _held(connection, settings, part)
            snapshot, lsn, read_at_us = _snapshot(connection)
            told_us = read_at_us if settings.tells_times else None
            chunks = _chunks(connection, settings, part, table, told_us) if table is not None else iter(())
            copied = state.store(part.index, snapshot, lsn, _flushed(settings, chunks, lsn))
            connection.rollback()
            return copied
    except psycopg.Error as error:
        raise translated(settings, error) from error


def _held(connection: psycopg.Connection[Any], settings: PostgresSettings, part: CopyPart) -> CatalogTable | None:
    """The table as it is now, locked against changes of its columns; None if it is gone."""
    import psycopg

    # Of two that wait for each other's locks the server ends one: if that is ours, it asks again.
    while True:
        try:
            with session(settings) as asking:
                publication = Catalog(asking, settings).publication()
                found = Catalog(asking, settings).table(part.oid, publication)
        except StorageError as error:
            if isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                continue
            raise
        if found is None:
            return None
        try:
            # Takes no snapshot: that comes with the first query.
            connection.execute(f"LOCK TABLE {quote_table(found.schema, found.name)} IN ACCESS SHARE MODE".encode())
        except (psycopg.errors.UndefinedTable, psycopg.errors.DeadlockDetected):
            connection.rollback()
            continue
        table = Catalog(connection, settings).table(part.oid, publication)
        if table is not None and (table.schema, table.name) == (found.schema, found.name):
            return table
        connection.rollback()


def _snapshot(connection: psycopg.Connection[Any]) -> tuple[str, int, int]:
    """The transaction's snapshot, a position of the log behind every commit that it sees, and the time."""
    row = connection.execute(
        "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, "
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    ).fetchone()
    assert row is not None
    return row[0], parse_lsn(row[1]), int(row[2])


def _chunks(
    connection: psycopg.Connection[Any],
    settings: PostgresSettings,
    part: CopyPart,
    table: CatalogTable,
    read_at_us: int | None,
) -> Iterator[Chunk]:
    ordinal = part.index * _ORDINALS_PER_PART
    try:
        followed = followed_table(table, settings)
    except LakebedError as error:
        if settings.on_error == "stop":
            raise
        name = SourceName(settings.database, table.schema, table.name)
        yield replace(trouble_chunk(name, COPY, error), ordinal=ordinal)
        return
    names = ", ".join(quote_name(column.name) for column in table.columns)
    only = "" if table.is_partitioned else "ONLY "
    conditions = []
    if part.key_column is not None and table.column(part.key_column) is not None:
        key = quote_name(part.key_column)
        conditions += [f"{key} >= {quote_value(part.lower)}"] if part.lower is not None else []
        conditions += [f"{key} < {quote_value(part.upper)}"] if part.upper is not None else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"COPY (SELECT {names} FROM {only}{quote_table(table.schema, table.name)}{where}) TO STDOUT (FORMAT csv)"
    if part.takes_place:
        told = None
        if read_at_us is not None:
            told = cut_payload(None, {CHANGED_AT: moments(np.array([read_at_us], np.int64))})
        yield Chunk(ordinal, followed.name, TRUNCATE, followed.description.to_text(), COPY, told)
        ordinal += 1
    for block in copy_out(connection, query, MOST_ROWS, _BLOCK_BYTES):
        for chunk in copied_chunks(csv_texts(block, len(table.columns)), followed, settings, read_at_us):
            yield replace(chunk, ordinal=ordinal)
            ordinal += 1


def csv_texts(block: bytes, width: int) -> list[pa.Array]:
    """Columns of some rows of CSV, as texts."""
    names = [str(place) for place in range(width)]
    table = csv.read_csv(
        io.BytesIO(block),
        read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        # Nothing between the commas is null, two quotes are an empty text.
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return [column.combine_chunks() for column in table.columns]


def _flushed(settings: PostgresSettings, chunks: Iterator[Chunk], lsn: int) -> Iterator[Chunk]:
    """The chunks; behind them, waits until the log is safe up to where the snapshot was.

    With `synchronous_commit` off, a snapshot sees what a crash of the server would undo.
    """
    yield from chunks
    deadline = time.monotonic() + settings.wait_ms / 1000
    with session(settings) as connection:
        while True:
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
            assert row is not None
            if parse_lsn(row[0]) >= lsn:
                return
            if time.monotonic() > deadline:
                raise StorageError(
                    f"{settings.place} has not written its log up to {format_lsn(lsn)}", hint="see the server's log"
                )
            time.sleep(_POLL_S)


# --- COPY … TO STDOUT in blocks of rows, each row as the server sends it ------------------------------------------


_WAIT_S = 1.0


def copy_out(connection: psycopg.Connection[Any], query: str, most_rows: int, most_bytes: int) -> Iterator[bytes]:
    """What a COPY sends, in blocks of whole rows, of about that size. The server sends each row as one message."""
    import psycopg

    try:
        frames = CopyFrames(connection, query)
    except CopyRefused as refused:
        raise psycopg.OperationalError(first_line(refused)) from refused
    # What is still under way when this is given up belongs to nothing, so the connection goes with it.
    with closing(frames), on_failure(connection.close):
        waiting: list[Messages] = []
        while not frames.is_over:
            arrived = frames.receive(_WAIT_S)
            if len(arrived):
                waiting.append(arrived)
            rows, size_bytes = sum(map(len, waiting)), sum(len(some.data) for some in waiting)
            if waiting and (frames.is_over or rows >= most_rows or size_bytes >= most_bytes):
                yield b"".join(some.bodies() for some in waiting)
                waiting = []


__all__ = ["copy_out", "copy_part", "csv_texts"]
