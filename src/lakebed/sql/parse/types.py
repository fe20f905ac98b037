"""Types and column definitions in statements, in both spellings, as texts of Paimon's types.

One word means two things: Flink's TIMESTAMP has no zone and its BINARY is one byte, Spark's TIMESTAMP is a moment and
its BINARY any number of bytes. Statements that are Spark's beyond doubt (TBLPROPERTIES, USING, STRUCT, ...) get
Spark's meaning, all others Flink's, which is that of Paimon's own type names; a length or precision settles it too.
"""

from __future__ import annotations

from sqlglot.tokens import TokenType

from lakebed.errors import Unsupported
from lakebed.sql.parse.query import read_expression
from lakebed.sql.statements import Column, Position
from lakebed.sql.words.cursor import Cursor

_SPARK_WORDS = ("TBLPROPERTIES", "USING", "STRUCT", "TIMESTAMP_NTZ")


def is_spark_spelling(cursor: Cursor) -> bool:
    """Whether words of the statement exist in Spark's spelling only."""
    return any(
        token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text.upper() in _SPARK_WORDS
        for token in cursor.tokens
    )


def read_type(cursor: Cursor, spark: bool) -> str:
    """The next type, nullability included."""
    text = _read_bare(cursor, spark)
    if cursor.accept("NOT", "NULL"):
        return f"{text} NOT NULL"
    cursor.accept("NULL")
    return text


def _read_bare(cursor: Cursor, spark: bool) -> str:
    word = cursor.name("a type").upper()
    if word in ("ARRAY", "MULTISET", "MAP"):
        cursor.expect("<")
        parts = [read_type(cursor, spark)]
        while cursor.accept(","):
            parts.append(read_type(cursor, spark))
        cursor.expect(">")
        return f"{word}<{', '.join(parts)}>"
    if word in ("ROW", "STRUCT"):
        return f"ROW<{', '.join(_read_members(cursor, spark))}>"
    numbers = cursor.listed(cursor.integer) if cursor.sees("(") else []
    length = f"({', '.join(map(str, numbers))})" if numbers else ""
    if word == "DOUBLE":
        cursor.accept("PRECISION")
    if word == "TIMESTAMP_NTZ":
        return f"TIMESTAMP{length}"
    if word in ("TIME", "TIMESTAMP"):
        return _read_time(cursor, word, length, spark)
    if word == "BINARY" and not length and spark:
        return "BYTES"
    return f"{word}{length}"


def _read_time(cursor: Cursor, word: str, length: str, spark: bool) -> str:
    if cursor.accept("WITHOUT", "TIME", "ZONE"):
        return f"{word}{length}"
    if cursor.accept("WITH", "LOCAL", "TIME", "ZONE"):
        return f"{word}_LTZ{length}"
    if word == "TIMESTAMP" and not length and spark:
        return "TIMESTAMP_LTZ"
    return f"{word}{length}"


def _read_members(cursor: Cursor, spark: bool) -> list[str]:
    closing = ")" if cursor.sees("(") else ">"
    if not cursor.accept("("):
        cursor.expect("<")
    members: list[str] = []
    while not cursor.accept(closing):
        if members:
            cursor.expect(",")
        name = cursor.name("a member's name").replace("`", "``")
        cursor.accept(":")
        member = f"`{name}` {read_type(cursor, spark)}"
        if cursor.accept("COMMENT") or cursor.current.token_type == TokenType.STRING:
            comment = cursor.string("the comment").replace("'", "''")
            member += f" COMMENT '{comment}'"
        members.append(member)
    return members


def read_column(cursor: Cursor, spark: bool) -> tuple[Column, bool]:
    """A column's definition, and whether it is the primary key by itself."""
    path = cursor.path("a column's name")
    if cursor.sees("AS"):
        raise Unsupported(
            f"column `{'.'.join(path)}` is computed, which tables do not store",
            hint="leave it out, and compute it in a query or a view",
        )
    kind = read_type(cursor, spark)
    comment, default, position, is_key = None, None, None, False
    while not cursor.is_done:
        if cursor.accept("NOT", "NULL"):
            kind = f"{kind.removesuffix(' NOT NULL')} NOT NULL"
        elif cursor.accept("NULL"):
            continue
        elif cursor.accept("COMMENT"):
            comment = cursor.string("the comment")
        elif cursor.accept("DEFAULT"):
            default = read_expression(cursor, "COMMENT", "FIRST", "AFTER", "NOT", ",", ")")
        elif cursor.accept("PRIMARY", "KEY"):
            cursor.accept("NOT", "ENFORCED")
            is_key = True
        elif cursor.sees("FIRST") or cursor.sees("AFTER"):
            position = read_position(cursor)
        elif cursor.sees("METADATA") or cursor.sees("GENERATED"):
            word = cursor.current.text.upper()
            raise Unsupported(
                f"column `{'.'.join(path)}` is a {word} column, which tables do not have",
                hint="leave it out; system columns such as `__paimon_file_path` can be selected without a definition",
            )
        else:
            break
    return Column(path, kind, comment, default, position), is_key


def read_position(cursor: Cursor) -> Position | None:
    """FIRST, AFTER name, or nothing."""
    if cursor.accept("FIRST"):
        return Position()
    if cursor.accept("AFTER"):
        return Position(cursor.path("a column's name")[-1])
    return None
