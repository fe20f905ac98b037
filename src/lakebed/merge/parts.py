"""Merging of several batches, each sorted by key and with unique keys: the same stretch of keys from several runs.

Whoever writes wants all rows in key order (`merged_rows`). Whoever reads does not mind the order, and gets it cheaper
(`visible_rows`): what is not seen is dropped where it lies, and a row of the result stands where the newest row of its
key stands. Only the columns that decide, and those that have to be folded, are brought together then; all others are
filtered in the batches they came in, which costs a fraction of gathering them in key order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.merge.base import ChoosingEngine, MergeEngine, MergeOrder, value_columns
from lakebed.merge.folding import FoldingEngine, segments_of
from lakebed.merge.segments import NO_ROW, Mask
from lakebed.records import dataclass
from lakebed.types import key_value, ordering
from lakebed.types.key_value import SEQUENCE_NUMBER, VALUE_KIND
from lakebed.types.row_kind import is_retract

_FEW_ROWS = 256
"""So few are shown in key order: that costs next to nothing, and small tables are what people look at."""


def merged_rows(parts: Sequence[pa.RecordBatch], order: MergeOrder, engine: MergeEngine) -> pa.RecordBatch:
    """One row per key in key order, in key-value shape.

    REQUIRES: parts in key-value shape, oldest first, each with ascending, unique keys.
    """
    if len(parts) == 1 and engine.passes_lone_rows:
        return parts[0]
    rows = pa.concat_batches(parts)
    deciding = rows.select(_deciding_columns(parts, order))
    if isinstance(engine, ChoosingEngine) and engine.chooses_newest(deciding):
        return rows.take(pa.array(order.newest(deciding)))
    return engine.merge(rows, order.group(deciding))


def visible_rows(
    parts: Sequence[pa.RecordBatch], order: MergeOrder, engine: MergeEngine, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """What a reader sees of these rows: the merged rows that are no retracts, with the columns asked for.

    REQUIRES: parts in key-value shape, oldest first, each with unique keys. Without `_SEQUENCE_NUMBER` every row is
    newer than those of the parts before.
    """
    if len(parts) == 1:
        retracts = is_retract(key_value.kinds(parts[0]))
        yield from _filtered(parts, columns, _Outcome(~retracts))
        return
    names = _deciding_columns(parts, order)
    deciding = pa.concat_batches([part.select(names) for part in parts])
    if isinstance(engine, FoldingEngine):
        outcome = _fold(parts, deciding, order, engine)
    elif isinstance(engine, ChoosingEngine):
        outcome = _choose(deciding, order, engine)
    else:
        outcome = None
    if outcome is not None:
        seen = _filtered(parts, columns, outcome)
        yield from seen if deciding.num_rows > _FEW_ROWS else _in_key_order(seen, deciding, outcome, order)
        return
    rows = pa.concat_batches(parts)
    yield from visible_rows([engine.merge(rows, order.group(rows))], order, engine, columns)


def _deciding_columns(parts: Sequence[pa.RecordBatch], order: MergeOrder) -> list[str]:
    """Columns by which rows are told apart and ordered; sequence numbers only if the order of the parts says less."""
    names = [VALUE_KIND, *dict.fromkeys((*order.key, *order.sequence_fields))]
    if SEQUENCE_NUMBER not in parts[0].schema.names:
        return names
    numbers = [key_value.sequence_numbers(part) for part in parts]
    if not order.sequence_fields and all(int(old.max()) < int(new.min()) for old, new in pairwise(numbers)):
        return names
    return [SEQUENCE_NUMBER, *names]


@dataclass(frozen=True)
class _Outcome:
    """Which rows are seen, and columns of theirs that have other values than the row: those of its segment."""

    is_seen: Mask
    folded: Mapping[str, pa.Array] = field(default_factory=dict)
    segment_of: npt.NDArray[np.int32] | None = None
    """The segment whose newest row this is, or NO_ROW."""


def _choose(deciding: pa.RecordBatch, order: MergeOrder, engine: ChoosingEngine) -> _Outcome:
    if engine.chooses_newest(deciding):
        is_seen = order.are_newest(deciding)
    else:
        is_seen = np.zeros(deciding.num_rows, dtype=np.bool_)
        is_seen[engine.choose(deciding, order.group(deciding))] = True
    is_seen &= ~is_retract(key_value.kinds(deciding))
    return _Outcome(is_seen)


def _fold(
    parts: Sequence[pa.RecordBatch], deciding: pa.RecordBatch, order: MergeOrder, engine: FoldingEngine
) -> _Outcome:
    retracts = is_retract(key_value.kinds(deciding))
    names = engine.names_to_fold(parts)
    if not names and not np.any(retracts):
        return _Outcome(order.are_newest(deciding))
    newest, shared = order.newest_and_shared(deciding)
    is_seen = np.zeros(deciding.num_rows, dtype=np.bool_)
    is_seen[newest] = True
    is_seen &= ~retracts
    if not len(shared):
        return _Outcome(is_seen)
    segments = segments_of(deciding, shared)
    if segments.has_retracts:
        names = value_columns(parts[0], engine.setup.key)
    folded = engine.fold(_together(parts, names, deciding), segments)
    # The folded row stands in for the newest one, also if that is a retract.
    is_seen[shared.last] = ~folded.is_removed
    segment_of = np.full(deciding.num_rows, NO_ROW, dtype=np.int32)
    segment_of[shared.last] = np.arange(len(segments), dtype=np.int32)
    return _Outcome(is_seen, folded.columns, segment_of)


def _together(parts: Sequence[pa.RecordBatch], names: Sequence[str], deciding: pa.RecordBatch) -> pa.RecordBatch:
    columns = {name: pa.concat_arrays([part.column(name) for part in parts]) for name in names}
    return pa.RecordBatch.from_pydict({VALUE_KIND: deciding.column(VALUE_KIND), **columns})


def _filtered(parts: Sequence[pa.RecordBatch], columns: Sequence[str], outcome: _Outcome) -> Iterator[pa.RecordBatch]:
    start = 0
    for part in parts:
        is_seen = outcome.is_seen[start : start + part.num_rows]
        count = int(np.count_nonzero(is_seen))
        if count:
            rows = part.select(columns)
            if count < part.num_rows:
                # Quicker than a filter where much is dropped, and never slower.
                rows = rows.take(pa.array(np.flatnonzero(is_seen).astype(np.uint32)))
            if outcome.segment_of is not None:
                rows = _replaced(rows, outcome.segment_of[start : start + part.num_rows][is_seen], outcome.folded)
            yield rows
        start += part.num_rows


def _in_key_order(
    seen: Iterator[pa.RecordBatch], deciding: pa.RecordBatch, outcome: _Outcome, order: MergeOrder
) -> Iterator[pa.RecordBatch]:
    batches = list(seen)
    if batches:
        keys = deciding.select(order.key).filter(pa.array(outcome.is_seen)).columns
        yield pa.concat_batches(batches).take(pa.array(ordering.argsort(ordering.key_codes(keys))))


def _replaced(
    rows: pa.RecordBatch, segment_of: npt.NDArray[np.int32], folded: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    is_folded = segment_of != NO_ROW
    if not np.any(is_folded):
        return rows
    mask, segments = pa.array(is_folded), pa.array(segment_of[is_folded])
    columns = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        if name in folded:
            column = _with_values(column, is_folded, mask, folded[name].take(segments))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _with_values(column: pa.Array, is_replaced: Mask, mask: pa.Array, values: pa.Array) -> pa.Array:
    if len(values) == len(column):
        return values
    if not pa.types.is_nested(column.type):
        return pc.replace_with_mask(column, mask, values)
    sources = np.arange(len(column), dtype=np.int64)
    sources[is_replaced] = len(column) + np.arange(len(values))
    return pa.concat_arrays([column, values]).take(pa.array(sources))
