"""What every merge engine gets and gives, and how rows are grouped for it.

An engine never loops over rows. It sees a batch in key-value shape together with `Groups`: the permutation that sorts
the batch by (key, user sequence, sequence number, retract before add) and the bounds of each key's run in it. It
answers with one row per key, in key order. No files, no clock, no table: this is where correctness lives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.merge.trace import Role, Trace
from lakebed.options import Options
from lakebed.records import dataclass
from lakebed.types import key_value, ordering
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
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

    @staticmethod
    def of_sorted(order: Indices, keys: Sequence[ordering.Codes]) -> Groups:
        """Groups of rows in this order, in which their keys are these."""
        starts = np.flatnonzero(ordering.changes(keys))
        return Groups(order, starts, np.append(starts, len(order))[1:])

    def only_several(self) -> Groups:
        """Without the groups of one row."""
        sizes = self.ends - self.starts
        several = sizes > 1
        ends = np.cumsum(sizes[several])
        return Groups(self.order[np.repeat(several, sizes)], ends - sizes[several], ends)

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
        """Sorts and groups a batch in key-value shape; rows without `_SEQUENCE_NUMBER` came in this very order."""
        return self._grouped(rows, self._key_codes(rows))

    def newest(self, rows: pa.RecordBatch) -> Indices:
        """The index of each key's newest row, in key order."""
        if self.sequence_fields:
            return self.group(rows).last
        keys = self._key_codes(rows)
        slots = self._slots(rows, keys)
        return self._grouped(rows, keys).last if slots is None else slots.last_places()

    def are_newest(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows are the newest of their keys."""
        keys = self._key_codes(rows)
        if len(keys) == 1 and self._come_in_order(rows):
            slots = ordering.Slots(keys[0])
            if slots.are_worth_filling:
                return slots.are_last()
        is_newest = np.zeros(rows.num_rows, dtype=np.bool_)
        is_newest[self._grouped(rows, keys).last] = True
        return is_newest

    def newest_and_shared(self, rows: pa.RecordBatch) -> tuple[Indices, Groups]:
        """The index of each key's newest row, in key order, and the groups of the keys that have several rows."""
        keys = self._key_codes(rows)
        slots = self._slots(rows, keys)
        if slots is None:
            groups = self.group(rows) if self.sequence_fields else self._grouped(rows, keys)
            return groups.last, groups.only_several()
        newest = slots.last_places()
        is_older = np.ones(rows.num_rows, dtype=np.bool_)
        is_older[newest] = False
        shared = slots.shared_with(is_older)
        order = shared[ordering.argsort([keys[0][shared]])]
        return newest, Groups.of_sorted(order, [keys[0][order]])

    def _key_codes(self, rows: pa.RecordBatch) -> list[ordering.Codes]:
        return ordering.key_codes([rows.column(name) for name in self.key])

    def _come_in_order(self, rows: pa.RecordBatch) -> bool:
        """Whether later rows are newer ones."""
        return not self.sequence_fields and SEQUENCE_NUMBER not in rows.schema.names

    def _slots(self, rows: pa.RecordBatch, keys: Sequence[ordering.Codes]) -> ordering.Slots | None:
        """Slots for keys, where they are cheaper than sorting and the order of rows says what is newest."""
        if len(keys) > 1 or not self._come_in_order(rows):
            return None
        slots = ordering.Slots(keys[0])
        return slots if slots.are_few else None

    def _grouped(self, rows: pa.RecordBatch, keys: Sequence[ordering.Codes]) -> Groups:
        if self.sequence_fields:
            user = [ordering.sort_codes(rows.column(name), descending=self.descending) for name in self.sequence_fields]
            order = ordering.argsort([*keys, *user, *self._arrival_codes(rows)])
        else:
            order = self._order_by_arrival(rows, keys)
        return Groups.of_sorted(order, [codes[order] for codes in keys])

    def _order_by_arrival(self, rows: pa.RecordBatch, keys: Sequence[ordering.Codes]) -> Indices:
        # Runs are handed over oldest first, so a stable sort by key alone is nearly always right already; only when
        # some key's sequence numbers do not ascend does the full sort have to run.
        order = ordering.argsort(keys)
        if SEQUENCE_NUMBER not in rows.schema.names:
            return order
        new_key = ordering.changes([codes[order] for codes in keys])
        if np.all(new_key[1:] | (np.diff(key_value.sequence_numbers(rows)[order]) > 0)):
            return order
        return ordering.argsort([*keys, *self._arrival_codes(rows)])

    @staticmethod
    def _arrival_codes(rows: pa.RecordBatch) -> list[ordering.Codes]:
        if SEQUENCE_NUMBER not in rows.schema.names:
            return []
        adds = (~is_retract(key_value.kinds(rows))).astype(np.int64)
        return [key_value.sequence_numbers(rows), adds]


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

    def check_written(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> None:  # noqa: B027 - most take all
        """Raises InvalidData if rows of these kinds could be stored, but not merged with others: no read would succeed.

        Rows that the table's options drop are not among them.
        """

    def needed_columns(self, wanted: frozenset[str]) -> frozenset[str]:
        """Columns beyond key and sequence that must be read to merge the wanted ones; may include these themselves."""
        return wanted

    @property
    def passes_lone_rows(self) -> bool:
        """Whether a key's only row is always passed on as it is."""
        return False

    @abstractmethod
    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """One row per group, in key-value shape, in group order; kinds as merged (retracts are not dropped here)."""

    def trace(self, rows: pa.RecordBatch, groups: Groups) -> Trace:
        """Why `merge` gives what it gives: which part every row plays in every column outside of the key.

        An engine that does not tell has made its result of all rows.
        """
        trace = Trace(rows.num_rows, value_columns(rows, self.setup.key))
        trace.note(groups.order, Role.COUNTED)
        return trace

    def rule(self, column: str) -> str:
        """By which rule a column outside of the key gets its value, in a few words."""
        return self.name


class ChoosingEngine(MergeEngine):
    """An engine whose answer is one of the rows of each key, unchanged.

    Readers that do not mind the order of rows can drop the others in place, which is much cheaper than gathering.
    """

    @property
    def passes_lone_rows(self) -> bool:
        """See `MergeEngine.passes_lone_rows`."""
        return True

    @abstractmethod
    def chooses_newest(self, rows: pa.RecordBatch) -> bool:
        """Whether the row of every key is its newest: then there is no need to group."""

    @abstractmethod
    def choose(self, rows: pa.RecordBatch, groups: Groups) -> Indices:
        """The row of each group. Looks at key, sequence and kind only, so `rows` need not have other columns."""

    def merge(self, rows: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """The chosen rows in key order."""
        return rows.take(pa.array(self.choose(rows, groups)))

    def trace(self, rows: pa.RecordBatch, groups: Groups) -> Trace:
        """See `MergeEngine.trace`."""
        trace = Trace(rows.num_rows, value_columns(rows, self.setup.key))
        chosen = self.choose(rows, groups)
        is_gone = is_retract(key_value.kinds(rows)[chosen])
        self.note_passed_over(trace, rows, groups)
        trace.note(chosen[~is_gone], Role.VALUE)
        trace.note(chosen[is_gone], Role.REMOVES)
        return trace

    def note_passed_over(self, trace: Trace, rows: pa.RecordBatch, groups: Groups) -> None:
        """Tells of rows that `choose` passes over for another reason than their age."""


def value_columns(rows: pa.RecordBatch, key: tuple[str, ...]) -> list[str]:
    """Names of the columns that an engine folds."""
    return [name for name in rows.schema.names if name not in (SEQUENCE_NUMBER, VALUE_KIND) and name not in key]
