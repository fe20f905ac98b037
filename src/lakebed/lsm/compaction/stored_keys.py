"""Which of many keys a bucket's older runs hold already: a join of two sorted streams, never a search row by row.

Questions come in ascending key order, as a merge yields its rows. Each older run is read along with them once, a batch
of keys at a time, so memory does not grow with the run and rows behind the last question are not read at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.types import ordering

Mask = npt.NDArray[np.bool_]
_Key = tuple[tuple[bool, object], ...]


class StoredKeys:
    """The keys of some sorted runs, each a stream of batches that hold the key columns among others."""

    def __init__(self, runs: Sequence[Iterator[pa.RecordBatch]], key: Sequence[str]) -> None:
        self._runs = [_KeyStream(run, key) for run in runs]
        self._key = key

    def contain(self, rows: pa.RecordBatch) -> Mask:
        """For each row whether a run holds its key.

        REQUIRES: rows come in ascending key order, and after those asked about before.
        """
        found = np.zeros(rows.num_rows, dtype=np.bool_)
        if rows.num_rows:
            columns = [rows.column(name) for name in self._key]
            for run in self._runs:
                run.mark(columns, found)
        return found


class _KeyStream:
    """One run, read along with the questions."""

    def __init__(self, batches: Iterator[pa.RecordBatch], key: Sequence[str]) -> None:
        self._batches = batches
        self._key = key
        self._held: list[pa.Array] | None = None
        self._last: _Key = ()

    def mark(self, asked: Sequence[pa.Array], found: Mask) -> None:
        """Sets `found` where the run holds the key asked for."""
        start, end = 0, len(asked[0])
        while start < end and self._fill():
            assert self._held is not None
            stop = ordering.count_not_above(asked, self._last)
            if stop > start:
                part = [column.slice(start, stop - start) for column in asked]
                found[start:stop] |= _are_in(part, self._held)
                start = stop
            if start < end:
                self._held = None  # all further questions are about later keys

    def _fill(self) -> bool:
        while self._held is None:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if batch.num_rows:
                self._held = [batch.column(name) for name in self._key]
                self._last = ordering.sort_key(self._held, batch.num_rows - 1)
        return True


def _are_in(asked: Sequence[pa.Array], held: Sequence[pa.Array]) -> Mask:
    """For each asked key whether it is among those held."""
    count = len(asked[0])
    codes = ordering.key_codes([pa.concat_arrays([mine, theirs]) for mine, theirs in zip(asked, held, strict=True)])
    order = ordering.argsort(codes)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(ordering.changes([column[order] for column in codes])) - 1
    is_held = np.zeros(len(order), dtype=np.bool_)
    is_held[numbers[count:]] = True
    return is_held[numbers[:count]]


__all__ = ["StoredKeys"]
