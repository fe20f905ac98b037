"""Options of materialized tables: what makes an ordinary table the result of a query."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import Kind, Names, Option

__all__ = ["LAKEBED_VIEW_DEFINITION", "LAKEBED_VIEW_HIDDEN_COLUMNS", "LAKEBED_VIEW_QUERY", "VIEW_OPTIONS"]

LAKEBED_VIEW_QUERY = Option[str | None](
    "lakebed.view.query",
    Kind.TEXT,
    None,
    "The query of a materialized table. `CREATE MATERIALIZED TABLE` sets it; only its refresh writes the table.",
    honoured=True,
    paimon="ours",
)
LAKEBED_VIEW_DEFINITION = Option[str | None](
    "lakebed.view.definition",
    Kind.TEXT,
    None,
    "What else is known of a materialized table, as JSON: which tables and columns it reads, its key, its policy.",
    honoured=True,
    paimon="ours",
)
LAKEBED_VIEW_HIDDEN_COLUMNS = Option[Names](
    "lakebed.view.hidden-columns",
    Kind.LIST,
    (),
    "Columns that a materialized table keeps for itself: reads show them only if they are named.",
    honoured=True,
    paimon="ours",
)
VIEW_OPTIONS: Final = frozenset({LAKEBED_VIEW_QUERY.key, LAKEBED_VIEW_DEFINITION.key, LAKEBED_VIEW_HIDDEN_COLUMNS.key})
"""What only statements about materialized tables set."""
