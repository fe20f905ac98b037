"""The engine that updates rows column by column: what a record leaves null keeps its value.

Without sequence groups a column has the newest value that is not null. A *sequence group* protects columns by ordering
columns of their own: a record changes the group's columns, nulls included, only if its ordering values are not smaller
than the stored ones. Several streams can so fill one wide row, each in its own order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, InvalidOption, did_you_mean
from lakebed.merge.aggregates import Aggregate
from lakebed.merge.aggregates.configured import DEFAULT_FUNCTION, aggregate_for, function_of
from lakebed.merge.aggregates.traced import trace_parts
from lakebed.merge.base import MergeSetup, value_columns
from lakebed.merge.folding import Folded, FoldingEngine
from lakebed.merge.segments import NO_ROW, Indices, Mask, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.options import (
    FIELD_SEQUENCE_GROUP,
    FIELDS_DEFAULT_AGGREGATE_FUNCTION,
    IGNORE_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
)
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.key_value import VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    """Columns that are updated together, and the columns whose values decide whether they are."""

    ordering: tuple[str, ...]
    protected: tuple[str, ...]
    removes_record: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the group."""
        return (*self.ordering, *self.protected)


class PartialUpdate(FoldingEngine):
    """Last non-null value of each column, group by group where there are sequence groups."""

    name = "partial-update"

    @cached_property
    def groups(self) -> tuple[SequenceGroup, ...]:
        """The table's sequence groups."""
        removing = set(self.setup.options[PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP] or ())
        return tuple(
            SequenceGroup(tuple(names), tuple(protected), bool(removing & set(names)))
            for names, protected in self.setup.options.fields_with(FIELD_SEQUENCE_GROUP).items()
        )

    @cached_property
    def newest_columns(self) -> frozenset[str]:
        """All but those that a sequence group orders in its own way."""
        return frozenset(field.name for field in self.setup.fields if field.name not in self._group_of)

    @cached_property
    def _group_of(self) -> Mapping[str, SequenceGroup]:
        return {name: group for group in self.groups for name in group.columns}

    @cached_property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """Functions of protected columns; others are overwritten."""
        protected = {name for group in self.groups for name in group.protected}
        functions = {}
        for field in self.setup.fields:
            name = function_of(field.name, self.setup.options, default=None)
            if field.name in protected and name is not None:
                functions[field.name] = aggregate_for(field, name, self.setup.options)
        return functions

    def needed_columns(self, wanted: frozenset[str]) -> frozenset[str]:
        """A protected column can not be merged without the columns that order it."""
        needed = set(wanted)
        for group in self.groups:
            # A record that may remove the whole row is told by its ordering columns, whatever was asked for.
            if group.removes_record or wanted & set(group.columns):
                needed |= set(group.ordering)
        return frozenset(needed)

    def check_written(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> None:
        """See `MergeEngine.check_written`: something must say what a retract means."""
        retracts = is_retract(kinds)
        if not np.any(retracts):
            return
        if not self.groups:
            self._check_retracts()
        for name, aggregate in self.aggregates.items():
            # A record without any value to order it by leaves the columns of its group alone.
            ordered = np.zeros(rows.num_rows, dtype=np.bool_)
            for column in self._group_of[name].ordering:
                ordered |= np.asarray(rows.column(column).is_valid())
            aggregate.check_retracted(rows.column(name).filter(pa.array(retracts & ordered)))

    def rule(self, column: str) -> str:
        """See `MergeEngine.rule`."""
        group = self._group_of.get(column)
        if group is None:
            return "newest value that is not null"
        function = self.aggregates.get(column)
        said = f"sequence group {', '.join(group.ordering)}"
        return said if function is None else f"{function.name} in {said}"

    # --- folding -------------------------------------------------------------------------------------------------

    def fold(self, rows: pa.RecordBatch, segments: Segments, trace: Trace | None = None) -> Folded:
        """See `FoldingEngine.fold`."""
        if self.groups:
            return self._fold_groups(rows, segments, trace)
        participates = ~segments.retracts
        is_removed = removes = np.zeros(len(segments), dtype=np.bool_)
        if segments.has_retracts:
            self._check_retracts()
            is_delete = np.asarray(rows.column(VALUE_KIND))[segments.order] == RowKind.DELETE
            if trace is not None:
                trace.note(segments.order[segments.retracts], Role.IGNORED)
            if self.setup.options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]:
                removed_at = segments.last(is_delete)
                is_after = np.arange(len(participates)) > removed_at[segments.segment_of]
                participates &= is_after
                if trace is not None:
                    trace.note(segments.order[~is_after], Role.FORGOTTEN)
                    trace.note(segments.order[removed_at[removed_at != NO_ROW]], Role.REMOVES)
            is_removed = ~segments.any(participates)
            removes = segments.any(is_delete)
        columns = {}
        for name in value_columns(rows, self.setup.key):
            column = rows.column(name)
            last = segments.last(participates & segments.valid(column))
            if trace is not None:
                _trace_newest(trace, name, segments, participates & ~segments.valid(column), last)
            columns[name] = segments.pick(column, np.where(is_removed, segments.ends - 1, last))
        return Folded(columns, is_removed, removes)

    def _check_retracts(self) -> None:
        options = self.setup.options
        if not options[IGNORE_DELETE] and not options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]:
            raise InvalidData(
                "a partial-update table got a -U or -D row, and nothing says what that means for it",
                hint="set `ignore-delete` to drop such rows, `partial-update.remove-record-on-delete` to let -D remove "
                "the row, or sequence groups to take back columns",
            )

    def _fold_groups(self, rows: pa.RecordBatch, segments: Segments, trace: Trace | None) -> Folded:
        counts = np.ones(len(segments.order), dtype=np.bool_)
        if self.setup.options[IGNORE_DELETE]:
            counts = ~segments.retracts
        orders = self._orders(rows, segments, counts)
        alive, removal = self._after_removal(rows, segments, orders)
        if not np.all(alive):
            counts &= alive
            orders = self._orders(rows, segments, counts)
        if trace is not None:
            trace.note(segments.order[segments.retracts], Role.IGNORED)
            trace.note(segments.order[~alive], Role.FORGOTTEN)
            last_removal = segments.last(~alive)
            trace.note(segments.order[last_removal[last_removal != NO_ROW]], Role.REMOVES)
        # A key that no add has reached, or none since its removal, is not there.
        is_removed = ~segments.any(counts & ~segments.retracts)
        # What removed it must be told as it was: merged with older rows later, it has to remove them too.
        shows_removal = is_removed & (removal != NO_ROW)
        remover = segments.order[removal]
        last_rows = segments.order[segments.ends - 1]
        only_retracts = is_removed & (removal == NO_ROW)
        vain = segments.order[is_removed[segments.segment_of] & counts]
        if np.any(only_retracts):
            # Folded as if they were added, they give one retract that takes back what all of them do.
            segments = replace(segments, retracts=segments.retracts & ~only_retracts[segments.segment_of])
        primed = _Primed.of(segments, counts) if self.sees_everything else None
        if primed is not None:
            segments, counts = primed.segments, primed.counts
            orders = self._orders(rows, segments, counts)
        adds = counts & ~segments.retracts
        columns = {}
        for name in value_columns(rows, self.setup.key):
            column = rows.column(name)
            group = self._group_of.get(name)
            if group is None:
                newest = segments.last(adds & segments.valid(column))
                folded = segments.pick(column, newest)
                if trace is not None:
                    trace.note(segments.order[adds], Role.OLDER, name)
                    _trace_newest(trace, name, segments, adds & ~segments.valid(column), newest)
            else:
                folded = self._fold_protected(name, column, segments, orders[group], counts, primed, trace)
            if np.any(shows_removal):
                folded = pc.if_else(pa.array(shows_removal), column.take(pa.array(remover)), folded)
            columns[name] = folded
        if trace is not None:
            # Retracts of what is not there were folded as if they were added.
            trace.note(vain, Role.TAKES_BACK)
        if any(group.removes_record for group in self.groups):
            removes = shows_removal
        else:
            removes = np.asarray(rows.column(VALUE_KIND))[last_rows] == RowKind.DELETE
        return Folded(columns, is_removed, removes)

    def _orders(self, rows: pa.RecordBatch, segments: Segments, counts: Mask) -> dict[SequenceGroup, _GroupOrder]:
        """The order of each group whose columns were read."""
        read = [group for group in self.groups if set(group.ordering) <= set(rows.schema.names)]
        return {group: _GroupOrder.of(group, rows, segments, counts) for group in read}

    def _fold_protected(
        self,
        name: str,
        column: pa.Array,
        segments: Segments,
        order: _GroupOrder,
        counts: Mask,
        primed: _Primed | None,
        trace: Trace | None,
    ) -> pa.Array:
        considered = counts & ~order.is_empty
        aggregate = self.aggregates.get(name)
        if trace is not None:
            trace.note(segments.order[counts], Role.OLDER, name)
            trace.note(segments.order[counts & order.is_empty], Role.NO_SEQUENCE, name)
            trace.note(segments.order[order.is_late], Role.LATE, name)
        if aggregate is None:
            winner = segments.greatest(order.codes, considered)
            # What no record speaks of stays as the first one primed it.
            silent = np.full(len(segments), NO_ROW) if primed is None else primed.positions
            if trace is not None:
                trace.note(segments.order[silent[(silent != NO_ROW) & (winner == NO_ROW)]], Role.VALUE, name)
                trace.note(segments.order[winner[winner != NO_ROW]], Role.VALUE, name)
            if name in order.group.protected:
                # The newest record took the columns back: the ordering columns move on, the others are cleared.
                taken_back = (winner != NO_ROW) & segments.retracts[winner]
                if trace is not None:
                    trace.note(segments.order[winner[taken_back]], Role.TAKES_BACK, name)
                silent = np.where(taken_back, NO_ROW, silent)
                winner = np.where(taken_back, NO_ROW, winner)
            return segments.pick(column, np.where(winner == NO_ROW, silent, winner))
        if primed is not None:
            considered = considered | primed.is_primer
        kept, remaining = segments.only(considered)
        if not len(kept):
            return pa.nulls(len(segments), column.type)
        is_late = order.is_late[considered] & ~kept.retracts

        def reduced(values: pa.Array) -> pa.Array:
            if aggregate.keeps_arrival_order:
                return aggregate.reduce(values, kept)
            return _reduce_with_late_adds(aggregate, values, kept, is_late)

        if trace is not None:
            trace_parts(trace, aggregate, column, kept, reduced)
        return segments.spread(reduced(column), remaining)

    def _after_removal(
        self, rows: pa.RecordBatch, segments: Segments, orders: Mapping[SequenceGroup, _GroupOrder]
    ) -> tuple[Mask, Indices]:
        """Positions after the last -D that removed its whole row: what came before is forgotten. And such a -D per key.

        Of several it is the one with the greatest place in its group: it must also remove what it meets later.
        """
        alive = np.ones(len(segments.order), dtype=np.bool_)
        remover = np.full(len(segments), NO_ROW, dtype=np.int64)
        removing = [order for group, order in orders.items() if group.removes_record]
        if not removing or not segments.has_retracts:
            return alive, remover
        is_delete = np.asarray(rows.column(VALUE_KIND))[segments.order] == RowKind.DELETE
        while True:
            # A removal resets what later records are compared with, so each round finds every key's next one.
            removes = np.zeros(len(alive), dtype=np.bool_)
            for order in removing:
                stored = segments.running_greatest(np.where(alive & ~order.is_empty, order.codes, 0))
                removes |= alive & is_delete & ~order.is_empty & (order.codes >= stored)
            first = segments.first(removes)
            if np.all(first == NO_ROW):
                return alive, remover
            # Places in several groups do not compare: the later removal counts then.
            codes = removing[0].codes if len(removing) == 1 else np.arange(len(alive), dtype=np.int64)
            is_greater = (first != NO_ROW) & ((remover == NO_ROW) | (codes[first] >= codes[remover]))
            remover = np.where(is_greater, first, remover)
            alive &= np.arange(len(alive)) > first[segments.segment_of]

    # --- checking ------------------------------------------------------------------------------------------------

    @classmethod
    def check(cls, setup: MergeSetup, table: str) -> None:
        """Sequence groups must name columns that exist, each once; delete options must not contradict each other."""
        engine = cls(setup)
        options = setup.options
        names = [field.name for field in setup.fields]
        _check_groups(engine, setup, table, names)
        removing = options[PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP] or ()
        on_delete = options[PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE]
        if options[IGNORE_DELETE] and (on_delete or removing):
            raise InvalidOption(
                f"table `{table}`: `ignore-delete` drops the rows that the partial-update remove options act on",
                hint="set either `ignore-delete` or a remove option",
            )
        if on_delete and engine.groups:
            raise InvalidOption(
                f"table `{table}`: `partial-update.remove-record-on-delete` does not go with sequence groups",
                hint="name the group's column in `partial-update.remove-record-on-sequence-group` instead",
            )
        orderings = {name for group in engine.groups for name in group.ordering}
        for name in removing:
            if name not in orderings:
                raise InvalidOption(
                    f"table `{table}`: `partial-update.remove-record-on-sequence-group` names `{name}`, "
                    "which orders no sequence group",
                    hint=did_you_mean(name, orderings),
                )
        for field in setup.fields:
            function = function_of(field.name, options, default=None)
            if function is None or field.name in setup.key:
                continue
            aggregate_for(field, function, options)
            if function != DEFAULT_FUNCTION:
                _check_protected(engine, field.name, function, table)


