"""Fills in values that the source did not send, from the row that the key had before: in this batch, else in the table.

PostgreSQL leaves out large values that an update did not touch, and old rows often come with their key alone. Where a
value comes from is worked out for all rows at once: each row points to the row that its key had before, and pointers
are followed together until they reach a row that has the value, or leave the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.cdc.rows import Kinds, Places, ShapedRows
from lakebed.errors import InvalidData
from lakebed.types import ordering
from lakebed.types.arrow import to_arrow_type
from lakebed.types.logical import BINARIES, STRINGS, DataField, is_root
from lakebed.types.row_kind import is_retract

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


def previous_rows(shaped: ShapedRows, key: tuple[str, ...]) -> Places:
    """For each row the last one before it that set its key, or the key that it had before an update; -1 without one."""
    codes, adds = _key_numbers(shaped.rows, key), ~is_retract(shaped.kinds)
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
    previous = previous_rows(shaped, key)
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


def _key_numbers(rows: pa.RecordBatch, key: tuple[str, ...]) -> Places:
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


__all__ = ["Find", "Kinds", "neutral_retracts", "previous_rows", "with_old_values", "with_values"]
