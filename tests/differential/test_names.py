"""Columns without a name are called as Spark calls them."""

from __future__ import annotations

from typing import Any

from tests.differential.test_expressions import CORPUS, expressions, on_spark

from lakebed.sql.bind.names import shown_name
from lakebed.sql.bind.syntax import verbatim
from lakebed.sql.words.spelling import to_spark

__all__ = ["on_spark"]

LEAST = 0.93
"""So many of the names agree; what is left are literals with letters behind them, and what Spark rewrites first."""


def test_expressions_are_called_as_in_spark(on_spark: Any) -> None:
    """Nearly every expression of the corpus has the same name in both engines."""
    texts = [text for path in CORPUS for text in expressions(path)]
    other = []
    for text in texts:
        theirs = on_spark.sql(f"SELECT {text} FROM ordinary").columns[0]
        ours = shown_name(verbatim(f"SELECT {to_spark(text)}").expressions[0])
        if ours != theirs:
            other.append(f"{text}: {ours}, Spark {theirs}")
    print(f"{len(texts) - len(other)} of {len(texts)} names agree")
    assert len(texts) - len(other) >= LEAST * len(texts), "\n".join(other)
