"""The live files of all buckets at a snapshot, kept from one question to the next.

Reading all manifests for a handful of keys would take longer than finding them. What changed since the last question
is read instead, as long as the snapshots in between are there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field

from lakebed.definition.memory import Slot
from lakebed.errors import FileMissing, NotFound
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass

BucketKey = tuple[int, int]
"""A bucket of a partition, and the number of buckets that its rows were hashed into."""
_Files = dict[Hashable, DataFile]


@dataclass(frozen=True, slots=True)
class LiveBuckets:
    """All buckets at a snapshot (None: an empty table). Rows that wait for their bucket are in none."""

    snapshot: Snapshot | None = None
    _partitions: dict[bytes, dict[BucketKey, _Files]] = field(default_factory=dict)

    @staticmethod
    def load(stores: MetadataStores, snapshot: Snapshot | None) -> LiveBuckets:
        """Reads all manifests of the snapshot."""
        found = LiveBuckets(snapshot)
        found._apply(live_files(stores, snapshot))
        return found

    @staticmethod
    def of(entries: Iterable[ManifestEntry]) -> LiveBuckets:
        """These files, of whichever snapshot, by bucket."""
        found = LiveBuckets()
        found._apply(entries)
        return found

    @property
    def partitions(self) -> Iterable[bytes]:
        """The partitions that have files."""
        return self._partitions.keys()

    def of_partition(self, partition: bytes) -> Mapping[BucketKey, list[DataFile]]:
        """The buckets of a partition with their files."""
        return {bucket: list(files.values()) for bucket, files in self._partitions.get(partition, {}).items()}

    def moved_to(self, stores: MetadataStores, snapshot: Snapshot | None) -> LiveBuckets:
        """The buckets at another snapshot."""
        if snapshot == self.snapshot:
            return self
        if snapshot is None or self.snapshot is None or not 0 < snapshot.id - self.snapshot.id <= _MOST_STEPS:
            return LiveBuckets.load(stores, snapshot)
        try:
            if stores.snapshots.get(self.snapshot.id) != self.snapshot:  # rolled back, and begun anew
                return LiveBuckets.load(stores, snapshot)
            between = [stores.snapshots.get(number) for number in range(self.snapshot.id + 1, snapshot.id)]
            changes = [entry for step in (*between, snapshot) for entry in delta_entries(stores, step)]
        except (NotFound, FileMissing):  # expired in the meantime
            return LiveBuckets.load(stores, snapshot)
        moved = LiveBuckets(snapshot, dict(self._partitions))
        for partition in {entry.partition for entry in changes}:
            before = self._partitions.get(partition, {})
            moved._partitions[partition] = {bucket: dict(files) for bucket, files in before.items()}
        moved._apply(changes)
        return moved

    def _apply(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            if entry.bucket < 0:
                continue
            buckets = self._partitions.setdefault(entry.partition, {})
            files = buckets.setdefault((entry.bucket, entry.total_buckets), {})
            if entry.kind == EntryKind.ADD:
                files[entry.identity] = entry.file
            else:
                files.pop(entry.identity, None)


_MOST_STEPS = 64
"""After more commits than this, reading the whole state is quicker than reading what each changed."""


LIVE_BUCKETS: Slot[LiveBuckets] = Slot("live buckets", is_shared=True)


__all__ = ["LIVE_BUCKETS", "BucketKey", "LiveBuckets"]
