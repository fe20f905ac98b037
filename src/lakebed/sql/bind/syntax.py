"""Reads a query so that every function keeps the name that the user wrote.

sqlglot turns functions of many dialects into nodes of its own, which do not tell any more what was meant exactly. Here
only what has a syntax of its own (CAST, EXTRACT, TRIM, ...) becomes such a node.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakebed.expressions.nodes import NotProven
from lakebed.sql.parse.query import Lakebed

_OWN_SYNTAX = {"CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "POSITION", "OVERLAY"}


class Verbatim(Lakebed):
    """The dialect of the lake, functions by name."""

    class Parser(Lakebed.Parser):
        """Functions by name."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # `array(x, y)[0]` is no array of 0
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Lakebed.Parser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": Lakebed.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


_DIALECT = Verbatim()


def verbatim(text: str) -> exp.Expression:
    """The tree of a query or expression. NotProven: a function in it is written in a way that is not known here."""
    try:
        tree = _DIALECT.parser().parse(_DIALECT.tokenize(text), text)[0]
    except SqlglotError as error:  # it was read before, by a parser that knows more functions
        raise NotProven("the way in which a function is called") from error
    assert isinstance(tree, exp.Expression)
    return tree


def functions_called(text: str) -> list[str]:
    """The names of functions in a query, without those of another catalog or database."""
    try:
        called = verbatim(text).find_all(exp.Anonymous)
    except NotProven:
        return []
    return [str(each.this) for each in called if not isinstance(each.parent, exp.Dot | exp.Hint)]
