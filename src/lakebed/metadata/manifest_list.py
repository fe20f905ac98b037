"""Manifest lists: which manifests make up a snapshot's state or its change, with what planning needs to skip some.

A `ManifestMeta` is one line of such a list. Minimum and maximum members may be `None`: then nothing can be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
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


class ManifestListStore:
    """Reads and writes manifest lists of one table."""

    def __init__(self, fileio: FileIO, paths: TablePaths, compression: str = "zstd", level: int = 1) -> None:
        self._fileio = fileio
        self._paths = paths
        self._compression = codec_name(compression)
        self._level = level

    def write(self, metas: Iterable[ManifestMeta]) -> tuple[str, int]:
        """Write a new list, possibly empty; its name and its exact size, which the snapshot records."""
        name = f"manifest-list-{uuid4()}-0"
        data = encode(_SCHEMA, [_to_record(meta) for meta in metas], self._compression, self._level)
        self._fileio.write_bytes(self._paths.manifest_file(name), data)
        return name, len(data)

    def read(self, name: str, size_bytes: int | None = None) -> list[ManifestMeta]:
        """The lines of a list; `size_bytes` is the size the snapshot recorded, if it did. None of what has no list."""
        if not name:
            return []
        path = self._paths.manifest_file(name)
        data = checked_size(self._fileio.read_bytes(path), size_bytes, path)
        return decode(data, _SCHEMA, path)

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
