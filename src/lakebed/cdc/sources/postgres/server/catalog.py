"""What the server's catalogue says of the tables that match: columns, keys, comments, publication.

The stream names columns and types of the moment of each change; key, nullability, comments and defaults stand only in
the catalogue, as they are now. Reads only; nothing is created here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lakebed.cdc.envelope import Description, SourceColumn
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.values.forms import Form, PgType, form_of, unbounded_as
from lakebed.errors import Unsupported
from lakebed.records import dataclass
from lakebed.types import logical as lt
from lakebed.types.logical import with_nullable

if TYPE_CHECKING:
    import psycopg

GENERATED_SINCE = 180_000
"""Servers of this version publish stored generated columns, if the publication says so."""


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column as the catalogue has it. `form` is None where no type of the lake stands for its type."""

    name: str
    number: int
    type_oid: int
    type_modifier: int
    type_text: str
    is_not_null: bool
    comment: str | None
    default: str | None
    form: Form | None


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table as the catalogue has it. `key` is what its deletes name: the primary key, or the identity's index."""

    oid: int
    schema: str
    name: str
    is_partitioned: bool
    identity: str
    """`d` primary key, `n` nothing, `f` whole row, `i` an index."""
    key: tuple[str, ...]
    comment: str | None
    columns: tuple[CatalogColumn, ...]
    dropped: tuple[int, ...] = ()
    """Numbers of columns that are not there any more."""

    @property
    def full_name(self) -> str:
        """`schema.table`, for errors."""
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> CatalogColumn | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Publication:
    """What a publication sends."""

    name: str
    is_for_all: bool
    operations: frozenset[str]
    is_via_root: bool
    has_generated: bool
    tables: frozenset[tuple[str, str]]
    filtered: frozenset[tuple[str, str]]
    """Tables of which it leaves out rows or columns."""


