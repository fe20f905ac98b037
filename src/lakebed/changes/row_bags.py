"""Which rows one bag of rows has more often than another: the difference of states whose rows have no key.

Files that were replaced hold most rows of those in whose place they came. Equal rows cancel each other out, whichever
files they are in; of the rest it does not matter which of several equal rows is told. Rows are compared by their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.types import key_value
from lakebed.types.binary_row import encode_rows
from lakebed.types.binary_slots import byte_spans
from lakebed.types.logical import DataField
from lakebed.types.row_kind import is_retract

_ROWS_AT_ONCE = 1 << 20
"""Rows that are in memory at a time, about. If there are more, all are read once for each part of them."""

_MIX, _MIX_TWICE = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)


def remaining_events(
    read: Callable[[], Iterator[pa.RecordBatch]], fields: Sequence[DataField], row_count: int
) -> Iterator[pa.RecordBatch]:
    """What is left of events, `-D` and `+I`, if those of equal rows cancel each other out.

    `read` gives all events, the same each time it is called; there are about `row_count`.
    """
    parts = max(1, -(-row_count // _ROWS_AT_ONCE))
    for part in range(parts):
        held: list[pa.RecordBatch] = []
        codes: list[pa.Array] = []
        for events in read():
            columns = [events.column(field.name) for field in fields]
            rows = encode_rows(columns, [field.type for field in fields], arity_prefix=False)
            if parts > 1:
                is_mine = pa.array(_hashes(rows) % np.uint64(parts) == part)
                events, rows = events.filter(is_mine), rows.filter(is_mine)
            held.append(events)
            codes.append(rows.cast(pa.large_binary()))
        if held:
            every = pa.Table.from_batches(held).combine_chunks()
            left = _left_over(pa.chunked_array(codes), is_retract(key_value.kinds(every)))
            yield from every.take(pa.array(left)).to_batches()


def _left_over(rows: pa.ChunkedArray, goes: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Positions of the rows that no equal one of the other side cancels out, in their order."""
    ids = np.asarray(rows.combine_chunks().dictionary_encode().indices).astype(np.int64)
    if not len(ids):
        return ids
    count = int(ids.max()) + 1
    net = np.bincount(ids[~goes], minlength=count) - np.bincount(ids[goes], minlength=count)
    # Most rows are on both sides equally often.
    places = np.flatnonzero(np.where(goes, net[ids] < 0, net[ids] > 0))
    order = places[np.argsort(ids[places], kind="stable")]
    groups = ids[order]
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)])
    rank = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    return np.sort(order[rank < np.abs(net[groups])])


def _hashes(rows: pa.Array) -> npt.NDArray[np.uint64]:
    """A number for each row, the same for equal ones. Only to cut rows into parts.

    REQUIRES: rows as `encode_rows` gives them, which are whole words of eight bytes.
    """
    data, borders = byte_spans(rows)
    ends = borders[1:] // 8
    counts = np.diff(borders) // 8
    words = data[: int(borders[-1])].view(np.uint64)
    within = np.arange(len(words)) - np.repeat(ends - counts, counts)
    factors = (np.arange(int(counts.max(initial=0)), dtype=np.uint64) * _MIX_TWICE) | np.uint64(1)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((words ^ (words >> np.uint64(31))) * factors[within])])
    found = (sums[ends] - sums[ends - counts]) * _MIX
    hashes: npt.NDArray[np.uint64] = found ^ (found >> np.uint64(29))
    return hashes


__all__ = ["remaining_events"]
