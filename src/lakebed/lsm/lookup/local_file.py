"""A data file as a local, uncompressed copy: any of its rows is found and read without touching the others.

A column file must be decoded in whole row groups, which costs as much as the table is large. The copy is made once,
with one chunk in memory, and mapped afterwards: what a search reads is what it asks for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.sorted_search import find_keys, find_ranges

CHUNK_ROWS = 1 << 18
_Key = tuple[tuple[bool, object], ...]


@dataclass(frozen=True)
class LocalFile:
    """A copy on disk. Rows are in key order, each key once."""

    path: str
    size_bytes: int
    key: tuple[str, ...]
    chunks: tuple[pa.RecordBatch, ...]
    last_keys: tuple[_Key, ...]

    @staticmethod
    def make(
        path: str, rows: Iterator[pa.RecordBatch], schema: pa.Schema, key: Sequence[str], chunk_bytes: int
    ) -> LocalFile:
        """Copies the rows, about so many bytes at a time. Nothing is left at the path if that fails."""
        with on_failure(lambda: Path(path).unlink(missing_ok=True)):
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for chunk in _chunked(rows, chunk_bytes):
                    writer.write_batch(chunk)
            return LocalFile._mapped(path, tuple(key))

    @staticmethod
    def _mapped(path: str, key: tuple[str, ...]) -> LocalFile:
        reader = pa.ipc.open_file(pa.memory_map(path))
        chunks = tuple(reader.get_batch(number) for number in range(reader.num_record_batches))
        last_keys = tuple(ordering.sort_key(_columns(chunk, key), chunk.num_rows - 1) for chunk in chunks)
        return LocalFile(path, os.path.getsize(path), key, chunks, last_keys)

    def find(self, asked: Sequence[pa.Array]) -> tuple[npt.NDArray[np.bool_], list[pa.RecordBatch]]:
        """Which of the keys are there, and their rows in the order of the keys. REQUIRES: keys in ascending order."""
        found = np.zeros(len(asked[0]), dtype=np.bool_)
        rows: list[pa.RecordBatch] = []
        start = 0
        for chunk, last_key in zip(self.chunks, self.last_keys, strict=True):
            if start == len(found):
                break
            stop = ordering.count_not_above(asked, last_key)
            if stop > start:
                part = [column.slice(start, stop - start) for column in asked]
                places, hits = find_keys(_columns(chunk, self.key), part)
                found[start:stop] = hits
                if np.any(hits):
                    rows.append(chunk.take(pa.array(places[hits])))
                start = stop
        return found, rows

    def find_prefix(self, prefix: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
        """Rows whose keys begin with one of these. REQUIRES: in ascending order, each combination once."""
        names = self.key[: len(prefix)]
        for chunk in self.chunks:
            columns = _columns(chunk, names)
            low = ordering.count_below(prefix, ordering.sort_key(columns, 0))
            high = ordering.count_not_above(prefix, ordering.sort_key(columns, chunk.num_rows - 1))
            if low < high:
                starts, ends = find_ranges(columns, [column.slice(low, high - low) for column in prefix])
                counts = ends - starts
                if counts.any():
                    skipped = np.cumsum(counts) - counts
                    yield chunk.take(pa.array(np.repeat(starts - skipped, counts) + np.arange(counts.sum())))

    def remove(self) -> None:
        """Deletes the copy; rows that were found stay valid."""
        os.remove(self.path)


def _columns(rows: pa.RecordBatch, key: Sequence[str]) -> list[pa.Array]:
    return [rows.column(name) for name in key]


def _chunked(rows: Iterator[pa.RecordBatch], chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in large chunks: each costs a search of its own."""
    held: list[pa.RecordBatch] = []
    count = size_bytes = 0
    for batch in rows:
        while batch.num_rows:
            part = batch.slice(0, CHUNK_ROWS - count)
            batch = batch.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            size_bytes += part.nbytes
            if count == CHUNK_ROWS or size_bytes >= chunk_bytes:
                yield pa.concat_batches(held)
                held, count, size_bytes = [], 0, 0
    if held:
        yield pa.concat_batches(held)


__all__ = ["LocalFile"]
