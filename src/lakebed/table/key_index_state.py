"""Where all keys of a table are, in memory: what a writer across partitions knows, and hands on to the next write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.bucket.dynamic import BucketFiller
from lakebed.bucket.key_places import UNKNOWN, KeyPlaces
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.memory import Slot
from lakebed.table.table_keys import KnownKeys, WrittenKeys


@dataclass(slots=True)
class KeyIndexState:
    """All keys of a table and where they are; partitions have numbers in the order of their appearance."""

    snapshot: Snapshot | None = None
    read_ms: int = 0
    """When it was read from the table."""
    places: KeyPlaces = field(default_factory=KeyPlaces)
    partitions: list[bytes] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    counts: dict[int, dict[int, int]] = field(default_factory=dict)
    """Rows in each bucket of a partition when the index was read."""
    fillers: dict[int, BucketFiller] = field(default_factory=dict)

    def learn(self, known: KnownKeys, row_count: int) -> None:
        """Takes note of where keys lie, and of how many rows their bucket has. Where a key is known to be stays."""
        number = self.number(known.partition)
        in_bucket = self.counts.setdefault(number, {})
        in_bucket[known.bucket] = in_bucket.get(known.bucket, 0) + row_count
        is_new = _first_of_each(known.keys) & (self.places.find(known.hashes, known.keys) == UNKNOWN)
        new = known.chosen(is_new)
        count = len(new.keys)
        where = np.full(count, number, np.int64), np.full(count, known.bucket, np.int64)
        self.places.add(new.hashes, new.keys, *where)

    def follow(self, written: Iterable[WrittenKeys], *, moves: bool) -> None:
        """Takes note of what a commit wrote: new keys, and known ones if they move. Where a key was deleted stays."""
        for each in written:
            known = each.known.chosen(~each.is_gone)
            entries = self.places.find(known.hashes, known.keys)
            is_new = entries == UNKNOWN
            number = self.number(known.partition)
            if moves:
                self.places.partitions[entries[~is_new]] = number
                self.places.buckets[entries[~is_new]] = known.bucket
            new = known.chosen(is_new)
            count = len(new.keys)
            where = np.full(count, number, np.int64), np.full(count, known.bucket, np.int64)
            self.places.add(new.hashes, new.keys, *where)

    def count_anew(self) -> None:
        """Counts the rows of buckets by the keys that are there."""
        self.fillers, self.counts = {}, {}
        packed = self.places.partitions.astype(np.int64) << 16 | self.places.buckets.astype(np.int64)
        for place, count in zip(*(found.tolist() for found in np.unique(packed, return_counts=True)), strict=True):
            self.counts.setdefault(place >> 16, {})[place & 0xFFFF] = count

    def number(self, partition: bytes) -> int:
        """The number of a partition."""
        if partition not in self.numbers:
            self.numbers[partition] = len(self.partitions)
            self.partitions.append(partition)
        return self.numbers[partition]


def _first_of_each(keys: pa.Array) -> npt.NDArray[np.bool_]:
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[np.unique(codes, return_index=True)[1]] = True
    return is_first


KEY_INDEX: Slot[KeyIndexState] = Slot("key index")
