"""SHOW, DESCRIBE, USE, CALL, SET, RESET, TRUNCATE and ANALYZE."""

from __future__ import annotations

import re
from typing import Any

from sqlglot.tokens import TokenType

from lakebed.errors import Unsupported
from lakebed.sql.parse.alter import read_literal, read_partition
from lakebed.sql.parse.create import DATABASE_WORDS
from lakebed.sql.statements import (
    Analyze,
    Call,
    Describe,
    DescribeDatabase,
    RefreshTable,
    ResetSetting,
    SetSetting,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrent,
    ShowDatabases,
    ShowJobs,
    ShowOptions,
    ShowPartitions,
    ShowProcedures,
    ShowTables,
    ShowTags,
    SparkStatement,
    StopJob,
    Truncate,
    UseCatalog,
    UseDatabase,
)
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import CATALOGS, read_database, read_table, table_name

Shown = (
    ShowDatabases
    | ShowTables
    | ShowCreateTable
    | ShowColumns
    | ShowPartitions
    | ShowTags
    | ShowOptions
    | ShowCatalogs
    | ShowCurrent
    | ShowProcedures
    | ShowJobs
    | SparkStatement
)


def read_show(cursor: Cursor) -> Shown:
    """SHOW; what is about views and functions is Spark's."""
    text = cursor.source()
    cursor.expect("SHOW")
    shown = _read_shown(cursor, text)
    if not isinstance(shown, SparkStatement):
        cursor.end()
    return shown


def _read_shown(cursor: Cursor, text: str) -> Shown:
    if cursor.accept("DATABASES") or cursor.accept("SCHEMAS") or cursor.accept("NAMESPACES"):
        if cursor.accept("FROM") or cursor.accept("IN"):
            cursor.name("a catalog's name")
        return ShowDatabases(_read_pattern(cursor))
    if cursor.accept("TABLES"):
        database = read_database(cursor) if cursor.accept("FROM") or cursor.accept("IN") else None
        return ShowTables(database, _read_pattern(cursor))
    if cursor.accept("TABLE", "EXTENDED"):
        database = read_database(cursor) if cursor.accept("FROM") or cursor.accept("IN") else None
        pattern = _read_pattern(cursor)
        partition = read_partition(cursor) if cursor.accept("PARTITION") else None
        return ShowTables(database, pattern, True, partition)
    if cursor.accept("CREATE", "TABLE"):
        return ShowCreateTable(read_table(cursor))
    if cursor.accept("COLUMNS"):
        return _read_columns(cursor, text)
    if cursor.accept("PARTITIONS"):
        name = read_table(cursor)
        return ShowPartitions(name, read_partition(cursor) if cursor.accept("PARTITION") else {})
    if cursor.accept("TAGS"):
        return ShowTags(read_table(cursor))
    if cursor.accept("TBLPROPERTIES"):
        name = read_table(cursor)
        return ShowOptions(name, cursor.listed(cursor.option_key)[0] if cursor.sees("(") else None)
    if cursor.accept("CATALOGS"):
        return ShowCatalogs()
    if cursor.accept("CURRENT"):
        return ShowCurrent(cursor.name("DATABASE or CATALOG").lower())
    if cursor.accept("JOBS"):
        return ShowJobs()
    if cursor.accept("PROCEDURES"):
        if cursor.accept("FROM") or cursor.accept("IN"):
            cursor.path("a database's name")
        return ShowProcedures(_read_pattern(cursor))
    cursor.rest()
    return SparkStatement(text)


def _read_columns(cursor: Cursor, text: str) -> ShowColumns:
    if not cursor.accept("FROM"):
        cursor.expect("IN")
    path = cursor.path("a table's name")
    if cursor.accept("FROM") or cursor.accept("IN"):
        path = (*cursor.path("a database's name"), path[-1])
    is_not = cursor.accept("NOT")
    pattern = _read_pattern(cursor)
    if is_not and pattern is None:
        cursor.fail("expected LIKE")
    return ShowColumns(table_name(path), text, pattern, is_not)


def _read_pattern(cursor: Cursor) -> str | None:
    if cursor.accept("LIKE") or cursor.current.token_type == TokenType.STRING:
        return cursor.string("a pattern")
    return None


def read_describe(cursor: Cursor) -> Describe | DescribeDatabase | SparkStatement:
    """DESCRIBE, DESC."""
    text = cursor.source()
    cursor.take()
    if cursor.sees_any("FUNCTION", "QUERY", "SELECT", "WITH", "VALUES"):
        return SparkStatement(text)
    if cursor.sees_any(*DATABASE_WORDS) and len(cursor.tokens) - cursor.index > 1:
        cursor.take()
        cursor.accept("EXTENDED")
        return DescribeDatabase(read_database(cursor))
    if cursor.sees("MATERIALIZED") and len(cursor.tokens) - cursor.index > 2:
        cursor.take()
    if cursor.sees_any("TABLE", "VIEW") and len(cursor.tokens) - cursor.index > 1:
        cursor.take()
    extended = False
    if cursor.sees_any("EXTENDED", "FORMATTED") and len(cursor.tokens) - cursor.index > 1:
        cursor.take()
        extended = True
    name = read_table(cursor)
    partition = read_partition(cursor) if cursor.accept("PARTITION") else None
    column = None if cursor.is_done else cursor.path("a column's name")
    cursor.end()
    return Describe(name, extended, column, partition, text)


def read_use(cursor: Cursor) -> UseDatabase | UseCatalog:
    """USE [DATABASE | CATALOG] name."""
    cursor.expect("USE")
    if cursor.accept("CATALOG"):
        return UseCatalog(cursor.name("a catalog's name"))
    if cursor.sees_any(*DATABASE_WORDS) and len(cursor.tokens) - cursor.index > 1:
        cursor.take()
    path = cursor.path("a database's name")
    cursor.end()
    if len(path) == 1 and path[0].lower() in CATALOGS:
        return UseCatalog(path[0])
    return UseDatabase(".".join(path[1:] if path[0].lower() in CATALOGS else path))


