"""INSERT, UPDATE, DELETE and MERGE: their structure, with queries and expressions as text for Spark."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from lakebed.errors import Unsupported
from lakebed.sql.parse.query import read_expression, read_hint, read_query, read_relation
from lakebed.sql.statements import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    PlainRows,
    Sql,
    Target,
    Update,
    When,
)
from lakebed.sql.words.conversion import convert
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.literals import map_of, negative, number
from lakebed.sql.words.names import read_table
from lakebed.sql.words.values import Items, Members, NotLiteral, Scalar, Value
from lakebed.types.logical import DataType, TypeRoot, parse_type


def read_insert(cursor: Cursor, common: str = "") -> Insert:
    """INSERT; `common` is the text of common table expressions that were written before it."""
    cursor.expect("INSERT")
    if cursor.current.token_type == TokenType.HINT:
        cursor.take()  # such as COALESCE(3): how Spark should write, which is not up to it
    overwrite = cursor.accept("OVERWRITE")
    cursor.accept("INTO")
    cursor.accept("TABLE")
    target = _read_target(cursor)
    partition = _read_partition(cursor) if cursor.accept("PARTITION") else {}
    if cursor.accept("IF", "NOT", "EXISTS"):
        raise Unsupported(
            "INSERT ... PARTITION (...) IF NOT EXISTS is not carried out",
            hint="look at SHOW PARTITIONS first, and leave the words out",
        )
    by_name = cursor.accept("BY", "NAME")
    columns = None
    if cursor.sees("(") and not any(cursor.sees("(", word) for word in ("SELECT", "WITH", "VALUES", "FROM", "(")):
        columns = tuple(cursor.listed(lambda: cursor.path("a column's name")[-1]))
    by_name = cursor.accept("BY", "NAME") or by_name
    replace_where = None
    if cursor.accept("REPLACE", "WHERE"):
        replace_where = read_expression(cursor, "SELECT", "VALUES", "WITH", "FROM", "TABLE")
        overwrite = True
    if common:
        cursor = Cursor(f"{common} {cursor.rest()}")
    source = _read_plain_rows(cursor) or read_query(cursor)
    return Insert(target, source, overwrite, columns, by_name, partition, replace_where)


def _read_partition(cursor: Cursor) -> dict[str, Sql | None]:
    def part() -> tuple[str, Sql | None]:
        name = cursor.name("a partition column")
        return name, read_expression(cursor, ",", ")") if cursor.accept("=") else None

    return dict(cursor.listed(part))


def read_update(cursor: Cursor) -> Update:
    """UPDATE."""
    cursor.expect("UPDATE")
    target = _read_target(cursor)
    alias = _read_alias(cursor, "SET")
    cursor.expect("SET")
    assignments = _read_assignments(cursor, target, alias, "WHERE")
    where = read_expression(cursor) if cursor.accept("WHERE") else None
    cursor.end()
    return Update(target, alias, assignments, where)


def read_delete(cursor: Cursor) -> Delete:
    """DELETE."""
    cursor.expect("DELETE")
    cursor.expect("FROM")
    target = _read_target(cursor)
    alias = _read_alias(cursor, "WHERE")
    where = read_expression(cursor) if cursor.accept("WHERE") else None
    cursor.end()
    return Delete(target, alias, where)


def read_merge(cursor: Cursor) -> Merge:
    """MERGE."""
    cursor.expect("MERGE")
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target = _read_target(cursor)
    alias = _read_alias(cursor, "USING")
    cursor.expect("USING")
    source = read_relation(cursor, "ON")
    cursor.expect("ON")
    on = read_expression(cursor, "WHEN")
    clauses = []
    while not cursor.is_done:
        clauses.append(_read_clause(cursor, target, alias))
    if not clauses:
        cursor.fail("expected WHEN")
    return Merge(target, alias, source, _alias_of(source.tree), on, tuple(clauses), evolves)


def _read_clause(cursor: Cursor, target: Target, alias: str | None) -> MergeClause:
    cursor.expect("WHEN")
    when = When.MATCHED
    if cursor.accept("NOT"):
        when = When.NOT_MATCHED
    cursor.expect("MATCHED")
    if cursor.accept("BY", "SOURCE"):
        if when is When.MATCHED:
            cursor.fail("only rows that do not match can be BY SOURCE")
        when = When.NOT_MATCHED_BY_SOURCE
    else:
        cursor.accept("BY", "TARGET")
    condition = read_expression(cursor, "THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if when is When.NOT_MATCHED:
        cursor.expect("INSERT")
        return MergeClause(when, condition, _read_merge_insert(cursor))
    if cursor.accept("DELETE"):
        return MergeClause(when, condition, MergeDelete())
    cursor.expect("UPDATE", "SET")
    if cursor.accept("*"):
        if when is When.NOT_MATCHED_BY_SOURCE:
            cursor.fail("rows without a source have nothing to take all columns from")
        return MergeClause(when, condition, MergeUpdate(()))
    return MergeClause(when, condition, MergeUpdate(_read_assignments(cursor, target, alias, "WHEN")))


def _read_merge_insert(cursor: Cursor) -> MergeInsert:
    if cursor.accept("*"):
        return MergeInsert(None, None)
    columns = None
    if cursor.sees("("):
        columns = tuple(cursor.listed(lambda: cursor.path("a column's name")[-1]))
    cursor.expect("VALUES")
    values = tuple(cursor.listed(lambda: read_expression(cursor, ",", ")")))
    if columns is not None and len(columns) != len(values):
        cursor.fail(f"{len(columns)} columns but {len(values)} values before this")
    return MergeInsert(columns, values)


def _read_assignments(cursor: Cursor, target: Target, alias: str | None, stop: str) -> tuple[Assignment, ...]:
    names = {alias.lower()} if alias else {target.name.lower(), target.name.lower().rpartition(".")[2]}
    found = [_read_assignment(cursor, names, stop)]
    while cursor.accept(","):
        found.append(_read_assignment(cursor, names, stop))
    return tuple(found)


def _read_assignment(cursor: Cursor, names: set[str], stop: str) -> Assignment:
    path = cursor.path("a column's name")
    for depth in (2, 1):
        if len(path) > depth and ".".join(path[:depth]).lower() in names:
            path = path[depth:]
            break
    cursor.expect("=")
    return Assignment(path, read_expression(cursor, ",", stop))


def _read_target(cursor: Cursor) -> Target:
    name = read_table(cursor)
    return Target(name, read_hint(cursor))


def _read_alias(cursor: Cursor, stop: str) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("an alias")
    return None if cursor.is_done or cursor.sees(stop) else cursor.name("an alias")


def _alias_of(relation: exp.Expression) -> str | None:
    return relation.alias_or_name or None


# ------------------------------------------------------------------------------------------------------------------
# Many rows of plain literals, read word by word: a syntax tree of them takes ten times as long as the rest together.
#
#     VALUES (1, 'a', 2.5, NULL, TRUE, DATE '2024-01-01', ARRAY[1, 2]), ROW(-2, ...), ...
#
# Whatever else stands there is not read here, but as any other query.


_MANY_WORDS = 500
"""Of fewer words a tree is made in no time."""
_WORDS: dict[str, Value] = {
    "NULL": None,
    "DEFAULT": None,  # columns put their default in place of NULL when rows are written
    "TRUE": Scalar(TypeRoot.BOOLEAN, True),
    "FALSE": Scalar(TypeRoot.BOOLEAN, False),
}
_TYPES = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP(6)", "TIMESTAMP_NTZ": "TIMESTAMP(6)", "TIME": "TIME"}


def _read_plain_rows(cursor: Cursor) -> PlainRows | None:
    """The rows of a long `VALUES ...` that is all that is left and holds plain literals only; else None."""
    tokens = cursor.tokens
    if len(tokens) - cursor.index < _MANY_WORDS or not cursor.sees("VALUES"):
        return None
    rows: list[list[Value]] = []
    place = cursor.index + 1
    try:
        while True:
            row, place = _row(tokens, place)
            rows.append(row)
            if place == len(tokens):
                return PlainRows(cursor.rest(), rows)
            if tokens[place].token_type is not TokenType.COMMA:
                return None
            place += 1
    except (IndexError, NotLiteral):
        return None


def _row(tokens: list[Token], place: int) -> tuple[list[Value], int]:
    """The row at a place, and the place after it."""
    if tokens[place].token_type is TokenType.VAR and tokens[place].text.upper() == "ROW":
        place += 1
    return _values(tokens, place, TokenType.L_PAREN, TokenType.R_PAREN)


def _values(tokens: list[Token], place: int, left: TokenType, right: TokenType) -> tuple[list[Value], int]:
    """Values in brackets."""
    if tokens[place].token_type is not left:
        raise NotLiteral
    found: list[Value] = []
    while True:
        value, place = _value(tokens, place + 1)
        found.append(value)
        kind = tokens[place].token_type
        if kind is right:
            return found, place + 1
        if kind is not TokenType.COMMA:
            raise NotLiteral


def _value(tokens: list[Token], place: int) -> tuple[Value, int]:
    token = tokens[place]
    kind = token.token_type
    if kind is TokenType.NUMBER:
        return number(token.text), place + 1
    if kind is TokenType.STRING:
        return Scalar(TypeRoot.VARCHAR, token.text), place + 1
    if kind is TokenType.DASH and tokens[place + 1].token_type is TokenType.NUMBER:
        return negative(number(tokens[place + 1].text)), place + 2
    if kind is TokenType.VAR:
        word = token.text.upper()
        if word in _WORDS:
            return _WORDS[word], place + 1
        if word in _TYPES and tokens[place + 1].token_type is TokenType.STRING:
            text = Scalar(TypeRoot.VARCHAR, tokens[place + 1].text)
            return convert(text, _type(_TYPES[word]), explicit=True), place + 2
        return _nested(word, tokens, place + 1)
    raise NotLiteral


def _nested(word: str, tokens: list[Token], place: int) -> tuple[Value, int]:
    if word == "ROW":
        members, place = _values(tokens, place, TokenType.L_PAREN, TokenType.R_PAREN)
        return Members(tuple(members)), place
    if word not in ("ARRAY", "MAP"):
        raise NotLiteral
    items, place = _values(tokens, place, TokenType.L_BRACKET, TokenType.R_BRACKET)
    return (Items(tuple(items)) if word == "ARRAY" else map_of(items[::2], items[1::2])), place


@lru_cache
def _type(text: str) -> DataType:
    return parse_type(text)


__all__ = []
