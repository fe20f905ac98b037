"""What every merge engine gets and gives, and how rows are grouped for it.

An engine never loops over rows. It sees a batch in key-value shape together with `Groups`: the permutation that sorts
the batch by (key, user sequence, sequence number, retract before add) and the bounds of each key's run in it. It
answers with one row per key, in key order. No files, no clock, no table: this is where correctness lives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.options import Options
from lakebed.types import key_value, ordering
from lakebed.types.logical import DataField
from lakebed.types.row_kind import is_retract

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Groups:
    """Rows of a batch gathered by key: group g is `order[starts[g]:ends[g]]`, oldest row first."""

    order: Indices
    starts: Indices
    ends: Indices

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def last(self) -> Indices:
        """Row index of each group's newest row."""
        return self.order[self.ends - 1]


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """Columns that decide what is one key and, within a key, what is newer."""

    key: tuple[str, ...]
    sequence_fields: tuple[str, ...] = ()
    descending: bool = False

    def group(self, rows: pa.RecordBatch) -> Groups:
        """Sorts and groups a batch in key-value shape."""
        keys = ordering.key_codes([rows.column(name) for name in self.key])
        sequence = key_value.sequence_numbers(rows)
        if self.sequence_fields:
            user = [ordering.sort_codes(rows.column(name), descending=self.descending) for name in self.sequence_fields]
            order = ordering.argsort([*keys, *user, sequence, *self._kind_codes(rows)])
        else:
            order = self._order_by_arrival(rows, keys, sequence)
        starts = np.flatnonzero(ordering.changes([codes[order] for codes in keys]))
        return Groups(order, starts, np.append(starts, rows.num_rows)[1:])

    def _order_by_arrival(self, rows: pa.RecordBatch, keys: Sequence[ordering.Codes], sequence: Indices) -> Indices:
        # Runs are handed over oldest first, so a stable sort by key alone is nearly always right already; only when
        # some key's sequence numbers do not ascend does the full sort have to run.
        order = ordering.argsort(keys)
        new_key = ordering.changes([codes[order] for codes in keys])
        if np.all(new_key[1:] | (np.diff(sequence[order]) > 0)):
            return order
        return ordering.argsort([*keys, sequence, *self._kind_codes(rows)])

    @staticmethod
    def _kind_codes(rows: pa.RecordBatch) -> list[ordering.Codes]:
        return [(~is_retract(key_value.kinds(rows))).astype(np.int64)]


@dataclass(frozen=True)
class MergeSetup:
    """What an engine must know of its table: all columns, the key within a partition, and the options."""

    fields: tuple[DataField, ...] = ()
    key: tuple[str, ...] = ()
    options: Options = field(default_factory=lambda: Options({}))


class MergeEngine(ABC):
    """Folds the rows of each key into one."""

    name: ClassVar[str]

    def __init__(self, setup: MergeSetup | None = None) -> None:
        self.setup = setup or MergeSetup()

    @classmethod  # noqa: B027 - most engines have nothing to object
    def check(cls, setup: MergeSetup, table: str) -> None:
        """Raises InvalidOption when the table's options make no sense with this engine."""

    def needed_columns(self, wanted: frozenset[str]) -> frozenset[str]:
        """Columns beyond key and sequence that must be read to merge the wanted ones; may include these themselves."""
        return wanted

    @abstractmethod
    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """One row per group, in key-value shape, in group order; kinds as merged (retracts are not dropped here)."""


class ChoosingEngine(MergeEngine):
    """An engine whose answer is one of the rows of each key, unchanged.

    Readers that do not mind the order of rows can drop the others in place, which is much cheaper than gathering.
    """

    @abstractmethod
    def choose(self, rows: pa.RecordBatch, groups: Groups) -> Indices:
        """The row of each group. Looks at key, sequence and kind only, so `rows` need not have other columns."""

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """The chosen rows in key order."""
        return rows.take(pa.array(self.choose(rows, groups)))
