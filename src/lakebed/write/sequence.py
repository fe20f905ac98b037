"""What a writer must know of the buckets it adds to: their highest sequence number, their bucket count.

INVARIANT: the next row of a bucket gets a number above those of all its live files. Of two rows of a key the higher
number wins: a new row with a lower one would be taken for old, and be merged away without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import field, replace
from functools import partial

from lakebed.commit.sequence_state import kept_number
from lakebed.definition.memory import Slot
from lakebed.errors import CommitConflict, FileMissing, NotFound
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass


@dataclass(slots=True)
class BucketStates:
    """State of all buckets as of a snapshot (None: an empty table)."""

    snapshot: Snapshot | None = None
    _max_sequence: dict[tuple[bytes, int], int] = field(default_factory=dict)
    _bucket_counts: dict[bytes, int] = field(default_factory=dict)
    _runs: dict[tuple[bytes, int], Counter[str]] = field(default_factory=dict)
    """How many files each run of a bucket has; never changed in place, since states share them."""
    _knows_runs: bool = True
    _numbers_left_out: int = 0
    _highest_kept: int | None = None

    @staticmethod
    def load(
        stores: MetadataStores, snapshot: Snapshot | None, partitions: Collection[bytes] | None = None
    ) -> BucketStates:
        """Reads the state from the live files of a snapshot: all of them, or those of some partitions."""
        states = BucketStates(snapshot)
        keep = None if partitions is None else partial(_of_partitions, partitions)
        states._add(live_files(stores, snapshot, keep_entries=keep))
        return states

    @staticmethod
    def kept_by(snapshot: Snapshot | None) -> BucketStates:
        """What a snapshot itself says, without a look at files: one highest number for all buckets."""
        return BucketStates(snapshot, _highest_kept=kept_number(snapshot))

    @property
    def knows_files(self) -> bool:
        """Whether the state comes from files, so that bucket counts and runs are known."""
        return self._highest_kept is None

    @property
    def snapshot_id(self) -> int:
        """Id of the snapshot; 0 for an empty table."""
        return self.snapshot.id if self.snapshot else 0

    def next_sequence_number(self, partition: bytes, bucket: int) -> int:
        """The number for the next row of a bucket."""
        highest = -1 if self._highest_kept is None else self._highest_kept
        return self._max_sequence.get((partition, bucket), highest) + 1 + self._numbers_left_out

    def leaving_out(self, count: int) -> BucketStates:
        """The same state with so many sequence numbers left to others who write to the same buckets."""
        return replace(self, _numbers_left_out=count)

    def without_runs(self) -> BucketStates:
        """The same state for those who only number rows: it travels to every task."""
        return replace(self, _runs={}, _knows_runs=False)

    def run_count(self, partition: bytes, bucket: int) -> int:
        """Sorted runs of a bucket."""
        return len(self._runs.get((partition, bucket), ()))

    def bucket_count(self, partition: bytes) -> int | None:
        """Into how many buckets the rows of a partition are hashed; None if it has none yet."""
        return self._bucket_counts.get(partition)

    def check_bucket_count(self, table: str, partition: bytes, total_buckets: int) -> None:
        """Refuses files hashed into another number of buckets than the partition's live files."""
        current = self._bucket_counts.get(partition, total_buckets)
        if current > 0 and total_buckets > 0 and current != total_buckets:
            raise CommitConflict(
                f"table `{table}` is set to {total_buckets} buckets, but a partition's files are in {current}",
                hint="if another writer was first, write the rows again; if `bucket` was changed, rewrite the "
                "partition with an overwrite first",
            )

    def advanced_to(self, stores: MetadataStores, latest: Snapshot | None) -> BucketStates:
        """The state at a later snapshot; cheap when only appends and compactions lie in between."""
        if latest == self.snapshot:
            return self
        if self._highest_kept is not None and kept_number(latest) is not None:
            return BucketStates.kept_by(latest)
        if self._highest_kept is not None:
            return BucketStates.load(stores, latest)
        # INVARIANT: a state is only carried on along the history it is of. Behind a rollback ids come back with other
        # files, and what is remembered of the old ones says nothing of these.
        if latest is None or not self._is_before(stores, latest):
            return BucketStates.load(stores, latest)
        states = BucketStates(
            latest, dict(self._max_sequence), dict(self._bucket_counts), dict(self._runs), self._knows_runs
        )
        try:
            for snapshot_id in range(self.snapshot_id + 1, latest.id + 1):
                snapshot = latest if snapshot_id == latest.id else stores.snapshots.get(snapshot_id)
                entries = delta_entries(stores, snapshot)
                # Compactions keep the highest number of a bucket, or leave out what had it: lower ones are free then,
                # but none is taken twice if they are not used.
                if snapshot.commit_kind != CommitKind.COMPACT and any(e.kind == EntryKind.DELETE for e in entries):
                    return BucketStates.load(stores, latest)
                states._add(entries)
        except (NotFound, FileMissing):  # expired in the meantime
            return BucketStates.load(stores, latest)
        return states

    def _is_before(self, stores: MetadataStores, latest: Snapshot) -> bool:
        """Whether `latest` came after our snapshot, rather than after a rollback that removed it."""
        if self.snapshot is None:
            return True
        try:
            return latest.id > self.snapshot.id and stores.snapshots.get(self.snapshot.id) == self.snapshot
        except NotFound:
            return False

    def _add(self, entries: Iterable[ManifestEntry]) -> None:
        changed: dict[tuple[bytes, int], Counter[str]] = {}
        for entry in entries:
            bucket = (entry.partition, entry.bucket)
            # A file of level 0 is a run by itself; those of a higher level are one together.
            run = entry.file.file_name if entry.file.level == 0 else f"level {entry.file.level}"
            runs = changed.setdefault(bucket, Counter())
            runs[run] += 1 if entry.kind == EntryKind.ADD else -1
            if entry.kind == EntryKind.DELETE:
                continue
            self._max_sequence[bucket] = max(self._max_sequence.get(bucket, -1), entry.file.max_sequence_number)
            if entry.total_buckets > 0:
                self._bucket_counts[entry.partition] = entry.total_buckets
        for bucket, runs in changed.items():
            before = self._runs.get(bucket, Counter())
            counts = {run: before[run] + runs[run] for run in {*before, *runs}}
            self._runs[bucket] = Counter({run: count for run, count in counts.items() if count > 0})
        emptied = {partition for partition, bucket in changed if not self._runs[partition, bucket]}
        if emptied and self._knows_runs:
            # Nothing is hashed there any more: the next rows may come in another number of buckets.
            for partition in emptied - {bucket[0] for bucket, runs in self._runs.items() if runs}:
                self._bucket_counts.pop(partition, None)


def _of_partitions(partitions: Collection[bytes], entries: list[ManifestEntry]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.partition in partitions]


BUCKET_STATES: Slot[BucketStates] = Slot("bucket states", of_history=True)
