"""Aggregate functions by Spark's names, for groups and for windows; and those that only windows have."""

from __future__ import annotations

from lakebed.expressions.aggregates import totals
from lakebed.expressions.aggregates.aggregate import Aggregate

AGGREGATES: dict[str, Aggregate] = {**totals.AGGREGATES}
"""All of them, by Spark's names in lower case."""

RANKINGS: dict[str, Aggregate] = {}
"""Functions that need a window: `row_number`, `lag`, ..."""
