"""Queries, conditions and values: text in Spark's spelling, with a syntax tree that knows where tables stand."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from lakebed.definition.condition import SparkText
from lakebed.sql.parse.mistakes import at_place, explained, refuse_gaps
from lakebed.sql.statements import Sql
from lakebed.sql.words.cursor import Cursor, syntax_error
from lakebed.sql.words.spelling import to_spark

# --- What sqlglot needs to know to read statements in Spark's spelling on tables of a lake ------------------------
#
# Spark's dialect with three things more: names with `$` (`t$snapshots`, `t$branch_b`) need no quotes, a hint may
# follow a table (`t /*+ OPTIONS('k' = 'v') */`), and every table reference remembers where it stands in the text.
# Flink's own spelling is turned into Spark's by `spelling` before; only queries and expressions are read with it, all
# other statements are read by `parse`.


class Lakebed(SparkText):
    """Spark's spelling, with names, hints and time travel of a lake's tables."""

    class Tokenizer(SparkText.Tokenizer):
        """Words and quotes."""

        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            text: token for text, token in Spark.Tokenizer.SINGLE_TOKENS.items() if text != "$"
        }
        VAR_SINGLE_TOKENS: ClassVar[set[str]] = {"$"}
        TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = set(TokenType)

    class Parser(Spark.Parser):  # type: ignore[misc]
        """References to tables."""

        VERSION_PHRASES: ClassVar[dict[tuple[str, ...], str]] = {
            **Spark.Parser.VERSION_PHRASES,
            ("FOR", "SYSTEM_VERSION"): "VERSION",
            ("SYSTEM_VERSION",): "VERSION",
            ("SYSTEM_TIME",): "TIMESTAMP",
        }

        EXPRESSION_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.EXPRESSION_PARSERS,
            exp.Condition: lambda self: self._parse_expression(),
            exp.Table: lambda self: self._parse_table(joins=True),
        }

        def _parse_table_parts_fast(self) -> exp.Table | None:
            return None  # the short way would miss hints and places

        def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
            start = self._curr
            table = super()._parse_table_parts(*args, **kwargs)
            if not isinstance(table, exp.Table):
                return table
            if self._match(TokenType.HINT):
                comments = " ".join(self._prev.comments)
                table.meta["options"] = Cursor(comments).hint_options()
            version = None if self._parse_row_time(table, self._prev.end + 1) else self._parse_version()
            if version is not None:
                table.meta["version"] = version
            if start:
                end = table.meta["as_of_span"][0] if "as_of" in table.meta else self._prev.end + 1
                table.meta["span"] = (start.start, end)
            return table

        def _parse_subquery(self, this: Any, parse_alias: bool = True) -> Any:
            clause = exp.Table()
            is_read = this is not None and self._parse_row_time(clause, self._prev.end + 1)
            found = super()._parse_subquery(this, parse_alias)
            if is_read:
                found.meta.update(clause.meta)
            return found

        def _parse_row_time(self, node: exp.Expression, start: int) -> bool:
            """`FOR SYSTEM_TIME AS OF o.ts` or `PROCTIME()`: a time of rows, no fixed one; notes it with the node."""
            index = self._index
            self._match_text_seq("FOR")
            if self._match_text_seq("SYSTEM_TIME", "AS", "OF"):
                value = self._parse_bitwise()
                is_now = isinstance(value, exp.Anonymous) and str(value.this).upper() == "PROCTIME"
                if is_now or (isinstance(value, exp.Column) and value.table):
                    node.meta["as_of"] = value
                    node.meta["as_of_span"] = (start, self._prev.end + 1)
                    return True
            self._retreat(index)
            return False

        def _parse_version(self) -> exp.Version | None:
            words = ("VERSION", "TIMESTAMP", "SYSTEM_TIME", "SYSTEM_VERSION")
            if self._match_texts(words, advance=False) and self._next.text.upper() != "AS":
                return None  # `t version`, `t timestamp`: an alias, not a point in time
            return super()._parse_version()


_DIALECT = Lakebed()


def read_query(cursor: Cursor, *stops: str) -> Sql:
    """SELECT, WITH, VALUES, FROM or TABLE: all that is left, or what comes before one of the words."""
    if cursor.accept("TABLE"):
        start, end = cursor.text_until(*stops)
        return read_query(Cursor(f"SELECT * FROM {cursor.text[start:end]}"))
    start = cursor.index
    found = _read(cursor, None, stops)
    if not stops:
        cursor.end()
    if not isinstance(found.tree, exp.Query | exp.Values):
        cursor.index = start
        cursor.fail("expected a query")
    return found


def read_relation(cursor: Cursor, *stops: str) -> Sql:
    """What may stand after FROM, with its alias."""
    return _read(cursor, exp.Table, stops)


def read_expression(cursor: Cursor, *stops: str) -> Sql:
    """A condition or value, up to one of the words outside any brackets."""
    return _read(cursor, exp.Condition, stops)


def _read(cursor: Cursor, kind: Any, stops: tuple[str, ...]) -> Sql:
    start, end = cursor.text_until(*stops)
    text = to_spark(cursor.text[start:end])
    parser = _DIALECT.parser()
    tokens: list[Token] = []
    try:
        tokens = _DIALECT.tokenize(text)
        refuse_gaps(tokens, text)
        if _WINDOW.search(text):
            _mark_window_functions(tokens)
        trees = parser.parse(tokens, text) if kind is None else parser.parse_into(kind, tokens, text)
    except SqlglotError as error:
        raise at_place(cursor.text, start, text, *explained(error, text, tokens)) from error
    except IndexError as error:  # of a parser that takes an argument for granted: map('key')
        raise syntax_error(cursor.text, start, "a function here lacks an argument") from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expression) or isinstance(tree, exp.Command):
        raise syntax_error(cursor.text, start, "this can not be read as a query or expression")
    return Sql(text, tree)


_WINDOW = re.compile(r"\bWINDOW\s*\(", re.IGNORECASE)


def _mark_window_functions(tokens: list[Token]) -> None:
    """`window(ts, '1 hour')` is a function, also right behind GROUP BY; the clause is `WINDOW w AS (...)`."""
    for token, following in pairwise(tokens):
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            token.token_type = TokenType.VAR


def read_hint(cursor: Cursor) -> dict[str, str]:
    """The options of a hint, if one is next."""
    if cursor.current.token_type != TokenType.HINT:
        return {}
    return Cursor(" ".join(cursor.take().comments)).hint_options()
