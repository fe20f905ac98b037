"""ALTER TABLE in Flink's and in Spark's spelling."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from sqlglot.tokens import TokenType

from lakebed.errors import Unsupported
from lakebed.sql.parse.query import read_expression
from lakebed.sql.parse.types import is_spark_spelling, read_column, read_position, read_type
from lakebed.sql.statements import (
    Action,
    AddColumns,
    AddPartitions,
    AddPrimaryKey,
    AlterColumn,
    AlterTable,
    Column,
    CreateTag,
    DeleteTag,
    DropColumns,
    DropPartitions,
    DropPrimaryKey,
    PartitionSpec,
    RedefineColumns,
    RenameColumn,
    RenameTable,
    RenameTag,
    SetComment,
    SetOptions,
    UnsetOptions,
)
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import read_table


def read_alter(cursor: Cursor) -> AlterTable:
    """ALTER TABLE."""
    cursor.expect("ALTER", "TABLE")
    if_exists = cursor.accept("IF", "EXISTS")
    name = read_table(cursor)
    actions = _read_actions(cursor)
    cursor.end()
    return AlterTable(name, actions, if_exists)


def _read_actions(cursor: Cursor) -> tuple[Action, ...]:
    word = cursor.take().text.upper()
    readers = {
        "SET": _read_set,
        "UNSET": _read_unset,
        "RESET": _read_reset,
        "ADD": _read_add,
        "DROP": _read_drop,
        "RENAME": _read_rename,
        "MODIFY": _read_modify,
        "ALTER": _read_alter_column,
        "CHANGE": _read_change,
        "CREATE": _read_create_tag,
        "REPLACE": _read_replace,
        "DELETE": _read_delete_tag,
    }
    if word not in readers:
        cursor.index -= 1
        cursor.fail(f"expected one of {', '.join(readers)}")
    found = readers[word](cursor)
    return found if isinstance(found, tuple) else (found,)


# --- options ---------------------------------------------------------------------------------------------------------


def _read_set(cursor: Cursor) -> SetOptions:
    if cursor.sees("LOCATION"):
        raise Unsupported("SET LOCATION: a table does not move", hint="rename the table, or write it anew")
    cursor.accept("TBLPROPERTIES")
    return SetOptions(cursor.options())


def _read_unset(cursor: Cursor) -> UnsetOptions:
    cursor.expect("TBLPROPERTIES")
    cursor.accept("IF", "EXISTS")
    return UnsetOptions(tuple(cursor.listed(cursor.option_key)), if_exists=True)


def _read_reset(cursor: Cursor) -> UnsetOptions:
    return UnsetOptions(tuple(cursor.listed(cursor.option_key)))


# --- columns ---------------------------------------------------------------------------------------------------------


def _read_add(cursor: Cursor) -> Action | tuple[Action, ...]:
    if cursor.sees("PARTITION") or cursor.sees("IF", "NOT", "EXISTS", "PARTITION"):
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        return AddPartitions(_read_partitions(cursor), if_not_exists)
    if cursor.accept("CONSTRAINT"):
        cursor.name("the constraint's name")
        cursor.expect("PRIMARY", "KEY")
        return _read_added_key(cursor)
    if cursor.accept("PRIMARY", "KEY"):
        return _read_added_key(cursor)
    is_spark = cursor.accept("COLUMN") or cursor.accept("COLUMNS")
    spark = is_spark or is_spark_spelling(cursor)
    if cursor.accept("IF", "NOT", "EXISTS"):
        cursor.index -= 1
        cursor.fail("columns can not be added IF NOT EXISTS; leave it out, before this")
    return AddColumns(tuple(_read_columns(cursor, spark)))


def _read_added_key(cursor: Cursor) -> AddPrimaryKey:
    columns = cursor.listed(lambda: cursor.name("a column's name"))
    cursor.accept("NOT", "ENFORCED")
    return AddPrimaryKey(tuple(columns))


def _read_columns(cursor: Cursor, spark: bool) -> list[Column]:
    if cursor.sees("("):
        return cursor.listed(lambda: read_column(cursor, spark)[0])
    columns = [read_column(cursor, spark)[0]]
    while cursor.accept(","):
        columns.append(read_column(cursor, spark)[0])
    return columns


def _read_drop(cursor: Cursor) -> Action:
    if cursor.sees("PARTITION") or cursor.sees("IF", "EXISTS", "PARTITION"):
        if_exists = cursor.accept("IF", "EXISTS")
        partitions = _read_partitions(cursor)
        cursor.accept("PURGE")
        return DropPartitions(partitions, if_exists)
    if cursor.accept("PRIMARY", "KEY"):
        return DropPrimaryKey()
    if cursor.accept("CONSTRAINT"):
        cursor.name("the constraint's name")
        return DropPrimaryKey()
    if not cursor.accept("COLUMNS"):
        cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    if cursor.sees("("):
        return DropColumns(tuple(cursor.listed(lambda: cursor.path("a column's name"))), if_exists)
    paths = [cursor.path("a column's name")]
    while cursor.accept(","):
        paths.append(cursor.path("a column's name"))
    return DropColumns(tuple(paths), if_exists)


def _read_rename(cursor: Cursor) -> Action:
    if cursor.sees("PARTITION"):
        raise Unsupported("partitions can not be renamed", hint="write the rows into the new partition, drop the old")
    if cursor.sees("TO") and len(cursor.tokens) - cursor.index in (2, 4, 6):
        cursor.expect("TO")
        return RenameTable(read_table(cursor))
    if cursor.sees("TAG") and not cursor.sees("TAG", "TO"):
        cursor.expect("TAG")
        tag = _read_tag_name(cursor)
        cursor.expect("TO")
        return RenameTag(tag, _read_tag_name(cursor))
    if not cursor.sees("COLUMN", "TO"):
        cursor.accept("COLUMN")
    path = cursor.path("a column's name")
    cursor.expect("TO")
    return RenameColumn(path, cursor.path("a column's name")[-1])


def _read_modify(cursor: Cursor) -> Action:
    if cursor.accept("COLUMN") and not cursor.is_done:
        return RedefineColumns(tuple(_read_columns(cursor, False)))
    if cursor.sees("PRIMARY", "KEY"):
        raise Unsupported("the primary key of a table does not change", hint="make a new table with that key")
    if cursor.sees("WATERMARK"):
        raise Unsupported("a table stores no WATERMARK", hint="use withWatermark on the stream that reads the table")
    return RedefineColumns(tuple(_read_columns(cursor, is_spark_spelling(cursor))))


def _read_change(cursor: Cursor) -> Action:
    """Spark's CHANGE COLUMN: `a b INT` in Hive's way, or what ALTER COLUMN says."""
    cursor.accept("COLUMN")
    path = cursor.path("a column's name")
    if cursor.sees_any("TYPE", "SET", "DROP", "COMMENT", "FIRST", "AFTER"):
        return _read_column_change(cursor, path)
    new_name = cursor.name("the column's new name")
    kind = read_type(cursor, True)
    comment = cursor.string("the comment") if cursor.accept("COMMENT") else None
    column = Column(path, kind, comment, None, read_position(cursor))
    return RedefineColumns((column,), new_name, keeps_nullability=True)


def _read_alter_column(cursor: Cursor) -> Action | tuple[Action, ...]:
    cursor.accept("COLUMN")
    actions = [_read_column_change(cursor, cursor.path("a column's name"))]
    while cursor.accept(","):
        actions.append(_read_column_change(cursor, cursor.path("a column's name")))
    return tuple(actions)


def _read_column_change(cursor: Cursor, path: tuple[str, ...]) -> AlterColumn:
    if cursor.accept("TYPE") or cursor.accept("SET", "DATA", "TYPE"):
        kind = read_type(cursor, True)
        comment = cursor.string("the comment") if cursor.accept("COMMENT") else None
        return AlterColumn(path, type=kind, comment=comment, position=read_position(cursor))
    if cursor.accept("COMMENT"):
        return AlterColumn(path, comment=cursor.string("the comment"))
    if cursor.accept("SET", "NOT", "NULL"):
        return AlterColumn(path, nullable=False)
    if cursor.accept("DROP", "NOT", "NULL"):
        return AlterColumn(path, nullable=True)
    if cursor.accept("SET", "DEFAULT"):
        return AlterColumn(path, default=read_expression(cursor, ","))
    if cursor.accept("DROP", "DEFAULT"):
        return AlterColumn(path, drops_default=True)
    position = read_position(cursor)
    if position is None:
        cursor.fail("expected TYPE, COMMENT, SET, DROP, FIRST or AFTER")
    return AlterColumn(path, position=position)


def _read_replace(cursor: Cursor) -> Action:
    if cursor.sees("COLUMNS"):
        raise Unsupported(
            "REPLACE COLUMNS would drop and add all columns, and with them all values",
            hint="use ADD COLUMN, DROP COLUMN, RENAME COLUMN and ALTER COLUMN",
        )
    cursor.expect("TAG")
    return _read_tag(cursor, CreateTag("", creates=False, replaces=True))


# --- partitions ------------------------------------------------------------------------------------------------------


def _read_partitions(cursor: Cursor) -> tuple[PartitionSpec, ...]:
    found = []
    while cursor.accept("PARTITION"):
        found.append(read_partition(cursor))
        cursor.accept(",")
    return tuple(found)


def read_partition(cursor: Cursor) -> PartitionSpec:
    """`(a = 1, b = 'x')`."""

    def part() -> tuple[str, Any]:
        name = cursor.name("a partition column")
        cursor.expect("=")
        return name, read_literal(cursor)

    return dict(cursor.listed(part))


def read_literal(cursor: Cursor) -> Any:
    """A text, number, truth value, date or NULL."""
    token = cursor.current
    if token.token_type == TokenType.STRING:
        return cursor.take().text
    if cursor.accept("NULL"):
        return None
    if cursor.accept("TRUE"):
        return True
    if cursor.accept("FALSE"):
        return False
    if cursor.sees_any("DATE", "TIMESTAMP"):
        return _read_moment(cursor)
    return _read_number(cursor)


def _read_moment(cursor: Cursor) -> dt.date:
    is_date = cursor.take().text.upper() == "DATE"
    try:
        text = cursor.string()
        return dt.date.fromisoformat(text) if is_date else dt.datetime.fromisoformat(text)
    except ValueError:
        cursor.index -= 1
        cursor.fail("expected a date or time")


_NUMBER = re.compile(r"(\d+(?:\.\d*)?(?:E[+-]?\d+)?)(?:L|S|Y|D|F|BD)?", re.IGNORECASE)


def _read_number(cursor: Cursor) -> int | Decimal:
    sign = -1 if cursor.accept("-") else 1
    match = _NUMBER.fullmatch(cursor.current.text)
    if match is None or cursor.current.token_type == TokenType.IDENTIFIER:
        cursor.fail("expected a value")
    cursor.take()
    text = match.group(1)
    return sign * (int(text) if text.isdigit() else Decimal(text))


# --- tags ------------------------------------------------------------------------------------------------------------


def _read_create_tag(cursor: Cursor) -> Action:
    replaces = cursor.accept("OR", "REPLACE")
    cursor.expect("TAG")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    return _read_tag(cursor, CreateTag("", if_not_exists=if_not_exists, replaces=replaces))


def _read_tag(cursor: Cursor, start: CreateTag) -> CreateTag:
    tag, snapshot, retain = _read_tag_name(cursor), None, None
    if cursor.accept("AS", "OF", "VERSION"):
        snapshot = cursor.integer("a snapshot's number")
    if cursor.accept("RETAIN"):
        amount = cursor.integer("a number")
        unit = cursor.name("DAYS, HOURS or MINUTES").lower().removesuffix("s")
        if unit not in ("day", "hour", "minute"):
            cursor.index -= 1
            cursor.fail("expected DAYS, HOURS or MINUTES")
        retain = f"{amount} {unit}"
    return CreateTag(tag, snapshot, retain, start.if_not_exists, start.creates, start.replaces)


def _read_delete_tag(cursor: Cursor) -> Action:
    cursor.expect("TAG")
    if_exists = cursor.accept("IF", "EXISTS")
    return DeleteTag(_read_tag_name(cursor), if_exists)


def _read_tag_name(cursor: Cursor) -> str:
    if cursor.current.token_type in (TokenType.STRING, TokenType.NUMBER):
        return str(cursor.take().text)
    return cursor.name("a tag's name")


# --- comments --------------------------------------------------------------------------------------------------------


def read_comment_on(cursor: Cursor) -> AlterTable:
    """COMMENT ON TABLE t IS 'text'."""
    cursor.expect("COMMENT", "ON")
    if not cursor.accept("TABLE"):
        raise Unsupported("only tables have comments that change", hint="write COMMENT ON TABLE t IS '...'")
    name = read_table(cursor)
    cursor.expect("IS")
    comment = None if cursor.accept("NULL") else cursor.string("the comment")
    cursor.end()
    return AlterTable(name, (SetComment(comment),))
