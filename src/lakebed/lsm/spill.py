"""Sorted runs on local disk, for rows that do not fit into memory before they are written to the table.

Each run is a compressed Arrow stream in a directory that goes with its `Spill`. Nothing here survives a commit.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.cleanup import on_failure
from lakebed.fileio.temporary import TemporaryFiles
from lakebed.lsm.merge_runs import merge_runs
from lakebed.merge.base import MergeEngine, MergeOrder
from lakebed.records import dataclass

Run = Iterator[pa.RecordBatch]
"""Batches in key-value shape with ascending keys, each key once."""

_BATCH_BYTES = 1 << 20
"""Of each run that is merged, this much is in memory at a time."""


@dataclass(frozen=True, slots=True)
class SpilledRun:
    """A run on disk."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SpillRules:
    """How much may be on disk, how it is compressed (`zstd`, `lz4` or `none`), how many runs are merged at a time."""

    max_disk_bytes: int
    compression: str
    zstd_level: int
    max_open_runs: int

    def codec(self) -> pa.Codec | None:
        """For Arrow streams."""
        if self.compression == "none":
            return None
        return pa.Codec(self.compression, compression_level=self.zstd_level if self.compression == "zstd" else None)


class Spill:
    """The spilled runs of one writer."""

    def __init__(self, rules: SpillRules) -> None:
        self._rules = rules
        self._files = TemporaryFiles(
            "lakebed-spill-", "a write buffer was on disk", "set `write-buffer-spillable` to false"
        )
        self.used_bytes = 0

    def has_room_for(self, size_bytes: int) -> bool:
        """Whether rows of this size in memory may go to disk, where compression only makes them smaller."""
        return self.used_bytes + size_bytes <= self._rules.max_disk_bytes

    def write(self, run: Run) -> SpilledRun:
        """Writes a run that is not empty. A disk that fails leaves nothing behind."""
        path = self._files.new_path("arrows")
        with on_failure(lambda: self._files.remove(path)), self._files.using("write", path):
            _write_stream(path, run, pa.ipc.IpcWriteOptions(compression=self._rules.codec()))
            size_bytes = os.path.getsize(path)
        self.used_bytes += size_bytes
        return SpilledRun(path, size_bytes)

    def merge(
        self, spilled: Sequence[SpilledRun], newest: Sequence[Run], order: MergeOrder, engine: MergeEngine
    ) -> Run:
        """One run of the spilled ones, oldest first, and those in memory. Removes what it has read."""
        room = max(2, self._rules.max_open_runs)
        runs = list(spilled)
        while len(runs) > room:
            # Neighbours only: who comes later stays newer.
            parts = [runs[start : start + room] for start in range(0, len(runs), room)]
            runs = [part[0] if len(part) == 1 else self.write(self._merged(part, (), order, engine)) for part in parts]
        return self._merged(runs, newest, order, engine)

    def close(self) -> None:
        """Removes all runs."""
        self._files.close()
        self.used_bytes = 0

    def _merged(
        self, spilled: Sequence[SpilledRun], newest: Sequence[Run], order: MergeOrder, engine: MergeEngine
    ) -> Run:
        yield from merge_runs([*(self._read(run.path) for run in spilled), *newest], order, engine)
        for run in spilled:
            self._files.remove(run.path)
            self.used_bytes -= run.size_bytes

    def _read(self, path: str) -> Run:
        with self._files.using("read", path), pa.OSFile(path, "rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream


def _write_stream(path: str, run: Run, options: pa.ipc.IpcWriteOptions) -> None:
    first = next(run)
    rows = max(1, _BATCH_BYTES * first.num_rows // max(1, first.nbytes))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, first.schema, options=options) as stream:
        for batch in itertools.chain([first], run):
            for start in range(0, batch.num_rows, rows):
                stream.write_batch(batch.slice(start, rows))
