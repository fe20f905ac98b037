"""Manifest lists: which manifests make up a snapshot's state or its change, with what planning needs to skip some.

A `ManifestMeta` is one line of such a list. Minimum and maximum members may be `None`: then nothing can be skipped.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar
from uuid import uuid4

from lakebed.fileio.base import FileIO
from lakebed.metadata.avro_container import (
    Record,
    RecordSchema,
    UnknownVersion,
    codec_name,
    decode,
    encode,
    optional,
    required,
)
from lakebed.metadata.corruption import checked_size
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.stats import SimpleStats, build_stats, stats_schema, stats_to_record
from lakebed.records import dataclass

_VERSION = 2
"""Format marker in every record; it has not changed since the format became public."""
_NAME = "org.apache.paimon.avro.generated.record"


@dataclass(frozen=True, slots=True)
class ManifestMeta:
    """One manifest, as a manifest list describes it."""

    file_name: str
    size_bytes: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None
    total_buckets: int | None = None
    extra_files: tuple[str, ...] | None = None


# --- Lists and manifests that were read or written lately: who commits or reads again need not decode them anew ---
#
# They never change under their names, so what was read once stays true. Large ones would push out the many small ones
# that each commit looks at: a few of them are kept beside, for the whole process, since a table of 100,000 files is
# planned in a quarter of a second with them, and in two seconds without.


_LARGEST_BYTES = 128 << 10
_MOST_BYTES = 2 << 20
"""Of the files; the entries in memory take about ten times as much."""

_MOST_LARGE_ENTRIES = 128_000
"""Of large files, in the whole process: about 100 mb."""

_Entry = TypeVar("_Entry")


class _LargeFiles:
    """Entries of large files of all tables, by path: names are unique. The least recently used ones go first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, tuple[Any, ...]]] = OrderedDict()
        self._entries = 0

    def get(self, path: str) -> tuple[int, tuple[Any, ...]] | None:
        with self._lock:
            found = self._kept.get(path)
            if found is not None:
                self._kept.move_to_end(path)
            return found

    def put(self, path: str, size_bytes: int, entries: Sequence[Any]) -> None:
        if len(entries) > _MOST_LARGE_ENTRIES:
            return
        with self._lock:
            if path in self._kept:
                return
            self._kept[path] = (size_bytes, tuple(entries))
            self._entries += len(entries)
            while self._entries > _MOST_LARGE_ENTRIES:
                _, (_, gone) = self._kept.popitem(last=False)
                self._entries -= len(gone)


_LARGE_FILES = _LargeFiles()


