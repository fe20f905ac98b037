"""Sorted runs on local disk, for rows that do not fit into memory before they are written to the table.

Each run is a compressed Arrow stream in a directory of its own below the system's temporary directory (`TMPDIR` moves
it). The directory goes with its `Spill`, at the latest when the process ends. Nothing here survives a commit.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakebed.errors import StorageError
from lakebed.lsm.merge_runs import merge_runs
from lakebed.merge.base import MergeEngine, MergeOrder

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
        self._names = itertools.count()
        self._directory: str | None = None
        self._remove: weakref.finalize[..., Spill] | None = None
        self.used_bytes = 0

    def has_room_for(self, size_bytes: int) -> bool:
        """Whether rows of this size in memory may go to disk, where compression only makes them smaller."""
        return self.used_bytes + size_bytes <= self._rules.max_disk_bytes

    def write(self, run: Run) -> SpilledRun:
        """Writes a run that is not empty. A disk that fails leaves nothing behind."""
        path = os.path.join(self._home(), f"run-{next(self._names)}.arrows")
        try:
            with _disk("write", path):
                _write_stream(path, run, pa.ipc.IpcWriteOptions(compression=self._rules.codec()))
                size_bytes = os.path.getsize(path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
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
        if self._remove is not None:
            self._remove()
        self._directory, self.used_bytes = None, 0

    def _merged(
        self, spilled: Sequence[SpilledRun], newest: Sequence[Run], order: MergeOrder, engine: MergeEngine
    ) -> Run:
        yield from merge_runs([*(_read(run.path) for run in spilled), *newest], order, engine)
        for run in spilled:
            with contextlib.suppress(OSError):  # the whole directory goes later
                os.unlink(run.path)
            self.used_bytes -= run.size_bytes

    def _home(self) -> str:
        if self._directory is None:
            with _disk("make a directory in", tempfile.gettempdir()):
                self._directory = tempfile.mkdtemp(prefix="lakebed-spill-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory


def _write_stream(path: str, run: Run, options: pa.ipc.IpcWriteOptions) -> None:
    first = next(run)
    rows = max(1, _BATCH_BYTES * first.num_rows // max(1, first.nbytes))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, first.schema, options=options) as stream:
        for batch in itertools.chain([first], run):
            for start in range(0, batch.num_rows, rows):
                stream.write_batch(batch.slice(start, rows))


def _read(path: str) -> Run:
    with _disk("read", path), pa.OSFile(path, "rb") as file, pa.ipc.open_stream(file) as stream:
        yield from stream


@contextlib.contextmanager
def _disk(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"could not {doing} {path} while a write buffer was on disk: {error}",
            hint="make room there, choose another place with TMPDIR, or set `write-buffer-spillable` to false",
        ) from error
