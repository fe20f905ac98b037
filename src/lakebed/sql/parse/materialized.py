"""Statements about materialized tables: as Flink writes them, and as Spark and Databricks write materialized views."""

from __future__ import annotations

from dataclasses import field

from lakebed.records import dataclass
from lakebed.sql.parse.query import read_query
from lakebed.sql.statements import (
    AlterMaterialized,
    CreateMaterialized,
    DropMaterialized,
    ExplainMaterialized,
    RefreshMaterialized,
    ShowCreateMaterialized,
    ShowMaterialized,
)
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import read_database, read_table

Materialized = (
    CreateMaterialized
    | AlterMaterialized
    | DropMaterialized
    | RefreshMaterialized
    | ShowMaterialized
    | ShowCreateMaterialized
    | ExplainMaterialized
)
_FIRST = ("CREATE", "ALTER", "DROP", "REFRESH", "SHOW", "EXPLAIN")


def is_materialized(cursor: Cursor) -> bool:
    """Whether a statement is about a materialized table."""
    words = [token.text.upper() for token in cursor.tokens[:5]]
    return bool(words) and words[0] in _FIRST and "MATERIALIZED" in words


def read_materialized(cursor: Cursor) -> Materialized:
    """Any of these statements."""
    if cursor.accept("EXPLAIN"):
        return ExplainMaterialized(_read_create(cursor))
    if cursor.sees("CREATE"):
        return _read_create(cursor)
    if cursor.accept("REFRESH"):
        return _read_refresh(cursor)
    if cursor.accept("DROP"):
        _read_kind(cursor)
        if_exists = cursor.accept("IF", "EXISTS")
        found = DropMaterialized(read_table(cursor), if_exists)
        cursor.end()
        return found
    return _read_alter(cursor) if cursor.accept("ALTER") else _read_show(cursor)


def _read_kind(cursor: Cursor) -> None:
    """MATERIALIZED TABLE or VIEW, which mean the same."""
    cursor.expect("MATERIALIZED")
    if not cursor.sees_any("TABLE", "VIEW"):
        cursor.fail("expected TABLE or VIEW")
    cursor.take()


@dataclass(slots=True)
class _Clauses:
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    freshness: str | None = None
    policy: str | None = None


def _read_create(cursor: Cursor) -> CreateMaterialized:
    cursor.expect("CREATE")
    replaces = cursor.accept("OR", "REPLACE")
    _read_kind(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = read_table(cursor)
    clauses = _Clauses()
    if cursor.sees("("):
        _read_key(cursor, clauses)
    while not cursor.accept("AS"):
        _read_clause(cursor, clauses)
    return CreateMaterialized(
        name,
        _read_text(cursor),
        clauses.primary_key,
        clauses.partition_by,
        clauses.options,
        clauses.comment,
        clauses.freshness,
        clauses.policy,
        if_not_exists,
        replaces,
    )


def _read_text(cursor: Cursor) -> str:
    """A query, as it is written."""
    start = cursor.current.start
    read_query(cursor)
    return cursor.text[start : cursor.tokens[-1].end + 1]


def _read_key(cursor: Cursor, clauses: _Clauses) -> None:
    cursor.expect("(")
    if cursor.accept("CONSTRAINT"):
        cursor.name("the constraint's name")
    if not cursor.accept("PRIMARY", "KEY"):
        cursor.fail("the columns are those of the query; name them there with AS. Expected PRIMARY KEY")
    clauses.primary_key = tuple(cursor.listed(lambda: cursor.name("a column's name")))
    cursor.accept("NOT", "ENFORCED")
    cursor.expect(")")


def _read_clause(cursor: Cursor, clauses: _Clauses) -> None:
    if cursor.accept("COMMENT"):
        clauses.comment = cursor.string("the comment")
    elif cursor.accept("PARTITIONED", "BY"):
        clauses.partition_by = tuple(cursor.listed(lambda: cursor.name("a column's name")))
    elif cursor.accept("WITH") or cursor.accept("TBLPROPERTIES"):
        clauses.options |= cursor.options()
    elif cursor.accept("FRESHNESS"):
        cursor.expect("=")
        cursor.expect("INTERVAL")
        amount = cursor.value()
        clauses.freshness = f"{amount} {_unit(cursor)}"
    elif cursor.accept("REFRESH_MODE"):
        cursor.expect("=")
        mode = cursor.name("CONTINUOUS or FULL").upper()
        if mode not in ("CONTINUOUS", "FULL"):
            cursor.fail("before this REFRESH_MODE is neither CONTINUOUS nor FULL")
        clauses.policy = "full" if mode == "FULL" else "auto"
    elif cursor.accept("REFRESH", "POLICY"):
        clauses.policy = cursor.name("AUTO, INCREMENTAL or FULL").lower()
        if cursor.accept("STRICT"):
            clauses.policy += " strict"
    elif cursor.accept("SCHEDULE"):
        cursor.accept("REFRESH")
        cursor.expect("EVERY")
        amount = str(cursor.integer("a number of time units"))
        clauses.freshness = f"{amount} {_unit(cursor)}"
    else:
        cursor.fail("expected a clause of CREATE MATERIALIZED TABLE, or AS SELECT ...")


def _unit(cursor: Cursor) -> str:
    return cursor.name("a unit of time, such as MINUTE").lower()


def _read_refresh(cursor: Cursor) -> RefreshMaterialized:
    _read_kind(cursor)
    name = read_table(cursor)
    found = RefreshMaterialized(name, cursor.accept("FULL"))
    cursor.end()
    return found


def _read_alter(cursor: Cursor) -> AlterMaterialized | RefreshMaterialized:
    _read_kind(cursor)
    name = read_table(cursor)
    if cursor.accept("REFRESH"):
        full = cursor.accept("FULL")
        cursor.end()
        return RefreshMaterialized(name, full)
    if cursor.accept("AS"):
        return AlterMaterialized(name, "as", _read_text(cursor))
    if not cursor.sees_any("SUSPEND", "RESUME"):
        cursor.fail("expected SUSPEND, RESUME, REFRESH or AS SELECT ...")
    deed = str(cursor.take().text).lower()
    cursor.end()
    return AlterMaterialized(name, deed)


def _read_show(cursor: Cursor) -> ShowMaterialized | ShowCreateMaterialized:
    cursor.expect("SHOW")
    if cursor.accept("CREATE"):
        _read_kind(cursor)
        created = ShowCreateMaterialized(read_table(cursor))
        cursor.end()
        return created
    cursor.expect("MATERIALIZED")
    if not (cursor.accept("TABLES") or cursor.accept("VIEWS")):
        cursor.fail("expected TABLES or VIEWS")
    database = read_database(cursor) if cursor.accept("FROM") or cursor.accept("IN") else None
    pattern = cursor.string("a pattern") if cursor.accept("LIKE") else None
    cursor.end()
    return ShowMaterialized(database, pattern)
