"""Versions of rows, from their changes: when each became valid, and until when it was.

    changes of a key, in order  →  of each transaction the last one  →  deletes of what is not there left out
    →  times that never go back  →  a new row for each change, and the version that was current before, ended

Every version has a number within its key, counted from 1, which is the end of the primary key: so versions never
collide, whatever their times, and the clock of a source may stand still or go back. A version is not valid before the
one in front of it; two transactions at one moment leave a version that was valid for no time, which no moment finds.

INVARIANT: the old version is ended, and the new one begun, by rows of one commit. The current version is looked up in
the table that is written, so a batch that is repeated finds what it found the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.rows.assemble import ROW_KIND
from lakebed.cdc.rows.past_columns import IS_CURRENT, ROW_VERSION, TRANSACTION_ID, VALID_FROM, VALID_TO
from lakebed.cdc.rows.shape import ShapedRows, unfilled, with_columns
from lakebed.definition.context import TableContext
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table
from lakebed.types import ordering
from lakebed.types.row_kind import is_retract

Find = Callable[[pa.RecordBatch], tuple[pa.Array, pa.Table]]
_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


def last_versions(
    context: TableContext, key: tuple[str, ...], names: Mapping[str, str], keys: pa.RecordBatch
) -> tuple[pa.Array, pa.Table]:
    """For each source key whether there are versions, and the last one of each, in the order of the keys.

    First the numbers are looked up, which are few bytes for each version, then the one row of each key.
    """
    table, number = Table(OpenedTable(context)), names[ROW_VERSION]
    every = table.key_lookup(list(context.schema.field_names))
    if table.latest_snapshot() is None or not keys.num_rows:
        return pa.array(np.zeros(keys.num_rows, np.bool_)), every.schema.empty_table()
    known = table.key_lookup([*key, number], by=list(key)).rows(keys)
    greatest = known.group_by(list(key)).aggregate([(number, "max")]).rename_columns([*key, number])
    place = np.arange(keys.num_rows, dtype=np.int64)
    whole = pa.concat_tables(
        [
            pa.table({name: keys.column(name) for name in key}),
            greatest.select(list(key)).cast(keys.select(list(key)).schema),
        ]
    ).combine_chunks()
    codes = _codes([_array(whole.column(name)) for name in key])
    slots = np.full(int(codes.max()) + 1, -1, np.int64)
    slots[codes[keys.num_rows :]] = np.arange(greatest.num_rows)
    at = slots[codes[: len(place)]]
    hits = at >= 0
    asked = greatest.take(pa.array(at[hits]))
    return pa.array(hits), every.rows(asked)


def versions(key: tuple[str, ...], names: Mapping[str, str], shaped: ShapedRows, find: Find) -> pa.RecordBatch | None:
    """The rows to write for changes of some keys, all there are of each; None if there is nothing to write."""
    made = _Versions(key, names, shaped, find)
    return made.rows()


class _Versions:
    def __init__(self, key: tuple[str, ...], names: Mapping[str, str], shaped: ShapedRows, find: Find) -> None:
        self._names = names
        self._shaped = shaped
        self._filled = shaped.filled
        self._rows = shaped.rows
        codes = _codes([shaped.rows.column(name) for name in key])
        order = np.argsort(codes, kind="stable").astype(np.int64)
        self._at = order[_ends_of_transactions(codes[order], _transactions(shaped, names)[order])]
        """The changes that count, by key, in their order."""
        self._next = np.full(shaped.count, -1, np.int64)
        self._next[order[:-1]] = np.where(codes[order[:-1]] == codes[order[1:]], order[1:], -1)
        """For each change the next one of its key, whether it counts or not."""
        self._firsts = order[_firsts(codes[order])]
        """The first change of each key."""
        self._dead = is_retract(shaped.kinds)[self._at]
        self._group = np.cumsum(_firsts(codes[self._at])) - 1
        firsts = self._at[_firsts(self._group)]
        found, self._last = find(shaped.rows.select(list(key)).take(pa.array(firsts)))
        self._is_known = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
        self._is_open, self._number, self._moment = self._before()
        self._leave_out_needless()

    def _before(self) -> tuple[_Flags, _Numbers, _Numbers]:
        """Of each key whether it has a current version, the number of its last one, and when that began or ended."""
        count, known, names = len(self._is_known), self._is_known, self._names
        is_open, number, moment = np.zeros(count, np.bool_), np.zeros(count, np.int64), np.zeros(count, np.int64)
        if known.any():
            current = _array(self._last.column(names[IS_CURRENT]))
            ended = pc.if_else(
                current, _array(self._last.column(names[VALID_FROM])), _array(self._last.column(names[VALID_TO]))
            )
            is_open[known] = current.to_numpy(zero_copy_only=False)
            number[known] = _array(self._last.column(names[ROW_VERSION])).to_numpy(zero_copy_only=False)
            moment[known] = ended.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return is_open, number, moment

    def _leave_out_needless(self) -> None:
        """Deletes of rows that are not there."""
        first = _firsts(self._group)
        was_dead = np.zeros(len(first), np.bool_)
        was_dead[1:] = self._dead[:-1]
        was_dead[first] = ~self._is_open[self._group[first]]
        keep = ~(self._dead & was_dead)
        self._at, self._dead, self._group = self._at[keep], self._dead[keep], self._group[keep]

    def _without_later_columns(self) -> None:
        """Of columns that came later only the version has a value that was current then."""
        for name, mark in self._filled.items():
            gone = (self._next >= 0) & mark[self._next]
            self._rows = unfilled(replace(self._shaped, rows=self._rows, filled={name: mark}), gone).rows

    def _ended_without_later_columns(self, ended: pa.RecordBatch, by: _Numbers) -> pa.RecordBatch:
        """The same for versions that changes of this batch have ended, which are at those places."""
        columns = {}
        for name, mark in self._filled.items():
            column = ended.column(name)
            columns[name] = pc.if_else(pa.array(mark[by]), pa.scalar(None, column.type), column)
        return with_columns(ended, columns)

    def rows(self) -> pa.RecordBatch | None:
        """New versions, and those that were current and are not any more."""
        if not len(self._at):
            return None
        self._without_later_columns()
        times, first = self._times(), _firsts(self._group)
        is_last = np.ones(len(first), np.bool_)
        is_last[:-1] = first[1:]
        until = np.zeros(len(times), np.int64)
        until[:-1] = times[1:]
        adds = np.cumsum(~self._dead)
        starts = np.flatnonzero(first)
        before: _Numbers = (adds - ~self._dead)[starts][np.cumsum(first) - 1]
        number = self._number[self._group] + adds - before
        new = ~self._dead
        begun = self._stamped(
            self._rows.take(pa.array(self._at[new])),
            {
                VALID_FROM: pa.array(times[new]),
                VALID_TO: pa.array(until[new], mask=is_last[new]),
                IS_CURRENT: pa.array(is_last[new]),
                ROW_VERSION: pa.array(number[new]),
            },
        )
        groups = self._group[starts]
        is_ended = self._is_open[groups]
        place = np.cumsum(self._is_known) - 1
        before_rows = self._last.take(pa.array(place[groups[is_ended]])).combine_chunks().to_batches()
        kinds = ["+I"] * begun.num_rows
        parts = [begun]
        if before_rows:
            ended = self._conformed(before_rows[0])
            ended = self._ended_without_later_columns(ended, self._firsts[groups[is_ended]])
            flags = pa.array(np.zeros(ended.num_rows, np.bool_))
            ended = self._stamped(ended, {VALID_TO: pa.array(times[starts][is_ended]), IS_CURRENT: flags})
            parts.append(ended)
        whole = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
        kind = pa.array(["+I", "+U"]).take(
            pa.array(np.repeat(np.array([0, 1]), [len(kinds), whole.num_rows - len(kinds)]))
        )
        return whole.append_column(ROW_KIND, kind)

    def _times(self) -> _Numbers:
        """When each change counts from: never before the change in front of it, or what the table has of its key."""
        told = _array(self._rows.column(self._names[VALID_FROM])).cast(pa.int64()).to_numpy(zero_copy_only=False)
        given = np.maximum(told[self._at], self._moment[self._group])
        distinct, ranks = np.unique(given, return_inverse=True)
        # Ranks of later keys are above all those of earlier ones, so that one running maximum does for all of them.
        above = self._group * len(distinct)
        times: _Numbers = distinct[np.maximum.accumulate(ranks + above) - above]
        return times

    def _stamped(self, rows: pa.RecordBatch, told: Mapping[str, pa.Array]) -> pa.RecordBatch:
        by_name = {self._names[kind]: values for kind, values in told.items()}
        columns = [
            by_name[field.name].cast(field.type) if field.name in by_name else rows.column(place)
            for place, field in enumerate(self._rows.schema)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._rows.schema)

    def _conformed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns = [rows.column(field.name).cast(field.type) for field in self._rows.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._rows.schema)


def _transactions(shaped: ShapedRows, names: Mapping[str, str]) -> _Numbers:
    """A number for each transaction; -1 where the source tells none."""
    encoded = pc.dictionary_encode(shaped.rows.column(names[TRANSACTION_ID]))
    found: _Numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _ends_of_transactions(codes: _Numbers, transactions: _Numbers) -> _Flags:
    """Which changes no other one of the same key and transaction follows: of these nobody has seen anything."""
    ends = np.ones(len(codes), np.bool_)
    same = (codes[1:] == codes[:-1]) & (transactions[1:] == transactions[:-1]) & (transactions[:-1] >= 0)
    ends[:-1] = ~same
    return ends


def _firsts(groups: _Numbers) -> _Flags:
    """Where a new group begins."""
    first = np.ones(len(groups), np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    return first


def _codes(columns: list[pa.Array]) -> _Numbers:
    """A number for each key; equal keys have equal numbers."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, codes = np.unique(ordering.sort_codes(column), return_inverse=True)
        _, numbers = np.unique(numbers * (len(numbers) + 1) + codes, return_inverse=True)
    return numbers.astype(np.int64)


def _array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


__all__ = ["last_versions", "versions"]
