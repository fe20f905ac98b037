"""`lake.sql(text, args=...)`: values in the place of `:name` and `?`, written as literals.

    bound("SELECT * FROM t WHERE id = :id", {"id": 7})    ->  SELECT * FROM t WHERE id = 7

A value never becomes anything but one literal: markers are found among the words of the text, so that those in quotes,
comments and names are none, and a text is quoted with all that could end the quotes escaped. What is bound is therefore
good for every statement, also where Spark takes no parameters: CALL, PARTITION, options of tables.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot.tokens import Token, TokenType

from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.sql.words.cursor import tokens_of

Arguments = Mapping[str, Any] | Sequence[Any] | None
"""Values by name, or in the order of the question marks."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_LARGEST = (1 << 31, 1 << 63, 10**38)
"""What an INT, a BIGINT and a DECIMAL are smaller than."""


def bound(text: str, args: Arguments) -> str:
    """The text with values for its markers."""
    if args is None:
        return text
    if isinstance(args, Mapping):
        return _spliced(text, _named(text, args))
    if isinstance(args, Sequence) and not isinstance(args, str | bytes):
        return _spliced(text, _positional(text, args))
    raise InvalidArgument(
        f"args is {type(args).__name__}", hint='pass a dict for :name, args={"name": value}, or a list for ?'
    )


def _spliced(text: str, edits: Iterator[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, spelled in edits:
        # Blanks around it: `1-:n` with a negative number must not become a comment.
        parts += [text[done:start], f" {spelled} "]
        done = end
    return "".join([*parts, text[done:]])


def _named(text: str, args: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    literals = {_checked_name(name): literal(value, f"`{name}`") for name, value in args.items()}
    tokens = tokens_of(text)
    for token in tokens:
        if token.token_type == TokenType.PLACEHOLDER:
            raise InvalidArgument("the text has `?`, and args are named", hint="pass args as a list, or write :name")
    for colon, name in _markers(tokens):
        if name.text not in literals:
            raise InvalidArgument(f"`:{name.text}` has no value", hint=f"args: {did_you_mean(name.text, literals)}")
        yield colon.start, name.end + 1, literals[name.text]


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidArgument(f"{name!r} is no name of a parameter", hint="letters, digits and _ make one, as in :day")
    return name


def _markers(tokens: list[Token]) -> Iterator[tuple[Token, Token]]:
    """`:name`, with nothing between, and nothing right before it that it could belong to: `a:INT` is a member."""
    for place, token in enumerate(tokens[:-1]):
        name = tokens[place + 1]
        if token.token_type != TokenType.COLON or name.start != token.end + 1 or _NAME.fullmatch(name.text) is None:
            continue
        if name.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or (place and _holds(tokens[place - 1], token)):
            continue
        yield token, name


def _holds(before: Token, colon: Token) -> bool:
    """Whether the colon belongs to the word before it."""
    is_adjacent = before.end + 1 == colon.start
    is_name = before.token_type == TokenType.IDENTIFIER or before.text[-1:].isalnum() or before.text[-1:] in "_)]:"
    return is_adjacent and is_name


def _positional(text: str, args: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    literals = [literal(value, f"value {n}") for n, value in enumerate(args, 1)]
    marks = [token for token in tokens_of(text) if token.token_type in (TokenType.PLACEHOLDER, TokenType.QDCOLON)]
    if len(marks) != len(literals):
        raise InvalidArgument(
            f"the text has {len(marks)} question marks, and args has {len(literals)} values",
            hint="pass a value for each `?`, in their order" + ("; write `?` for `%s`" if "%s" in text else ""),
        )
    for mark, spelled in zip(marks, literals, strict=True):
        yield mark.start, mark.start + 1, spelled  # of `?::INT` the rest is a cast


# --- literals --------------------------------------------------------------------------------------------------------


def literal(value: object, place: str = "the value") -> str:
    """A value as one literal of SQL, with the type that Spark's own `sql(args=...)` gives it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _integer(value, place)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"CAST('{_unusual(value)}' AS DOUBLE)"
        case Decimal():
            return _decimal(value, place)
        case str():
            return quoted(value, place)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time() if value.tzinfo is None:
            return f"TIME '{value.isoformat()}'"
        case dt.timedelta():
            return _interval(value)
        case uuid.UUID():
            return quoted(str(value), place)
        case Mapping():
            pairs = [literal(part, place) for pair in value.items() for part in pair]
            return f"MAP({', '.join(pairs)})"
        case list() | tuple():
            return f"ARRAY({', '.join(literal(part, place) for part in value)})"
    plain = value.item() if hasattr(value, "item") and callable(value.item) else None  # a number of NumPy
    if isinstance(plain, bool | int | float):
        return literal(plain, place)
    raise InvalidArgument(
        f"{place} is of type {type(value).__name__}, which has no literal in SQL",
        hint="pass a number, text, bytes, date, time, list, dict or None",
    )


def quoted(text: str, place: str = "the value") -> str:
    """A text in quotes, with the two characters escaped that mean something in there."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidArgument(f"{place} holds a character that SQL can not carry", hint="write such texts from Arrow")
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _integer(value: int, place: str) -> str:
    magnitude = value if value >= 0 else -value - 1
    if magnitude < _LARGEST[0]:
        return str(value)
    if magnitude < _LARGEST[1]:
        return f"{value}L"
    if abs(value) < _LARGEST[2]:
        return str(value)
    raise InvalidArgument(f"{place} has more than 38 digits", hint="pass it as text, and CAST it")


def _decimal(value: Decimal, place: str) -> str:
    if not value.is_finite():
        raise InvalidArgument(f"{place} is {value}, which is no DECIMAL", hint="pass a number, or a float for NaN")
    text = format(value, "f")
    whole, _, fraction = text.lstrip("-0").partition(".")
    if len(whole) + len(fraction) > 38:
        raise InvalidArgument(f"{place} has more than 38 digits", hint="pass it as text, and CAST it")
    return text if "." in text else f"{text}."


def _unusual(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _interval(value: dt.timedelta) -> str:
    micros = value // dt.timedelta(microseconds=1)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}' DAY TO SECOND"
