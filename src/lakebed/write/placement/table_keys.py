"""The keys of a table and where they lie, read from its files: all of a snapshot's, or what later commits did to them.

Whoever keeps an index of all keys begins with the first and goes on with the second, which reads the keys of new files
only. Compactions do not move keys; after anything else but appends the index has to begin anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.hashing import Hashes, hash_rows
from lakebed.definition.bucket_mode import WritePart
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import NotFound
from lakebed.lsm.sections import Section, SortedRun
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.data_file import DataFile, creation_time_to_epoch
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.options import CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM, CROSS_PARTITION_UPSERT_INDEX_TTL, MERGE_ENGINE
from lakebed.read.plan import FileSieve, splits_of
from lakebed.read.reader import SplitReader
from lakebed.read.splits import Split
from lakebed.records import dataclass
from lakebed.schema import system_columns
from lakebed.types import key_value
from lakebed.types.binary_row import encode_rows
from lakebed.types.row_kind import is_retract

Numbers = npt.NDArray[np.int64]
KeepEntries = Callable[[list[ManifestEntry]], list[ManifestEntry]]
EVERYTHING = WritePart(0, 1)

_FEW_ROWS = 100_000
"""So many are read in no time, whatever else there is."""

_SHARE = re.compile(r"-share(\d+)of(\d+)-")


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Keys of one partition and bucket, as bytes and with their hashes; none of them was written later than that."""

    partition: bytes
    bucket: int
    hashes: Hashes
    keys: pa.Array
    written_ms: int = 0

    def chosen(self, mask: npt.NDArray[np.bool_]) -> KnownKeys:
        """Some of them."""
        return replace(self, hashes=self.hashes[mask], keys=self.keys.filter(pa.array(mask)))

    def of_part(self, part: WritePart) -> KnownKeys:
        """Those of one writer's share."""
        return self if part.count == 1 else self.chosen(shares_of(self.hashes, part.count) == part.number)


@dataclass(frozen=True, slots=True)
class WrittenKeys:
    """Keys that a commit wrote to one bucket, each once, and which of them it deleted there."""

    known: KnownKeys
    is_gone: npt.NDArray[np.bool_]


