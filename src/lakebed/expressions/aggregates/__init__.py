"""Aggregate functions by Spark's names, for groups and for windows; and those that only windows have."""

from __future__ import annotations

from lakebed.expressions.aggregates import chosen, lists, rankings, statistics, totals
from lakebed.expressions.aggregates.aggregate import Aggregate

AGGREGATES: dict[str, Aggregate] = {
    **totals.AGGREGATES,
    **chosen.AGGREGATES,
    **lists.AGGREGATES,
    **statistics.AGGREGATES,
}
"""All of them, by Spark's names in lower case."""

RANKINGS: dict[str, Aggregate] = {**rankings.RANKINGS}
"""Functions of windows: `row_number`, `lag`, ...; and how a window has those that groups have, too, as `first`."""
