"""The order of arrival, corrected: among rows of one key with equal sequence values, retracts come first.

Sources that send an update as a delete and an insert do not always keep the two in order. This is for writing only: one
row per key is left in the files, so readers, of other engines too, see the outcome without knowing of the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebed.merge.base import Groups, MergeOrder
from lakebed.types import key_value, ordering
from lakebed.types.row_kind import is_retract


@dataclass(frozen=True, slots=True)
class RetractsFirst(MergeOrder):
    """By key, user sequence, retract before add, then arrival. REQUIRES: there are sequence fields."""

    @staticmethod
    def among_equals_of(order: MergeOrder) -> RetractsFirst:
        """The same order otherwise."""
        return RetractsFirst(order.key, order.sequence_fields, order.descending)

    def group(self, rows: pa.RecordBatch) -> Groups:
        """See `MergeOrder.group`."""
        keys = ordering.key_codes([rows.column(name) for name in self.key])
        user = [ordering.sort_codes(rows.column(name), descending=self.descending) for name in self.sequence_fields]
        adds = (~is_retract(key_value.kinds(rows))).astype(np.int64)
        order = ordering.argsort([*keys, *user, adds, key_value.sequence_numbers(rows)])
        starts = np.flatnonzero(ordering.changes([codes[order] for codes in keys]))
        return Groups(order, starts, np.append(starts, rows.num_rows)[1:])
