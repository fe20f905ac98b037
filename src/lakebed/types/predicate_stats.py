"""Which files can hold a row that a predicate selects, judged by their statistics, for all files at once.

The answer errs on one side only: a file is dropped when its statistics rule out every row. Bounds need not be tight
(text is often cut), may be missing, and for floats may leave out NaN; a bound of another type than the column's counts
as missing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.records import dataclass
from lakebed.types.predicate import (
    OPPOSITE,
    Always,
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Match,
    Not,
    Op,
    Opaque,
    Or,
    Predicate,
    TextMatch,
)

Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one column, one entry per file; null means unknown. Bounds enclose all values but nulls and NaN."""

    min: pa.Array
    max: pa.Array
    null_count: pa.Array


StatsColumns: TypeAlias = Mapping[str, ColumnStats]
"""Statistics by column name; a column that is not there is unknown in all files."""


def may_match(predicate: Predicate, stats: StatsColumns, row_counts: npt.NDArray[np.int64]) -> Flags:
    """For each file whether some row may satisfy the predicate. Files without rows never do."""
    has_rows: Flags = np.asarray(row_counts) > 0
    match predicate:
        case Always(value):
            return has_rows & bool(value)
        case And(children):
            return reduce(operator.and_, (may_match(child, stats, row_counts) for child in children))
        case Or(children):
            return reduce(operator.or_, (may_match(child, stats, row_counts) for child in children))
        case Opaque():
            return has_rows
        case IsNull(column):
            return has_rows & ~_null_counts_are(stats, column, np.zeros_like(row_counts))
        case IsNotNull(column):
            return has_rows & ~_null_counts_are(stats, column, row_counts)
        case Not(child):
            refuted = _all_satisfy(child, stats, len(row_counts))
        case leaf:
            child = leaf
            refuted = _none_satisfies(leaf, stats, len(row_counts))
    # Whatever the leaf, it is not TRUE for a NULL.
    return has_rows & ~refuted & ~_null_counts_are(stats, child.column, row_counts)


def _null_counts_are(stats: StatsColumns, column: str, counts: npt.NDArray[np.int64]) -> Flags:
    """Where the number of nulls is known and is this."""
    known = stats.get(column)
    if known is None:
        return np.zeros(len(counts), np.bool_)
    return _surely(pc.equal, known.null_count, pa.array(counts, pa.int64()))


def _surely(test: Callable[..., Any], *operands: Any) -> Flags:
    """Where the test holds; unknown counts as no."""
    flags: Flags = pc.fill_null(test(*operands), False).to_numpy(zero_copy_only=False)
    return flags


def _bounds(stats: StatsColumns, column: str, kind: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    known = stats.get(column)
    return (known.min, known.max) if known is not None and known.min.type == known.max.type == kind else None


def _none_satisfies(leaf: Comparison | In | TextMatch, stats: StatsColumns, files: int) -> Flags:
    """Where the bounds show that no value satisfies the leaf."""
    bounds = _bounds(stats, leaf.column, _type_of(leaf))
    if bounds is None:
        return np.zeros(files, np.bool_)
    low, high = bounds
    match leaf:
        case Comparison(_, Op.EQ, value):
            return _surely(pc.greater, low, value) | _surely(pc.less, high, value)
        case Comparison(_, Op.LT, value):
            return _surely(pc.greater_equal, low, value)
        case Comparison(_, Op.LE, value):
            return _surely(pc.greater, low, value)
        case Comparison(_, Op.GT, value):
            return _surely(pc.less_equal, high, value)
        case Comparison(_, Op.GE, value):
            return _surely(pc.less, high, value)
        case Comparison(_, Op.NE, value):
            return _is_constant(low, high) & _surely(pc.equal, low, value)
        case In(_, values):
            return _no_value_between(values, low, high)
        case TextMatch(_, match, pattern):
            return _no_text_with_prefix(_required_prefix(match, pattern), low, high)
    raise AssertionError("all leaves are covered")


def _all_satisfy(leaf: Comparison | In | TextMatch, stats: StatsColumns, files: int) -> Flags:
    """Where the bounds show that every value satisfies the leaf, nulls aside."""
    bounds = _bounds(stats, leaf.column, _type_of(leaf))
    if bounds is None:
        return np.zeros(files, np.bool_)
    low, high = bounds
    match leaf:
        case In(_, values):
            return _is_constant(low, high) & _surely(lambda: pc.is_in(low, value_set=values))
        case TextMatch(_, Match.STARTS_WITH, prefix):
            return _surely(pc.starts_with, low, prefix) & _surely(pc.starts_with, high, prefix)
        case Comparison(_, op) if not pa.types.is_floating(low.type):
            return _none_satisfies(replace(leaf, op=OPPOSITE[op]), stats, files)
        case _:
            # Among floats there may be NaN that the bounds do not show, and it satisfies no comparison.
            return np.zeros(files, np.bool_)


def _type_of(leaf: Comparison | In | TextMatch) -> pa.DataType:
    match leaf:
        case Comparison(_, _, literal):
            return literal.type
        case In(_, values):
            return values.type
        case TextMatch():
            return pa.string()


def _is_constant(low: pa.Array, high: pa.Array) -> Flags:
    """Where all values must be the same. Never for floats: there may be NaN besides."""
    if pa.types.is_floating(low.type):
        return np.zeros(len(low), np.bool_)
    return _surely(pc.equal, low, high)


def _no_value_between(values: pa.Array, low: pa.Array, high: pa.Array) -> Flags:
    """Where no value lies in [low, high]. All are ranked together, so this takes one sort whatever the type."""
    if pa.types.is_floating(values.type):
        values, low, high = (_plain_floats(each) for each in (values, low, high))
    values = values.drop_null()
    if not len(values):
        return np.ones(len(low), np.bool_)
    everything = pa.concat_arrays([values, low, high])
    ranks = pc.rank(everything, tiebreaker="dense").to_numpy().astype(np.int64)
    value_ranks, low_ranks, high_ranks = np.split(ranks, [len(values), len(values) + len(low)])
    value_ranks = np.unique(value_ranks)
    # An unknown low reaches below all values. An unknown high ranks last already, above all of them.
    low_ranks = np.where(low.is_null(), 0, low_ranks)
    first = np.searchsorted(value_ranks, low_ranks)
    beyond: Flags = first == len(value_ranks)
    return beyond | (value_ranks[np.minimum(first, len(value_ranks) - 1)] > high_ranks)


def _plain_floats(values: pa.Array) -> pa.Array:
    """Zeros without sign, and null for NaN: as a bound NaN tells nothing, as a value it equals nothing."""
    numbers = values.to_numpy(zero_copy_only=False) + values.type.to_pandas_dtype()(0.0)
    return pa.array(numbers, values.type, mask=np.isnan(numbers))


def _required_prefix(match: Match, pattern: str) -> str:
    """What every matching text starts with."""
    match match:
        case Match.STARTS_WITH:
            return pattern
        case Match.LIKE:
            special = [pattern.index(sign) for sign in "%_\\" if sign in pattern]
            return pattern[: min(special, default=len(pattern))]
        case _:
            return ""


def _no_text_with_prefix(prefix: str, low: pa.Array, high: pa.Array) -> Flags:
    """Texts with a prefix follow the prefix itself and stand together: a low past it that lacks it is past them all."""
    past = _surely(pc.greater, low, pa.scalar(prefix)) & ~_surely(pc.starts_with, low, prefix)
    return past | _surely(pc.less, high, pa.scalar(prefix))
