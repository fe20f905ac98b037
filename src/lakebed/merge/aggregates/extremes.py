"""The largest and the smallest of a key's values.

The order is that of keys: text and bytes by unsigned bytes, floats with -0.0 below 0.0 and NaN above all.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.merge.aggregates import numbers
from lakebed.merge.aggregates.base import Aggregate, Picks
from lakebed.merge.segments import Indices, Segments
from lakebed.types import ordering
from lakebed.types.logical import DataType, is_nested

_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


class _Extreme(Aggregate):
    takes = "all types that have an order: not ARRAY, MAP, MULTISET, ROW, VARIANT, BLOB"
    picks = Picks.BY_VALUE
    descending: bool

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return not is_nested(data_type)

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        if pa.types.is_integer(column.type) or pa.types.is_temporal(column.type):
            return _of_integers(column, segments, descending=self.descending)
        if pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
            codes = ordering.sort_codes(segments.sorted(column), descending=self.descending)
            return segments.pick(column, segments.greatest(codes, segments.valid(column)))
        kept, remaining = segments.only(segments.valid(column))
        if not len(kept):
            return pa.nulls(len(segments), column.type)
        return segments.spread(_by_knock_out(kept.sorted(column), kept, descending=self.descending), remaining)


class Max(_Extreme):
    """The largest value; nulls do not count."""

    name = "max"
    descending = False


class Min(_Extreme):
    """The smallest value; nulls do not count."""

    name = "min"
    descending = True


def _of_integers(column: pa.Array, segments: Segments, *, descending: bool) -> pa.Array:
    """Best value of each segment, for types that are integers or, like times, are stored as such."""
    plain = column.view(_INTEGERS[column.type.bit_width])
    low, high = numbers.limits(plain.type)
    worst = high if descending else low
    values = np.asarray(plain.fill_null(worst) if plain.null_count else plain)
    best = np.full(len(segments), worst, dtype=values.dtype)
    (np.minimum if descending else np.maximum).at(best, segments.segment_of, values[segments.order])
    return segments.null_without_value(pa.array(best).view(column.type), column)


def _by_knock_out(values: pa.Array, segments: Segments, *, descending: bool) -> pa.Array:
    """Best value of each segment; each round compares neighbours and keeps the better of two.

    For text, bytes and decimals: Arrow orders two of them rightly, while codes would mean sorting all.
    """
    wins = pc.less if descending else pc.greater
    candidates: Indices = np.arange(len(values))
    sizes = segments.sizes
    while len(candidates) > len(segments):
        first_of_segment = np.repeat(np.cumsum(sizes) - sizes, sizes)
        place = np.arange(len(candidates)) - first_of_segment
        is_challenger = place % 2 == 1
        challengers = np.flatnonzero(is_challenger)
        left, right = candidates[challengers - 1], candidates[challengers]
        is_won = np.asarray(wins(values.take(pa.array(right)), values.take(pa.array(left))))
        candidates[challengers - 1] = np.where(is_won, right, left)
        candidates = candidates[~is_challenger]
        sizes = (sizes + 1) // 2
    return values.take(pa.array(candidates))
