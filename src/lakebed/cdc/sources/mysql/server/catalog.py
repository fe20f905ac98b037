"""What a server says of its tables: `information_schema`, read for some tables or for all that match.

One query for columns, one for keys, one for tables; the rest is parsing of what MySQL and MariaDB spell differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from lakebed.cdc.sources.mysql.columns import INTEGERS, Column, TableColumns
from lakebed.cdc.sources.mysql.server.server import rows

SYSTEM_DATABASES: Final = ("mysql", "information_schema", "performance_schema", "sys")

_NUMBERS: Final = re.compile(r"\(([\d, ]+)\)")
_MEMBER: Final = re.compile(r"'((?:[^']|'')*)'")
_QUOTED: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_NOW: Final = re.compile(r"(current_timestamp|now|localtime|localtimestamp)\b", re.IGNORECASE)
_PLAIN_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")

_COLUMNS: Final = """
SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, column_default, extra,
       column_comment, character_set_name, character_maximum_length, numeric_precision, numeric_scale,
       datetime_precision
FROM information_schema.columns WHERE {where} ORDER BY table_schema, table_name, ordinal_position
"""
_KEYS: Final = """
SELECT table_schema, table_name, column_name, sub_part FROM information_schema.statistics
WHERE index_name = 'PRIMARY' AND {where} ORDER BY table_schema, table_name, seq_in_index
"""
_TABLES: Final = """
SELECT table_schema, table_name, engine, table_comment, table_type, avg_row_length FROM information_schema.tables
WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {where} ORDER BY table_schema, table_name
"""
_CASCADES: Final = """
SELECT constraint_schema, table_name, constraint_name FROM information_schema.referential_constraints
WHERE (delete_rule NOT IN ('RESTRICT', 'NO ACTION') OR update_rule NOT IN ('RESTRICT', 'NO ACTION'))
AND {where} ORDER BY 1, 2, 3
"""
_CLOCKS_DIFFER_S: Final = 60
"""The age of a table is that of a file, whose clock need not be the server's."""

Name = tuple[str, str]


def table_names(connection: Any) -> list[Name]:
    """Database and name of every table that is not the server's own and that the user may see."""
    found = _query(connection, _TABLES, *_all_but_system())
    return [(database, table) for database, table, *_ in found]


def read_tables(connection: Any, names: Sequence[Name], *, mariadb: bool) -> list[TableColumns]:
    """Descriptions of these tables, in this order; those that are not there are left out."""
    if not names:
        return []
    where, values = _one_of(names)
    tables = {(row[0], row[1]): row[2:] for row in _query(connection, _TABLES, where, values)}
    keys: dict[Name, list[str]] = {}
    for database, table, column, _ in _query(connection, _KEYS, where, values):
        keys.setdefault((database, table), []).append(column)
    columns: dict[Name, list[Column]] = {}
    for row in _query(connection, _COLUMNS, where, values):
        columns.setdefault((row[0], row[1]), []).append(_column(row[2:], mariadb))
    cascades: dict[Name, list[str]] = {}
    for database, table, constraint in (
        []
        if _logs_cascades(connection)
        else _query(connection, _CASCADES, where.replace("table_schema", "constraint_schema"), values)
    ):
        cascades.setdefault((database, table), []).append(constraint)
    return [
        TableColumns(
            *name,
            tuple(columns.get(name, ())),
            tuple(keys.get(name, ())),
            tables[name][1] or None,
            tables[name][0],
            tables[name][2] == "SYSTEM VERSIONED",
            tuple(cascades.get(name, ())),
            int(tables[name][3] or 0),
        )
        for name in names
        if name in tables
    ]


def _logs_cascades(connection: Any) -> bool:
    """Whether rows that change by foreign keys are in the log: MySQL 9.6 and later do it above the engine."""
    found = rows(connection, "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    return bool(found) and str(found[0][1]).upper() == "OFF"


def was_made_since(connection: Any, name: Name, time_s: int) -> bool:
    """Whether a table may be younger than a moment. Some statements make a table look younger than it is."""
    found = rows(
        connection,
        "SELECT UNIX_TIMESTAMP(create_time) FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
        name,
    )
    return bool(found) and (found[0][0] is None or int(found[0][0]) + _CLOCKS_DIFFER_S >= time_s)


def _all_but_system() -> tuple[str, tuple[str, ...]]:
    return f"table_schema NOT IN ({', '.join(['%s'] * len(SYSTEM_DATABASES))})", SYSTEM_DATABASES


def _one_of(names: Iterable[Name]) -> tuple[str, tuple[str, ...]]:
    by_database: dict[str, list[str]] = {}
    for database, table in names:
        by_database.setdefault(database, []).append(table)
    parts = [f"(table_schema = %s AND table_name IN ({', '.join(['%s'] * len(t))}))" for t in by_database.values()]
    values = [text for database, tables in by_database.items() for text in (database, *tables)]
    return f"({' OR '.join(parts)})", tuple(values)


def _query(connection: Any, text: str, where: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return rows(connection, text.format(where=where), values)


def _column(row: tuple[Any, ...], mariadb: bool) -> Column:
    (name, kind, full, nullable, default, extra, comment, charset, characters, precision, scale, digits) = row
    kind = str(kind).lower()
    full = str(full)
    if "COMPRESSED" in full:
        kind = f"compressed {kind}"  # MariaDB's: the log holds it compressed, too
    found = _NUMBERS.search(full)
    numbers = [int(part) for part in found[1].split(",")] if found else []
    length = characters
    if kind in ("decimal", "bit"):
        length = precision
    is_nullable = nullable == "YES"
    unsigned = "unsigned" in full.lower().split("'")[0]
    members = tuple(member.replace("''", "'") for member in _MEMBER.findall(full)) if kind in ("enum", "set") else ()
    return Column(
        name,
        kind,
        is_nullable,
        unsigned,
        None if length is None else int(length),
        int(scale or 0) if kind == "decimal" else int(digits or 0),
        charset,
        members,
        numbers[0] if kind in INTEGERS and numbers else None,
        comment or None,
        _default(default, str(extra), kind, is_nullable, members, mariadb),
        _NOW.match(str(default)) is not None and kind in ("datetime", "timestamp"),
        "GENERATED" in str(extra).upper() and "DEFAULT_GENERATED" not in str(extra).upper(),
    )


def _default(
    text: str | None, extra: str, kind: str, nullable: bool, members: tuple[str, ...], mariadb: bool
) -> str | None:
    """What rows have that were there before the column: its default, or what the server takes if it may not be NULL."""
    if "GENERATED" in extra.upper() or "auto_increment" in extra:
        return None  # an expression: no text that is the same for all rows
    if text is None or (mariadb and text.upper() == "NULL"):
        return None if nullable else _implicit_default(kind, members)
    if not mariadb:
        return text
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else "'", quoted[1])
    return text if _PLAIN_NUMBER.fullmatch(text) or kind == "bit" else None


def _implicit_default(kind: str, members: tuple[str, ...]) -> str | None:
    if kind in INTEGERS or kind in ("decimal", "float", "double", "bit", "year"):
        return "0"
    if kind == "enum":
        return members[0] if members else None
    if kind in ("char", "varchar", "set", "tinytext", "text", "mediumtext", "longtext"):
        return ""
    return None


__all__ = ["SYSTEM_DATABASES", "Name", "read_tables", "table_names", "was_made_since"]
