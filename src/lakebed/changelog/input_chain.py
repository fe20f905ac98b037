"""From rows as they came to the events of what they changed, given the rows that were there before.

The rows of a key are a chain: each one meets the one before it, the first what is stored. A row with an older sequence
than what it meets loses and leaves no trace. The old half of an update that brings its new half along says nothing that
the new half does not.

This is for keys of which the newest row is the row; rows that are folded into something else have no such chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.changelog.events import EventRules, Mask, change_events
from lakebed.types import key_value, ordering
from lakebed.types.row_kind import RowKind, is_retract

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


__all__ = ["InputChain"]
