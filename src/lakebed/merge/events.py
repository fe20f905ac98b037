"""From a key's row before and after to the events of its change.

    before \\ after    added                       taken away
    nothing           +I after                    no event
    a row             -U before, +U after         -D before

Rows come in key-value shape, one per key, both sides in the same key order; so do the events, `-U` in front of its
`+U`. A row that takes away (`-U`, `-D`) counts as nothing on either side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.records import dataclass
from lakebed.types import key_value, ordering
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


# --- From rows as they came to the events of what they changed, given the rows that were there before -------------
#
# The rows of a key are a chain: each one meets the one before it, the first what is stored. A row with an older
# sequence than what it meets loses and leaves no trace. The old half of an update that brings its new half along says
# nothing that the new half does not.
#
# This is for keys of which the newest row is the row; rows that are folded into something else have no such chain.


Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class InputChain:
    """How rows of a table follow one another. `sequence_fields` decide what is older, else arrival does."""

    key: tuple[str, ...]
    sequence_fields: tuple[str, ...]
    descending: bool
    rules: EventRules

    def events(self, stored: pa.RecordBatch, came: pa.RecordBatch) -> pa.RecordBatch:
        """What rows that came change, by key and in order of arrival.

        REQUIRES: both in key-value shape; `stored` has each key at most once, `came` all rows of its keys.
        """
        rows = pa.concat_batches([stored, came])
        is_new = np.arange(rows.num_rows) >= stored.num_rows
        keys = ordering.key_codes([rows.column(name) for name in self.key])
        numbers = np.where(is_new, key_value.sequence_numbers(rows), np.iinfo(np.int64).min)
        order = ordering.argsort([*keys, numbers])
        chain = order[self._wins(rows, order, ordering.changes([codes[order] for codes in keys]))]
        starts = ordering.changes([codes[chain] for codes in keys])
        kinds = key_value.kinds(rows)[chain]
        followed = np.append(~starts[1:] & ~is_retract(kinds[1:]), False)
        halves = (kinds == RowKind.UPDATE_BEFORE) & followed & is_new[chain]
        if np.any(halves):
            chain = chain[~halves]
            starts = ordering.changes([codes[chain] for codes in keys])
        places = np.flatnonzero(is_new[chain])
        met = chain[np.maximum(places - 1, 0)]
        return change_events(
            rows.take(pa.array(met)), rows.take(pa.array(chain[places])), self.rules, known=~starts[places]
        )

    def _wins(self, rows: pa.RecordBatch, order: Indices, starts: Mask) -> Mask:
        """Which of the rows in this order are not older than any of their key before them."""
        if not self.sequence_fields:
            return np.ones(len(order), dtype=np.bool_)
        ranks = _ranks([ordering.sort_codes(rows.column(n), descending=self.descending) for n in self.sequence_fields])
        # Ranks that rise from key to key let one running maximum serve all of them.
        raised = ranks[order] + np.cumsum(starts) * (int(ranks.max()) + 1)
        wins: Mask = raised >= np.maximum.accumulate(raised)
        return wins


def _ranks(columns: Sequence[ordering.Codes]) -> Indices:
    """One number for the values of several columns that orders rows as they do."""
    order = ordering.argsort(columns)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(ordering.changes([codes[order] for codes in columns])) - 1
    return ranks


__all__ = ["EventRules", "InputChain", "change_events"]
