"""Manifests: which data files were added to, and removed from, which partition and bucket.

A version of a table is the sum of its manifests: files added and not removed (`live_entries`). Manifest reading is on
the way of every query, so entries stay close to the bytes: no statistics, key or time is decoded here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from enum import IntEnum
from itertools import islice
from typing import Any
from uuid import uuid4

from lakebed.errors import CorruptFile
from lakebed.fileio.base import FileIO
from lakebed.fileio.together import answers_late
from lakebed.metadata.avro_container import (
    ContainerWriter,
    Record,
    RecordSchema,
    UnknownVersion,
    codec_name,
    decode,
    required,
)
from lakebed.metadata.corruption import checked_size
from lakebed.metadata.data_file import DataFile, data_file_builders, data_file_schema, data_file_to_record
from lakebed.metadata.manifest_list import ManifestMeta, MetadataCache
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.stats import partition_stats
from lakebed.records import dataclass
from lakebed.types.logical import DataType

DEFAULT_TARGET_SIZE_BYTES = 8 << 20
_ENTRIES_PER_BLOCK = 512
"""Large enough for the compression to find the repetition, small enough to end a file near its target size."""
_VERSION = 2
_NAME = "org.apache.paimon.avro.generated.record"


class EntryKind(IntEnum):
    """Whether an entry adds a file or removes it."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One file added or removed. `partition` is the BinaryRow of the partition values.

    `total_buckets` is the number of buckets when the file was written: -1 where buckets are not fixed, -2 for files
    that wait for a bucket.
    """

    kind: EntryKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile

    @property
    def identity(self) -> Hashable:
        """What makes two entries speak of the same file; the level is part of it, sizes and statistics are not."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )


def live_entries(entries: Iterable[ManifestEntry], *, strict: bool = False) -> list[ManifestEntry]:
    """The ADD entries that no later DELETE entry takes back, in the order in which their files were first added.

    Order counts: a file that is deleted and added again lives, which happens when an older state is brought back. A
    file added twice counts once. With `strict`, that and a DELETE without its ADD are `CorruptFile`; without, they are
    passed over. Other readers know no order: to them a DELETE is the end of a file, wherever it stands, so whoever
    adds a file again makes sure that no manifest of the new state deletes it (`commit.manifest_merge`).
    """
    live: dict[Hashable, ManifestEntry] = {}
    for entry in entries:
        identity = entry.identity
        if strict and (identity in live) != (entry.kind == EntryKind.DELETE):
            raise _inconsistent(entry, "without having been added" if entry.kind else "twice")
        if entry.kind == EntryKind.DELETE:
            live.pop(identity, None)
        else:
            live.setdefault(identity, entry)
    return list(live.values())


