"""Manifests: what is written comes back, and entries add up to the live files."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.metadata.metadata_samples import FULL_FILE, entry

from lakebed.errors import CorruptFile, FileMissing, InvalidOption, Unsupported
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.manifest import EntryKind, ManifestEntry, ManifestStore, live_entries, merge_entries
from lakebed.metadata.paths import TablePaths
from lakebed.metadata.stats import EMPTY_STATS, SimpleStats
from lakebed.types import logical as lt
from lakebed.types.binary_row import EMPTY_ROW, encode_rows

ADD, DELETE = EntryKind.ADD, EntryKind.DELETE


@pytest.fixture
def store(fileio: MemoryFileIO, paths: TablePaths) -> ManifestStore:
    """Manifests of an empty table."""
    return ManifestStore(fileio, paths)


def test_entries_come_back(store: ManifestStore) -> None:
    """Every member of every entry survives, in order."""
    entries = [
        entry("a"),
        entry("a", DELETE, bucket=-2, total_buckets=-2),
        ManifestEntry(ADD, EMPTY_ROW, 3, 4, FULL_FILE),
        entry("b", key_stats=SimpleStats(b"", b"x", None), creation_time_ms=None, file_source=None),
    ]
    (meta,) = store.write(entries, [])
    assert store.read(meta.file_name, meta.size_bytes) == entries
    assert meta.file_name.startswith("manifest-")
    assert [read.kind for read in store.read(meta.file_name)] == [ADD, DELETE, ADD, ADD]


def test_the_schema_is_the_one_java_checks(store: ManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Six plain top-level fields in order, nullable members null first, times marked as such."""
    (meta,) = store.write([entry()], [])
    reader = fastavro.reader(io.BytesIO(fileio.read_bytes(paths.manifest_file(meta.file_name))))
    schema = reader.writer_schema
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    assert [field["name"] for field in schema["fields"]] == [
        *("_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_TOTAL_BUCKETS", "_FILE")
    ]
    file_fields = schema["fields"][5]["type"]["fields"]
    assert len(file_fields) == 21
    assert all(f["type"][0] == "null" and f["default"] is None for f in file_fields if isinstance(f["type"], list))
    by_name = {f["name"]: f["type"] for f in file_fields}
    assert by_name["_CREATION_TIME"][1] == {"type": "long", "logicalType": "timestamp-millis"}
    (record,) = list(reader)
    assert (record["_VERSION"], record["_KIND"]) == (2, 0)


