"""Aggregate functions by the name users write in `fields.<column>.aggregate-function`."""

from __future__ import annotations

from lakebed.merge.aggregates.base import Aggregate, AggregateSettings
from lakebed.merge.aggregates.values import FirstNonNullValue, FirstValue, LastNonNullValue, LastValue

AGGREGATES: dict[str, type[Aggregate]] = {
    function.name: function for function in (LastValue, LastNonNullValue, FirstValue, FirstNonNullValue)
}

__all__ = ["AGGREGATES", "Aggregate", "AggregateSettings"]
