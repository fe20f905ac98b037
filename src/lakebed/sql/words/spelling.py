"""Flink's spelling of values and types, turned into Spark's: an edit of the text, word by word.

    ARRAY[1, 2]                  array(1, 2)
    MAP['k', 1]                  map('k', 1)
    ROW(1, 'a')                  struct(1, 'a')
    CAST(x AS ROW<a BYTES>)      CAST(x AS STRUCT<a BINARY>)
    CAST(x AS VARCHAR)           CAST(x AS STRING)
    CROSS JOIN UNNEST(a) AS u(x) CROSS JOIN LATERAL explode(a) AS u(x)
    FETCH FIRST 5 ROWS ONLY      LIMIT 5
    TO_TIMESTAMP_LTZ(n, 3)       timestamp_millis(n)
    TABLE(TUMBLE(TABLE t, ...))  (SELECT *, ... AS window_start, ... FROM t)

What Spark understands stays as it is, letter by letter.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokens import Token, TokenType

from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.time_windows import window_edits

_TYPES = {"ROW": "STRUCT", "BYTES": "BINARY", "VARBINARY": "BINARY", "BINARY": "BINARY"}
_TIMES = {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ"}
_SINCE_1970 = {"0": "timestamp_seconds", "3": "timestamp_millis", "6": "timestamp_micros"}
"""By the digits of a second that a whole number counts; Spark's function of Flink's name takes a pattern there."""
_OPENING = {"(": ")", "[": "]", "<": ">"}

_Edits = list[tuple[int, int, str]]


def to_spark(text: str) -> str:
    """The text in Spark's spelling."""
    cursor = Cursor(text)
    edits = [*_constructors(cursor), *_cast_types(cursor), *_unnests(cursor), *_fetches(cursor)]
    edits += [*_moments(cursor), *window_edits(cursor)]
    parts, done = [], 0
    for start, end, new in sorted(edits):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _constructors(cursor: Cursor) -> _Edits:
    """`ARRAY[`, `MAP[` and `ROW(`; the latter not where it is a type or the unit of a frame."""
    edits: _Edits = []
    tokens = cursor.tokens
    rows_of_values = _rows_of_values(tokens)
    for index, token in enumerate(tokens[:-1]):
        following = tokens[index + 1]
        if _is(token, "ARRAY", "MAP") and _is(following, "["):
            closing = _closing_index(tokens, index + 1)
            edits.append((token.start, following.end + 1, f"{token.text.lower()}("))
            edits.append((tokens[closing].start, tokens[closing].end + 1, ")"))
        elif _is(token, "ROW") and _is(following, "("):
            edits.append((token.start, token.end + 1, "" if index in rows_of_values else "struct"))
    return edits


def _moments(cursor: Cursor) -> _Edits:
    """`TO_TIMESTAMP_LTZ(n, digits)`."""
    edits: _Edits = []
    tokens = cursor.tokens
    for index, token in enumerate(tokens[:-1]):
        if not _is(token, "TO_TIMESTAMP_LTZ") or not _is(tokens[index + 1], "("):
            continue
        closing = _closing_index(tokens, index + 1)
        comma, digits = tokens[closing - 2 : closing]
        if closing > index + 4 and _is(comma, ",") and digits.token_type == TokenType.NUMBER:
            name = _SINCE_1970.get(digits.text)
            if name is not None:
                edits += [(token.start, token.end + 1, name), (comma.start, digits.end + 1, "")]
    return edits


def _rows_of_values(tokens: list[Token]) -> set[int]:
    """Where `VALUES ROW(...), ROW(...)` has its rows."""
    found: set[int] = set()
    for index, token in enumerate(tokens[:-1]):
        if not _is(token, "VALUES"):
            continue
        place = index + 1
        while place + 1 < len(tokens) and _is(tokens[place], "ROW") and _is(tokens[place + 1], "("):
            found.add(place)
            place = _closing_index(tokens, place + 1) + 2
    return found


def _cast_types(cursor: Cursor) -> _Edits:
    """The types in `CAST(... AS type)`."""
    edits: _Edits = []
    tokens = cursor.tokens
    for index, token in enumerate(tokens[:-1]):
        if not (_is(token, "CAST", "TRY_CAST") and _is(tokens[index + 1], "(")):
            continue
        closing = _closing_index(tokens, index + 1)
        depth, place = 0, index + 2
        while place < closing and not (depth == 0 and _is(tokens[place], "AS")):
            depth += _is(tokens[place], "(", "[") - _is(tokens[place], ")", "]")
            place += 1
        edits += _type_words(tokens[place + 1 : closing])
    return edits


