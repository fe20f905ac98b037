"""CREATE, REPLACE and DROP of tables and databases, in both spellings."""

from __future__ import annotations

from dataclasses import field

from lakebed.errors import Unsupported
from lakebed.records import dataclass
from lakebed.sql.parse.connector import connector_named, read_connector_table
from lakebed.sql.parse.query import read_query
from lakebed.sql.parse.types import is_spark_spelling, read_column
from lakebed.sql.statements import Column, CreateConnectorTable, CreateDatabase, CreateTable, DropDatabase, DropTable
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import read_database, read_table

DATABASE_WORDS = ("DATABASE", "SCHEMA", "NAMESPACE")
_PROVIDERS = ("paimon", "lakebed")


def is_ours(cursor: Cursor) -> bool:
    """Whether CREATE, REPLACE or DROP is about a table or database of the lake, not about a view or function."""
    words = [token.text.upper() for token in cursor.tokens[:4]]
    kinds = ("TABLE", *DATABASE_WORDS)
    if words[:1] == ["CREATE"] and words[1:3] == ["OR", "REPLACE"]:
        return words[3:4] == ["TABLE"]
    if words[1:2] in (["EXTERNAL"], ["TEMPORARY"]) and words[2:3] == ["TABLE"]:
        return True
    return len(words) > 1 and words[1] in kinds


def read_create(cursor: Cursor) -> CreateTable | CreateConnectorTable | CreateDatabase:
    """CREATE or REPLACE."""
    if cursor.accept("REPLACE", "TABLE"):
        return _read_table(cursor, replace=True, must_exist=True)
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    cursor.accept("EXTERNAL")
    is_temporary = cursor.accept("TEMPORARY")
    if cursor.accept("TABLE"):
        if connector_named(cursor) is not None:
            return read_connector_table(cursor, replace=replace, is_temporary=is_temporary)
        if is_temporary:
            raise Unsupported(
                "tables of the lake are not temporary",
                hint="use CREATE TEMPORARY VIEW v AS SELECT ..., or drop the table when done; tables of other systems "
                "are: WITH ('connector' = '...')",
            )
        return _read_table(cursor, replace=replace)
    cursor.take()
    return _read_database(cursor)


def _read_database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_database(cursor)
    comment: str | None = None
    properties: dict[str, str] = {}
    while not cursor.is_done:
        if cursor.accept("COMMENT"):
            comment = cursor.string("the comment")
        elif cursor.accept("LOCATION"):
            _refuse_location(cursor.string("the location"))
        else:
            cursor.accept("WITH")
            cursor.accept("DBPROPERTIES")
            properties |= cursor.options()
    return CreateDatabase(name, if_not_exists, comment, properties)


@dataclass(slots=True)
class _Parts:
    """What the clauses of CREATE TABLE have said so far."""

    columns: list[Column] = field(default_factory=list)
    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    is_flink: bool = False


