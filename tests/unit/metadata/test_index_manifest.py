"""Index manifests."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from lakebed.errors import CorruptFile, InvalidArgument, Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.index_manifest import DeletionVectorRange, GlobalIndex, IndexEntry, IndexManifestStore
from lakebed.metadata.paths import TablePaths
from lakebed.types.binary_row import EMPTY_ROW

ENTRIES = [
    IndexEntry(EMPTY_ROW, 0, "HASH", "index-a-0", 12, 3),
    IndexEntry(
        b"\x00\xff",
        5,
        "DELETION_VECTORS",
        "index-b-0",
        33,
        2,
        (DeletionVectorRange("data-a", 1, 24), DeletionVectorRange("data-b", 33, 20, 7)),
        "s3://elsewhere/index-b-0",
    ),
    IndexEntry(EMPTY_ROW, 0, "btree", "index-c-0", 1, 1, (), None, GlobalIndex(0, 99, 3, (4, 5), b"\x00m", b"\xff")),
    IndexEntry(EMPTY_ROW, 0, "btree", "index-d-0", 1, 1, None, None, GlobalIndex(0, 99, 3)),
]


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> IndexManifestStore:
    """Index manifests of an empty table."""
    return IndexManifestStore(fileio, paths)


def rewrite(store: IndexManifestStore, fileio: MemoryFileIO, paths: TablePaths, change: dict[str, object]) -> str:
    """A copy of the entries' file with every record changed; its name."""
    name = store.write(ENTRIES)
    reader = fastavro.reader(io.BytesIO(fileio.read_bytes(paths.manifest_file(name))))
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, [record | change for record in reader])
    fileio.overwrite(paths.manifest_file(name), out.getvalue())
    return name


def test_entries_come_back(store: IndexManifestStore) -> None:
    """All members survive, also those of indexes we do not make."""
    assert store.read(store.write(ENTRIES)) == ENTRIES
    name = store.write([])
    assert store.read(name) == []
    assert store.delete(name)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file_name)
def test_json_round_trip(entry: IndexEntry) -> None:
    """An entry travels through JSON text unchanged."""
    assert IndexEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


@pytest.mark.parametrize(
    "change", [{"partition": "?"}, {"deletion_vector_ranges": [[1]]}, {"global_index": 3}, {"x": 1}]
)
def test_foreign_json_is_refused(change: dict[str, object]) -> None:
    """What is not an entry is an invalid argument."""
    with pytest.raises(InvalidArgument, match="index file"):
        IndexEntry.from_json(ENTRIES[1].to_json() | change)


def test_another_version_is_newer(store: IndexManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Index manifests have a format marker of their own."""
    with pytest.raises(Unsupported, match="newer format"):
        store.read(rewrite(store, fileio, paths, {"_VERSION": 2}))


@pytest.mark.parametrize("change", [{"_KIND": 1}, {"_DELETIONS_VECTORS_RANGES": [None]}])
def test_impossible_entries_are_damage(
    change: dict[str, object], store: IndexManifestStore, fileio: MemoryFileIO, paths: TablePaths
) -> None:
    """A removed file has no place in a complete list, and a vector must lie somewhere."""
    name = rewrite(store, fileio, paths, change)
    with pytest.raises(CorruptFile, match=name):
        store.read(name)
