"""Which values an aggregate function has made its result from, for `Trace`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.merge.aggregates.base import Aggregate, Picks
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.types.equality import equal_rows

_WITH_NULLS = (Picks.LAST, Picks.FIRST)
_OTHERS = {
    Picks.LAST: Role.OLDER,
    Picks.LAST_VALUE: Role.OLDER,
    Picks.FIRST: Role.LATER,
    Picks.FIRST_VALUE: Role.LATER,
}


def trace_parts(
    trace: Trace, aggregate: Aggregate, column: pa.Array, kept: Segments, reduced: Callable[[pa.Array], pa.Array]
) -> None:
    """Tells which rows count, and whose value the result is if it is one of them.

    `reduced` folds a column as the engine does, over the rows that it considers: those of `kept`.
    """
    name, picks = aggregate.field.name, aggregate.picks
    valid = kept.valid(column)
    counts = (valid | (picks in _WITH_NULLS)) & ~kept.retracts
    trace.note(kept.order[~valid], Role.NO_VALUE, name)
    trace.note(kept.order[counts], Role.COUNTED, name)
    takes_back = Role.IGNORED if aggregate.settings.ignore_retract else Role.TAKES_BACK
    trace.note(kept.order[kept.retracts & (valid | (picks is Picks.LAST))], takes_back, name)
    if picks is Picks.NONE:
        return
    if picks is Picks.BY_VALUE:
        # The result is looked for among the values: the oldest that has it brought it.
        result = reduced(column)
        same = equal_rows(kept.sorted(column), result.take(pa.array(kept.segment_of)))
        first = kept.first(same & counts)
        trace.note(kept.order[first[first != NO_ROW]], Role.VALUE, name)
        return
    is_valid = None if picks in _WITH_NULLS else np.asarray(pc.is_valid(column))
    numbers = pa.array(np.arange(len(column)), mask=None if is_valid is None else ~is_valid)
    chosen = reduced(numbers).drop_null()
    trace.demote(kept.order, _OTHERS[picks], name)
    trace.note(np.asarray(chosen), Role.VALUE, name)


__all__ = ["trace_parts"]
