"""Long lists of values as a few ranges around them: a weaker filter, for who only asks what may be left out.

pyarrow compares lists of more than fifty values with no statistics at all. Ranges it does, and where values lie
together, between them is nothing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.types import ordering
from lakebed.types.predicate import And, Comparison, In, Op, Or, Predicate, conjunction, disjunction

_MOST_LISTED = 50
_MOST_RANGES = 32


def with_ranges(predicate: Predicate) -> Predicate:
    """A predicate that holds wherever the given one does, without long lists except those that exclude values."""
    match predicate:
        case In(column, values) if len(values) > _MOST_LISTED:
            return _ranges(column, values)
        case And(children):
            return conjunction(map(with_ranges, children))
        case Or(children):
            return disjunction(map(with_ranges, children))
        case _:
            return predicate


def _ranges(column: str, values: pa.Array) -> Predicate:
    ascending = values.take(pc.sort_indices(values))
    last = len(ascending) - 1
    cuts = np.sort(_widest_gaps(ascending))
    starts, ends = [0, *(cuts + 1).tolist()], [*cuts.tolist(), last]
    return disjunction(
        conjunction((Comparison(column, Op.GE, ascending[start]), Comparison(column, Op.LE, ascending[end])))
        for start, end in zip(starts, ends, strict=True)
    )


def _widest_gaps(ascending: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """After which values to cut. Of what has no distances, parts of equal size."""
    count = min(_MOST_RANGES, len(ascending)) - 1
    kind = ascending.type
    if pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        gaps = np.diff(ordering.sort_codes(ascending).astype(np.float64))
        return np.argpartition(gaps, len(gaps) - count)[len(gaps) - count :].astype(np.int64)
    return np.unique(np.linspace(0, len(ascending) - 1, count + 2, dtype=np.int64)[1:-1])


__all__ = ["with_ranges"]
