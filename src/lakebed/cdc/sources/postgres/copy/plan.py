"""Cuts tables into parts that are copied on their own: ranges of the key's first column, of about the same size.

Borders come from a sample of the table's pages, so that planning costs little whatever the table's size. Only types
whose order we know are cut; other tables are one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cdc.sources.postgres.names import quote_name, quote_table
from lakebed.cdc.sources.postgres.server.catalog import FAMILY, CatalogTable
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import CopyPart

if TYPE_CHECKING:
    import psycopg

_PAGE_BYTES = 8192
_PAGES_PER_PART = 20
_FEWEST_PAGES = 200
_SIZES = FAMILY + "SELECT root::bigint, sum(pg_relation_size(member))::bigint FROM family GROUP BY root"
_ROWS = FAMILY + (
    "SELECT f.root::bigint, greatest(sum(c.reltuples), 0)::bigint FROM family f JOIN pg_class c ON c.oid = f.member "
    "GROUP BY f.root"
)
_RANGES = {"smallint": "integer", "integer": "integer", "bigint": "integer", "uuid": "uuid"}
"""Types with an order that we know, and how their values are compared here."""


def plan_copy(
    connection: psycopg.Connection[Any],
    settings: PostgresSettings,
    tables: Sequence[CatalogTable],
    first_index: int,
    is_again: bool = False,
) -> list[CopyPart]:
    """Parts of some tables, numbered from `first_index`."""
    parts: list[CopyPart] = []
    sizes = dict(connection.execute(_SIZES, [[table.oid for table in tables]]).fetchall())
    for table in tables:
        column = table.column(table.key[0])
        spelling = _RANGES.get(column.type_text) if column is not None else None
        size_bytes = int(sizes.get(table.oid) or 0)
        wanted = -(-size_bytes // settings.copy_chunk_bytes)
        borders: list[str | None] = []
        if spelling is not None and wanted > 1:
            borders = [*_borders(connection, table, wanted, size_bytes)]
        key = table.key[0] if spelling is not None else None
        for lower, upper in zip([None, *borders], [*borders, None], strict=True):
            parts.append(
                CopyPart(
                    first_index + len(parts), table.oid, table.schema, table.name, key, spelling, lower, upper, is_again
                )
            )
    return parts


def table_sizes(connection: psycopg.Connection[Any], oids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """About how many rows and bytes tables have, with their partitions, by their id."""
    rows = dict(connection.execute(_ROWS, [list(oids)]).fetchall())
    sizes = dict(connection.execute(_SIZES, [list(oids)]).fetchall())
    return {oid: (int(rows.get(oid) or 0), int(sizes.get(oid) or 0)) for oid in oids}


def _borders(connection: psycopg.Connection[Any], table: CatalogTable, wanted: int, size_bytes: int) -> list[str]:
    """Up to `wanted - 1` keys that cut the table into equal parts, ascending, as texts."""
    pages = max(size_bytes // _PAGE_BYTES, 1)
    percent = min(100.0, 100.0 * max(wanted * _PAGES_PER_PART, _FEWEST_PAGES) / pages)
    key = quote_name(table.key[0])
    rows = connection.execute(
        f"SELECT DISTINCT ON (part) {key}::text FROM (SELECT {key}, ntile(%s) OVER (ORDER BY {key}) AS part FROM "
        f"{quote_table(table.schema, table.name)} TABLESAMPLE SYSTEM (%s) REPEATABLE (1)) s "
        f"WHERE part > 1 ORDER BY part, {key}".encode(),
        [wanted, percent],
    ).fetchall()
    return list(dict.fromkeys(row[0] for row in rows))


__all__ = ["plan_copy", "table_sizes"]