def test_the_description_sums_up_the_entries(store: ManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """Counts, ranges and partition statistics let planning skip the manifest."""
    types = [lt.STRING, lt.INT]
    rows = encode_rows([pa.array(["x", "y", None]), pa.array([2, 1, 3], pa.int32())], types).to_pylist()
    entries = [
        entry("a", partition=rows[0], bucket=4, total_buckets=8, schema_id=2, level=0, first_row_id=10),
        entry("b", DELETE, partition=rows[1], bucket=1, total_buckets=8, schema_id=5, level=3, first_row_id=2),
        entry("c", partition=rows[2], bucket=2, total_buckets=8, schema_id=1, level=1, first_row_id=20),
    ]
    (meta,) = store.write(entries, types)
    low, high = encode_rows([pa.array(["x", "y"]), pa.array([1, 3], pa.int32())], types).to_pylist()
    assert meta.partition_stats == SimpleStats(low, high, (1, 0))
    assert (meta.num_added_files, meta.num_deleted_files, meta.schema_id) == (2, 1, 5)
    assert (meta.min_bucket, meta.max_bucket, meta.min_level, meta.max_level) == (1, 4, 0, 3)
    assert (meta.min_row_id, meta.max_row_id, meta.total_buckets) == (2, 22, 8)
    assert meta.size_bytes == fileio.size(paths.manifest_file(meta.file_name))


def test_a_description_claims_nothing_it_does_not_know(store: ManifestStore) -> None:
    """Row ids need every file to have them, and a bucket count must be common and fixed."""
    (meta,) = store.write([entry("a", first_row_id=1), entry("b", total_buckets=2)], [])
    assert (meta.min_row_id, meta.max_row_id, meta.total_buckets) == (None, None, None)
    (unaware,) = store.write([entry("a", total_buckets=-1)], [])
    assert unaware.total_buckets is None
    assert unaware.partition_stats is EMPTY_STATS


def test_files_roll_at_the_target_size(store: ManifestStore) -> None:
    """Many entries give several manifests near the target, and nothing is lost or reordered."""
    source = random.Random(1)
    entries = [entry(f"data-{source.getrandbits(128):x}.parquet") for _ in range(4000)]
    metas = store.write(entries, [], target_size_bytes=20_000)
    assert len(metas) > 2
    assert all(20_000 <= meta.size_bytes < 40_000 for meta in metas[:-1])
    assert [e for meta in metas for e in store.read(meta.file_name, meta.size_bytes)] == entries
    assert sum(meta.num_added_files for meta in metas) == 4000


def test_nothing_to_write_writes_nothing(store: ManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """No empty manifest is left behind."""
    assert store.write([], []) == []
    assert fileio.list_directory(paths.manifest_directory) == []


def test_a_manifest_of_another_size_is_damaged(store: ManifestStore) -> None:
    """The size in the manifest list catches a file cut off between two blocks."""
    (meta,) = store.write([entry()], [])
    with pytest.raises(CorruptFile, match=meta.file_name):
        store.read(meta.file_name, meta.size_bytes + 1)


def test_damage_anywhere_is_noticed(store: ManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """At sampled positions, a flipped bit is refused or leaves the entries as they were; a cut is always refused."""
    entries = [entry(f"f{i}", level=i % 6) for i in range(50)]
    (meta,) = store.write(entries, [])
    path = paths.manifest_file(meta.file_name)
    data = fileio.read_bytes(path)
    refused = 0
    for position in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        fileio.overwrite(path, bytes(damaged))
        try:
            assert store.read(meta.file_name, meta.size_bytes) == entries, position
        except CorruptFile:
            refused += 1
        fileio.overwrite(path, data[:position])
        with pytest.raises(CorruptFile, match=meta.file_name):
            store.read(meta.file_name, meta.size_bytes)
    assert refused > len(range(0, len(data), 3)) * 0.95


def test_versions_and_kinds_are_checked(store: ManifestStore, fileio: MemoryFileIO, paths: TablePaths) -> None:
    """A newer version is said to be newer; an entry that neither adds nor deletes is damage."""
    (meta,) = store.write([entry()], [])
    path = paths.manifest_file(meta.file_name)
    reader = fastavro.reader(io.BytesIO(fileio.read_bytes(path)))
    (record,) = list(reader)
    for change, error in (({"_VERSION": 3}, Unsupported), ({"_KIND": 2}, CorruptFile), ({"_KIND": -1}, CorruptFile)):
        out = io.BytesIO()
        fastavro.writer(out, reader.writer_schema, [record | change])
        fileio.overwrite(path, out.getvalue())
        with pytest.raises(error, match=meta.file_name):
            store.read(meta.file_name)


def test_a_missing_manifest_is_missing(store: ManifestStore) -> None:
    """Absence is told apart from damage, and names the file."""
    with pytest.raises(FileMissing, match="manifest-gone"):
        store.read("manifest-gone")
    (meta,) = store.write([entry()], [])
    assert store.delete(meta.file_name)
    assert not store.delete(meta.file_name)


def test_an_unknown_compression_fails_before_anything_is_written(fileio: MemoryFileIO, paths: TablePaths) -> None:
    """The store itself refuses it."""
    with pytest.raises(InvalidOption, match="lz77"):
        ManifestStore(fileio, paths, "lz77")


# Adding up


def test_live_entries_are_added_and_not_deleted() -> None:
    """A deletion ends what was added before it, and the order of what is live is kept."""
    a, b, c = entry("a"), entry("b"), entry("c", bucket=1)
    assert live_entries([a, b, replace(b, kind=DELETE), c]) == [a, c]
    assert live_entries([]) == []


def test_a_file_that_is_deleted_and_added_again_lives() -> None:
    """A state that was brought back has files that were deleted before: the last word counts."""
    a, b = entry("a"), entry("b")
    gone = replace(a, kind=DELETE)
    assert live_entries([a, gone, b, a], strict=True) == [b, a]
    assert live_entries([a, gone, a, gone], strict=True) == []
    assert merge_entries([a, gone, a]) == [a]
    assert merge_entries([gone, a]) == []  # an older manifest adds it, and still does
    assert merge_entries([gone, a, gone]) == [gone]


def test_identity_is_what_the_format_says() -> None:
    """A DELETE with another level, bucket, partition, or extra files speaks of another file; sizes do not matter."""
    added = entry("a", extra_files=("x",), embedded_index=b"i", external_path="p")
    deleted = replace(added, kind=DELETE)
    assert live_entries([added, replace(deleted, file=replace(added.file, row_count=0, size_bytes=0))]) == []
    others = [
        replace(deleted, bucket=1),
        replace(deleted, partition=b"other"),
        *(
            replace(deleted, file=replace(added.file, **change))
            for change in (
                {"level": 1},
                {"file_name": "b"},
                {"extra_files": ()},
                {"embedded_index": None},
                {"external_path": None},
            )
        ),
    ]
    assert live_entries([added, *others]) == [added]
    assert hash(added.identity) == hash(deleted.identity)


def test_an_upgrade_moves_a_file() -> None:
    """Deleting at level 0 and adding at level 5 leaves the file at level 5."""
    low, high = entry("a", level=0), entry("a", level=5)
    assert live_entries([low, replace(low, kind=DELETE), high], strict=True) == [high]


def test_contradictions_are_tolerated_or_not() -> None:
    """A DELETE without ADD and a second ADD pass when reading, and are refused when asked to be strict."""
    a, b = entry("a"), entry("b", DELETE)
    assert live_entries([a, a, b]) == [a]
    with pytest.raises(CorruptFile, match="b of bucket 0 is deleted without"):
        live_entries([a, b], strict=True)
    with pytest.raises(CorruptFile, match="a of bucket 0 is added twice"):
        live_entries([a, a], strict=True)


def test_merging_keeps_what_older_manifests_need() -> None:
    """Pairs cancel; a DELETE whose ADD lies elsewhere stays, in its place."""
    a, b, c = entry("a"), entry("b"), entry("c", DELETE)
    assert merge_entries([a, c, b, replace(a, kind=DELETE)]) == [c, b]
    assert merge_entries([a, a, c, c]) == [a, c]


@given(st.lists(st.sampled_from("abcde"), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_merging_any_part_changes_nothing(names: list[str], start: int, end: int) -> None:
    """Merging any stretch of a history in which files come, go and come again leaves the live files as they are."""
    entries, live = [], set()
    for name in names:
        entries.append(entry(name, DELETE if name in live else ADD))
        live ^= {name}
    merged = [*entries[:start], *merge_entries(entries[start:end]), *entries[max(start, end) :]]
    assert {found.file.file_name for found in live_entries(merged, strict=True)} == live
