"""The latest row of every key, in memory up to a limit and beyond that in files on local disk.

Rows are kept in runs: sorted by key, each key once, the newest run last. Runs of about one size are merged, so that
there are few of them and each row is rewritten a few times only, however large the state grows. A key that is gone
leaves a row of kind `-D` behind until its run is merged with the oldest one. Files are uncompressed and mapped: a
search reads the rows it finds. They go with the state, at the latest when the process ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.fileio.temporary import TemporaryFiles
from lakebed.types import key_value, ordering
from lakebed.types.row_kind import is_retract
from lakebed.types.sorted_search import find_keys

Mask = npt.NDArray[np.bool_]
_CHUNK_ROWS = 1 << 16
_STEPS = 32
"""About what a search for one row costs, in rows that are sorted."""
_Key = tuple[tuple[bool, object], ...]


@dataclass(frozen=True)
class _Run:
    """Rows in key order, in memory or mapped from a file."""

    key: tuple[str, ...]
    chunks: tuple[pa.RecordBatch, ...]
    last_keys: tuple[_Key, ...]
    path: str | None = None

    @staticmethod
    def of(chunks: Sequence[pa.RecordBatch], key: tuple[str, ...], path: str | None = None) -> _Run:
        """A run of chunks that are not empty."""
        last_keys = [ordering.sort_key(_columns(chunk, key), chunk.num_rows - 1) for chunk in chunks]
        return _Run(key, tuple(chunks), tuple(last_keys), path)

    @property
    def row_count(self) -> int:
        return sum(chunk.num_rows for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        return sum(chunk.nbytes for chunk in self.chunks)

    def find(self, asked: Sequence[pa.Array]) -> tuple[Mask, list[pa.RecordBatch]]:
        """Which of the keys are there, and their rows in key order. REQUIRES: keys in ascending order, each once."""
        found = np.zeros(len(asked[0]), dtype=np.bool_)
        rows: list[pa.RecordBatch] = []
        start = 0
        for chunk, last_key in zip(self.chunks, self.last_keys, strict=True):
            stop = start + ordering.count_not_above([column.slice(start) for column in asked], last_key)
            if stop > start:
                part = [column.slice(start, stop - start) for column in asked]
                places, hits = _found(_columns(chunk, self.key), part)
                found[start:stop] = hits
                if np.any(hits):
                    rows.append(chunk.take(pa.array(places[hits])))
                start = stop
            if start == len(found):
                break
        return found, rows

    def parts(self, cuts: Sequence[_Key]) -> Iterator[pa.RecordBatch | None]:
        """For every cut the rows up to it that did not come before. REQUIRES: all last keys are among the cuts."""
        chunks = iter(self.chunks)
        rest: pa.RecordBatch | None = None
        for cut in cuts:
            if rest is None or rest.num_rows == 0:
                rest = next(chunks, None)
            count = 0 if rest is None else ordering.count_not_above(_columns(rest, self.key), cut)
            yield rest.slice(0, count) if rest is not None and count else None
            rest = None if rest is None else rest.slice(count)


class KeyState:
    """Rows by key. They carry `_VALUE_KIND`: one that takes away stands for a key that is gone."""

    def __init__(self, key: Sequence[str], schema: pa.Schema, max_memory_bytes: int) -> None:
        self._key = tuple(key)
        self._schema = schema
        self._max_memory_bytes = max_memory_bytes
        self._runs: list[_Run] = []
        self._files = TemporaryFiles(
            "lakebed-state-", "the latest rows of a stream were kept on disk", "allow more memory"
        )

    @property
    def memory_bytes(self) -> int:
        """What the rows in memory take."""
        return sum(run.size_bytes for run in self._runs if run.path is None)

    @property
    def disk_bytes(self) -> int:
        """What the rows on disk take."""
        return sum(run.size_bytes for run in self._runs if run.path is not None)

    def find(self, keys: pa.RecordBatch) -> tuple[Mask, pa.RecordBatch]:
        """Which of the keys have a row, and these rows in key order. REQUIRES: ascending keys, each once."""
        unknown = np.arange(keys.num_rows)
        owners: list[npt.NDArray[np.int64]] = []
        parts: list[pa.RecordBatch] = []
        for run in reversed(self._runs):
            if not len(unknown):
                break
            asked = keys if len(unknown) == keys.num_rows else keys.take(pa.array(unknown))
            hits, rows = run.find(asked.columns)
            owners.append(unknown[hits])
            parts += rows
            unknown = unknown[~hits]
        has_row = np.zeros(keys.num_rows, dtype=np.bool_)
        if not parts:
            return has_row, _empty(self._schema)
        owner = np.concatenate(owners)
        order = np.argsort(owner)
        rows_found = pa.concat_batches(parts).take(pa.array(order))
        alive = ~is_retract(key_value.kinds(rows_found))
        has_row[owner[order][alive]] = True
        return has_row, rows_found if alive.all() else rows_found.filter(pa.array(alive))

    def put(self, rows: pa.RecordBatch) -> None:
        """Replaces the rows of these keys. REQUIRES: ascending keys, each once."""
        if not rows.num_rows:
            return
        self._runs.append(_Run.of([rows], self._key))
        self._merge_equals()
        if self.memory_bytes > self._max_memory_bytes:
            self._merge_newest(sum(run.path is None for run in self._runs), to_disk=True)
            self._merge_equals()

    def close(self) -> None:
        """Forgets everything, and removes the files."""
        self._runs = []
        self._files.close()

    def _merge_equals(self) -> None:
        """Until every run has more than twice as many rows as the next newer one."""
        while len(self._runs) > 1 and self._runs[-2].row_count <= 2 * self._runs[-1].row_count:
            self._merge_newest(2)

    def _merge_newest(self, count: int, *, to_disk: bool = False) -> None:
        """Makes one run of the newest ones. The old ones stay until it is complete."""
        merged = self._runs[-count:]
        keep = self._runs[:-count]
        chunks = _chunked(_windows(merged, self._key, drops_retracts=not keep))
        size_bytes = sum(run.size_bytes for run in merged)
        if to_disk or size_bytes > self._max_memory_bytes or any(run.path is not None for run in merged):
            run = self._on_disk(chunks)
        else:
            run = _Run.of(list(chunks), self._key)
        self._runs = [*keep, run] if run.chunks else keep
        for old in merged:
            if old.path is not None:
                self._files.remove(old.path)

    def _on_disk(self, chunks: Iterator[pa.RecordBatch]) -> _Run:
        path = self._files.new_path("arrow")
        try:
            with self._files.using("write", path):
                with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, self._schema) as writer:
                    for chunk in chunks:
                        writer.write_batch(chunk)
                reader = pa.ipc.open_file(pa.memory_map(path))
                mapped = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        except BaseException:
            self._files.remove(path)
            raise
        return _Run.of(mapped, self._key, path)


def _found(columns: Sequence[pa.Array], asked: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], Mask]:
    """As `find_keys`, but where many rows are asked for, all are sorted together instead of searched one by one."""
    count = len(columns[0])
    if len(asked[0]) * _STEPS < count:
        return find_keys(columns, asked)
    both = [pa.concat_arrays([column, wanted]) for column, wanted in zip(columns, asked, strict=True)]
    codes = ordering.key_codes(both)
    order = ordering.argsort(codes)
    # The sort is stable: a key that is there stands right in front of the same key that is asked for.
    second = np.flatnonzero(~ordering.changes([column[order] for column in codes]))
    places = np.zeros(len(asked[0]), dtype=np.int64)
    hits = np.zeros(len(asked[0]), dtype=np.bool_)
    places[order[second] - count] = order[second - 1]
    hits[order[second] - count] = True
    return places, hits


def _windows(runs: Sequence[_Run], key: tuple[str, ...], *, drops_retracts: bool) -> Iterator[pa.RecordBatch]:
    """The newest row of every key, a chunk of each run at a time."""
    cuts = sorted({last_key for run in runs for last_key in run.last_keys})
    for parts in zip(*(run.parts(cuts) for run in runs), strict=True):
        rows = pa.concat_batches([part for part in parts if part is not None])
        codes = ordering.key_codes(_columns(rows, key))
        order = ordering.argsort(codes)
        starts = np.flatnonzero(ordering.changes([column[order] for column in codes]))
        newest = order[np.append(starts[1:], len(order)) - 1]
        if drops_retracts:
            newest = newest[~is_retract(key_value.kinds(rows))[newest]]
        yield rows.take(pa.array(newest))


def _chunked(windows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in chunks that are worth a search of their own."""
    held: list[pa.RecordBatch] = []
    for window in windows:
        if window.num_rows:
            held.append(window)
        if sum(part.num_rows for part in held) >= _CHUNK_ROWS:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _columns(rows: pa.RecordBatch, key: Sequence[str]) -> list[pa.Array]:
    return [rows.column(name) for name in key]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


__all__ = ["KeyState"]