def merge_entries(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """The same change in fewer entries: what is added and deleted here is left out, one entry of each file stays.

    A DELETE whose ADD lies in an older manifest stays. A file that an older manifest adds, and that is deleted and
    added again here, needs no entry at all.
    """
    first: dict[Hashable, ManifestEntry] = {}
    last: dict[Hashable, ManifestEntry] = {}
    for entry in entries:
        first.setdefault(entry.identity, entry)
        last[entry.identity] = entry
    return [entry for identity, entry in first.items() if last[identity].kind == entry.kind]


def _inconsistent(entry: ManifestEntry, how: str) -> CorruptFile:
    verb = "deleted" if entry.kind else "added"
    return CorruptFile(
        f"manifests contradict each other: data file {entry.file.file_name} of bucket {entry.bucket} is {verb} {how}",
        hint="roll the table back to the last snapshot before this, or rewrite the partition from its source",
    )


class ManifestStore:
    """Reads and writes manifests of one table."""

    def __init__(
        self,
        fileio: FileIO,
        paths: TablePaths,
        compression: str = "zstd",
        level: int = 1,
        cache: MetadataCache[ManifestEntry] | None = None,
    ) -> None:
        self._fileio = fileio
        self._paths = paths
        self._compression = codec_name(compression)
        self._level = level
        self._cache = cache

    def write(
        self,
        entries: Iterable[ManifestEntry],
        partition_types: Sequence[DataType],
        target_size_bytes: int = DEFAULT_TARGET_SIZE_BYTES,
    ) -> list[ManifestMeta]:
        """Write the entries to as many new manifests as the target size asks for; none when there is no entry."""
        metas: list[ManifestMeta] = []
        remaining = iter(entries)
        block = list(islice(remaining, _ENTRIES_PER_BLOCK))
        while block:
            writer = ContainerWriter(_SCHEMA, self._compression, self._level)
            written: list[ManifestEntry] = []
            while block and (not written or writer.size_bytes < target_size_bytes):
                writer.append([_to_record(entry) for entry in block])
                written += block
                block = list(islice(remaining, _ENTRIES_PER_BLOCK))
            data = writer.finish()
            name = f"manifest-{uuid4()}-0"
            path = self._paths.manifest_file(name)
            self._fileio.write_bytes(path, data)
            if self._cache is not None and answers_late(self._fileio):
                self._cache.put(path, len(data), written)  # or the next commit would have to ask for it
            metas.append(_describe(name, len(data), written, partition_types))
        return metas

    def read(self, file_name: str, size_bytes: int | None = None) -> list[ManifestEntry]:
        """The entries of a manifest; `size_bytes` is the size that its manifest list records."""
        path = self._paths.manifest_file(file_name)
        known = self._cache.get(path, size_bytes) if self._cache is not None else None
        if known is not None:
            return known
        data = checked_size(self._fileio.read_bytes(path), size_bytes, path)
        entries: list[ManifestEntry] = decode(data, _SCHEMA, path)
        if self._cache is not None:
            self._cache.put(path, len(data), entries)
        return entries

    def delete(self, file_name: str) -> bool:
        """Delete a manifest that no list names; false when it was gone already."""
        return self._fileio.delete(self._paths.manifest_file(file_name))


def _describe(
    name: str, size_bytes: int, entries: Sequence[ManifestEntry], partition_types: Sequence[DataType]
) -> ManifestMeta:
    files = [entry.file for entry in entries]
    buckets = [entry.bucket for entry in entries]
    levels = [file.level for file in files]
    deleted = sum(1 for entry in entries if entry.kind is EntryKind.DELETE)
    # Row ids help only if every file has them: a file without could hold any.
    row_ids = [
        (file.first_row_id, file.first_row_id + file.row_count - 1) for file in files if file.first_row_id is not None
    ]
    tracked = len(row_ids) == len(files)
    totals = {entry.total_buckets for entry in entries}
    total = totals.pop() if len(totals) == 1 else 0
    return ManifestMeta(
        name,
        size_bytes,
        len(entries) - deleted,
        deleted,
        partition_stats((entry.partition for entry in entries), partition_types),
        max(file.schema_id for file in files),
        min(buckets),
        max(buckets),
        min(levels),
        max(levels),
        min(first for first, _ in row_ids) if tracked else None,
        max(last for _, last in row_ids) if tracked else None,
        total if total > 0 else None,
    )


def _to_record(entry: ManifestEntry) -> Record:
    return {
        "_VERSION": _VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": data_file_to_record(entry.file),
    }


_KINDS = (EntryKind.ADD, EntryKind.DELETE)


def _build(version: int, kind: int, *members: Any) -> ManifestEntry:
    if version != _VERSION:
        raise UnknownVersion(f"version {version} of the manifest, {_VERSION} is known")
    if kind not in (0, 1):
        raise ValueError(f"entry kind {kind} is neither added nor deleted")
    return ManifestEntry(_KINDS[kind], *members)


# Exactly these, in this order and none nullable: current Java readers insist on it.
_SCHEMA = RecordSchema(
    _NAME,
    [
        required("_VERSION", "int"),
        required("_KIND", "int"),
        required("_PARTITION", "bytes"),
        required("_BUCKET", "int"),
        required("_TOTAL_BUCKETS", "int"),
        required("_FILE", data_file_schema(f"{_NAME}__FILE")),
    ],
    {_NAME: _build, **data_file_builders(f"{_NAME}__FILE")},
)