class MetadataCache(Generic[_Entry]):
    """Entries of files by path, the least recently used ones forgotten first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[int, tuple[_Entry, ...]]] = OrderedDict()
        self._size_bytes = 0
        self._large: _LargeFiles | None = _LARGE_FILES

    def without_large(self) -> MetadataCache[_Entry]:
        """A copy that knows the small files that are known now, and no large ones."""
        made: MetadataCache[_Entry] = MetadataCache()
        made._large = None
        with self._lock:
            made._kept, made._size_bytes = OrderedDict(self._kept), self._size_bytes
        return made

    def get(self, path: str, size_bytes: int | None) -> list[_Entry] | None:
        """The entries, if they are known and the file is as large as it should be."""
        with self._lock:
            found = self._kept.get(path)
            if found is not None:
                self._kept.move_to_end(path)
        if found is None and self._large is not None:
            found = self._large.get(path)
        return None if found is None or size_bytes not in (None, found[0]) else list(found[1])

    def put(self, path: str, size_bytes: int, entries: Sequence[_Entry]) -> None:
        """Keeps the entries of a file."""
        if size_bytes > _LARGEST_BYTES:
            if self._large is not None:
                self._large.put(path, size_bytes, entries)
            return
        with self._lock:
            if path not in self._kept:
                self._size_bytes += size_bytes
            self._kept[path] = (size_bytes, tuple(entries))
            while self._size_bytes > _MOST_BYTES:
                _, (gone_bytes, _) = self._kept.popitem(last=False)
                self._size_bytes -= gone_bytes


class ManifestListStore:
    """Reads and writes manifest lists of one table."""

    def __init__(
        self,
        fileio: FileIO,
        paths: TablePaths,
        compression: str = "zstd",
        level: int = 1,
        cache: MetadataCache[ManifestMeta] | None = None,
    ) -> None:
        self._fileio = fileio
        self._paths = paths
        self._compression = codec_name(compression)
        self._level = level
        self._cache = cache

    def write(self, metas: Iterable[ManifestMeta]) -> tuple[str, int]:
        """Write a new list, possibly empty; its name and its exact size, which the snapshot records."""
        name = f"manifest-list-{uuid4()}-0"
        lines = list(metas)
        data = encode(_SCHEMA, [_to_record(meta) for meta in lines], self._compression, self._level)
        path = self._paths.manifest_file(name)
        self._fileio.write_bytes(path, data)
        if self._cache is not None:
            self._cache.put(path, len(data), lines)
        return name, len(data)

    def read(self, name: str, size_bytes: int | None = None) -> list[ManifestMeta]:
        """The lines of a list; `size_bytes` is the size the snapshot recorded, if it did. None of what has no list."""
        if not name:
            return []
        path = self._paths.manifest_file(name)
        known = self._cache.get(path, size_bytes) if self._cache is not None else None
        if known is not None:
            return known
        data = checked_size(self._fileio.read_bytes(path), size_bytes, path)
        lines: list[ManifestMeta] = decode(data, _SCHEMA, path)
        if self._cache is not None:
            self._cache.put(path, len(data), lines)
        return lines

    def delete(self, name: str) -> bool:
        """Delete a list that no snapshot names; false when it was gone already."""
        return self._fileio.delete(self._paths.manifest_file(name))


def _to_record(meta: ManifestMeta) -> Record:
    return {
        "_VERSION": _VERSION,
        "_FILE_NAME": meta.file_name,
        "_FILE_SIZE": meta.size_bytes,
        "_NUM_ADDED_FILES": meta.num_added_files,
        "_NUM_DELETED_FILES": meta.num_deleted_files,
        "_PARTITION_STATS": stats_to_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        "_MIN_BUCKET": meta.min_bucket,
        "_MAX_BUCKET": meta.max_bucket,
        "_MIN_LEVEL": meta.min_level,
        "_MAX_LEVEL": meta.max_level,
        "_MIN_ROW_ID": meta.min_row_id,
        "_MAX_ROW_ID": meta.max_row_id,
        "_TOTAL_BUCKETS": meta.total_buckets,
        "_EXTRA_FILES": None if meta.extra_files is None else list(meta.extra_files),
    }


def _build(version: int, *members: Any) -> ManifestMeta:
    if version != _VERSION:
        raise UnknownVersion(f"version {version} of the manifest list, {_VERSION} is known")
    return ManifestMeta(*members)


# In the order of the members of `ManifestMeta`, after the version.
_SCHEMA = RecordSchema(
    _NAME,
    [
        required("_VERSION", "int"),
        required("_FILE_NAME", "string"),
        required("_FILE_SIZE", "long"),
        required("_NUM_ADDED_FILES", "long"),
        required("_NUM_DELETED_FILES", "long"),
        required("_PARTITION_STATS", stats_schema(f"{_NAME}__PARTITION_STATS")),
        required("_SCHEMA_ID", "long"),
        optional("_MIN_BUCKET", "int"),
        optional("_MAX_BUCKET", "int"),
        optional("_MIN_LEVEL", "int"),
        optional("_MAX_LEVEL", "int"),
        optional("_MIN_ROW_ID", "long"),
        optional("_MAX_ROW_ID", "long"),
        optional("_TOTAL_BUCKETS", "int"),
        optional("_EXTRA_FILES", {"type": "array", "items": "string"}),
    ],
    {_NAME: _build, f"{_NAME}__PARTITION_STATS": build_stats},
)
