"""Packs events so that one row stands for one change: every column becomes an array.

    +I [v]    +U [before, after]    -D [v]

Nothing is copied: the rows stay in their order, and an array is one or two of them. A `-U` whose `+U` does not follow,
or a `+U` without its `-U`, as tables without a changelog producer have them, stay rows of one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.merge.events import Mask
from lakebed.types import key_value
from lakebed.types.equality import equal_rows
from lakebed.types.key_value import KIND_FIELD, VALUE_KIND
from lakebed.types.row_kind import RowKind


def packed_schema(columns: pa.Schema) -> pa.Schema:
    """The kind, and an array for every column."""
    return pa.schema([KIND_FIELD, *(pa.field(field.name, _array_of(field)) for field in columns)])


def packed_events(batches: Iterator[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """One row per change.

    REQUIRES: events with `_VALUE_KIND` and the key's columns, a `-U` directly in front of its `+U`. A pair may be cut
    by the end of a batch.
    """
    held: pa.RecordBatch | None = None
    for batch in batches:
        rows = batch if held is None else pa.concat_batches([held, batch])
        if not rows.num_rows:
            continue
        # Only the next batch tells whether the last row is half of a pair.
        is_open = key_value.kinds(rows)[-1] == RowKind.UPDATE_BEFORE
        held = rows.slice(rows.num_rows - 1) if is_open else None
        if rows.num_rows > is_open:
            yield _packed(rows.slice(0, rows.num_rows - int(is_open)), key)
    if held is not None:
        yield _packed(held, key)


def _packed(rows: pa.RecordBatch, key: Sequence[str]) -> pa.RecordBatch:
    is_second = _is_second(rows, key)
    first = np.flatnonzero(~is_second)
    offsets = pa.array(np.append(first, rows.num_rows).astype(np.int32))
    kinds = key_value.kinds(rows)[first].copy()
    kinds[np.isin(first + 1, np.flatnonzero(is_second))] = RowKind.UPDATE_AFTER
    columns = [pa.array(kinds)]
    values = rows.drop_columns([VALUE_KIND])
    schema = packed_schema(values.schema)
    for field, column in zip(values.schema, values.columns, strict=True):
        columns.append(pa.ListArray.from_arrays(offsets, column, type=_array_of(field)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_second(rows: pa.RecordBatch, key: Sequence[str]) -> Mask:
    """Which rows are the `+U` of the `-U` right before them, for the same key."""
    kinds = key_value.kinds(rows)
    is_second = np.zeros(rows.num_rows, dtype=np.bool_)
    is_second[1:] = (kinds[:-1] == RowKind.UPDATE_BEFORE) & (kinds[1:] == RowKind.UPDATE_AFTER)
    if np.any(is_second):
        for name in key:
            column = rows.column(name)
            is_second[1:] &= equal_rows(column.slice(0, len(column) - 1), column.slice(1))
    return is_second


def _array_of(field: pa.Field) -> pa.DataType:
    return pa.list_(pa.field("element", field.type))


__all__ = ["packed_events", "packed_schema"]
