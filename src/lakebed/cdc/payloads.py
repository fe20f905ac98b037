"""Payloads on their way in files instead of through Spark: an envelope row then says where its payload lies.

A payload that travels inside of Spark's rows is copied a dozen times between Java and Python, for nothing: nobody there
looks into it. So a source's task puts large payloads into one file beside the checkpoint, as they are, and whoever
needs one maps it. Most such files live as long as their batch, and need not survive a power failure: a batch whose
files are gone is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import UNCHANGED, Chunk, chunks_from_arrow, chunks_to_arrow, decode_rows, place_of
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.cleanup import on_failure
from lakebed.fileio.base import FileIO, OutputFile
from lakebed.fileio.sync_later import SyncLater

INLINE_BYTES: Final = 64 << 10
"""Payloads up to this size stay where they are: they come to the driver with what is known of their chunks."""


class PayloadFile:
    """One file for the large payloads of a task. It is made with the first of them."""

    def __init__(self, url: str, *, is_durable: bool = False, storage: Storage = PLAIN) -> None:
        fileio, self._path = storage.open(url)
        self._url = url
        self._fileio: FileIO = fileio if is_durable else SyncLater.of(fileio)[0]
        self._output: OutputFile | None = None

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Envelope rows with their large payloads in the file, which is complete when the last row is out."""
        with on_failure(self._abort):
            for batch in batches:
                yield chunks_to_arrow([self.placed(chunk) for chunk in chunks_from_arrow(batch)])
        self.close()

    def _abort(self) -> None:
        if self._output is not None:
            self._output.abort()

    def placed(self, chunk: Chunk) -> Chunk:
        """The chunk with its counts; its payload goes into the file if it is large."""
        if chunk.payload is None:
            return chunk
        counted = chunk if chunk.count is not None else _counted_chunk(chunk, decode_rows(chunk.payload))
        if len(chunk.payload) <= INLINE_BYTES:
            return counted
        if self._output is None:
            self._output = self._fileio.open_output(self._path)
        place = place_of(self._output.tell(), len(chunk.payload), self._url)
        self._output.write(chunk.payload)
        return replace(counted, payload=None, place=place)

    def close(self) -> None:
        """Completes the file."""
        if self._output is not None:
            self._output.close()


def _counted_chunk(chunk: Chunk, rows: pa.RecordBatch) -> Chunk:
    """The chunk with what a look at its rows tells."""
    return replace(chunk, count=rows.num_rows, latest_ms=latest_ms(rows), lacks_values=lacks_values(rows))


# --- What Spark's workers tell the driver of payloads: how many changes, how recent, and whether values are missing


MARKS_DDL: Final = "ordinal bigint, rows bigint, latest_ms bigint, unchanged boolean"
_SCHEMA: Final = pa.schema(
    [("ordinal", pa.int64()), ("rows", pa.int64()), ("latest_ms", pa.int64()), ("unchanged", pa.bool_())]
)


def payload_marks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each chunk that has a payload."""
    for batch in batches:
        found = []
        for ordinal, payload in zip(batch.column(0), batch.column(1), strict=True):
            if payload.is_valid:
                rows = decode_rows(payload.as_buffer())
                found.append((ordinal.as_py(), rows.num_rows, latest_ms(rows), lacks_values(rows)))
        columns = [[row[place] for row in found] for place in range(len(_SCHEMA))]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def latest_ms(rows: pa.RecordBatch) -> int | None:
    """When the last of a payload's changes was made; None if it does not say, as in the copy."""
    latest = pc.max(rows.column(1)).cast(pa.int64()).as_py() if rows.num_rows else None
    return latest or None


def lacks_values(rows: pa.RecordBatch) -> bool:
    """Whether values of a payload are missing."""
    return any(name.startswith(UNCHANGED) for name in rows.schema.names)


__all__ = ["INLINE_BYTES", "MARKS_DDL", "PayloadFile", "lacks_values", "latest_ms", "payload_marks"]
