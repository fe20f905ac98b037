"""Names and values in SQL text: the one place that quotes them.

Whatever a database calls its schemas, tables and columns must reach the server as a name, never as SQL. Statements
with parameters are preferred; these functions serve where the server takes none (DDL, COPY, replication commands).
"""

from __future__ import annotations

from lakebed.errors import InvalidArgument


def quote_name(name: str) -> str:
    """A name in double quotes."""
    _refuse_zero(name)
    return '"' + name.replace('"', '""') + '"'


def quote_table(schema: str, table: str) -> str:
    """A qualified table name."""
    return f"{quote_name(schema)}.{quote_name(table)}"


def quote_value(text: str) -> str:
    """A string literal that means the same whatever `standard_conforming_strings` says."""
    _refuse_zero(text)
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if "\\" not in text else " E" + quoted.replace("\\", "\\\\")


def quote_option(text: str) -> str:
    """A string literal of a replication command, whose grammar knows doubled quotes only: backslashes are plain."""
    _refuse_zero(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_zero(text: str) -> None:
    if "\0" in text:
        raise InvalidArgument("a name or value holds a zero byte", hint="PostgreSQL has no such names; remove it")


__all__ = ["quote_name", "quote_option", "quote_table", "quote_value"]
