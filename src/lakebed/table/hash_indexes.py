"""Buckets of the keys of a dynamic-bucket table: known ones from the table's index files, new ones into new files.

    indexes = HashIndexes(fileio, paths, hash_entries(stores, snapshot), rules)
    buckets = indexes.assign(partition, key_hashes)      # as often as there are rows
    files = indexes.write(indexes.take_new())            # one index file for each bucket with new keys

Where the work is shared, each worker gets the keys whose hashes leave its `share` as remainder (by the number of
assigners), whatever their partition, and is the only one to place new keys in the buckets it hands out. A partition's
index is read when its first row comes. It can be handed on to the next write: see `Remembered`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from lakebed.bucket.base import Buckets
from lakebed.bucket.dynamic import AssignerRules, PartitionBuckets
from lakebed.bucket.hashing import Hashes, hash_row
from lakebed.fileio.base import FileIO
from lakebed.metadata.entries import Bucket
from lakebed.metadata.hash_index import HashEntries, HashIndexStore
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.table.memory import Slot
from lakebed.types.binary_layout import ARITY_PREFIX_BYTES


@dataclass(frozen=True, slots=True)
class Remembered:
    """A partition's buckets as a finished commit left them. Good as long as the table has exactly these index files."""

    rules: AssignerRules
    files: Mapping[int, IndexEntry]
    buckets: PartitionBuckets


class HashIndexes:
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
        new_id: Callable[[], object] = uuid4,
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
