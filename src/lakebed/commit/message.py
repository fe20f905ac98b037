"""What a writer hands to the committer: the files it made for one bucket. Travels as JSON between processes."""

from __future__ import annotations

import base64
from typing import Any

from lakebed.metadata.data_file import DataFile
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.records import dataclass

_FILE_LISTS = (
    "new_files",
    "deleted_files",
    "changelog_files",
    "recorded_files",
    "compact_before",
    "compact_after",
    "compact_changelog",
)
_INDEX_LISTS = ("new_index_files", "removed_index_files")


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """Files of one (partition, bucket). `base_snapshot_id` is the state the sequence numbers continue from.

    `deleted_files` are replaced by `new_files`: rewritten because some of their rows changed. `recorded_files` hold the
    rows as they came, from which the changelog can be made anew; they are not committed.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    base_snapshot_id: int
    new_files: tuple[DataFile, ...] = ()
    changelog_files: tuple[DataFile, ...] = ()
    compact_before: tuple[DataFile, ...] = ()
    compact_after: tuple[DataFile, ...] = ()
    compact_changelog: tuple[DataFile, ...] = ()
    deleted_files: tuple[DataFile, ...] = ()
    new_index_files: tuple[IndexEntry, ...] = ()
    removed_index_files: tuple[IndexEntry, ...] = ()
    recorded_files: tuple[DataFile, ...] = ()

    def entries(self, kind: EntryKind, files: tuple[DataFile, ...]) -> list[ManifestEntry]:
        """Manifest entries for files of this bucket."""
        return [ManifestEntry(kind, self.partition, self.bucket, self.total_buckets, file) for file in files]

    def to_json(self) -> dict[str, Any]:
        """A plain object of JSON types."""
        body: dict[str, Any] = {
            "partition": base64.b64encode(self.partition).decode(),
            "bucket": self.bucket,
            "total_buckets": self.total_buckets,
            "base_snapshot_id": self.base_snapshot_id,
        }
        for name in _FILE_LISTS:
            body[name] = [file.to_json() for file in getattr(self, name)]
        for name in _INDEX_LISTS:
            body[name] = [entry.to_json() for entry in getattr(self, name)]
        return body

    @staticmethod
    def from_json(body: dict[str, Any]) -> CommitMessage:
        """Inverse of `to_json`."""
        lists: dict[str, Any] = {
            **{name: tuple(DataFile.from_json(file) for file in body[name]) for name in _FILE_LISTS},
            **{name: tuple(IndexEntry.from_json(entry) for entry in body[name]) for name in _INDEX_LISTS},
        }
        return CommitMessage(
            base64.b64decode(body["partition"]),
            int(body["bucket"]),
            int(body["total_buckets"]),
            int(body["base_snapshot_id"]),
            **lists,
        )
