"""Data files taken together by partition or bucket, and what they add up to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property

from lakebed.metadata.manifest import ManifestEntry
from lakebed.records import dataclass
from lakebed.table.system.base import each


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition, or of one bucket of it; at least one."""

    entries: tuple[ManifestEntry, ...]

    @property
    def partition(self) -> bytes:
        """The partition of all of them."""
        return self.entries[0].partition

    @property
    def bucket(self) -> int:
        """The bucket, if they are of one."""
        return self.entries[0].bucket

    @property
    def total_buckets(self) -> int:
        """How many buckets the newest file was written for."""
        return max(self.entries, key=lambda entry: entry.file.creation_time_ms or 0).total_buckets

    @cached_property
    def record_count(self) -> int:
        """Rows in all files, before they are merged."""
        return sum(entry.file.row_count for entry in self.entries)

    @cached_property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(entry.file.size_bytes for entry in self.entries)

    @property
    def last_update_ms(self) -> int | None:
        """Local time when the newest file was made."""
        times = [entry.file.creation_time_ms for entry in self.entries if entry.file.creation_time_ms is not None]
        return max(times, default=None)


def by_partition(entries: Iterable[ManifestEntry]) -> list[FileGroup]:
    """One group for each partition that has files."""
    return _grouped(entries, lambda entry: entry.partition)


def by_bucket(entries: Iterable[ManifestEntry]) -> list[FileGroup]:
    """One group for each bucket that has files."""
    return _grouped(entries, lambda entry: (entry.partition, entry.bucket))


def _grouped(entries: Iterable[ManifestEntry], key: Callable[[ManifestEntry], Hashable]) -> list[FileGroup]:
    groups: dict[Hashable, list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return [FileGroup(tuple(group)) for group in groups.values()]


SUMS = (
    each("record_count", "BIGINT NOT NULL", lambda group: group.record_count),
    each("file_size_in_bytes", "BIGINT NOT NULL", lambda group: group.size_bytes),
    each("file_count", "BIGINT NOT NULL", lambda group: len(group.entries)),
    each("last_update_time", "TIMESTAMP(3)", lambda group: group.last_update_ms),
)
"""The columns that say what the files add up to."""

__all__ = ["SUMS", "FileGroup", "by_bucket", "by_partition"]
