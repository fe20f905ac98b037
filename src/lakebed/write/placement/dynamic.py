"""Buckets that an index of key hashes remembers, one index for each partition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from lakebed.bucket.dynamic import AssignerRules, PartitionBuckets
from lakebed.bucket.functions import Buckets
from lakebed.bucket.hashing import Hashes, hash_row
from lakebed.commit.message import CommitMessage
from lakebed.definition.bucket_mode import DYNAMIC, WritePart, assigner_rules, shared_rules
from lakebed.definition.context import TableContext
from lakebed.definition.memory import Slot
from lakebed.definition.partition_spec import key_hashes, partitions_of
from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import Bucket
from lakebed.metadata.hash_index import HashEntries, HashIndexStore, hash_entries
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass
from lakebed.types.binary_layout import ARITY_PREFIX_BYTES
from lakebed.write.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.write.route import by_partition


class Dynamic(Placement):
    """New keys fill the last bucket, then a new one."""

    mode = DYNAMIC

    def __init__(self, setup: PlacementSetup) -> None:
        super().__init__(setup)
        self._index = _KeyIndex(setup.context, setup.fileio, setup.base, setup.part)

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        hashes, partitions = key_hashes(self.context, rows), partitions_of(self.context, rows)
        self.check_replaced(partitions)
        buckets = by_partition(partitions, lambda where, mine: self._index.assign(where, hashes[mine]))
        return PlacedRows(rows, kinds, buckets, partitions)

    def index_files(self, buckets: Collection[Bucket]) -> Mapping[Bucket, IndexEntry]:
        return self._index.files(buckets)

    def remember(self, snapshot: Snapshot) -> None:
        self._index.remember()

    @classmethod
    def check_commit(cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
        _check_only_writer(context, messages, latest)


# --- The index of keys behind one write to a dynamic-bucket table: opened with the first row, written with the last
#
# Two writers at once may give a new key two different buckets, and nothing could merge its rows ever after. So a
# commit is refused when the index of a partition it writes to is no longer the one it started from.


class _KeyIndex:
    """Knows which bucket each key has, and keeps the buckets' index files complete.

    `base` is asked for the snapshot to start from; None for a write that replaces what it writes to, where no key is
    known. `part` is set where several writers share the work.
    """

    def __init__(
        self,
        context: TableContext,
        fileio: FileIO,
        base: Callable[[], Snapshot | None] | None,
        part: WritePart | None = None,
    ) -> None:
        self._context = context
        self._fileio = fileio
        self._base = base
        self._part = part
        self._opened: _HashIndexes | None = None
        self._written: dict[Bucket, IndexEntry] = {}

    def assign(self, partition: bytes, hashes: Hashes) -> Buckets:
        """The bucket of each key of a partition, given its hash."""
        with _of_a_base(self._context):
            return self._indexes().assign(partition, hashes)

    def files(self, buckets: Collection[Bucket]) -> Mapping[Bucket, IndexEntry]:
        """Writes the index files of those of these buckets that have new keys."""
        if self._opened is not None:
            hashes = self._opened.take_new()
            with _of_a_base(self._context):
                self._written = self._opened.write({bucket: hashes[bucket] for bucket in buckets if bucket in hashes})
        return self._written

    def remember(self) -> None:
        """Lets the next write of this handle start from here: what was written is committed."""
        if self._opened is not None:
            self._context.memory[KNOWN_BUCKETS] = self._opened.to_remember(self._written)

    def _indexes(self) -> _HashIndexes:
        if self._opened is None:
            context, part = self._context, self._part
            self._opened = _HashIndexes(
                self._fileio,
                context.paths,
                {} if self._base is None else hash_entries(context.stores, self._base()),
                assigner_rules(context.options) if part is None else shared_rules(context.options, part.count),
                share=None if part is None else part.number,
                remembered=context.memory[KNOWN_BUCKETS] if part is None else None,
                new_id=context.ids.new_id,
            )
        return self._opened


def _check_only_writer(context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
    """Refuses messages whose keys got their buckets from an index that is not the table's any more."""
    latest_id = latest.id if latest is not None else 0
    bases = {message.base_snapshot_id for message in messages} - {latest_id}
    if not bases:
        return
    now = hash_entries(context.stores, latest)
    for base_id in bases:
        then = _entries_at(context, base_id)
        for message in messages:
            partition = message.partition
            if message.base_snapshot_id == base_id and then.get(partition, {}) != now.get(partition, {}):
                where = context.partition_directory(partition)
                raise CommitConflict(
                    f"table `{context.name}`{f', partition {where}' if where else ''}: another job gave keys their "
                    "buckets since this write began",
                    hint="write again; a partition with dynamic buckets can have one writer at a time",
                )


def _entries_at(context: TableContext, snapshot_id: int) -> HashEntries:
    with _of_a_base(context):
        return hash_entries(context.stores, context.stores.snapshots.get(snapshot_id) if snapshot_id else None)


