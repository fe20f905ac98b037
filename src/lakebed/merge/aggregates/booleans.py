"""Whether all, or any, of a key's values are true."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.merge.aggregates.base import Aggregate
from lakebed.merge.segments import Segments
from lakebed.types.logical import DataType, TypeRoot, is_root


class _Boolean(Aggregate):
    takes = "BOOLEAN"

    @classmethod
    def accepts(cls, data_type: DataType) -> bool:
        return is_root(data_type, TypeRoot.BOOLEAN)


class BoolAnd(_Boolean):
    """True if no value is false; nulls do not count."""

    name = "bool_and"

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        is_false = ~np.asarray(column.fill_null(True))[segments.order]
        return segments.null_without_value(pa.array(~segments.any(is_false)), column)


class BoolOr(_Boolean):
    """True if some value is true; nulls do not count."""

    name = "bool_or"

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        is_true = np.asarray(column.fill_null(False))[segments.order]
        return segments.null_without_value(pa.array(segments.any(is_true)), column)
