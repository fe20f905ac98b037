"""Every stored version of some keys: what lies of them in files, shown or not, and what has been merged away since.

Only files that may hold a key are opened: its partition and bucket follow from it, a file must hold it between its
smallest and its largest, and its indexes must not say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import FileMissing
from lakebed.explain.origins import Origins
from lakebed.lsm.sections import cut_sections
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.keyed_reader import KeyReader, lookup_store
from lakebed.read.live_buckets import LiveBuckets
from lakebed.read.lookup import buckets_at, buckets_of_keys, narrowed
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField
from lakebed.types.sorted_search import find_keys


class State(StrEnum):
    """Whether a stored version takes part in what reads show."""

    MERGED = "merged"
    DELETED = "deleted"
    HIDDEN = "hidden"
    WAITING = "waiting"
    GONE = "gone"


@dataclass(frozen=True)
class FilesRead:
    """How many files there are, and how many of them were opened to answer."""

    all: int = 0
    in_buckets: int = 0
    in_key_range: int = 0
    read: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Files of earlier snapshots that were opened, too."""
    missing: tuple[str, ...] = ()
    """Those of them that went while we looked."""

    @property
    def as_earlier(self) -> FilesRead:
        """What was read of earlier snapshots: it counts by itself."""
        return FilesRead(earlier=self.read, missing=self.missing)

    def __add__(self, other: FilesRead) -> FilesRead:
        return FilesRead(
            self.all + other.all,
            self.in_buckets + other.in_buckets,
            self.in_key_range + other.in_key_range,
            self.read + other.read,
            self.earlier + other.earlier,
            self.missing + other.missing,
        )

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "all": self.all,
            "in_buckets": self.in_buckets,
            "in_key_range": self.in_key_range,
            "read": list(self.read),
            "earlier": list(self.earlier),
            "missing": list(self.missing),
        }


