"""From a key's row before and after to the events of its change.

    before \\ after    added                       taken away
    nothing           +I after                    no event
    a row             -U before, +U after         -D before

Rows come in key-value shape, one per key, both sides in the same key order; so do the events, `-U` in front of its
`+U`. A row that takes away (`-U`, `-D`) counts as nothing on either side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.types import key_value
from lakebed.types.equality import equal_rows
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EventRules:
    """Which events are left out."""

    skips_unchanged: bool = False
    """No pair for a row that is the same before and after."""
    ignored_columns: frozenset[str] = frozenset()
    """Columns that do not count in that comparison."""
    skips_deletes: bool = False
    """No `-D` events."""


def change_events(before: pa.RecordBatch, after: pa.RecordBatch, rules: EventRules, *, known: Mask) -> pa.RecordBatch:
    """The events of all keys.

    `known` tells for which keys there was a row before; where it is false, `before` may hold anything.
    """
    had = known & ~is_retract(key_value.kinds(before))
    has = ~is_retract(key_value.kinds(after))
    updated = had & has
    if rules.skips_unchanged and np.any(updated):
        updated[updated] = ~_are_same(_where(before, updated), _where(after, updated), rules.ignored_columns)
    inserted = has & ~had
    deleted = np.zeros_like(had) if rules.skips_deletes else had & ~has
    olds, news = updated | deleted, updated | inserted
    counts = olds.astype(np.int64) + news
    first = np.cumsum(counts) - counts
    source = np.empty(int(counts.sum()), dtype=np.int64)
    kinds = np.empty(len(source), dtype=np.int8)
    source[first[olds]] = np.flatnonzero(olds)
    kinds[first[olds]] = np.where(updated, RowKind.UPDATE_BEFORE, RowKind.DELETE)[olds]
    place = (first + olds)[news]
    source[place] = len(before) + np.flatnonzero(news)
    kinds[place] = np.where(updated, RowKind.UPDATE_AFTER, RowKind.INSERT)[news]
    rows = pa.concat_batches([before, after]).take(pa.array(source))
    return rows.set_column(rows.schema.get_field_index(VALUE_KIND), rows.schema.field(VALUE_KIND), pa.array(kinds))


def _where(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))


def _are_same(before: pa.RecordBatch, after: pa.RecordBatch, ignored: frozenset[str]) -> Mask:
    same = np.ones(before.num_rows, dtype=np.bool_)
    for name in before.schema.names:
        if name not in (SEQUENCE_NUMBER, VALUE_KIND) and name not in ignored:
            same &= equal_rows(before.column(name), after.column(name))
    return same


__all__ = ["EventRules", "change_events"]
