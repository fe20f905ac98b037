"""What is wrong with a query that can not be read, in plain words: where, what was expected, and what may be meant.

The parser speaks of its own classes and tokens. It also forgives what Spark does not: a comma too many, a list of
nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from lakebed.errors import InvalidArgument
from lakebed.sql.words.cursor import syntax_error

_KEYWORDS = (
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT"),
    *("EXCEPT", "JOIN", "INNER", "LEFT", "RIGHT", "OUTER", "CROSS", "USING", "BETWEEN", "LIKE", "WHEN", "THEN", "ELSE"),
    *("PARTITION", "VALUES", "LATERAL"),
)
_NEED_BY = ("GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE")
_HABITS: tuple[tuple[str, str], ...] = (
    (r">>>", "write shiftrightunsigned(a, b) for a >>> b"),
    (r"\bSELECT\s+TOP\s+\d", "write LIMIT and the number at the end of the query"),
    (r"\bAS\s+OF\s+(VERSION|TIMESTAMP)\b", "write VERSION AS OF 1, or TIMESTAMP AS OF '2024-05-14', behind the table"),
    (r"\{\s*'", "write map('a', 1), or named_struct('a', 1)"),
    (r"\b[a-z_]\w*:[a-z_]", "write get_json_object(text, '$.a'), or variant_get(value, '$.a', 'string')"),
    (r"~\*?\s*'", "write a RLIKE 'pattern'"),
    (r"@>", "write array_contains(list, value)"),
    (r"\bMOD\s+\w", "write a % b"),
    (r"=>", "write >= for `at least`"),
    (r"!\s+=", "write <>"),
)
"""Ways to write of other systems, looked for where reading stopped, and what to write here."""
_AROUND = 25
"""Characters in front of the place that may belong to it."""


def explained(error: SqlglotError, text: str, tokens: Sequence[Token]) -> tuple[int, str, str | None]:
    """Where the text stops making sense, what is wrong there, and a hint if more than the place is known."""
    details = (getattr(error, "errors", None) or [{}])[0]
    before = "\n".join(text.split("\n")[: (details.get("line") or 1) - 1])
    position = len(before) + bool(before) + (details.get("col") or 1) - len(details.get("highlight") or "")
    position = max(0, min(position, len(text)))
    place = next((n for n, token in enumerate(tokens) if token.end >= position), len(tokens))
    around = [token for token in tokens[max(0, place - 1) : place + 1] if _is_word(token)]
    message = _plain(details.get("description") or str(error).splitlines()[0])
    if 0 < place < len(tokens) and tokens[place - 1].text.upper() in _NEED_BY:
        return position, f"expected BY behind {tokens[place - 1].text}", None
    for pattern, instead in _HABITS:
        if re.search(pattern, text[max(0, position - _AROUND) : position + _AROUND], re.IGNORECASE):
            return position, message, instead
    for token in around:
        near = difflib.get_close_matches(token.text.upper(), _KEYWORDS, n=1, cutoff=0.75)
        if near and near[0] != token.text.upper():
            return token.start, message, f"did you mean `{near[0]}`?"
    return position, message, None


def _is_word(token: Token) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER) and token.text[:1].isalpha()


def _plain(message: str) -> str:
    """What the parser says, without the names of its classes."""
    if message.startswith("Required keyword"):
        return "something is missing behind this"
    if message.startswith("Expected table name"):
        return "expected a table's name"
    if message.startswith("Expected TYPE"):
        return "expected a type"
    expected = re.match(r"Expect(?:ing|ed) (\S+)", message)
    if expected:
        return f"expected {expected[1]}"
    return "this is not expected here" if message.startswith("Invalid expression") else message


def refuse_gaps(tokens: Sequence[Token], text: str) -> None:
    """Fails at a comma that nothing follows, and at SELECT without columns: the parser would read over them."""
    for token, following in pairwise([*tokens, None]):
        if token is None or token.token_type not in (TokenType.COMMA, TokenType.SELECT):
            continue
        if following is None or following.token_type in _NOTHING:
            position = len(text.rstrip()) if following is None else following.start
            raise syntax_error(text, position, f"something is missing behind `{token.text}`")


_NOTHING = (TokenType.FROM, TokenType.R_PAREN, TokenType.R_BRACKET)


def at_place(whole: str, offset: int, text: str, position: int, message: str, hint: str | None) -> InvalidArgument:
    """The error with its place in the statement; in the text for Spark where the two differ."""
    is_same = whole[offset : offset + len(text)] == text
    error = syntax_error(whole, offset + position, message) if is_same else syntax_error(text, position, message)
    return error if hint is None else InvalidArgument(error.message, hint=hint)