class Catalog:
    """Asks the catalogue through one connection. Types are remembered: they do not change under an oid."""

    def __init__(self, connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
        self._connection = connection
        self._settings = settings
        self.server_version: int = connection.info.server_version
        self._types: dict[int, PgType] = {}

    def publication(self) -> Publication | None:
        """The publication of the settings, if it exists."""
        generated = "pubgencols = 's'" if self.server_version >= GENERATED_SINCE else "false"
        row = self._one(
            "SELECT puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot, "
            f"{generated} FROM pg_publication WHERE pubname = %s",
            [self._settings.publication],
        )
        if row is None:
            return None
        names = ("insert", "update", "delete", "truncate")
        tables = self._all(
            "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [self._settings.publication]
        )
        filtered: list[Any] = []
        if self.server_version >= 150_000:
            filtered = self._all(
                "SELECT n.nspname, c.relname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid "
                "JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE p.pubname = %s AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)",
                [self._settings.publication],
            )
        return Publication(
            self._settings.publication,
            row[0],
            frozenset(name for name, sent in zip(names, row[1:5], strict=True) if sent),
            row[5],
            row[6],
            frozenset((schema, table) for schema, table in tables),
            frozenset((schema, table) for schema, table in filtered),
        )

    def tables(self, publication: Publication | None = None) -> list[CatalogTable]:
        """The tables that match the settings, by name. Partitions count as their root, if the publication has it so."""
        via_root = publication is None or publication.is_via_root
        shape = "NOT c.relispartition" if via_root else "c.relkind = 'r'"
        return [table for table in self._tables(shape, [], publication) if self._is_wanted(table)]

    def table(self, oid: int, publication: Publication | None = None) -> CatalogTable | None:
        """One table by its id; None if it is gone or does not match."""
        found = self._tables("c.oid = %s", [oid], publication)
        return found[0] if found and self._is_wanted(found[0]) else None

    def has_table(self, schema: str, name: str) -> bool:
        """Whether there is a table of that name now."""
        row = self._one("SELECT to_regclass(format('%%I.%%I', %s::text, %s::text)) IS NOT NULL", [schema, name])
        return bool(row[0])

    def form(self, oid: int, type_modifier: int) -> Form | None:
        """The form of a type that the stream names."""
        self._load_types([oid])
        settings = self._settings
        form = form_of(self._types, oid, type_modifier, "to-string" in settings.type_mapping)
        if form is None and settings.unsupported_types == "string":
            return Form("text", lt.STRING)
        return None if form is None else unbounded_as(form, settings.unbounded_numeric)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_wanted(self, table: CatalogTable) -> bool:
        return self._settings.matches(table.schema, table.name)

    def _tables(self, condition: str, arguments: list[Any], publication: Publication | None) -> list[CatalogTable]:
        rows = self._all(_TABLES.replace("/*condition*/", condition), arguments)
        if not rows:
            return []
        has_generated = self.server_version >= GENERATED_SINCE and (publication is None or publication.has_generated)
        columns: dict[int, list[Any]] = {row[0]: [] for row in rows}
        generated = "a.attgenerated IN ('', 's')" if has_generated else "a.attgenerated = ''"
        for row in self._all(_COLUMNS.replace("/*generated*/", generated), [list(columns)]):
            columns[row[0]].append(row[1:])
        self._load_types({column[2] for found in columns.values() for column in found})
        return [
            CatalogTable(
                oid,
                schema,
                name,
                kind == "p",
                identity,
                tuple(key or ()),
                comment,
                self._columns(columns[oid]),
                tuple(dropped or ()),
            )
            for oid, schema, name, kind, identity, key, comment, dropped in rows
        ]

    def _columns(self, rows: Sequence[Any]) -> tuple[CatalogColumn, ...]:
        return tuple(
            CatalogColumn(
                name,
                number,
                type_oid,
                typmod,
                type_text,
                not_null,
                comment,
                _spelled(missing)
                if missing is not None and type_text == "boolean"
                else missing
                if missing is not None
                else literal(expression),
                self.form(type_oid, typmod),
            )
            for name, number, type_oid, typmod, type_text, not_null, comment, missing, expression in rows
        )

    def _load_types(self, oids: Iterable[int]) -> None:
        wanted = {oid for oid in oids if oid not in self._types}
        while wanted:
            rows = self._all(
                "SELECT oid::bigint, typname, typtype::text, typcategory::text, typbasetype::bigint, typtypmod, "
                "typelem::bigint, typdelim::text, typnamespace = 'pg_catalog'::regnamespace "
                "FROM pg_type WHERE oid = ANY(%s::oid[])",
                [sorted(wanted)],
            )
            found = [PgType(*row) for row in rows]
            self._types.update((known.oid, known) for known in found)
            inner = {oid for known in found for oid in (known.base, known.element) if oid}
            wanted = inner - set(self._types)

    def _all(self, query: str, arguments: list[Any]) -> list[Any]:
        return self._connection.execute(query.encode(), arguments).fetchall()

    def _one(self, query: str, arguments: list[Any]) -> Any:
        return self._connection.execute(query.encode(), arguments).fetchone()


def describe(table: CatalogTable, settings: PostgresSettings) -> Description:
    """The envelope's description of a table; an error if a column's type has no counterpart."""
    keep_nullable = "to-nullable" in settings.type_mapping
    columns = []
    for column in table.columns:
        if column.form is None:
            raise unsupported_column(table.full_name, column.name, column.type_text)
        is_required = column.name in table.key or (column.is_not_null and not keep_nullable)
        columns.append(
            SourceColumn(
                column.name,
                with_nullable(column.form.type, not is_required),
                column.comment,
                column.default,
                column_id(table.oid, column.number),
            )
        )
    return Description(tuple(columns), table.key, table.comment)


def column_id(oid: int, number: int) -> int:
    """What a column keeps for life. Another table of the same name has other columns, whatever they are called."""
    return oid << 16 | number


def unsupported_column(table: str, column: str, type_text: str) -> Unsupported:
    """The error for a column whose type has no counterpart in the lake."""
    return Unsupported(
        f"column `{column}` of table `{table}` has the type {type_text}, for which the lake has none",
        hint='set unsupported_types="string" to have such columns as text, or leave the table out with `excluding`',
    )


def _spelled(boolean: str) -> str:
    return {"t": "true", "f": "false"}.get(boolean, boolean)


_LITERAL = re.compile(r"'((?:[^']|'')*)'::[\w\s\".(),\[\]]+")
_NUMBER = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?")


def literal(expression: str | None) -> str | None:
    """The value of a default that is a plain constant, as text; None for anything that is computed."""
    if expression is None:
        return None
    if expression in ("true", "false"):
        return expression
    number = _NUMBER.fullmatch(expression)
    if number:
        return number.group(1)
    text = _LITERAL.fullmatch(expression)
    return text.group(1).replace("''", "'") if text else None


FAMILY = """
WITH RECURSIVE family AS (
  SELECT oid AS root, oid AS member FROM pg_class WHERE oid = ANY(%s::oid[])
  UNION ALL
  SELECT f.root, i.inhrelid FROM family f JOIN pg_inherits i ON i.inhparent = f.member
    JOIN pg_class c ON c.oid = i.inhrelid AND c.relispartition)
"""
"""Tables with all their partitions. The server's own function for it locks them, and may so end in a deadlock."""

_TABLES = """
SELECT c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relreplident::text,
  (SELECT array_agg(a.attname::text ORDER BY k.place)
     FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts
      AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END),
  obj_description(c.oid, 'pg_class'),
  (SELECT array_agg(a.attnum::int) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attisdropped)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND n.nspname NOT LIKE 'pg\\_%%'
  AND n.nspname <> 'information_schema' AND /*condition*/
ORDER BY n.nspname, c.relname
"""

# What rows have that are older than a column stands with the rows: partitioned tables have it in their partitions.
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname::text, a.attnum::int, a.atttypid::bigint, a.atttypmod,
  format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(a.attrelid, a.attnum),
  CASE WHEN a.atthasmissing THEN (a.attmissingval::text::text[])[1] ELSE (
    WITH RECURSIVE members AS (
      SELECT inhrelid FROM pg_inherits WHERE inhparent = a.attrelid
      UNION ALL SELECT i.inhrelid FROM members m JOIN pg_inherits i ON i.inhparent = m.inhrelid)
    SELECT (p.attmissingval::text::text[])[1] FROM members m JOIN pg_class c ON c.oid = m.inhrelid AND c.relispartition
      JOIN pg_attribute p ON p.attrelid = m.inhrelid AND p.attname = a.attname AND p.atthasmissing LIMIT 1) END,
  CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND /*generated*/
ORDER BY a.attrelid, a.attnum
"""

__all__ = [
    "FAMILY",
    "GENERATED_SINCE",
    "Catalog",
    "CatalogColumn",
    "CatalogTable",
    "Publication",
    "column_id",
    "describe",
    "literal",
    "unsupported_column",
]