def _check_protected(engine: PartialUpdate, column: str, function: str, table: str) -> None:
    """Refuses a function that has nothing to order its column by: Paimon could neither read nor write the table."""
    is_own = function_of(column, engine.setup.options, default=None, own_only=True) is not None
    if is_own and not any(column in group.protected for group in engine.groups):
        raise InvalidOption(
            f"table `{table}`: column `{column}` has aggregate function `{function}` but no sequence group",
            hint="protect the column with a sequence group, or use the merge engine `aggregation`",
        )
    if not any(column in group.columns for group in engine.groups):
        raise InvalidOption(
            f"table `{table}`: `{FIELDS_DEFAULT_AGGREGATE_FUNCTION.key}` is `{function}`, but column `{column}` is in "
            "no sequence group",
            hint=f"set `fields.{column}.aggregate-function` to `{DEFAULT_FUNCTION}`, protect it with a sequence "
            "group, or name the function for each column that is to have it instead",
        )


def _check_groups(engine: PartialUpdate, setup: MergeSetup, table: str, names: list[str]) -> None:
    seen: set[str] = set()
    for group in engine.groups:
        for name in group.columns:
            if name not in names:
                raise InvalidOption(
                    f"table `{table}`: a sequence group names column `{name}`, which does not exist",
                    hint=did_you_mean(name, names),
                )
            if name in setup.key:
                raise InvalidOption(
                    f"table `{table}`: primary-key column `{name}` is in a sequence group",
                    hint="leave key columns out of sequence groups: they never change",
                )
            if name in seen:
                raise InvalidOption(
                    f"table `{table}`: column `{name}` is in two sequence groups", hint="name each column in one group"
                )
            seen.add(name)


