"""All rows of a batch for one table, as they are to be written: complete, in order, with TRUNCATE as deletes.

Runs on the driver for small batches, and in a worker for tables whose rows must not be split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.cdc.rows.shape import Kinds, Places, ShapedRows, concatenated
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidData
from lakebed.options import CHANGELOG_PRODUCER, MERGE_ENGINE
from lakebed.read.lookup import KeyLookup
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table
from lakebed.types import ordering
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import BINARIES, STRINGS, DataField, is_root
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
    found = Table(OpenedTable(context)).to_arrow(wanted).combine_chunks()
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
    return Table(OpenedTable(context)).key_lookup(list(names))


# ------------------------------------------------------------------------------------------------------------------
# Fills in values that the source did not send, from the row that the key had before: in this batch, else in the
# table.
#
# PostgreSQL leaves out large values that an update did not touch, and old rows often come with their key alone. Where
# a value comes from is worked out for all rows at once: each row points to the row that its key had before, and
# pointers are followed together until they reach a row that has the value, or leave the batch.


Find = Callable[[pa.RecordBatch], tuple[pa.Array, pa.Table]]
"""Rows of the table by key: whether there is one for each key, and those that there are."""


def with_values(shaped: ShapedRows, key: tuple[str, ...], find: Find, table: str) -> ShapedRows:
    """The rows with all values that were not sent."""
    if not shaped.unchanged:
        return shaped
    return _filled(shaped, shaped.unchanged, key, find, table, may_miss=False)


def with_old_values(shaped: ShapedRows, key: tuple[str, ...], find: Find, columns: tuple[str, ...]) -> ShapedRows:
    """The rows in which old rows that came with their key alone have the values of these columns."""
    old = is_retract(shaped.kinds)
    marks = {}
    for name in columns:
        missing = old & shaped.rows.column(name).is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            marks[name] = missing
    if not marks:
        return shaped
    # A row that really held NULL is looked up in vain; that costs time, not truth.
    own = replace(shaped, state_of=np.arange(shaped.count, dtype=np.int64))
    return replace(_filled(own, marks, key, find, "", may_miss=True), unchanged=shaped.unchanged)


def neutral_retracts(shaped: ShapedRows, fields: tuple[DataField, ...], key: tuple[str, ...]) -> ShapedRows:
    """The rows in which old rows without values have some, where the table allows no NULL.

    Only the key of a retract counts in a table that keeps the last row; nobody reads these values.
    """
    old = is_retract(shaped.kinds)
    columns = list(shaped.rows.columns)
    for place, field in enumerate(fields):
        if field.type.nullable or field.name in key or not columns[place].null_count:
            continue
        missing = old & columns[place].is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            values = pa.concat_arrays([columns[place], _neutral(field)])
            places = np.where(missing, len(missing), np.arange(len(missing)))
            columns[place] = values.take(pa.array(places))
    return replace(shaped, rows=pa.RecordBatch.from_arrays(columns, schema=shaped.rows.schema))


def _previous_rows(shaped: ShapedRows, key: tuple[str, ...]) -> Places:
    """For each row the last one before it that set its key, or the key that it had before an update; -1 without one."""
    codes, adds = key_numbers(shaped.rows, key), ~is_retract(shaped.kinds)
    count = len(codes)
    places = np.arange(count, dtype=np.int64)
    setters = np.flatnonzero(adds)
    order = setters[np.argsort(codes[setters], kind="stable")]
    sorted_codes = codes[order] * count + order
    asked = codes[shaped.state_of] * count + places
    found = np.searchsorted(sorted_codes, asked, side="left") - 1
    candidates = order[np.maximum(found, 0)] if len(order) else np.zeros(count, np.int64)
    is_same = (found >= 0) & (codes[candidates] == codes[shaped.state_of]) if len(order) else np.zeros(count, np.bool_)
    return np.where(is_same, candidates, -1)


def _filled(
    shaped: ShapedRows,
    marks: Mapping[str, npt.NDArray[np.bool_]],
    key: tuple[str, ...],
    find: Find,
    table: str,
    *,
    may_miss: bool,
) -> ShapedRows:
    previous = _previous_rows(shaped, key)
    roots = {name: _followed(mark, previous) for name, mark in marks.items()}
    asked = np.unique(np.concatenate([root.asks for root in roots.values()]))
    keys = shaped.rows.select(list(key)).take(pa.array(shaped.state_of[asked]))
    found, rows = find(keys) if len(asked) else (pa.array([], pa.bool_()), None)
    hits = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    if not may_miss and not hits.all():
        missing = {name: keys.column(name)[int(np.flatnonzero(~hits)[0])].as_py() for name in key}
        raise InvalidData(
            f"table `{table}` has no row with key {missing}, of which the source sent a part only",
            hint="sync the table anew into an empty one, or have the source send rows in full "
            "(PostgreSQL: ALTER TABLE ... REPLICA IDENTITY FULL)",
        )
    place_of = np.where(hits, np.cumsum(hits) - 1, -1)
    columns = list(shaped.rows.columns)
    for name, root in roots.items():
        place = shaped.rows.schema.get_field_index(name)
        values = columns[place]
        outside = rows.column(name).combine_chunks() if rows is not None else pa.nulls(0, values.type)
        if isinstance(outside, pa.ChunkedArray):
            outside = pa.concat_arrays(outside.chunks) if outside.num_chunks else pa.nulls(0, values.type)
        columns[place] = _values(values, outside.cast(values.type), root, asked, place_of)
    whole = pa.RecordBatch.from_arrays(columns, schema=shaped.rows.schema)
    return replace(shaped, rows=whole, unchanged={})


class _Roots:
    """Where marked values come from: a row of the batch, or the table under the key of a row."""

    def __init__(self, marked: Places, row: Places, asks: Places, ends: Places) -> None:
        self.marked = marked
        self.row = row
        """The row that has the value, for those that have one; else -1."""
        self.asks = asks
        """Distinct rows whose keys are asked of the table."""
        self.ends = ends
        """For each marked row the last row on its way."""


def _followed(mark: npt.NDArray[np.bool_], previous: Places) -> _Roots:
    """Follows pointers of marked rows to the first row that is not marked, doubling the step each time."""
    places = np.arange(len(mark), dtype=np.int64)
    is_end = ~mark | (previous < 0)
    step = np.where(is_end, places, previous)
    while True:
        further = step[step]
        if np.array_equal(further, step):
            break
        step = further
    marked = np.flatnonzero(mark)
    ends = step[marked]
    inside = ~mark[ends]
    return _Roots(marked, np.where(inside, ends, -1), np.unique(ends[~inside]), ends)


def _values(values: pa.Array, outside: pa.Array, root: _Roots, asked: Places, place_of: Places) -> pa.Array:
    """The column with the values that were found; those that were not are NULL."""
    count = len(values)
    everything = pa.concat_arrays([values, outside, pa.nulls(1, values.type)])
    absent = len(everything) - 1
    places = np.arange(count, dtype=np.int64)
    where = np.searchsorted(asked, root.ends)
    where = place_of[np.minimum(where, max(len(asked) - 1, 0))] if len(asked) else np.full(len(root.ends), -1)
    from_table = np.where(where >= 0, where + count, absent)
    places[root.marked] = np.where(root.row >= 0, root.row, from_table)
    return everything.take(pa.array(places))


def key_numbers(rows: pa.RecordBatch, key: tuple[str, ...]) -> Places:
    """A number for each key; equal keys have equal numbers."""
    numbers = np.zeros(rows.num_rows, np.int64)
    for name in key:
        _, codes = np.unique(ordering.sort_codes(rows.column(name)), return_inverse=True)
        _, numbers = np.unique(numbers * (rows.num_rows + 1) + codes, return_inverse=True)
    return numbers.astype(np.int64)


def _neutral(field: DataField) -> pa.Array:
    """One value of the type that says nothing."""
    arrow = to_arrow_type(field.type)
    if pa.types.is_struct(arrow):
        members = [_neutral(member) for member in getattr(field.type, "fields", ())]
        return pa.StructArray.from_arrays(members, fields=list(arrow))
    if is_root(field.type, STRINGS):
        return pa.array([""], arrow)
    if is_root(field.type, BINARIES):
        return pa.array([b""], arrow)
    if pa.types.is_nested(arrow):
        return pa.array([[]], arrow)
    return pa.array([False]) if pa.types.is_boolean(arrow) else pa.array([0], arrow)


__all__ = [
    "ROW_KIND",
    "Find",
    "Kinds",
    "Piece",
    "assembled",
    "completed",
    "key_numbers",
    "needs_old_values",
    "neutral_retracts",
    "with_kinds",
    "with_old_values",
    "with_values",
    "writable",
]