@dataclass(frozen=True)
class BucketVersions:
    """Versions of one bucket, oldest file first: rows in key-value shape, and for each its file and its state."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    files: tuple[DataFile, ...]
    file_of: npt.NDArray[np.int64]
    """For each row the number of its file among `files`."""
    states: npt.NDArray[np.object_]
    read: FilesRead = field(default_factory=FilesRead)

    @property
    def levels(self) -> npt.NDArray[np.int8]:
        """The level of each row."""
        levels = np.array([file.level for file in self.files], np.int8)
        return levels[self.file_of]


_SYSTEM = (system_columns.SEQUENCE_NUMBER, system_columns.VALUE_KIND, system_columns.ROW_INDEX)


@dataclass(frozen=True)
class VersionReader:
    """Finds the versions of keys (distinct, in ascending order) as of a snapshot."""

    context: TableContext
    snapshot: Snapshot | None
    keys: pa.RecordBatch

    def stored(self) -> Iterator[BucketVersions]:
        """What the state holds of the keys."""
        context = self.context
        live = buckets_at(context, self.snapshot)
        vectors = vectors_at(context, self.snapshot)
        lowest = context.lowest_visible_level
        for partition, bucket, _, files, mine in buckets_of_keys(context, self.snapshot, self.keys, live):
            found = self._read(partition, bucket, files, mine, copies=True)
            states = found.states
            hidden = np.array([file.level < lowest for file in found.files], np.bool_)
            states[hidden[found.file_of]] = State.HIDDEN
            places = np.asarray(found.rows.column(system_columns.ROW_INDEX.name))
            for number, file in enumerate(found.files):
                if file.file_name in vectors:
                    marked = context.vector_store.read(vectors[file.file_name])
                    states[(found.file_of == number) & np.isin(places, marked)] = State.DELETED
            yield found

    def file_count(self) -> int:
        """All files of the state."""
        live = buckets_at(self.context, self.snapshot)
        return sum(len(files) for partition in live.partitions for files in live.of_partition(partition).values())

    def waiting(self) -> Iterator[BucketVersions]:
        """Rows of the keys that wait for a bucket, in the order in which they came."""
        if not self.keys.num_rows or not self.context.bucket_mode.postpones:
            return
        by_partition: dict[bytes, list[DataFile]] = {}
        for entry in live_files(self.context.stores, self.snapshot, keep_entries=_waiting):
            by_partition.setdefault(entry.partition, []).append(entry.file)
        for partition, files in by_partition.items():
            found = self._read_whole(partition, POSTPONE_BUCKET, files)
            found.states[:] = State.WAITING
            yield found

    def gone(self, origins: Origins) -> Iterator[BucketVersions]:
        """What of the keys lay in files of snapshots that are kept, and was merged away or replaced since."""
        entries = [entry for entry, _ in origins.gone.values()]
        live = LiveBuckets.of(entries)
        for partition, bucket, _, files, mine in buckets_of_keys(self.context, self.snapshot, self.keys, live):
            found = self._read(partition, bucket, files, mine, copies=False)
            found.states[:] = State.GONE
            yield replace(found, read=found.read.as_earlier)

    # --- inside --------------------------------------------------------------------------------------------------

    @property
    def _fields(self) -> tuple[DataField, ...]:
        return (*_SYSTEM, *self.context.schema.fields)

    def _read(
        self, partition: bytes, bucket: int, files: list[DataFile], mine: npt.NDArray[np.int64], *, copies: bool
    ) -> BucketVersions:
        context = self.context
        columns, spans = narrowed(context, self.keys, mine, files)
        store = lookup_store(context) if copies else None
        reader = KeyReader(context, self._fields, keys=columns, spans=spans, copies=store)
        split = Split(partition, bucket, ())  # without vectors: rows that are marked are told, too
        near = _oldest_first([file for file in files if file.file_name in spans], context)
        asked = [file for file in near if not reader.holds_none(split, file)]
        found = self._gathered(
            partition, bucket, asked, lambda file: reader.read_file(split, file), allows_missing=not copies
        )
        return replace(found, read=FilesRead(0, len(files), len(near)) + found.read)

    def _read_whole(self, partition: bytes, bucket: int, files: list[DataFile]) -> BucketVersions:
        """Of files whose rows are in no order: all of them are looked through."""
        reader = SplitReader(self.context, self._fields)
        split = Split(partition, bucket, ())
        names = self.context.schema.primary_keys

        def rows(file: DataFile) -> Iterator[pa.RecordBatch]:
            for batch in reader.read_file(split, file):
                if batch.num_rows:
                    hits = find_keys(self.keys.columns, [batch.column(name) for name in names])[1]
                    yield batch.filter(pa.array(hits))

        found = self._gathered(partition, bucket, files, rows)
        return replace(found, read=FilesRead(0, len(files), len(files)) + found.read)

    def _gathered(
        self,
        partition: bytes,
        bucket: int,
        files: Sequence[DataFile],
        rows_of: Callable[[DataFile], Iterator[pa.RecordBatch]],
        *,
        allows_missing: bool = False,
    ) -> BucketVersions:
        batches: list[pa.RecordBatch] = []
        counts = np.zeros(len(files), np.int64)
        missing: list[str] = []
        for number, file in enumerate(files):
            try:
                read = [batch for batch in rows_of(file) if batch.num_rows]
            except FileMissing:
                if not allows_missing:
                    raise
                missing.append(file.file_name)
                continue
            counts[number] = sum(batch.num_rows for batch in read)
            batches += read
        rows = pa.concat_batches([_no_rows(to_arrow_schema(self._fields)), *batches])
        return BucketVersions(
            partition,
            bucket,
            rows,
            tuple(files),
            np.repeat(np.arange(len(files)), counts),
            np.full(rows.num_rows, State.MERGED, object),
            FilesRead(read=tuple(file.file_name for file in files), missing=tuple(missing)),
        )


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)


def _oldest_first(files: list[DataFile], context: TableContext) -> list[DataFile]:
    """The files in the order in which a merge takes them."""
    return [file for section in cut_sections(files, context.key_types) for file in section.files]


def _waiting(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.bucket == POSTPONE_BUCKET]


__all__ = ["BucketVersions", "FilesRead", "State", "VersionReader"]
