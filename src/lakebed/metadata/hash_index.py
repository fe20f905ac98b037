"""HASH index files: the hashes of all keys that a dynamic bucket has ever been given.

A file is nothing but big-endian 32-bit integers, one for each distinct hash, in any order; one file stands for one
bucket of one partition. What a hash is computed from, and which bucket a key goes to, is not decided here.

A damaged hash would send its key to another bucket, where it lives a second time, and there is no place for a checksum
among integers; so the names of our files end with it. Names of other writers say nothing, and are not asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from lakebed.checksums import crc32_text
from lakebed.fileio.base import FileIO
from lakebed.metadata.corruption import checked_size, corrupt
from lakebed.metadata.index_manifest import HASH_INDEX, IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores

Hashes = npt.NDArray[np.int32]
HashEntries = Mapping[bytes, Mapping[int, IndexEntry]]
"""HASH index files by partition and bucket."""

_STORED = np.dtype(">i4")
_CHECKSUM = re.compile(r"index-.+-crc32-([0-9a-f]{8})")


def encode_hashes(hashes: Hashes) -> bytes:
    """The content of an index file."""
    return hashes.astype(_STORED).tobytes()


def decode_hashes(data: bytes, path: str) -> Hashes:
    """Inverse of `encode_hashes`; `path` is named if the bytes can not be right."""
    if len(data) % _STORED.itemsize:
        raise corrupt(path, f"{len(data)} bytes are no whole number of hashes")
    return np.frombuffer(data, _STORED).astype(np.int32)


def hash_entries(stores: MetadataStores, snapshot: Snapshot | None) -> HashEntries:
    """The HASH index files of a snapshot; none for an empty table."""
    found: dict[bytes, dict[int, IndexEntry]] = {}
    if snapshot is not None and snapshot.index_manifest is not None:
        for entry in stores.index_manifests.read(snapshot.index_manifest):
            if entry.index_type == HASH_INDEX:
                found.setdefault(entry.partition, {})[entry.bucket] = entry
    return found


class HashIndexStore:
    """Reads and writes HASH index files of one table."""

    def __init__(self, fileio: FileIO, paths: TablePaths, new_id: Callable[[], object] = uuid4) -> None:
        self._fileio = fileio
        self._paths = paths
        self._new_id = new_id

    def path(self, entry: IndexEntry) -> str:
        """Where an index file lies."""
        return entry.external_path or self._paths.index_file(entry.file_name)

    def write(self, partition: bytes, bucket: int, hashes: Hashes) -> IndexEntry:
        """Write the index of one bucket to a new file."""
        data = encode_hashes(hashes)
        name = f"index-{self._new_id()}-0-crc32-{crc32_text(data)}"
        self._fileio.write_bytes(self._paths.index_file(name), data)
        return IndexEntry(partition, bucket, HASH_INDEX, name, len(data), len(hashes))

    def read(self, entry: IndexEntry) -> Hashes:
        """The hashes of one bucket."""
        path = self.path(entry)
        data = checked_size(self._fileio.read_bytes(path), entry.size_bytes, path)
        checksum = _CHECKSUM.fullmatch(entry.file_name)
        if checksum is not None and checksum[1] != crc32_text(data):
            raise corrupt(path, "it does not match the checksum in its name")
        hashes = decode_hashes(data, path)
        if len(hashes) != entry.row_count:
            raise corrupt(path, f"it holds {len(hashes)} hashes, {entry.row_count} were recorded when it was written")
        return hashes
