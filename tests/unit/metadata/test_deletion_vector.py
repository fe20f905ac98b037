"""Deletion vectors: bytes of both forms as Java writes them, files of several vectors, and damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import CorruptFile, FileMissing
from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.deletion_vector import DeletionVectorStore, VectorPlace, VectorRules, decode_vector, encode_vector
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.paths import TablePaths
from lakebed.types.binary_row import EMPTY_ROW

JAVA_32 = bytes.fromhex("00000018 5e43f2d0 3a300000 01000000 0000 0100 10000000 0100 0200 c3366892")
JAVA_64 = bytes.fromhex(
    "00000024 d1d33964 0100000000000000 00000000 3a300000 01000000 0000 0100 10000000 0200 0300 7a813847"
)
FIXTURE = Path(__file__).parents[2] / "fixtures" / "java-0.9.0" / "warehouse" / "default.db" / "j_dv" / "index"

positions = st.sets(st.integers(0, 200_000) | st.integers(0, 300)).map(lambda found: np.array(sorted(found), np.int64))
wide = st.sets(st.integers(0, 2**40)).map(lambda found: np.array(sorted(found), np.int64))


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> DeletionVectorStore:
    """The vectors of an empty table."""
    return DeletionVectorStore(fileio, paths)


@pytest.mark.parametrize(("bits", "data", "wanted"), [(32, JAVA_32, [1, 2]), (64, JAVA_64, [2, 3])])
def test_bytes_of_java(bits: int, data: bytes, wanted: list[int]) -> None:
    """Both forms are written and read byte by byte as Paimon's own."""
    assert encode_vector(wanted, bits=bits) == data
    assert decode_vector(data, "f").tolist() == wanted


@settings(deadline=None)
@given(positions, st.sampled_from([32, 64]))
def test_every_set_of_positions_survives(given: np.ndarray, bits: int) -> None:
    """Whatever is written is read again: none, few, runs, many."""
    assert decode_vector(encode_vector(given, bits=bits), "f").tolist() == given.tolist()


@settings(deadline=None)
@given(wide)
def test_positions_beyond_32_bits(given: np.ndarray) -> None:
    """The 64-bit form holds positions of any size."""
    assert decode_vector(encode_vector(given, bits=64), "f").tolist() == given.tolist()


@pytest.mark.parametrize("data", [JAVA_32, JAVA_64])
def test_no_damage_goes_unnoticed(data: bytes) -> None:
    """A flipped bit anywhere, or a missing end, is told with the file's name."""
    for place in range(len(data)):
        bad = bytearray(data)
        bad[place] ^= 0x10
        with pytest.raises(CorruptFile, match="index-x"):
            decode_vector(bytes(bad), "index-x")
    for length in range(len(data)):
        with pytest.raises(CorruptFile, match="index-x"):
            decode_vector(data[:length], "index-x")


@pytest.mark.parametrize("bits", [32, 64])
def test_several_vectors_in_a_file(store: DeletionVectorStore, fileio: MemoryFileIO, bits: int) -> None:
    """Vectors of several data files lie in one index file, and each is found by its range."""
    vectors = {f"data-{n}": np.arange(0, 1000 * n, n + 1) for n in range(1, 5)}
    (entry,) = store.write(b"p", 3, vectors, VectorRules(bits))
    assert (entry.partition, entry.bucket, entry.index_type) == (b"p", 3, DELETION_VECTORS_INDEX)
    assert entry.row_count == 4
    places = store.places([entry, IndexEntry(EMPTY_ROW, 0, "HASH", "h", 4, 1)])
    assert places.keys() == vectors.keys()
    for name, place in places.items():
        assert store.read(place).tolist() == vectors[name].tolist()
        assert place.cardinality == len(vectors[name])
    body = fileio.read_bytes(next(iter(places.values())).path)
    assert (body[0], len(body)) == (1, entry.size_bytes)


def test_files_end_at_the_target_size(store: DeletionVectorStore) -> None:
    """Many vectors become several files, none of them empty."""
    vectors = {f"data-{n}": np.array([n, n + 2]) for n in range(10)}
    entries = store.write(b"", 0, vectors, VectorRules(32, 60))
    assert [entry.row_count for entry in entries] == [2, 2, 2, 2, 2]
    assert len(store.places(entries)) == 10
    assert store.write(b"", 0, {}, VectorRules()) == []


def test_lengths_are_those_that_java_records(store: DeletionVectorStore) -> None:
    """The length in the manifest leaves out size and checksum with 32 bits, and nothing with 64."""
    for bits, length in ((32, 24), (64, 44)):
        (entry,) = store.write(b"", 0, {"data": np.array([2, 3])}, VectorRules(bits))
        assert entry.deletion_vector_ranges is not None
        assert (entry.deletion_vector_ranges[0].offset, entry.deletion_vector_ranges[0].length) == (1, length)


def test_a_file_that_is_gone(store: DeletionVectorStore) -> None:
    """A missing index file is named, with the likely cause."""
    with pytest.raises(FileMissing, match="index-gone"):
        store.read(VectorPlace("warehouse/default.db/t/index/index-gone", 1, 24))


def test_a_count_that_does_not_match(store: DeletionVectorStore) -> None:
    """A vector with another number of positions than its manifest says is damage."""
    (entry,) = store.write(b"", 0, {"data": np.array([2, 3])}, VectorRules())
    place = store.places([entry])["data"]
    with pytest.raises(CorruptFile, match="3"):
        store.read(VectorPlace(place.path, place.offset, place.length, 3))


def test_a_file_of_java() -> None:
    """The index file of a table that Java compacted is read as it stands."""
    (path,) = (path for path in sorted(FIXTURE.iterdir()) if path.stat().st_size == 33)
    store = DeletionVectorStore(LocalFileIO(), TablePaths(str(FIXTURE.parent)))
    assert len(store.read(VectorPlace(str(path), 1, 24))) == 2
