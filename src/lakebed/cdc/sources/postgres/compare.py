"""Rows of a PostgreSQL for a comparison with the lake: by ranges of keys, or by keys, through the casts of the sync."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.cdc.envelope import payload_columns
from lakebed.cdc.sources.base import KeyRange, SourceRows
from lakebed.cdc.sources.postgres.connect import connect, session, translated
from lakebed.cdc.sources.postgres.copy.plan import plan_copy
from lakebed.cdc.sources.postgres.copy.read import copy_out, csv_texts
from lakebed.cdc.sources.postgres.log.chunk_rows import copied_chunks
from lakebed.cdc.sources.postgres.log.relations import followed_table
from lakebed.cdc.sources.postgres.names import parse_lsn, quote_name, quote_table, quote_value
from lakebed.cdc.sources.postgres.server.catalog import Catalog, CatalogTable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import NotFound

if TYPE_CHECKING:
    import psycopg

_BLOCK_ROWS, _BLOCK_BYTES = 65_536, 8 << 20


def key_ranges(settings: PostgresSettings, name: str) -> Iterator[KeyRange]:
    """Ranges of a table's key that are compared one by one."""
    with session(settings) as connection:
        table = _table(connection, settings, name)
        for part in plan_copy(connection, settings, [table], 0):
            yield KeyRange(part.key_column, part.lower, part.upper)


def rows_of(settings: PostgresSettings, name: str, where: KeyRange | Sequence[Sequence[str | None]]) -> SourceRows:
    """Rows of a range, or those with some keys, and a position of the log behind every commit that is in them."""
    import psycopg

    strict = replace(settings, on_error="stop")
    try:
        with connect(settings, autocommit=False, patient=True) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
            assert row is not None
            table = _table(connection, settings, name)
            followed = followed_table(table, strict)
            names = ", ".join(quote_name(column.name) for column in table.columns)
            only = "" if table.is_partitioned else "ONLY "
            source = f"{only}{quote_table(table.schema, table.name)}"
            query = f"COPY (SELECT {names} FROM {source} WHERE {_condition(table, where)}) TO STDOUT (FORMAT csv)"
            batches = [
                pa.RecordBatch.from_pydict(payload_columns(chunk.rows()))
                for block in copy_out(connection, query, _BLOCK_ROWS, _BLOCK_BYTES)
                for chunk in copied_chunks(csv_texts(block, len(table.columns)), followed, strict)
            ]
            connection.rollback()
    except psycopg.Error as error:
        raise translated(settings, error) from error
    schema = pa.schema(followed.description.payload_schema())
    empty = pa.schema([schema.field(i) for i in range(2, len(schema))])
    found = pa.Table.from_batches(batches) if batches else empty.empty_table()
    return SourceRows(found, tuple(table.key), row[0])


def is_past(position: str, wanted: str) -> bool:
    """Whether a position of the log is at or behind another."""
    return parse_lsn(position) >= parse_lsn(wanted)


def _condition(table: CatalogTable, where: KeyRange | Sequence[Sequence[str | None]]) -> str:
    if isinstance(where, KeyRange):
        key = quote_name(where.column or table.key[0])
        found = [f"{key} >= {quote_value(where.lower)}"] if where.lower is not None else []
        found += [f"{key} < {quote_value(where.upper)}"] if where.upper is not None else []
        return " AND ".join(found) or "true"
    if not where:
        return "false"
    names = ", ".join(quote_name(name) for name in table.key)
    keys = ", ".join("(" + ", ".join(quote_value(part or "") for part in key) + ")" for key in where)
    return f"({names}) IN ({keys})"


def _table(connection: psycopg.Connection[Any], settings: PostgresSettings, name: str) -> CatalogTable:
    schema, _, table = name.rpartition(".")
    catalog = Catalog(connection, settings)
    wanted = schema.rpartition(".")[2]
    for found in catalog.tables(catalog.publication()):
        if (found.schema, found.name) == (wanted, table):
            return found
    raise NotFound(f"there is no table `{name}` at {settings.place}", hint="it was dropped or renamed; see the status")


__all__ = ["is_past", "key_ranges", "rows_of"]
