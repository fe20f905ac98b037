"""Index manifests: the complete list of a snapshot's index files, unlike manifests not a list of changes.

An index file holds deletion vectors or key hashes of one bucket, or part of a global index. This module says which
files there are and where in them each deletion vector lies; it does not read them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import asdict, astuple, fields
from typing import Any
from uuid import uuid4

from lakebed.errors import InvalidArgument
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
from lakebed.records import dataclass

HASH_INDEX = "HASH"
DELETION_VECTORS_INDEX = "DELETION_VECTORS"

_VERSION = 1
_NAME = "org.apache.paimon.avro.generated.record"
_RANGE: Record = {
    "type": "record",
    "name": f"{_NAME}__DELETIONS_VECTORS_RANGES",
    "fields": [
        required("f0", "string"),
        required("f1", "int"),
        required("f2", "int"),
        optional("_CARDINALITY", "long"),
    ],
}
_GLOBAL_INDEX: Record = {
    "type": "record",
    "name": f"{_NAME}__GLOBAL_INDEX",
    "fields": [
        required("_ROW_RANGE_START", "long"),
        required("_ROW_RANGE_END", "long"),
        required("_INDEX_FIELD_ID", "int"),
        optional("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        optional("_INDEX_META", "bytes"),
        optional("_SOURCE_META", "bytes"),
    ],
}


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """Where the deletion vector of one data file lies within an index file.

    What `length` counts differs between the two kinds of vectors; `cardinality` counts deleted rows, if known.
    """

    data_file_name: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class GlobalIndex:
    """What a file of a global index covers. Lakebed keeps such entries of other writers, and makes none."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One index file. `row_count` counts hashes or deletion vectors; `partition` is a BinaryRow."""

    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    size_bytes: int
    row_count: int
    deletion_vector_ranges: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values only, bytes as base64: commit messages travel as JSON."""
        ranges, index = self.deletion_vector_ranges, self.global_index
        body = {member.name: getattr(self, member.name) for member in fields(self)}
        body["partition"] = _to_text(self.partition)
        body["deletion_vector_ranges"] = None if ranges is None else [list(astuple(vector)) for vector in ranges]
        if index is not None:
            body["global_index"] = asdict(index) | {
                "index_meta": _to_text(index.index_meta),
                "source_meta": _to_text(index.source_meta),
            }
        return body

    @staticmethod
    def from_json(body: dict[str, Any]) -> IndexEntry:
        """Inverse of `to_json`."""
        try:
            values = dict(body)
            values["partition"] = _to_bytes(values["partition"])
            if values["deletion_vector_ranges"] is not None:
                values["deletion_vector_ranges"] = tuple(
                    DeletionVectorRange(*members) for members in values["deletion_vector_ranges"]
                )
            if values["global_index"] is not None:
                index = dict(values["global_index"])
                index["extra_field_ids"] = None if index["extra_field_ids"] is None else tuple(index["extra_field_ids"])
                index["index_meta"] = _to_bytes(index["index_meta"])
                index["source_meta"] = _to_bytes(index["source_meta"])
                values["global_index"] = GlobalIndex(**index)
            return IndexEntry(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(
                f"this JSON does not describe an index file: {type(error).__name__} {error}",
                hint="pass what IndexEntry.to_json of the same version of lakebed returned",
            ) from error


def _to_text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _to_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


class IndexManifestStore:
    """Reads and writes index manifests of one table."""

    def __init__(self, fileio: FileIO, paths: TablePaths, compression: str = "zstd", level: int = 1) -> None:
        self._fileio = fileio
        self._paths = paths
        self._compression = codec_name(compression)
        self._level = level

    def write(self, entries: Iterable[IndexEntry]) -> str:
        """Write a new index manifest; its name, which the snapshot records."""
        name = f"index-manifest-{uuid4()}-0"
        data = encode(_SCHEMA, [_to_record(entry) for entry in entries], self._compression, self._level)
        self._fileio.write_bytes(self._paths.manifest_file(name), data)
        return name

    def read(self, name: str, size_bytes: int | None = None) -> list[IndexEntry]:
        """The entries of an index manifest."""
        path = self._paths.manifest_file(name)
        data = checked_size(self._fileio.read_bytes(path), size_bytes, path)
        return decode(data, _SCHEMA, path)

    def delete(self, name: str) -> bool:
        """Delete an index manifest that no snapshot names; false when it was gone already."""
        return self._fileio.delete(self._paths.manifest_file(name))


def _to_record(entry: IndexEntry) -> Record:
    ranges = entry.deletion_vector_ranges
    index = entry.global_index
    return {
        "_VERSION": _VERSION,
        "_KIND": 0,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.size_bytes,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None
        if ranges is None
        else [{"f0": r.data_file_name, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges],
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": None
        if index is None
        else {
            "_ROW_RANGE_START": index.row_range_start,
            "_ROW_RANGE_END": index.row_range_end,
            "_INDEX_FIELD_ID": index.index_field_id,
            "_EXTRA_FIELD_IDS": None if index.extra_field_ids is None else list(index.extra_field_ids),
            "_INDEX_META": index.index_meta,
            "_SOURCE_META": index.source_meta,
        },
    }


def _build(version: int, kind: int, *members: Any) -> IndexEntry:
    if version != _VERSION:
        raise UnknownVersion(f"version {version} of the index manifest, {_VERSION} is known")
    if kind != 0:
        raise ValueError(f"entry kind {kind}, but an index manifest lists only files that exist")
    entry = IndexEntry(*members)
    if entry.deletion_vector_ranges is not None and None in entry.deletion_vector_ranges:
        raise ValueError(f"a deletion vector of {entry.file_name} has no place")
    return entry


# In the order of the members of `IndexEntry`, after version and kind.
_SCHEMA = RecordSchema(
    _NAME,
    [
        required("_VERSION", "int"),
        required("_KIND", "int"),
        required("_PARTITION", "bytes"),
        required("_BUCKET", "int"),
        required("_INDEX_TYPE", "string"),
        required("_FILE_NAME", "string"),
        required("_FILE_SIZE", "long"),
        required("_ROW_COUNT", "long"),
        optional("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE]}),
        optional("_EXTERNAL_PATH", "string"),
        optional("_GLOBAL_INDEX", _GLOBAL_INDEX),
    ],
    {_NAME: _build, _RANGE["name"]: DeletionVectorRange, _GLOBAL_INDEX["name"]: GlobalIndex},
)
