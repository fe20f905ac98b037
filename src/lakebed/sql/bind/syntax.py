"""Reads a query so that every function keeps the name that the user wrote.

sqlglot turns functions of many dialects into nodes of its own, which do not tell any more what was meant exactly. Here
only what has a syntax of its own (CAST, EXTRACT, TRIM, ...) becomes such a node.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

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
    """The tree of a query or expression, which can be read: it was read before."""
    tree = _DIALECT.parser().parse(_DIALECT.tokenize(text), text)[0]
    assert isinstance(tree, exp.Expression)
    return tree
