"""Many rows of plain literals, read word by word: a syntax tree of them takes ten times as long as the rest together.

    VALUES (1, 'a', 2.5, NULL, TRUE, DATE '2024-01-01', ARRAY[1, 2]), ROW(-2, ...), ...

Whatever else stands there is not read here, but as any other query.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot.tokens import Token, TokenType

from lakebed.sql.conversion import convert
from lakebed.sql.cursor import Cursor
from lakebed.sql.literals import map_of, negative, number
from lakebed.sql.statements import PlainRows
from lakebed.sql.values import Items, Members, NotLiteral, Scalar, Value
from lakebed.types.logical import DataType, TypeRoot, parse_type

_MANY_WORDS = 500
"""Of fewer words a tree is made in no time."""
_WORDS: dict[str, Value] = {
    "NULL": None,
    "DEFAULT": None,  # columns put their default in place of NULL when rows are written
    "TRUE": Scalar(TypeRoot.BOOLEAN, True),
    "FALSE": Scalar(TypeRoot.BOOLEAN, False),
}
_TYPES = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP(6)", "TIMESTAMP_NTZ": "TIMESTAMP(6)", "TIME": "TIME"}


def read_plain_rows(cursor: Cursor) -> PlainRows | None:
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


__all__ = ["read_plain_rows"]
