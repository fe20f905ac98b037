"""From text to statements.

    parse("CREATE TABLE ...; INSERT INTO ...")  ->  [CreateTable(...), Insert(...)]

What kind of statement it is follows from its first words. Statements about tables of the lake are read here; what is
not known is handed to Spark as it is, which says what is wrong with it if anything is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot.tokens import Token, TokenType

from lakebed.errors import Unsupported, did_you_mean
from lakebed.sql.parse.alter import read_alter, read_comment_on
from lakebed.sql.parse.create import is_ours, read_create, read_drop
from lakebed.sql.parse.habits import read_habit, without_plan_for, without_statement_sets
from lakebed.sql.parse.materialized import is_materialized, read_materialized
from lakebed.sql.parse.query import read_query
from lakebed.sql.parse.rows import read_delete, read_insert, read_merge, read_update
from lakebed.sql.parse.show import (
    read_analyze,
    read_call,
    read_describe,
    read_refresh,
    read_reset,
    read_set,
    read_show,
    read_stop,
    read_truncate,
    read_use,
)
from lakebed.sql.statements import Query, SparkStatement
from lakebed.sql.words.cursor import Cursor, tokens_of

Statement = Any
"""One of the classes of `sql/statements`."""

_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "SHOW": read_show,
    "DESCRIBE": read_describe,
    "DESC": read_describe,
    "USE": read_use,
    "CALL": read_call,
    "SET": read_set,
    "RESET": read_reset,
    "TRUNCATE": read_truncate,
    "STOP": read_stop,
}
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
_SPARK_ONLY = (
    *("ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CLEAR", "COMMENT", "CREATE", "DECLARE", "DFS", "DROP", "EXECUTE"),
    *("EXPLAIN", "FETCH", "LIST", "LOAD", "MAP", "MSCK", "REDUCE", "REFRESH", "REPAIR", "REPLACE", "UNCACHE"),
)
"""How statements begin that are Spark's, or may be; with other words it would start only to say that they are wrong."""


def parse(text: str) -> list[Statement]:
    """The statements of a text, in order; semicolons separate them."""
    return [statement for _, statement in parse_lines(text)]


def parse_sets(text: str) -> list[list[Statement]]:
    """The same, each by itself, but for those of a STATEMENT SET, which are one."""
    found: list[list[Statement]] = []
    last: int | None = None
    for tokens, number in without_statement_sets(text, _split(tokens_of(text))):
        if number is None or number != last:
            found.append([])
        last = number
        found[-1].append(_read_one(Cursor(text, tokens)))
    return found


def parse_lines(text: str) -> Iterator[tuple[int, Statement]]:
    """The statements of a text, each with the line on which it begins; one that is wrong is found in its turn."""
    for tokens, _ in without_statement_sets(text, _split(tokens_of(text))):
        yield text.count("\n", 0, tokens[0].start) + 1, _read_one(Cursor(text, tokens))


def _read_one(cursor: Cursor) -> Statement:
    return read_habit(cursor) or _read(without_plan_for(cursor))


def _split(tokens: list[Token]) -> list[list[Token]]:
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _read(cursor: Cursor) -> Statement:
    word = cursor.current.text.upper()
    if is_materialized(cursor):
        return read_materialized(cursor)
    if cursor.sees("WITH"):
        return _read_with(cursor)
    if cursor.sees_any(*_QUERIES):
        return Query(read_query(cursor))
    if word in _READERS:
        return _READERS[word](cursor)
    if word in ("CREATE", "REPLACE") and is_ours(cursor):
        return read_create(cursor)
    if word == "DROP" and is_ours(cursor):
        return read_drop(cursor)
    if cursor.sees("ALTER", "TABLE"):
        return read_alter(cursor)
    if cursor.sees("COMMENT", "ON"):
        return read_comment_on(cursor)
    if cursor.sees("ANALYZE", "TABLE"):
        return read_analyze(cursor)
    if cursor.sees("REFRESH", "TABLE"):
        return read_refresh(cursor)
    return _read_other(cursor)


def _read_with(cursor: Cursor) -> Statement:
    """A query; or INSERT with its common table expressions in front."""
    probe = Cursor(cursor.text, cursor.tokens)
    start, end = probe.text_until("INSERT", "SELECT", "VALUES", "FROM")
    if probe.sees("INSERT"):
        return read_insert(probe, common=cursor.text[start:end])
    return Query(read_query(cursor))


def _refuse_foreign(cursor: Cursor) -> None:
    """Statements of Flink and Spark that can not mean anything here, and that Spark would only call wrong."""
    if cursor.sees("CREATE", "CATALOG") or cursor.sees("DROP", "CATALOG"):
        raise Unsupported(
            "the lake is the only catalog: there is none to create or drop",
            hint="lakebed.connect(path) opens the warehouse that a catalog would name",
        )
    if cursor.sees("ALTER", "DATABASE") or cursor.sees("ALTER", "SCHEMA") or cursor.sees("ALTER", "NAMESPACE"):
        raise Unsupported("databases have nothing to alter", hint="a database is a directory, without properties")


def _read_other(cursor: Cursor) -> SparkStatement:
    """Spark's; a query inside is taken apart, so that it can name tables of the lake."""
    _refuse_foreign(cursor)
    if not cursor.sees_any(*_SPARK_ONLY):
        word = cursor.current.text.upper()
        cursor.fail(f"no statement begins like this; {did_you_mean(word, [*_SPARK_ONLY, *_READERS, *_QUERIES])}")
    text = cursor.source()
    is_view = cursor.sees("CREATE") and any(token.text.upper() == "VIEW" for token in cursor.tokens[:6])
    if is_view or cursor.sees("CACHE"):
        start, end = cursor.text_until("AS")
        if cursor.accept("AS"):
            return SparkStatement(f"{cursor.text[start:end]} AS ", read_query(cursor))
    elif cursor.accept("EXPLAIN"):
        start, end = cursor.tokens[0].start, cursor.current.start
        if not cursor.sees_any(*_QUERIES):
            cursor.take()
            end = cursor.current.start
        if cursor.sees_any(*_QUERIES):
            return SparkStatement(cursor.text[start:end], read_query(cursor))
    return SparkStatement(text)
