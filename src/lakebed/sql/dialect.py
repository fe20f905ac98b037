"""What sqlglot needs to know to read statements in Spark's spelling on tables of a lake.

Spark's dialect with three things more: names with `$` (`t$snapshots`, `t$branch_b`) need no quotes, a hint may follow
a table (`t /*+ OPTIONS('k' = 'v') */`), and every table reference remembers where it stands in the text. Flink's own
spelling is turned into Spark's by `spelling` before; only queries and expressions are read with it, all other
statements are read by `parse`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

from lakebed.sql.cursor import Cursor


class Lakebed(Spark):  # type: ignore[misc]
    """Spark's spelling, with names, hints and time travel of a lake's tables."""

    class Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
        """Words and quotes."""

        # Two quotes in a text are one, as in Flink and in Spark since version 4.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
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
            version = self._parse_version()
            if version is not None:
                table.meta["version"] = version
            if start:
                table.meta["span"] = (start.start, self._prev.end + 1)
            return table

        def _parse_version(self) -> exp.Version | None:
            words = ("VERSION", "TIMESTAMP", "SYSTEM_TIME", "SYSTEM_VERSION")
            if self._match_texts(words, advance=False) and self._next.text.upper() != "AS":
                return None  # `t version`, `t timestamp`: an alias, not a point in time
            return super()._parse_version()