def _read_table(cursor: Cursor, *, replace: bool, must_exist: bool = False) -> CreateTable:
    spark = is_spark_spelling(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_table(cursor)
    parts, like, query = _Parts(), None, None
    like_leaves: frozenset[str] = frozenset()
    if cursor.sees("(") and not cursor.sees("(", "SELECT"):
        _read_elements(cursor, parts, spark)
    while not cursor.is_done:
        if cursor.accept("LIKE"):
            like = read_table(cursor)
            like_leaves = _read_like_options(cursor)
        elif cursor.accept("AS") or cursor.sees_any("SELECT", "VALUES"):
            query = read_query(cursor)
        else:
            _read_clause(cursor, parts, spark)
    if query is not None and parts.columns and not parts.partition_by:
        cursor.fail("a table made from a query takes its columns from there")
    return CreateTable(
        name,
        tuple(parts.columns),
        tuple(parts.primary_key),
        tuple(parts.partition_by),
        parts.options,
        parts.comment,
        if_not_exists,
        replace,
        must_exist,
        query,
        like,
        like_leaves,
        parts.is_flink,
    )


def _read_elements(cursor: Cursor, parts: _Parts, spark: bool) -> None:
    """The columns and keys in parentheses."""
    cursor.expect("(")
    while True:
        if cursor.accept("CONSTRAINT"):
            cursor.name("the constraint's name")
        if cursor.accept("PRIMARY", "KEY"):
            _set_key(cursor, parts, cursor.listed(lambda: cursor.name("a column's name")))
            cursor.accept("NOT", "ENFORCED")
        elif cursor.sees("WATERMARK", "FOR"):
            raise Unsupported(
                "WATERMARK is for streams of Flink; a table does not store it",
                hint="leave it out, and use withWatermark on the stream that reads the table",
            )
        elif cursor.sees("UNIQUE", "("):
            raise Unsupported("tables have no UNIQUE constraint", hint="use PRIMARY KEY (...) NOT ENFORCED")
        else:
            column, is_key = read_column(cursor, spark)
            parts.columns.append(column)
            if is_key:
                _set_key(cursor, parts, list(column.path))
        if not cursor.accept(","):
            break
    cursor.expect(")")


def _set_key(cursor: Cursor, parts: _Parts, columns: list[str]) -> None:
    if parts.primary_key:
        cursor.fail("before this the primary key is given twice; several columns are PRIMARY KEY (a, b) NOT ENFORCED")
    parts.primary_key += columns


def _read_clause(cursor: Cursor, parts: _Parts, spark: bool) -> None:
    if cursor.accept("COMMENT"):
        cursor.accept("=")
        parts.comment = cursor.string("the comment")
    elif cursor.accept("PARTITIONED", "BY") or cursor.accept("PARTITION", "BY"):
        _read_partitioning(cursor, parts, spark)
    elif cursor.accept("WITH"):
        parts.options |= cursor.options()
        parts.is_flink = True
    elif cursor.accept("TBLPROPERTIES") or cursor.accept("OPTIONS"):
        parts.options |= cursor.options()
    elif cursor.accept("USING"):
        provider = cursor.name("a provider")
        if provider.lower() not in _PROVIDERS:
            raise Unsupported(
                f"USING {provider}: tables of the lake are Paimon tables",
                hint="leave USING out, or make a temporary view in Spark over files of that format",
            )
    elif cursor.accept("LOCATION"):
        _refuse_location(cursor.string("the location"))
    elif cursor.accept("DISTRIBUTED"):
        _read_distribution(cursor, parts)
    else:
        cursor.fail("expected a clause of CREATE TABLE")


def _read_partitioning(cursor: Cursor, parts: _Parts, spark: bool) -> None:
    """`(a, b)`, or with types of columns that are defined here."""

    def part() -> None:
        parts.partition_by.append(cursor.current.text)
        if cursor.index + 1 < len(cursor.tokens) and cursor.tokens[cursor.index + 1].text in (",", ")"):
            cursor.name("a partition column")
            return
        if cursor.index + 1 < len(cursor.tokens) and cursor.tokens[cursor.index + 1].text == "(":
            raise Unsupported(
                f"partitioned by a function, `{cursor.current.text}(...)`: partitions are values of columns",
                hint="add a column with that value, and partition by it",
            )
        parts.columns.append(read_column(cursor, spark)[0])

    cursor.listed(part)


def _read_distribution(cursor: Cursor, parts: _Parts) -> None:
    """Flink's `DISTRIBUTED BY [HASH] (k) INTO 4 BUCKETS`: the options `bucket-key` and `bucket`."""
    if cursor.accept("BY"):
        cursor.accept("HASH")
        parts.options["bucket-key"] = ",".join(cursor.listed(lambda: cursor.name("a column's name")))
    if cursor.accept("INTO"):
        parts.options["bucket"] = str(cursor.integer("the number of buckets"))
        cursor.expect("BUCKETS")


_LIKE_STRATEGIES = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_FEATURES = frozenset({"CONSTRAINTS", "PARTITIONS", "OPTIONS"})
_LIKE_NOTHING = ("DISTRIBUTION", "GENERATED", "METADATA", "WATERMARKS")
"""Features of Flink's tables that ours do not have, or hold among their options."""


def _read_like_options(cursor: Cursor) -> frozenset[str]:
    """Flink's `(INCLUDING ALL, EXCLUDING OPTIONS)`: what is left out. Columns, and what is not named, are taken over.

    OVERWRITING is what happens anyway: the statement's own words win.
    """
    taken = dict.fromkeys(_LIKE_FEATURES, True)
    if cursor.accept("("):
        while not cursor.accept(")"):
            if not cursor.sees_any(*_LIKE_STRATEGIES):
                cursor.fail(f"LIKE takes {', '.join(_LIKE_STRATEGIES)}")
            takes = cursor.take().text.upper() != "EXCLUDING"
            if not cursor.sees_any("ALL", *_LIKE_FEATURES, *_LIKE_NOTHING):
                cursor.fail(f"LIKE knows ALL, {', '.join(sorted((*_LIKE_FEATURES, *_LIKE_NOTHING)))}")
            feature = cursor.take().text.upper()
            taken.update(dict.fromkeys(_LIKE_FEATURES if feature == "ALL" else _LIKE_FEATURES & {feature}, takes))
            cursor.accept(",")
    return frozenset(name for name, is_taken in taken.items() if not is_taken)


def _refuse_location(location: str) -> None:
    raise Unsupported(
        f"LOCATION '{location}': tables lie in the lake's own directory",
        hint="leave it out, or connect to a lake at another path",
    )


def read_drop(cursor: Cursor) -> DropTable | DropDatabase:
    """DROP TABLE, DROP DATABASE."""
    cursor.expect("DROP")
    is_temporary = cursor.accept("TEMPORARY")
    is_table = cursor.take().text.upper() == "TABLE"
    if_exists = cursor.accept("IF", "EXISTS")
    if is_table:
        name = read_table(cursor)
        cursor.accept("PURGE")
        cursor.end()
        return DropTable(name, if_exists, is_temporary)
    name = read_database(cursor)
    cascade = cursor.accept("CASCADE")
    if not cascade:
        cursor.accept("RESTRICT")
    cursor.end()
    return DropDatabase(name, if_exists, cascade)
