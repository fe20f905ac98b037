"""All rows of a batch for one table, as they are to be written: complete, in order, with TRUNCATE as deletes.

Runs on the driver for small batches, and in a worker for tables whose rows must not be split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from lakebed.cdc.missing_values import neutral_retracts, with_old_values, with_values
from lakebed.cdc.rows import Kinds, ShapedRows, concatenated
from lakebed.options import CHANGELOG_PRODUCER, MERGE_ENGINE
from lakebed.table.context import TableContext
from lakebed.table.key_lookup import KeyLookup
from lakebed.table.table import Table
from lakebed.types import ordering
from lakebed.types.row_kind import RowKind, is_retract, kinds_from_text, kinds_to_text

ROW_KIND: Final = "_lakebed_row_kind"
"""Column of the kinds beside those of the table."""

Piece = ShapedRows | None
"""Rows of a chunk, or None for a TRUNCATE."""


def assembled(context: TableContext, pieces: Sequence[Piece]) -> pa.RecordBatch | None:
    """The rows of all chunks of a table, with their kinds in a column; None if there are none."""
    key = context.schema.primary_keys
    shaped, cuts = _joined(context, pieces)
    if shaped is None:
        shaped = ShapedRows(_no_rows(context), np.zeros(0, np.int8), {}, np.zeros(0, np.int64))
    if shaped.unchanged:
        shaped = with_values(shaped, key, _lookup(context, sorted(shaped.unchanged)).find, context.name)
    if cuts:
        shaped = _truncated(context, shaped, cuts)
    if needs_old_values(context):
        shaped = _completed(context, shaped)
    return writable(context, shaped) if shaped.count else None


def completed(context: TableContext, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows of some keys in their order, as `with_kinds` gives them, with values for their old rows."""
    rows = _whole_batch(batches)
    kinds = np.asarray(kinds_from_text(rows.column(ROW_KIND), ROW_KIND))
    plain = rows.select(list(context.schema.field_names))
    places = np.arange(plain.num_rows, dtype=np.int64)
    return writable(context, _completed(context, ShapedRows(plain, kinds, {}, places)))


def _completed(context: TableContext, shaped: ShapedRows) -> ShapedRows:
    key = context.schema.primary_keys
    names = tuple(name for name in context.schema.field_names if name not in key)
    return with_old_values(shaped, key, _lookup(context, names).find, names)


def writable(context: TableContext, shaped: ShapedRows) -> pa.RecordBatch:
    """The rows with their kinds in a column, and nothing that the table would refuse in old rows."""
    return with_kinds(neutral_retracts(shaped, context.schema.fields, context.schema.primary_keys))


def with_kinds(shaped: ShapedRows) -> pa.RecordBatch:
    """The rows with their kinds in a column."""
    return shaped.rows.append_column(ROW_KIND, kinds_to_text(pa.array(shaped.kinds)))


def _whole_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if table.num_rows else batches[0]


def needs_old_values(context: TableContext) -> bool:
    """Whether somebody looks at the values of retracts: readers of the input, or functions that take values back."""
    options = context.options
    return options[CHANGELOG_PRODUCER] == "input" or options[MERGE_ENGINE] == "aggregation"


def _joined(context: TableContext, pieces: Sequence[Piece]) -> tuple[ShapedRows | None, list[int]]:
    """All rows, and where a TRUNCATE cuts them."""
    rows: list[ShapedRows] = []
    cuts: list[int] = []
    count = 0
    for piece in pieces:
        if piece is None:
            cuts.append(count)
        else:
            rows.append(piece)
            count += piece.count
    return (concatenated(rows) if rows else None), cuts


def _truncated(context: TableContext, shaped: ShapedRows, cuts: list[int]) -> ShapedRows:
    """The rows with deletes of everything that is there at each cut."""
    key = context.schema.primary_keys
    stored = _stored(context)
    parts: list[tuple[pa.RecordBatch, Kinds]] = []
    start = 0
    for number, cut in enumerate(cuts):
        rows, kinds = shaped.rows.slice(start, cut - start), shaped.kinds[start:cut]
        parts.append((rows, kinds))
        before = stored if number == 0 else stored.slice(0, 0)
        parts += _deletes(before, rows, kinds, key)
        start = cut
    parts.append((shaped.rows.slice(start), shaped.kinds[start:]))
    table = pa.Table.from_batches([rows for rows, _ in parts]).combine_chunks()
    whole = table.to_batches()[0] if table.num_rows else shaped.rows.slice(0, 0)
    kinds = np.concatenate([kinds for _, kinds in parts])
    return ShapedRows(whole, kinds, {}, np.arange(len(kinds), dtype=np.int64))


def _deletes(
    stored: pa.RecordBatch, rows: pa.RecordBatch, kinds: Kinds, key: tuple[str, ...]
) -> list[tuple[pa.RecordBatch, Kinds]]:
    """A delete for every key whose last row, in the table or among the new ones, is there."""
    everything = pa.Table.from_batches([stored, rows]).combine_chunks().to_batches()
    if not everything:
        return []
    whole = everything[0]
    alive = np.concatenate([np.ones(stored.num_rows, np.bool_), ~is_retract(kinds)])
    codes = ordering.key_codes([whole.column(name) for name in key])
    order = ordering.argsort(codes)
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = ordering.changes([code[order] for code in codes])[1:]
    last = np.sort(order[is_last])
    dead = whole.take(pa.array(last[alive[last]]))
    return [(dead, np.full(dead.num_rows, RowKind.DELETE, np.int8))] if dead.num_rows else []


def _stored(context: TableContext) -> pa.RecordBatch:
    """What the table holds; without values that nobody will look at."""
    empty = _no_rows(context)
    names = list(context.schema.field_names)
    keys = {*context.schema.primary_keys, *context.schema.partition_keys}
    wanted = names if needs_old_values(context) else [name for name in names if name in keys]
    found = Table(context).to_arrow(wanted).combine_chunks()
    columns = [
        _whole(found.column(name)).cast(empty.schema.field(name).type)
        if name in wanted
        else pa.nulls(found.num_rows, empty.schema.field(name).type)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=empty.schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _no_rows(context: TableContext) -> pa.RecordBatch:
    schema = context.schema.arrow_schema
    return pa.RecordBatch.from_pylist(
        [], schema=pa.schema([field.with_nullable(True).remove_metadata() for field in schema])
    )


def _lookup(context: TableContext, names: Sequence[str]) -> KeyLookup:
    return Table(context).key_lookup(list(names))


__all__ = ["ROW_KIND", "Piece", "assembled", "completed", "needs_old_values", "with_kinds", "writable"]
