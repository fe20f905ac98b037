"""HASH index files: known bytes, what comes back, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lakebed.bucket.hashing import hash_rows
from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.hash_index import HashIndexStore, decode_hashes, encode_hashes, hash_entries
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.stores import MetadataStores
from lakebed.types.binary_row import EMPTY_ROW
from lakebed.types.logical import INT

HASHES = hash_rows([pa.array([0, 2, 4], pa.int32())], [INT])


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> HashIndexStore:
    """Index files of an empty table."""
    return HashIndexStore(fileio, paths)


def test_known_bytes() -> None:
    """The bytes are those that other engines write for the same keys."""
    assert encode_hashes(HASHES).hex() == "ee18d2a54fe4bbf0564770ca"
    assert decode_hashes(bytes.fromhex("ee18d2a54fe4bbf0564770ca"), "x").tolist() == HASHES.tolist()


def test_files_come_back(store: HashIndexStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """An entry describes its file, and the file holds the hashes."""
    entry = store.write(EMPTY_ROW, 7, HASHES)
    assert entry == IndexEntry(EMPTY_ROW, 7, "HASH", entry.file_name, 12, 3)
    assert fileio.exists(paths.index_file(entry.file_name))
    found = store.read(entry)
    assert found.dtype == np.int32
    assert found.tolist() == HASHES.tolist()
    empty = store.write(EMPTY_ROW, 8, HASHES[:0])
    assert store.read(empty).tolist() == []
    assert empty.file_name != entry.file_name


def test_damage_is_named(store: HashIndexStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """A file of another size, with half a hash or with fewer hashes than recorded is not taken for an index."""
    entry = store.write(EMPTY_ROW, 0, HASHES)
    with pytest.raises(CorruptFile, match=entry.file_name):
        store.read(replace(entry, size_bytes=16))
    with pytest.raises(CorruptFile, match="4 were recorded"):
        store.read(replace(entry, row_count=4))
    foreign = replace(entry, file_name="index-of-others-0", size_bytes=11)
    fileio.overwrite(paths.index_file(foreign.file_name), b"\0" * 11)
    with pytest.raises(CorruptFile, match="no whole number of hashes"):
        store.read(foreign)
    with pytest.raises(FileMissing):
        store.read(replace(entry, file_name="index-none"))


def test_a_flipped_bit_is_noticed(store: HashIndexStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Any bit of any hash: its key would live in two buckets from the next write on."""
    entry = store.write(EMPTY_ROW, 0, HASHES)
    path = paths.index_file(entry.file_name)
    sound = fileio.read_bytes(path)
    for bit in range(len(sound) * 8):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        fileio.overwrite(path, bytes(damaged))
        with pytest.raises(CorruptFile, match="checksum in its name"):
            store.read(entry)


def test_a_snapshot_without_indexes_has_none(fileio: MemoryFileIO, paths: TablePaths) -> None:
    """An empty table has no HASH entries."""
    assert hash_entries(MetadataStores.open(fileio, paths), None) == {}