def _trace_newest(trace: Trace, name: str, segments: Segments, is_null: Mask, newest: Indices) -> None:
    """Tells of a column that has the newest value: which it is, and which nulls did not overwrite it."""
    trace.note(segments.order[is_null], Role.NO_VALUE, name)
    trace.note(segments.order[newest[newest != NO_ROW]], Role.VALUE, name)


@dataclass(frozen=True)
class _GroupOrder:
    """Where the records of each key stand in the order of one sequence group."""

    group: SequenceGroup
    codes: Indices
    """Grows with the ordering values; from 0."""
    is_empty: Mask
    """Records whose ordering values are all null: they do not speak of this group."""
    is_late: Mask
    """Records below what was stored when they came."""

    @staticmethod
    def of(group: SequenceGroup, rows: pa.RecordBatch, segments: Segments, counts: Mask) -> _GroupOrder:
        columns = [rows.column(name) for name in group.ordering]
        sorted_codes = [ordering.sort_codes(column)[segments.order] for column in columns]
        order = ordering.argsort(sorted_codes)
        codes = np.empty(len(order), dtype=np.int64)
        codes[order] = np.cumsum(ordering.changes([column[order] for column in sorted_codes])) - 1
        is_empty = ~np.logical_or.reduce([segments.valid(column) for column in columns])
        considered = counts & ~is_empty
        is_late = considered & (codes < segments.running_greatest(np.where(considered, codes, 0)))
        return _GroupOrder(group, codes, is_empty, is_late)