def read_call(cursor: Cursor) -> Call:
    """CALL sys.name(argument => value, ...)."""
    cursor.expect("CALL")
    path = cursor.path("a procedure's name")
    if cursor.accept("(", ")"):
        arguments: list[tuple[str | None, Any]] = []
    else:
        arguments = cursor.listed(lambda: _read_argument(cursor))
    cursor.end()
    if len(path) > 1 and path[0].lower() in CATALOGS:
        path = path[1:]
    if len(path) > 1 and path[0].lower() == "sys":
        path = path[1:]
    return Call(".".join(path).lower(), tuple(arguments))


def _read_argument(cursor: Cursor) -> tuple[str | None, Any]:
    ahead = cursor.tokens[cursor.index + 1].text if cursor.index + 1 < len(cursor.tokens) else ""
    if ahead not in ("=>", "="):
        return None, _read_value(cursor)
    name = cursor.name("an argument's name")
    cursor.take()
    return name.lower(), _read_value(cursor)


def _read_value(cursor: Cursor) -> Any:
    """A literal, an ARRAY or MAP of literals, or CAST of a literal, which is the literal."""
    if cursor.accept("CAST", "("):
        value = _read_value(cursor)
        cursor.expect("AS")
        cursor.text_until(")")
        cursor.expect(")")
        return value
    for word in ("ARRAY", "MAP"):
        for opening, closing in (("(", ")"), ("[", "]")):
            if cursor.accept(word, opening):
                values: list[Any] = []
                while not cursor.accept(closing):
                    if values:
                        cursor.expect(",")
                    values.append(_read_value(cursor))
                return values if word == "ARRAY" else dict(zip(values[::2], values[1::2], strict=True))
    return read_literal(cursor)


_SETTING = re.compile(r"\s*(`[^`]*`|'[^']*'|\"[^\"]*\"|[^\s=`]+)\s*(?:=\s*(.*))?", re.DOTALL)
_TIME_ZONE = re.compile(r"SET\s+TIME\s+ZONE\s+'([^']+)'\s*", re.IGNORECASE)


def read_set(cursor: Cursor) -> SetSetting | SparkStatement:
    """SET [key [= value]], SET TIME ZONE 'name'; what else is set without a key (variables) is Spark's."""
    text = cursor.source()
    cursor.expect("SET")
    zone = _TIME_ZONE.fullmatch(text.strip().rstrip(";"))
    if zone is not None:
        return SetSetting("spark.sql.session.timeZone", zone[1], text)
    if cursor.sees("TIME", "ZONE") or cursor.sees_any("VAR", "VARIABLE", "CATALOG") or cursor.sees("-"):
        return SparkStatement(text)
    body = cursor.rest()
    match = _SETTING.fullmatch(body)
    if not body:
        return SetSetting(text=text)
    if match is None:
        return SparkStatement(text)
    value = match.group(2)
    return SetSetting(_unquoted(match.group(1)), None if value is None else _unquoted(value.strip()), text)


def read_reset(cursor: Cursor) -> ResetSetting:
    """RESET [key]."""
    text = cursor.source()
    cursor.expect("RESET")
    return ResetSetting(_unquoted(cursor.rest()) or None, text)


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "`'\""
    return text[1:-1] if is_quoted else text


def read_stop(cursor: Cursor) -> StopJob:
    """STOP JOB 'id' [WITH SAVEPOINT]."""
    cursor.expect("STOP")
    cursor.expect("JOB")
    job = cursor.string("a job's id: SHOW JOBS lists them")
    cursor.accept("WITH", "SAVEPOINT")
    if cursor.sees("WITH", "DRAIN"):
        raise Unsupported(
            "STOP JOB ... WITH DRAIN ends windows that are still open, and there are none here",
            hint=f"type STOP JOB '{job}'",
        )
    cursor.end()
    return StopJob(job)


def read_truncate(cursor: Cursor) -> Truncate:
    """TRUNCATE TABLE t [PARTITION (...)]."""
    cursor.expect("TRUNCATE")
    cursor.expect("TABLE")
    name = read_table(cursor)
    partition = read_partition(cursor) if cursor.accept("PARTITION") else None
    cursor.end()
    return Truncate(name, partition)


def read_analyze(cursor: Cursor) -> Analyze:
    """ANALYZE TABLE t COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]."""
    cursor.expect("ANALYZE", "TABLE")
    name = read_table(cursor)
    cursor.expect("COMPUTE", "STATISTICS")
    columns: tuple[str, ...] | None = ()
    if cursor.accept("FOR", "ALL", "COLUMNS"):
        columns = None
    elif cursor.accept("FOR", "COLUMNS"):
        if cursor.is_done:
            columns = None
        elif cursor.sees("("):
            columns = tuple(cursor.listed(lambda: cursor.name("a column's name")))
        else:
            names = [cursor.name("a column's name")]
            while cursor.accept(","):
                names.append(cursor.name("a column's name"))
            columns = tuple(names)
    elif cursor.accept("NOSCAN"):
        raise Unsupported(
            "ANALYZE TABLE ... NOSCAN: rows are counted by reading them",
            hint="leave NOSCAN out; what needs no reading is in t$files",
        )
    cursor.end()
    return Analyze(name, columns)


def read_refresh(cursor: Cursor) -> RefreshTable:
    """REFRESH TABLE t."""
    text = cursor.source()
    cursor.expect("REFRESH", "TABLE")
    name = read_table(cursor)
    cursor.end()
    return RefreshTable(name, text)
