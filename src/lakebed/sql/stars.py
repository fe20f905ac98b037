"""`SELECT *, _ROW_ID FROM t`: hidden columns are there if named, and `*` does not mean them.

A view has no hidden columns, so where a query uses some, they become ordinary ones and `*` becomes the list of the
others.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from lakebed.errors import Unsupported
from lakebed.sql.cursor import Cursor
from lakebed.sql.pushdown import has_star
from lakebed.sql.statements import Sql
from lakebed.sql.views import quoted

_BEFORE = ("SELECT", "DISTINCT", "ALL", ",")
_AFTER = ("FROM", ",", ")", "EXCEPT")


def used_hidden(node: exp.Table, hidden: list[str]) -> list[str]:
    """Hidden columns of a table that the query around it names."""
    words = {word.name.lower() for word in node.root().find_all(exp.Identifier)}
    return [name for name in hidden if name.lower() in words]


def star_edits(sql: Sql, shown: Mapping[int, list[str]]) -> dict[tuple[int, int], str]:
    """Edits that put lists of columns in place of stars. `shown`: what `*` means for table nodes, by their id."""
    concerned = [select for select in sql.tree.find_all(exp.Select) if has_star(select) and _sources_of(select, shown)]
    if not concerned:
        return {}
    if sum(has_star(select) for select in sql.tree.find_all(exp.Select)) > 1:
        raise Unsupported(
            "a query with several `*` can not use hidden columns", hint="list the columns in place of the stars"
        )
    tokens = Cursor(sql.text).tokens
    edits: dict[tuple[int, int], str] = {}
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.STAR and index and _is_projected(tokens, index):
            edits |= _edit(tokens, index, concerned[0], shown)
    return edits


def _sources_of(select: exp.Select, shown: Mapping[int, list[str]]) -> bool:
    return any(id(source) in shown for source in _sources(select))


def _sources(select: exp.Select) -> list[exp.Expression]:
    origin = select.args.get("from_")
    return [*([origin.this] if origin is not None else []), *(join.this for join in select.args.get("joins") or [])]


def _is_projected(tokens: list[Token], index: int) -> bool:
    before, after = tokens[index - 1], tokens[index + 1] if index + 1 < len(tokens) else None
    is_start = before.text.upper() in _BEFORE or before.text == "." or before.token_type == TokenType.HINT
    return is_start and (after is None or after.text.upper() in _AFTER)


def _edit(
    tokens: list[Token], index: int, select: exp.Select, shown: Mapping[int, list[str]]
) -> dict[tuple[int, int], str]:
    end = tokens[index].end + 1
    if tokens[index - 1].text != ".":
        return {(tokens[index].start, end): ", ".join(_list(source, shown) for source in _sources(select))}
    qualifier = tokens[index - 2]
    for source in _sources(select):
        if source.alias_or_name.lower() == qualifier.text.lower() and id(source) in shown:
            return {(qualifier.start, end): _list(source, shown)}
    return {}


def _list(source: exp.Expression, shown: Mapping[int, list[str]]) -> str:
    alias = quoted(source.alias_or_name)
    names = shown.get(id(source))
    return f"{alias}.*" if names is None else ", ".join(f"{alias}.{quoted(name)}" for name in names)