@contextmanager
def _of_a_base(context: TableContext) -> Iterator[None]:
    """Files of the snapshot that a write began from, which may have expired meanwhile."""
    try:
        yield
    except (NotFound, FileMissing) as error:
        raise CommitConflict(
            f"table `{context.name}`: the snapshot from which this write began has expired: whether another job gave "
            "keys their buckets since then can not be told",
            hint="write again, in smaller parts or with a longer `snapshot.time-retained`",
        ) from error


# ------------------------------------------------------------------------------------------------------------------
# Buckets of the keys of a dynamic-bucket table: known ones from the table's index files, new ones into new files.
#
#     indexes = _HashIndexes(fileio, paths, hash_entries(stores, snapshot), rules)
#     buckets = indexes.assign(partition, key_hashes)      # as often as there are rows
#     files = indexes.write(indexes.take_new())            # one index file for each bucket with new keys
#
# Where the work is shared, each worker gets the keys whose hashes leave its `share` as remainder (by the number of
# assigners), whatever their partition, and is the only one to place new keys in the buckets it hands out. A
# partition's index is read when its first row comes. It can be handed on to the next write: see `Remembered`.


@dataclass(frozen=True, slots=True)
class Remembered:
    """A partition's buckets as a finished commit left them. Good as long as the table has exactly these index files."""

    rules: AssignerRules
    files: Mapping[int, IndexEntry]
    buckets: PartitionBuckets


class _HashIndexes:
    """Assigns buckets in all partitions of a table, starting from the index files of one snapshot.

    `remembered` is what an earlier write knew. It is used up: the buckets of keys that never get committed must not
    be taken for known ones.
    """

    def __init__(
        self,
        fileio: FileIO,
        paths: TablePaths,
        entries: HashEntries,
        rules: AssignerRules,
        *,
        share: int | None = None,
        remembered: dict[bytes, Remembered] | None = None,
        new_id: Callable[[], object],
    ) -> None:
        self._store = HashIndexStore(fileio, paths, new_id)
        self._entries = entries
        self._rules = rules
        self._share = share
        self._remembered = remembered if remembered is not None else {}
        self._partitions: dict[bytes, PartitionBuckets] = {}

    def assign(self, partition: bytes, hashes: Hashes) -> Buckets:
        """The bucket of each key of a partition, given its hash."""
        buckets = self._partitions.get(partition)
        if buckets is None:
            buckets = self._partitions[partition] = self._loaded(partition)
        return buckets.assign(hashes)

    def take_new(self) -> dict[Bucket, Hashes]:
        """Hashes that were new since the last call, by partition and bucket."""
        return {
            (partition, bucket): hashes
            for partition, buckets in self._partitions.items()
            for bucket, hashes in buckets.take_new().items()
        }

    def write(self, hashes: Mapping[Bucket, Hashes]) -> dict[Bucket, IndexEntry]:
        """New index files of buckets with these new hashes besides those that they had."""
        written: dict[Bucket, IndexEntry] = {}
        for (partition, bucket), new in hashes.items():
            entry = self._entries.get(partition, {}).get(bucket)
            together = new if entry is None else np.concatenate([self._store.read(entry), new])
            written[partition, bucket] = self._store.write(partition, bucket, together)
        return written

    def to_remember(self, written: Mapping[Bucket, IndexEntry]) -> dict[bytes, Remembered]:
        """What the next write can use once these index files are committed: partitions that this one wrote to."""
        found: dict[bytes, Remembered] = {}
        for partition, buckets in self._partitions.items():
            files = dict(self._entries.get(partition, {}))
            files |= {bucket: entry for (other, bucket), entry in written.items() if other == partition}
            if len(buckets) == sum(entry.row_count for entry in files.values()):
                found[partition] = Remembered(self._rules, files, buckets)
        return found

    def _loaded(self, partition: bytes) -> PartitionBuckets:
        entries = self._entries.get(partition, {})
        known = self._remembered.pop(partition, None)
        if known is not None and known.rules == self._rules and known.files == entries:
            return known.buckets

        def stored() -> Iterator[tuple[int, Hashes]]:
            for bucket, entry in sorted(entries.items()):
                yield bucket, self._store.read(entry)

        counts = {bucket: entry.row_count for bucket, entry in entries.items()}
        start = partition_hash(partition)
        channel = None if self._share is None else (abs(start) + self._share) % self._rules.channels
        return PartitionBuckets(self._rules, start, counts, stored(), channel)


def partition_hash(partition: bytes) -> int:
    """The hash of a partition as manifests name it."""
    return hash_row(partition[ARITY_PREFIX_BYTES:])


KNOWN_BUCKETS: Slot[dict[bytes, Remembered]] = Slot("known buckets", of_history=True)


__all__ = ["Dynamic"]