@dataclass(frozen=True)
class _Primed:
    """Segments in which keys whose first record takes away begin with an add of the same values.

    Such a record first gives the row its values and then takes back what it speaks of.
    """

    segments: Segments
    counts: Mask
    is_primer: Mask
    positions: Indices
    """Where each segment's primer stands, or NO_ROW."""

    @staticmethod
    def of(segments: Segments, counts: Mask) -> _Primed | None:
        """None if no key needs one."""
        if not segments.has_retracts:
            return None
        first = segments.first(counts)
        needs = (first != NO_ROW) & segments.retracts[first]
        if not np.any(needs):
            return None
        at = first[needs]
        order = np.insert(segments.order, at, segments.order[at])
        shift = np.cumsum(needs)
        starts, ends = segments.starts + shift - needs, segments.ends + shift
        is_primer = np.insert(np.zeros(len(counts), dtype=np.bool_), at, True)
        positions = np.full(len(segments), NO_ROW, dtype=np.int64)
        positions[needs] = np.flatnonzero(is_primer)
        made = Segments(order, starts, ends, np.insert(segments.retracts, at, False))
        return _Primed(made, np.insert(counts, at, True), is_primer, positions)


def _reduce_with_late_adds(aggregate: Aggregate, column: pa.Array, kept: Segments, is_late: Mask) -> pa.Array:
    """One value per segment. A late add goes in front of all that came before it, the latest of them first.

    What was taken back before a late add came does not take the late value back: such keys are reduced in rounds, each
    of which begins with the result of the one before.
    """
    epoch = _epochs(kept, is_late)
    if not np.any(epoch):
        return aggregate.reduce(column, kept.reordered(_ranks(is_late)))
    result = pa.nulls(len(kept), column.type)
    for number in range(int(epoch.max()) + 1):
        part, members = kept.only(epoch == number)
        rows = pa.concat_arrays([column, result])
        late = is_late[epoch == number]
        if number:
            # The result so far stands in front, as a value that was added.
            order = np.insert(part.order, part.starts, len(column) + members)
            retracts = np.insert(part.retracts, part.starts, False)
            late = np.insert(late, part.starts, False)
            shift = np.arange(len(part))
            part = Segments(order, part.starts + shift, part.ends + shift + 1, retracts)
        reduced = aggregate.reduce(rows, part.reordered(_ranks(late)))
        source = np.arange(len(kept), dtype=np.int64)
        source[members] = len(kept) + np.arange(len(members))
        result = pa.concat_arrays([result, reduced]).take(pa.array(source))
    return result


def _epochs(kept: Segments, is_late: Mask) -> Indices:
    """For each position its round: a new one begins with every late add that follows something taken back."""
    if not np.any(is_late) or not kept.has_retracts:
        return np.zeros(len(is_late), dtype=np.int64)
    positions = np.arange(len(is_late), dtype=np.int64)
    lift = kept.starts[kept.segment_of]
    last_retract = np.maximum.accumulate(np.where(kept.retracts, positions, -1))
    last_late = np.maximum.accumulate(np.where(is_late, positions, -1))
    before = np.concatenate([[-1], last_late[:-1]])
    # A late add begins a round if something was taken back since the late add before it, or since the key began.
    begins = is_late & (last_retract >= lift) & (last_retract > before)
    total = np.cumsum(begins)
    return total - (total - begins)[kept.starts][kept.segment_of]


def _ranks(is_late: Mask) -> Indices:
    """Late records go in front of all earlier ones, the latest of them first; the rest keep their order."""
    positions = np.arange(len(is_late), dtype=np.int64)
    return np.where(is_late, -positions - 1, positions)
