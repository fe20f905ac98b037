"""Manifest lists."""

from __future__ import annotations

import io

import fastavro
import pytest

from lakebed.errors import CorruptFile, Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.manifest_list import ManifestListStore, ManifestMeta
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.stats import EMPTY_STATS, SimpleStats

METAS = [
    ManifestMeta("m1", 100, 3, 1, EMPTY_STATS, 0),
    ManifestMeta(
        "m2", 1 << 40, 0, 0, SimpleStats(b"a", b"b", (None, 4)), 7, -2, 9, 0, 5, 0, 1 << 50, 8, ("m2.sidecar",)
    ),
]


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> ManifestListStore:
    """Manifest lists of an empty table."""
    return ManifestListStore(fileio, paths)


@pytest.mark.parametrize("metas", [METAS, []], ids=["two", "empty"])
def test_metas_come_back(
    metas: list[ManifestMeta], store: ManifestListStore, fileio: MemoryFileIO, paths: TablePaths
) -> None:
    """All members survive, the size is exact, and an empty list is a file as well."""
    name, size_bytes = store.write(metas)
    assert fileio.size(paths.manifest_file(name)) == size_bytes
    assert store.read(name, size_bytes) == metas
    assert store.read(name) == metas


def test_lists_of_old_writers_have_fewer_members(
    store: ManifestListStore, fileio: MemoryFileIO, paths: TablePaths
) -> None:
    """A list that ends at the schema id reads with nothing known about the rest."""
    name, _ = store.write(METAS)
    reader = fastavro.reader(io.BytesIO(fileio.read_bytes(paths.manifest_file(name))))
    old = reader.writer_schema | {"fields": reader.writer_schema["fields"][:7]}
    out = io.BytesIO()
    fastavro.writer(out, old, list(reader), codec="deflate")
    fileio.write_bytes(paths.manifest_file("old"), out.getvalue())
    assert store.read("old")[1] == ManifestMeta("m2", 1 << 40, 0, 0, METAS[1].partition_stats, 7)


def test_another_version_is_newer(store: ManifestListStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """A format marker we do not know is not guessed at."""
    name, _ = store.write(METAS)
    reader = fastavro.reader(io.BytesIO(fileio.read_bytes(paths.manifest_file(name))))
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, [record | {"_VERSION": 1} for record in reader])
    fileio.write_bytes(paths.manifest_file("other"), out.getvalue())
    with pytest.raises(Unsupported, match="other was written by a newer format"):
        store.read("other")


def test_another_size_is_damage(store: ManifestListStore) -> None:
    """The snapshot's record of the size is checked, and a deleted list is gone."""
    name, size_bytes = store.write(METAS)
    with pytest.raises(CorruptFile, match=name):
        store.read(name, size_bytes - 1)
    assert store.delete(name)
    assert not store.delete(name)
