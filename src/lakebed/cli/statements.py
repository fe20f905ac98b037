"""Cuts a text into SQL statements at the semicolons that stand outside quotes and comments.

Flink's `BEGIN STATEMENT SET; ...; END;` is one statement.
"""

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
    start = begun = 0
    is_set = False
    for piece in _PIECE.finditer(text):
        if not piece["end"]:
            continue
        words = _words(text[begun : min(piece.start(), begun + _ENOUGH)])
        begun = piece.end()
        is_set = (is_set or _SET.match(words) is not None) and words != "END"
        if not is_set:
            statements.append(text[start : piece.start()].strip())
            start = begun
    return [statement for statement in statements if not _is_blank(statement)], text[start:]


_ENOUGH = 1000
"""Characters that tell whether a set begins or ends: a statement may hold rows, and many."""
_SET = re.compile(r"BEGIN STATEMENT SET$|(?:EXECUTE )?STATEMENT SET BEGIN\b")


def is_inside(text: str) -> bool:
    """Whether the text ends inside quotes or a comment: what follows belongs to them."""
    last = ""
    for piece in _PIECE.finditer(text):
        last = piece.group()
    if last.startswith("/*"):
        return not (len(last) > 3 and last.endswith("*/"))
    return last[:1] in ("'", '"', "`") and (len(last) == 1 or not _CLOSED.fullmatch(last))


_CLOSED = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`""", re.DOTALL)


def all_statements(text: str) -> list[str]:
    """The statements of a whole text; the last one needs no semicolon."""
    complete, rest = split_statements(text)
    return complete if _is_blank(rest) else [*complete, rest.strip()]


def _is_blank(statement: str) -> bool:
    """Whether it holds nothing but comments."""
    return not _words(statement)


def without_comments(statement: str) -> str:
    """The statement without its comments."""
    pieces = (piece.group() for piece in _PIECE.finditer(statement))
    return "".join(" " if piece.startswith(("--", "/*")) else piece for piece in pieces).strip()


def _words(statement: str) -> str:
    """The text in capitals, without comments, with one blank between words."""
    return " ".join(without_comments(statement).upper().split())


__all__ = ["all_statements", "is_inside", "split_statements", "without_comments"]
