"""CREATE TABLE of another system: columns that are read, computed or metadata, a watermark, and the options."""

from __future__ import annotations

import re
from dataclasses import field

from sqlglot.tokens import TokenType

from lakebed.errors import Unsupported
from lakebed.records import dataclass
from lakebed.sql.parse.query import read_expression
from lakebed.sql.parse.types import is_spark_spelling, read_type
from lakebed.sql.statements import ConnectorColumn, CreateConnectorTable
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import read_table

_CONNECTOR, _OURS = "connector", "paimon"
_PROCTIME = re.compile(r"\bPROCTIME\s*\(\s*\)", re.IGNORECASE)


def connector_named(cursor: Cursor) -> str | None:
    """The connector that the options name; None if there is none, or if it is that of tables of the lake."""
    tokens = cursor.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text.lower() != _CONNECTOR or token.token_type is not TokenType.STRING:
            continue
        after = tokens[index + 2 if tokens[index + 1].text == "=" else index + 1 :][:1]
        if after and after[0].token_type is TokenType.STRING:
            return None if after[0].text == _OURS else after[0].text
    return None


@dataclass(slots=True)
class _Parts:
    """What the clauses have said so far."""

    columns: list[ConnectorColumn] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    watermark: tuple[str, str] | None = None
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None


def read_connector_table(cursor: Cursor, *, replace: bool, is_temporary: bool) -> CreateConnectorTable:
    """What follows CREATE [TEMPORARY] TABLE."""
    spark = is_spark_spelling(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_table(cursor)
    parts = _Parts()
    if cursor.sees("(") and not cursor.sees("(", "SELECT"):
        cursor.listed(lambda: _read_element(cursor, parts, spark))
    while not cursor.is_done:
        if cursor.accept("COMMENT"):
            parts.comment = cursor.string("the comment")
        elif cursor.accept("WITH"):
            parts.options |= cursor.options()
        elif cursor.sees("PARTITIONED") or cursor.sees("PARTITION"):
            raise Unsupported(
                f"table `{name}` of another system has no partitions here", hint="leave PARTITIONED BY out"
            )
        elif cursor.sees("LIKE") or cursor.sees("AS"):
            raise Unsupported(
                f"the columns of table `{name}` of another system are listed", hint="write them out: (a INT, b STRING)"
            )
        else:
            cursor.fail("expected WITH")
    return CreateConnectorTable(
        name,
        tuple(parts.columns),
        tuple(parts.primary_key),
        parts.watermark,
        parts.options,
        parts.comment,
        is_temporary,
        if_not_exists,
        replace,
    )


def _read_element(cursor: Cursor, parts: _Parts, spark: bool) -> None:
    if cursor.accept("CONSTRAINT"):
        cursor.name("the constraint's name")
    if cursor.accept("PRIMARY", "KEY"):
        _set_key(cursor, parts, cursor.listed(lambda: cursor.name("a column's name")))
        cursor.accept("NOT", "ENFORCED")
    elif cursor.accept("WATERMARK", "FOR"):
        column = cursor.name("a column's name")
        cursor.expect("AS")
        parts.watermark = (column, _expression(cursor, ",", ")"))
    else:
        _read_column(cursor, parts, spark)


def _set_key(cursor: Cursor, parts: _Parts, columns: list[str]) -> None:
    if parts.primary_key:
        cursor.fail("before this the primary key is given twice; several columns are PRIMARY KEY (a, b) NOT ENFORCED")
    parts.primary_key += columns


def _read_column(cursor: Cursor, parts: _Parts, spark: bool) -> None:
    name = cursor.name("a column's name")
    kind = value = key = comment = None
    is_virtual = False
    if cursor.accept("AS"):
        value = _expression(cursor, ",", ")", "COMMENT")
    else:
        kind = read_type(cursor, spark)
    while not cursor.sees_any(",", ")"):
        if cursor.accept("NOT", "NULL"):
            kind = f"{(kind or '').removesuffix(' NOT NULL')} NOT NULL"
        elif cursor.accept("COMMENT"):
            comment = cursor.string("the comment")
        elif cursor.accept("PRIMARY", "KEY"):
            cursor.accept("NOT", "ENFORCED")
            _set_key(cursor, parts, [name])
        elif cursor.accept("METADATA"):
            key = cursor.string("the metadata's name") if cursor.accept("FROM") else name
            is_virtual = cursor.accept("VIRTUAL")
        else:
            cursor.fail("expected a part of a column's definition")
    parts.columns.append(ConnectorColumn(name, kind, value, key, is_virtual, comment))


def _expression(cursor: Cursor, *stops: str) -> str:
    """A value in Spark's spelling. The time at which a row is worked on is the time of now."""
    return _PROCTIME.sub("current_timestamp()", read_expression(cursor, *stops).text)