class TableKeys:
    """Reads keys of one table. May be used in tasks."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._fields = tuple(context.schema.fields_of(context.schema.primary_keys))
        self._types = [column.type for column in self._fields]

    @property
    def description(self) -> str:
        """What keys look like: those of tables with the same are hashed and written as bytes alike."""
        return " ".join(f"{column.id} {column.type}" for column in self._fields)

    def hashed(self, rows: pa.RecordBatch) -> tuple[Hashes, pa.Array]:
        """The keys of rows: their hashes and their bytes."""
        columns = [rows.column(column.name) for column in self._fields]
        return hash_rows(columns, self._types), encode_rows(columns, self._types, arity_prefix=False)

    # --- all keys ------------------------------------------------------------------------------------------------

    def stored(
        self, snapshot: Snapshot | None, keep: KeepEntries | None = None, *, one_by_one: bool = False
    ) -> Iterator[KnownKeys]:
        """Keys of all rows that there are, also of those that reads do not show yet.

        Several splits at once, which are held in memory then, or `one_by_one`.
        """
        splits = self.splits(snapshot, keep)
        if one_by_one:
            for split in splits:
                yield from self.in_split(split)
            return
        threads = min(self._context.options[CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM], max(len(splits), 1))
        with ThreadPoolExecutor(threads, thread_name_prefix="lakebed-keys") as pool:
            for begin in range(0, len(splits), threads):
                for found in pool.map(lambda split: list(self.in_split(split)), splits[begin : begin + threads]):
                    yield from found

    def splits(self, snapshot: Snapshot | None, keep: KeepEntries | None = None) -> list[Split]:
        """What has to be read to know all keys of a snapshot, or of those of its files that `keep` keeps."""
        context = self._context
        sieve = FileSieve(context, None)
        entries = live_files(context.stores, snapshot, keep_entries=sieve.keep_entries)
        entries = entries if keep is None else keep(entries)
        limit_ms = self.forgotten_before_ms()
        splits = splits_of(context, entries, sieve, vectors_at(context, snapshot))
        return [split for split in splits if limit_ms is None or _written_ms(split.files) >= limit_ms]

    def in_split(self, split: Split) -> Iterator[KnownKeys]:
        """The keys of a split."""
        reader = SplitReader(self._context, self._fields, use_threads=False)
        written_ms = _written_ms(split.files)
        for batch in reader.read(split):
            yield KnownKeys(split.partition, split.bucket, *self.hashed(batch), written_ms)

    def forgotten_before_ms(self) -> int | None:
        """Keys that were not written since then have been forgotten; None if the table never forgets them."""
        ttl_ms = self._context.options[CROSS_PARTITION_UPSERT_INDEX_TTL]
        return None if ttl_ms is None else self._context.clock.now_ms() - ttl_ms

    # --- what commits did ----------------------------------------------------------------------------------------

    def written(self, appends: Sequence[Snapshot], part: WritePart = EVERYTHING) -> Iterator[list[WrittenKeys]]:
        """For each of these commits, the keys of a share that it wrote, bucket by bucket."""
        for snapshot in appends:
            buckets: dict[tuple[bytes, int], list[DataFile]] = {}
            for entry in delta_entries(self._context.stores, snapshot):
                if entry.bucket >= 0 and self._may_hold(entry.file, part):
                    buckets.setdefault((entry.partition, entry.bucket), []).append(entry.file)
            found = [self._in_bucket(bucket, files, part) for bucket, files in sorted(buckets.items())]
            yield [each for each in found if len(each.known.keys)]

    def _in_bucket(self, bucket: tuple[bytes, int], files: list[DataFile], part: WritePart) -> WrittenKeys:
        files = sorted(files, key=lambda file: (file.min_sequence_number, file.max_sequence_number))
        sections = tuple(Section((SortedRun((file,)),)) for file in files)
        reader = SplitReader(self._context, (system_columns.VALUE_KIND, *self._fields), use_threads=False)
        hashes, keys, retracts = [np.empty(0, np.int32)], [pa.array([], pa.binary())], [np.empty(0, np.bool_)]
        for batch in reader.read_stored(Split(*bucket, sections)):
            known = KnownKeys(*bucket, *self.hashed(batch))
            mine = np.arange(batch.num_rows)
            if part.count > 1:
                mine = np.flatnonzero(shares_of(known.hashes, part.count) == part.number)
            hashes.append(known.hashes[mine])
            keys.append(known.keys.cast(pa.binary()).take(pa.array(mine)))
            retracts.append(is_retract(key_value.kinds(batch))[mine])
        together, is_gone = pa.concat_arrays(keys), np.concatenate(retracts)
        found = KnownKeys(*bucket, np.concatenate(hashes), together, _written_ms(files))
        if len(files) > 1:
            last = _last_of_each(together)
            found, is_gone = found.chosen(last), is_gone[last]
        # Where rows of a key are merged, a retract is one of them, and the key stays.
        deletes = self._context.options[MERGE_ENGINE] == Deduplicate.name
        return WrittenKeys(found, is_gone & deletes)

    def _may_hold(self, file: DataFile, part: WritePart) -> bool:
        """Whether a file may hold keys of a share: what a task writes says in its name of which share it is."""
        told = _SHARE.search(file.file_name) if file.schema_id == self._context.schema.id else None
        return told is None or int(told[2]) != part.count or int(told[1]) == part.number


def share_mark(part: WritePart) -> str:
    """What the name of a file contains, between dashes, that holds keys of one share only."""
    return f"share{part.number}of{part.count}"


def shares_of(hashes: Hashes, count: int) -> Numbers:
    """Which of so many writers each key belongs to."""
    shares: Numbers = np.abs(hashes.astype(np.int64)) % count
    return shares


def appended_since(stores: MetadataStores, before: Snapshot | None, after: Snapshot | None) -> list[Snapshot] | None:
    """The commits that wrote rows between two states; None if other things happened than appends and compactions.

    A state of None is that of a table without any commit.
    """
    first, last = (0 if state is None else state.id for state in (before, after))
    if last < first:
        return None
    try:
        if before is not None and stores.snapshots.get(first) != before:
            return None
        between = [stores.snapshots.get(number) for number in range(first + 1, last + 1)]
    except NotFound:
        return None  # expired, or rolled back
    appends = [snapshot for snapshot in between if snapshot.commit_kind == CommitKind.APPEND]
    harmless = (CommitKind.APPEND, CommitKind.COMPACT, CommitKind.ANALYZE)
    if any(snapshot.commit_kind not in harmless for snapshot in between):
        return None
    entries = (entry for snapshot in appends for entry in delta_entries(stores, snapshot))
    return appends if all(entry.kind == EntryKind.ADD for entry in entries) else None


def is_worth_following(appends: Iterable[Snapshot], after: Snapshot | None) -> bool:
    """Whether less is read by following these commits than by reading all keys there are."""
    row_count = sum(snapshot.delta_record_count for snapshot in appends)
    return after is not None and row_count <= max(after.total_record_count, _FEW_ROWS)


def only_compacted_since(stores: MetadataStores, before: Snapshot | None, after: Snapshot | None) -> bool:
    """Whether a state has the same rows as an earlier one because nothing but compactions lies in between."""
    return appended_since(stores, before, after) == []


def _written_ms(files: Iterable[DataFile]) -> int:
    return max((creation_time_to_epoch(file.creation_time_ms or 0) for file in files), default=0)


def _last_of_each(keys: pa.Array) -> npt.NDArray[np.bool_]:
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_last = np.zeros(len(keys), np.bool_)
    is_last[len(keys) - 1 - np.unique(codes[::-1], return_index=True)[1]] = True
    return is_last


__all__ = [
    "EVERYTHING",
    "KnownKeys",
    "TableKeys",
    "WrittenKeys",
    "appended_since",
    "is_worth_following",
    "only_compacted_since",
    "share_mark",
    "shares_of",
]
