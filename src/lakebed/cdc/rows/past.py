"""Rows of tables that keep the past, from the changes of a batch: rows that are marked instead of deleted, changes.

Whoever needs what a row was before finds it among the changes in front of it, else in the lake. So all changes of a key
go through here together, in their order, in the task that writes them. Versions of rows are made in `versions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.rows.assemble import ROW_KIND, Find, key_numbers, with_old_values, with_values, writable
from lakebed.cdc.rows.keeping import CHANGES, HISTORY, MARKS, STATE
from lakebed.cdc.rows.past_columns import (
    DELETED_AT,
    IS_CURRENT,
    OP,
    POSITION,
    PastColumn,
)
from lakebed.cdc.rows.shape import Cut, ShapedRows, concatenated, filtered, unfilled, with_columns
from lakebed.cdc.rows.versions import last_versions, versions
from lakebed.definition.context import TableContext
from lakebed.options import LAKEBED_CDC_KEEPS
from lakebed.records import dataclass
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table
from lakebed.types import ordering
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.predicate import Comparison, IsNull, Op, Predicate
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text, kinds_to_text

Piece = ShapedRows | Cut


@dataclass(frozen=True)
class Past:
    """What one table of the lake keeps. Plain data, sent to tasks.

    `key` is the source's key, as the lake calls it, `names` are the columns of the past by what they tell. A table of
    changes asks the one with the newest rows, `state`, what rows were before.
    """

    form: str
    key: tuple[str, ...]
    columns: tuple[PastColumn, ...]
    state: TableContext | None = None

    @property
    def names(self) -> dict[str, str]:
        """Names of the columns of the past, by what they tell."""
        return {column.kind: column.name for column in self.columns}

    def present(self) -> Predicate | None:
        """Which rows of the table the source still has; nothing where all are."""
        if self.form == HISTORY:
            return Comparison(self.names[IS_CURRENT], Op.EQ, pa.scalar(True))
        return IsNull(self.names[DELETED_AT]) if self.form == STATE else None

    def found_in(self, context: TableContext) -> Find:
        """Rows as they are in the lake, by the source's key."""
        if self.form == HISTORY:
            return lambda keys: last_versions(context, self.key, self.names, keys)
        asked = self.state if self.form == CHANGES and self.state is not None else context
        names = [name for name in context.schema.field_names if name in asked.schema.field_names]
        return Table(OpenedTable(asked)).key_lookup(names).find


def past_assembled(context: TableContext, past: Past, pieces: Sequence[Piece]) -> pa.RecordBatch | None:
    """What is written for all chunks of a table; None if that is nothing."""
    rows: list[ShapedRows] = []
    cuts: list[tuple[int, Cut]] = []
    count = 0
    for piece in pieces:
        if isinstance(piece, Cut):
            cuts.append((count, piece))
        else:
            rows.append(piece)
            count += piece.count
    shaped = concatenated(rows) if rows else _none(context)
    find = past.found_in(context)
    if shaped.unchanged:
        shaped = with_values(shaped, past.key, find, context.name)
    if cuts:
        shaped = _cut(context, past, shaped, cuts)
    return _finished(context, past, shaped, find)


