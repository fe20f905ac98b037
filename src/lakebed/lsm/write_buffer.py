"""Collects rows of one bucket in memory, numbers them in order of arrival, and hands them over sorted and folded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.types.key_value import with_system_columns


class WriteBuffer:
    """Rows of one bucket that are not in a file yet."""

    def __init__(self, order: MergeOrder, engine: MergeEngine, max_size_bytes: int, next_sequence_number: int) -> None:
        self._order = order
        self._engine = engine
        self._max_size_bytes = max_size_bytes
        self._next_sequence_number = next_sequence_number
        self._batches: list[pa.RecordBatch] = []
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to write the rows to a file."""
        return self.size_bytes >= self._max_size_bytes

    def add(self, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Takes rows in arrival order, with their kinds."""
        numbers = np.arange(self._next_sequence_number, self._next_sequence_number + rows.num_rows, dtype=np.int64)
        self._next_sequence_number += rows.num_rows
        batch = with_system_columns(rows, pa.array(numbers), kinds)
        self._batches.append(batch)
        self.size_bytes += batch.nbytes

    def drain(self) -> pa.RecordBatch | None:
        """All rows in key order, one per key; the buffer is empty afterwards."""
        if not self._batches:
            return None
        rows = self._batches[0] if len(self._batches) == 1 else pa.concat_batches(self._batches)
        self._batches = []
        self.size_bytes = 0
        return self._engine.merge(rows, self._order.group(rows))
