"""What commits and compactions did, from what their snapshots changed: as far as these are kept, whoever ran them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import pairwise

from lakebed.commit.compaction_note import CompactionNote
from lakebed.definition.context import TableContext
from lakebed.explain.origins import Delta, deltas_back_from
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.records import dataclass


@dataclass(frozen=True)
class CommitRecord:
    """What one snapshot changed."""

    delta: Delta
    before: Snapshot | None
    """The snapshot before it, if that is kept."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot."""
        return self.delta.snapshot

    @cached_property
    def came(self) -> FileSums:
        """Files that came."""
        return FileSums.of(self.delta.came.values())

    @cached_property
    def went(self) -> FileSums:
        """Files that went."""
        return FileSums.of(self.delta.went.values())

    @cached_property
    def buckets(self) -> int:
        """Buckets whose files changed."""
        entries = (*self.delta.came.values(), *self.delta.went.values())
        return len({(entry.partition, entry.bucket) for entry in entries})

    @cached_property
    def partitions(self) -> int:
        """Partitions whose files changed."""
        return len({entry.partition for entry in (*self.delta.came.values(), *self.delta.went.values())})

    @property
    def millis_since_last(self) -> int | None:
        """Time since the commit before."""
        return None if self.before is None else self.snapshot.time_millis - self.before.time_millis

    @cached_property
    def note(self) -> CompactionNote | None:
        """What a compaction has said of itself."""
        return CompactionNote.find(self.snapshot)

    @property
    def amplification(self) -> float | None:
        """Bytes that a compaction wrote for each byte of new data (level 0) that it took in; None without any."""
        new = sum(entry.file.size_bytes for entry in self.delta.went.values() if entry.file.level == 0)
        return round(self.came.size_bytes / new, 2) if new else None


@dataclass(frozen=True, slots=True)
class FileSums:
    """Some files together."""

    files: int
    size_bytes: int
    rows: int

    @staticmethod
    def of(entries: Collection[ManifestEntry]) -> FileSums:
        """Counts them."""
        return FileSums(
            len(entries),
            sum(entry.file.size_bytes for entry in entries),
            sum(entry.file.row_count for entry in entries),
        )


def commits(context: TableContext, snapshot: Snapshot | None) -> Iterator[CommitRecord]:
    """All commits up to a snapshot that are kept, oldest first."""
    deltas = list(deltas_back_from(context, snapshot))[::-1]
    for before, delta in pairwise([None, *deltas]):
        assert delta is not None
        yield CommitRecord(delta, None if before is None else before.snapshot)


def compactions(context: TableContext, snapshot: Snapshot | None) -> Iterator[CommitRecord]:
    """Those of them that compacted."""
    return (each for each in commits(context, snapshot) if each.snapshot.commit_kind is CommitKind.COMPACT)


__all__ = ["CommitRecord", "FileSums", "commits", "compactions"]
