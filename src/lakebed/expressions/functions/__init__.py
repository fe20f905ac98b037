"""Functions by Spark's names: how each is built from its arguments, with Spark's type and a spelling that DuckDB has.

One file for each kind of values, each with a `FUNCTIONS` of its own. A function brings its arguments to the types it
takes, as Spark does, and raises `NotProven` for those it is not proven for.
"""

from __future__ import annotations

from lakebed.expressions.functions import (
    arithmetic,
    bits,
    collections,
    comparisons,
    conditions,
    lambdas,
    maps,
    numbers,
    rounding,
    text,
    time,
    time_parts,
    time_texts,
)
from lakebed.expressions.functions.function import Function

FUNCTIONS: dict[str, Function] = {
    **arithmetic.FUNCTIONS,
    **bits.FUNCTIONS,
    **collections.FUNCTIONS,
    **comparisons.FUNCTIONS,
    **conditions.FUNCTIONS,
    **lambdas.FUNCTIONS,
    **maps.FUNCTIONS,
    **numbers.FUNCTIONS,
    **rounding.FUNCTIONS,
    **text.FUNCTIONS,
    **time.FUNCTIONS,
    **time_parts.FUNCTIONS,
    **time_texts.FUNCTIONS,
}
"""All of them, by Spark's names in lower case. Operators are among them under their signs, as `+`."""
