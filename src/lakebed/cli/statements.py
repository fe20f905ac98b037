"""Cuts a text into SQL statements at the semicolons that stand outside quotes and comments."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
    (?P<end>;)
    | '(?:[^'\\]|\\.|'')*(?:'|$)
    | "(?:[^"\\]|\\.|"")*(?:"|$)
    | `[^`]*(?:`|$)
    | --[^\n]*
    | /\*.*?(?:\*/|$)
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def split_statements(text: str) -> tuple[list[str], str]:
    """Complete statements, and what stands behind the last semicolon."""
    statements = []
    start = 0
    for piece in _PIECE.finditer(text):
        if piece["end"]:
            statements.append(text[start : piece.start()].strip())
            start = piece.end()
    return [statement for statement in statements if not _is_blank(statement)], text[start:]


def all_statements(text: str) -> list[str]:
    """The statements of a whole text; the last one needs no semicolon."""
    complete, rest = split_statements(text)
    return complete if _is_blank(rest) else [*complete, rest.strip()]


def _is_blank(statement: str) -> bool:
    """Whether it holds nothing but comments."""
    without = (piece.group() for piece in _PIECE.finditer(statement) if not piece.group().startswith(("--", "/*")))
    return not "".join(without).strip()


__all__ = ["all_statements", "split_statements"]