def past_completed(context: TableContext, past: Past, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    """The same for rows of some keys that were shaped elsewhere, and have all their values or none."""
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if not whole:
        return None
    kinds = np.asarray(kinds_from_text(whole[0].column(ROW_KIND), ROW_KIND))
    plain = whole[0].select(list(context.schema.field_names))
    shaped = ShapedRows(plain, kinds, {}, np.arange(plain.num_rows, dtype=np.int64))
    return _finished(context, past, shaped, past.found_in(context))


def _finished(context: TableContext, past: Past, shaped: ShapedRows, find: Find) -> pa.RecordBatch | None:
    if not shaped.count:
        return None
    if past.form == HISTORY:
        return versions(past.key, past.names, shaped, find)
    if past.form == CHANGES:
        return _changes(context, past, shaped, find)
    return _marked(context, past, shaped, find)


# --- deleted rows that stay ---------------------------------------------------------------------------------------


def _marked(context: TableContext, past: Past, shaped: ShapedRows, find: Find) -> pa.RecordBatch | None:
    """Rows in which a delete has become the row itself, with the time of the delete.

    A delete of a row that the lake never had, or has as deleted, leaves nothing.
    """
    mark, dead = past.names[DELETED_AT], is_retract(shaped.kinds)
    column = shaped.rows.column(mark)
    shaped = replace(
        shaped, rows=with_columns(shaped.rows, {mark: pc.if_else(pa.array(dead), column, pa.scalar(None, column.type))})
    )
    if dead.any():
        keep = ~dead | _is_there(past, shaped, find, dead)
        names = tuple(name for name in context.schema.field_names if name not in (*past.key, mark))
        shaped = with_old_values(shaped, past.key, find, names)
        shaped = unfilled(shaped, dead)
        kinds = shaped.kinds.copy()
        kinds[dead] = RowKind.INSERT
        shaped = filtered(replace(shaped, kinds=kinds), keep)
    return writable(context, shaped) if shaped.count else None


def _is_there(past: Past, shaped: ShapedRows, find: Find, dead: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which deletes find a row: the change of their key in front of them is none, or the lake has one that is not
    deleted."""
    codes = key_numbers(shaped.rows, past.key)
    order = np.argsort(codes, kind="stable")
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = codes[order[1:]] != codes[order[:-1]]
    there = np.zeros(len(order), np.bool_)
    there[order[1:]] = ~dead[order[:-1]]
    asked = order[is_first & dead[order]]
    if len(asked):
        found, rows = find(shaped.rows.select(list(past.key)).take(pa.array(asked)))
        hits = np.array(found.to_numpy(zero_copy_only=False), np.bool_)
        hits[hits] = rows.column(past.names[DELETED_AT]).is_null().to_numpy()
        there[asked] = hits
    return there


# --- changes as rows ----------------------------------------------------------------------------------------------


def _changes(context: TableContext, past: Past, shaped: ShapedRows, find: Find) -> pa.RecordBatch | None:
    """Rows of changes, old ones with their values; what a copy has read is no change, and only tells old values."""
    names, state = past.names, past.state
    assert state is not None
    known = tuple(
        name for name in context.schema.field_names if name in state.schema.field_names and name not in past.key
    )
    shaped = with_old_values(shaped, past.key, find, tuple(name for name in known if name not in names.values()))
    kinds = kinds_to_text(pa.array(shaped.kinds)).cast(shaped.rows.schema.field(names[OP]).type)
    shaped = replace(shaped, rows=with_columns(shaped.rows, {names[OP]: kinds}))
    shaped = unfilled(shaped, np.ones(shaped.count, np.bool_))
    shaped = filtered(shaped, shaped.rows.column(names[POSITION]).is_valid().to_numpy(zero_copy_only=False))
    return shaped.rows if shaped.count else None


# --- all rows of a table deleted ----------------------------------------------------------------------------------


def _cut(context: TableContext, past: Past, shaped: ShapedRows, cuts: Sequence[tuple[int, Cut]]) -> ShapedRows:
    """The rows with deletes of everything that is there at each cut. A new copy is no change, but ends versions."""
    parts: list[ShapedRows] = []
    start, stored = 0, None
    for place, cut in cuts:
        before = filtered(shaped, _between(shaped.count, start, place))
        parts.append(before)
        if past.form != CHANGES or not cut.is_copy:
            stored = (
                _stored(context, past) if stored is None and start == 0 and len(parts) == 1 else _none(context).rows
            )
            parts.append(_dead(past, stored, before, cut))
        start = place
    parts.append(filtered(shaped, _between(shaped.count, start, shaped.count)))
    return concatenated([part for part in parts if part.count] or [_none(context)])


def _between(count: int, start: int, end: int) -> npt.NDArray[np.bool_]:
    places = np.arange(count)
    return (places >= start) & (places < end)


def _dead(past: Past, stored: pa.RecordBatch, before: ShapedRows, cut: Cut) -> ShapedRows:
    """A delete for every key whose last row, in the lake or among the new ones, is there."""
    rows = pa.Table.from_batches([stored, before.rows]).combine_chunks().to_batches()
    whole = rows[0] if rows else stored
    alive = np.concatenate([np.ones(stored.num_rows, np.bool_), ~is_retract(before.kinds)])
    if len(alive):
        codes = ordering.key_codes([whole.column(name) for name in past.key])
        order = ordering.argsort(codes)
        is_last = np.ones(len(order), np.bool_)
        is_last[:-1] = ordering.changes([code[order] for code in codes])[1:]
        last = np.sort(order[is_last])
        whole = whole.take(pa.array(last[alive[last]]))
    count = whole.num_rows
    told = {}
    for column in past.columns:
        values = column.evaluate(cut.source, cut.facts.column(1), cut.given)
        told[column.name] = pa.concat_arrays([values.cast(whole.schema.field(column.name).type)]).take(
            pa.array(np.zeros(count, np.int64))
        )
    kinds = np.full(count, RowKind.DELETE, np.int8)
    filled = {name: np.ones(count, np.bool_) for name in cut.filled}
    return ShapedRows(with_columns(whole, told), kinds, {}, np.arange(count, dtype=np.int64), filled)


def _stored(context: TableContext, past: Past) -> pa.RecordBatch:
    """The rows that the source has, as the lake knows: of a history the keys of versions that are current."""
    asked = past.state if past.form == CHANGES and past.state is not None else context
    wanted = [name for name in context.schema.field_names if name in asked.schema.field_names]
    if past.form == HISTORY:
        wanted = list(past.key)
    condition = _undeleted(asked) if past.form == CHANGES else past.present()
    found = Table(OpenedTable(asked)).to_arrow(wanted, condition).combine_chunks()
    empty = _none(context).rows.schema
    columns = [
        _whole(found.column(field.name)).cast(field.type)
        if field.name in wanted
        else pa.nulls(found.num_rows, field.type)
        for field in empty
    ]
    return pa.RecordBatch.from_arrays(columns, schema=empty)


def _undeleted(context: TableContext) -> Predicate | None:
    """Which rows of a table with the newest rows are not deleted, if deleted ones stay in it."""
    kind, _, name = (context.options[LAKEBED_CDC_KEEPS] or "").partition(":")
    return IsNull(name) if kind == MARKS else None


# --- tools --------------------------------------------------------------------------------------------------------


def _none(context: TableContext) -> ShapedRows:
    schema = to_arrow_schema(context.schema.fields)
    plain = pa.schema([field.with_nullable(True).remove_metadata() for field in schema])
    return ShapedRows(pa.RecordBatch.from_pylist([], schema=plain), np.zeros(0, np.int8), {}, np.zeros(0, np.int64))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


__all__ = ["Past", "past_assembled", "past_completed"]
