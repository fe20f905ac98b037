"""Keeps local copies of the data files that lookups ask for, within a limit of disk space and for a limited time.

Copies live in a directory of their own, which goes with the process. Several threads may ask at once.

INVARIANT: a copy stands for a file by its name, since files never change and names are never given twice, and for the
columns that were read, by their ids: a column that was dropped and one of the same name that was added are two, and
values of the first taken for those of the second would be stored with the next compaction. What changes while a file
stays, such as which of its rows are marked as deleted or have expired, must not be in a copy: ask for it with `accept`.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.clock import Clock
from lakebed.lsm.lookup.local_file import LocalFile
from lakebed.lsm.sections import SortedRun
from lakebed.metadata.data_file import DataFile
from lakebed.records import dataclass
from lakebed.types import ordering
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataField, DataType

ReadFile = Callable[[DataFile], Iterator[pa.RecordBatch]]
Accept = Callable[[DataFile, pa.RecordBatch], npt.NDArray[np.bool_]]
"""Which of the rows that a file holds count."""


_MOST_COUNTED = 10_000
"""Files whose readings are counted; those that were read longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class LookupLimits:
    """Space and time that copies may take, and memory while they are made."""

    max_disk_bytes: int
    retain_ms: int
    max_memory_bytes: int = 256 << 20


@dataclass(slots=True)
class _Copy:
    file: LocalFile
    last_used_ms: int


class LookupStore:
    """Copies of data files, the one that was used longest ago first."""

    def __init__(self, limits: LookupLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._names = itertools.count()
        self._copies: OrderedDict[tuple[str, tuple[DataField, ...]], _Copy] = OrderedDict()
        self._rows_read: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def find(
        self,
        runs: Sequence[SortedRun],
        keys: pa.RecordBatch,
        key_types: Sequence[DataType],
        fields: tuple[DataField, ...],
        read: ReadFile,
        accept: Accept | None = None,
    ) -> tuple[npt.NDArray[np.bool_], pa.RecordBatch]:
        """Which keys the runs hold, and their rows in key order; of several runs with a key the first counts.

        `accept` may refuse rows that were found in a file: then the search for their keys goes on.

        REQUIRES: `keys` holds the key columns, in ascending order, each key once; `read` gives rows of the fields.
        """
        asked = list(keys.columns)
        found = np.zeros(keys.num_rows, dtype=np.bool_)
        parts: list[pa.RecordBatch] = []
        owners: list[npt.NDArray[np.int64]] = []
        # INVARIANT: runs come from the newest to the oldest, and a key that was found is not looked for any further. An
        # older row taken for the current one would give wrong events, and the wrong row would be marked as replaced.
        for run in runs:
            for file in run.files:
                open_rows = np.flatnonzero(~found)
                if not len(open_rows):
                    break
                columns = asked if len(open_rows) == len(found) else [c.take(pa.array(open_rows)) for c in asked]
                if not _may_hold(file, columns, key_types):
                    continue
                hits, rows = self._copy(file, fields, read, keys.schema.names).find(columns)
                if accept is not None and rows:
                    together = pa.concat_batches(rows)
                    accepted = accept(file, together)
                    hits[np.flatnonzero(hits)[~accepted]] = False
                    rows = [together.filter(pa.array(accepted))]
                found[open_rows[hits]] = True
                parts += rows
                owners.append(open_rows[hits])
        return found, _in_key_order(parts, owners, to_arrow_schema(fields))

    def find_prefix(
        self,
        file: DataFile,
        prefix: Sequence[pa.Array],
        fields: tuple[DataField, ...],
        read: ReadFile,
        key: Sequence[str],
    ) -> Iterator[pa.RecordBatch]:
        """All rows of a file whose keys begin with one of these, in key order.

        REQUIRES: `prefix` holds the first key columns, in ascending order, each combination once.
        """
        return self._copy(file, fields, read, key).find_prefix(prefix)

    def is_worth_a_copy(self, file: DataFile) -> bool:
        """Whether as many rows of the file were read without a copy as it holds: so others will be asked for."""
        with self._lock:
            return self._rows_read.get(file.file_name, 0) >= max(1, file.row_count)

    def note_reading(self, file: DataFile, row_count: int) -> None:
        """Counts rows of a file that were read without a copy."""
        with self._lock:
            self._rows_read[file.file_name] = self._rows_read.pop(file.file_name, 0) + row_count
            if len(self._rows_read) > _MOST_COUNTED:
                self._rows_read.popitem(last=False)

    @cached_property
    def directory(self) -> str:
        """Where the copies lie. It goes with the store, or with the process."""
        path = tempfile.mkdtemp(prefix="lakebed-lookup-")
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        return path

    def _copy(self, file: DataFile, fields: tuple[DataField, ...], read: ReadFile, key: Sequence[str]) -> LocalFile:
        now_ms = self._clock.now_ms()
        name = (file.file_name, fields)
        with self._lock:
            self._drop_old(now_ms)
            copy = self._copies.get(name)
            if copy is not None:
                copy.last_used_ms = now_ms
                self._copies.move_to_end(name)
                return copy.file
        path = os.path.join(self.directory, f"{next(self._names)}.arrow")
        # A chunk is in memory twice, in parts and in one piece, next to what is read meanwhile.
        made = LocalFile.make(path, read(file), to_arrow_schema(fields), key, self._limits.max_memory_bytes // 4)
        with self._lock:
            self._copies[name] = _Copy(made, now_ms)
            self._make_room()
        return made

    def _drop_old(self, now_ms: int) -> None:
        while self._copies:
            name, oldest = next(iter(self._copies.items()))
            if now_ms - oldest.last_used_ms <= self._limits.retain_ms:
                return
            self._copies.pop(name).file.remove()

    def _make_room(self) -> None:
        """Drops what was used longest ago. The newest copy stays, however large: it is in use."""
        total = sum(copy.file.size_bytes for copy in self._copies.values())
        while total > self._limits.max_disk_bytes and len(self._copies) > 1:
            _, oldest = self._copies.popitem(last=False)
            total -= oldest.file.size_bytes
            oldest.file.remove()


def _may_hold(file: DataFile, asked: Sequence[pa.Array], key_types: Sequence[DataType]) -> bool:
    """Whether a key that is asked for lies between the file's smallest and largest."""
    bounds = decode_rows([file.min_key, file.max_key], key_types)
    low, high = ordering.sort_key(bounds, 0), ordering.sort_key(bounds, 1)
    count = ordering.count_not_above(asked, high)
    return count > 0 and ordering.sort_key(asked, count - 1) >= low


def _in_key_order(
    parts: Sequence[pa.RecordBatch], owners: Sequence[npt.NDArray[np.int64]], schema: pa.Schema
) -> pa.RecordBatch:
    if not parts:
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    rows = pa.concat_batches(parts)
    order = np.argsort(np.concatenate(owners), kind="stable")
    return rows if np.all(np.diff(order) == 1) else rows.take(pa.array(order))


__all__ = ["LookupLimits", "LookupStore"]
