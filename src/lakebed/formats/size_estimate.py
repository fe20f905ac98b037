"""How large buffered rows will be on disk, for writers that must know when a file has reached its target size.

Columnar writers hold rows back until a row group or stripe is full, so the stream's position says little. A sample of
the first rows, written to memory once, gives a ratio of file bytes to Arrow bytes that is good enough for rolling.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

SAMPLE_ROWS = 32 * 1024
"""Rows of a sample: a few milliseconds of work, once per file."""

SAMPLE_FROM_BYTES = 1024 * 1024
"""Below this, the Arrow size itself is estimate enough and small files are spared the sample."""


class SizeEstimate:
    """File bytes per Arrow byte of one file. `write_sample` returns the size of a file made of the given rows."""

    def __init__(self, write_sample: Callable[[pa.Table], int]) -> None:
        self._write_sample = write_sample
        self._sample: pa.Table | None = None
        self._arrow_bytes = 0
        self._flushed_arrow_bytes = 0
        self._ratio: float | None = None

    def add(self, table: pa.Table) -> None:
        """Counts rows that go into the file."""
        self._arrow_bytes += table.nbytes
        if self._ratio is None and table.num_rows > (self._sample.num_rows if self._sample is not None else 0):
            self._sample = table.slice(0, SAMPLE_ROWS)

    def observe(self, file_bytes: int, arrow_bytes: int) -> None:
        """The file has grown to `file_bytes` by `arrow_bytes` more of the rows added: better than any sample."""
        self._sample = None
        self._flushed_arrow_bytes += arrow_bytes
        self._ratio = file_bytes / max(1, self._flushed_arrow_bytes)

    def file_bytes(self) -> int:
        """Estimated file size of all rows added so far."""
        if self._ratio is None:
            if self._arrow_bytes < SAMPLE_FROM_BYTES or self._sample is None:
                return self._arrow_bytes
            self._ratio = self._write_sample(self._sample) / max(1, self._sample.nbytes)
            self._sample = None
        return int(self._ratio * self._arrow_bytes)