def _type_words(tokens: list[Token]) -> _Edits:
    """Flink's names of types, and lengths that Spark does not know."""
    edits: _Edits = []
    for index, token in enumerate(tokens):
        word = token.text.upper()
        if token.token_type == TokenType.IDENTIFIER or _is_member_name(tokens, index):
            continue
        has_length = index + 1 < len(tokens) and _is(tokens[index + 1], "(")
        end = tokens[_closing_index(tokens, index + 1)].end + 1 if has_length else token.end + 1
        if word in _TYPES:
            edits.append((token.start, token.end + 1 if word == "ROW" else end, _TYPES[word]))
        elif word == "VARCHAR" and not has_length:
            edits.append((token.start, end, "STRING"))  # of any length; Spark wants one
        elif word in _TIMES and has_length:
            edits.append((token.start, end, _TIMES[word]))
        elif word == "MULTISET" and index + 1 < len(tokens):
            closing = tokens[_closing_index(tokens, index + 1)]
            edits += [(token.start, token.end + 1, "MAP"), (closing.start, closing.start, ", INT")]
    return edits


def _is_member_name(tokens: list[Token], index: int) -> bool:
    """Whether the word names a member of a ROW: `ROW<bytes BYTES>`."""
    follows_opening = index > 0 and _is(tokens[index - 1], "<", ",", "(")
    before_type = index + 1 < len(tokens) and (tokens[index + 1].text[0].isalpha() or tokens[index + 1].text == ":")
    return follows_opening and before_type and not (_is(tokens[index + 1], "NOT", "NULL"))


def _unnests(cursor: Cursor) -> _Edits:
    """`UNNEST(a) AS u(x, y)`: rows of the array with several columns, else its elements.

    That a column is a map, the text does not tell: see `unnested_maps`.
    """
    edits: _Edits = []
    tokens = cursor.tokens
    for index, token in enumerate(tokens[:-1]):
        if not (_is(token, "UNNEST") and _is(tokens[index + 1], "(")):
            continue
        closing = _closing_index(tokens, index + 1)
        has_members = _alias_columns(tokens, closing + 1) > 1 and not _is(tokens[index + 2], "MAP")
        function = "inline" if has_members else "explode"
        edits.append((token.start, token.end + 1, f"LATERAL {function}"))
    return edits


def _fetches(cursor: Cursor) -> _Edits:
    """`FETCH FIRST 5 ROWS ONLY`; without a number it is one row."""
    edits: _Edits = []
    tokens = cursor.tokens
    for index, token in enumerate(tokens[:-1]):
        if not (_is(token, "FETCH") and _is(tokens[index + 1], "FIRST", "NEXT")):
            continue
        rest = tokens[index + 2 : index + 5]
        number = rest.pop(0).text if rest and rest[0].token_type == TokenType.NUMBER else "1"
        if len(rest) >= 2 and _is(rest[0], "ROW", "ROWS") and _is(rest[1], "ONLY"):
            edits.append((token.start, rest[1].end + 1, f"LIMIT {number}"))
    return edits


def unnested_maps(text: str, is_map: Callable[[str], bool]) -> dict[tuple[int, int], str]:
    """Edits of a text in Spark's spelling that take keys and values out of columns that are maps."""
    if "inline" not in text:
        return {}
    edits: dict[tuple[int, int], str] = {}
    tokens = Cursor(text).tokens
    for index, token in enumerate(tokens[:-2]):
        if _is(token, "LATERAL") and tokens[index + 1].text == "inline" and _is(tokens[index + 2], "("):
            last = _closing_index(tokens, index + 2) - 1
            is_path = all(_is(dot, ".") for dot in tokens[last - 1 : index + 3 : -2])
            if is_path and is_map(tokens[last].text):
                edits[tokens[index + 1].start, tokens[index + 1].end + 1] = "explode"
    return edits


def _alias_columns(tokens: list[Token], index: int) -> int:
    """How many columns the alias at the place names."""
    index += index < len(tokens) and _is(tokens[index], "AS")
    if index + 1 >= len(tokens) or not _is(tokens[index + 1], "("):
        return 0
    return 1 + sum(_is(token, ",") for token in tokens[index + 1 : _closing_index(tokens, index + 1)])


def _closing_index(tokens: list[Token], opening: int) -> int:
    """Where the bracket that opens at the place is closed; the last word if it never is."""
    left = tokens[opening].text
    right, depth = _OPENING.get(left, left), 0
    for index in range(opening, len(tokens)):
        depth += _is(tokens[index], left) - _is(tokens[index], right)
        if depth <= 0:
            return index
    return len(tokens) - 1


def _is(token: Token, *words: str) -> bool:
    return token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING) and token.text.upper() in words
