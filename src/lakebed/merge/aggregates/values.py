"""Functions that choose one of the values: the last, the first, the last or first that is not null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.merge.aggregates.base import Aggregate, Picks
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.types.logical import DataType


class _AnyType(Aggregate):
    takes = "any type"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return True


class LastValue(_AnyType):
    """The newest value, null included; taking it back leaves null."""

    name = "last_value"
    picks = Picks.LAST
    can_retract = True
    takes_newest = True

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        last = segments.ends - 1
        return segments.pick(column, np.where(segments.retracts[last], NO_ROW, last))


class LastNonNullValue(_AnyType):
    """The newest value that is not null; taking back a value leaves null."""

    name = "last_non_null_value"
    picks = Picks.LAST_VALUE
    can_retract = True
    takes_newest = True

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        # A retract of null changes nothing; a retract of a value clears, whatever value stood there.
        last = segments.last(segments.valid(column))
        cleared = (last != NO_ROW) & segments.retracts[last]
        return segments.pick(column, np.where(cleared, NO_ROW, last))


class FirstValue(_AnyType):
    """The first value seen, null included."""

    name = "first_value"
    picks = Picks.FIRST

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        return segments.pick(column, segments.starts)


class FirstNonNullValue(_AnyType):
    """The first value that is not null."""

    name = "first_non_null_value"
    picks = Picks.FIRST_VALUE

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        return segments.pick(column, segments.first(segments.valid(column)))
