"""All metadata of tables that pypaimon 2.1.0 and Paimon Java 0.9.0 wrote."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakebed.fileio.local import LocalFileIO
from lakebed.fileio.memory import MemoryFileIO
from lakebed.metadata.consumer import ConsumerStore
from lakebed.metadata.index_manifest import IndexManifestStore
from lakebed.metadata.manifest import ManifestEntry, ManifestStore, live_entries
from lakebed.metadata.manifest_list import ManifestListStore, ManifestMeta
from lakebed.metadata.paths import TablePaths, partition_path
from lakebed.metadata.snapshot import CommitKind, Snapshot, SnapshotStore
from lakebed.metadata.tag import TagStore
from lakebed.types.binary_row import decode_rows
from lakebed.types.logical import DataType, type_from_json

FIXTURES = Path(__file__).parents[2] / "fixtures"
TABLES = sorted(path for path in FIXTURES.glob("*/warehouse/default.db/*") if path.is_dir())
FILES = LocalFileIO()


def named(path: Path) -> str:
    """A short name for a fixture."""
    return f"{path.parents[2].name}/{path.name}"


def lists_of(table: Path, snapshot: Snapshot) -> list[list[ManifestMeta]]:
    """Base, delta and (if any) changelog list, each read with its recorded size."""
    store = ManifestListStore(FILES, TablePaths(str(table)))
    pairs = [
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
        (snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size),
    ]
    return [store.read(name, size_bytes) for name, size_bytes in pairs if name is not None]


def entries_of(table: Path, metas: list[ManifestMeta]) -> list[ManifestEntry]:
    """Entries of manifests, each read with its recorded size."""
    store = ManifestStore(FILES, TablePaths(str(table)))
    return [entry for meta in metas for entry in store.read(meta.file_name, meta.size_bytes)]


def partition_columns(table: Path) -> tuple[list[str], list[DataType]]:
    """Names and types of the partition columns."""
    schema: dict[str, Any] = json.loads((table / "schema" / "schema-0").read_text())
    types = {field["name"]: type_from_json(field["type"]) for field in schema["fields"]}
    return schema["partitionKeys"], [types[name] for name in schema["partitionKeys"]]


def test_the_fixtures_are_there() -> None:
    """Without fixtures the tests below would prove nothing."""
    assert len(TABLES) == 26


@pytest.mark.parametrize("table", TABLES, ids=named)
def test_every_snapshot_adds_up(table: Path) -> None:
    """Lists, manifests and counts agree with each other in every snapshot, and all live files exist where we look."""
    paths = TablePaths(str(table))
    names, types = partition_columns(table)
    store = SnapshotStore(FILES, paths)
    assert store.ids()
    for snapshot_id in store.ids():
        snapshot = store.get(snapshot_id)
        base, delta, *_changelog = lists_of(table, snapshot)
        for meta in base + delta:
            kinds = [entry.kind for entry in entries_of(table, [meta])]
            assert (kinds.count(0), kinds.count(1)) == (meta.num_added_files, meta.num_deleted_files)
        live = live_entries(entries_of(table, base + delta), strict=True)
        assert sum(entry.file.row_count for entry in live) == snapshot.total_record_count
        for entry in live:
            values = [column[0] for column in decode_rows([entry.partition], types)]
            path = paths.data_file(partition_path(names, types, values), entry.bucket, entry.file.file_name)
            assert FILES.size(path) == entry.file.size_bytes


@pytest.mark.parametrize("table", TABLES, ids=named)
def test_live_files_are_what_the_writer_says(table: Path) -> None:
    """The live files of the newest snapshot equal those recorded with the fixture, member by member."""
    expected = json.loads(table.with_name(f"{table.name}.expected.json").read_text()).get("live_files")
    if expected is None:
        pytest.skip("recorded for pypaimon's tables only")
    snapshot = SnapshotStore(FILES, TablePaths(str(table))).latest()
    assert snapshot is not None
    base, delta, *_ = lists_of(table, snapshot)
    found = [
        {
            "file_name": entry.file.file_name,
            "partition_hex": entry.partition.hex(),
            "bucket": entry.bucket,
            "total_buckets": entry.total_buckets,
            "level": entry.file.level,
            "row_count": entry.file.row_count,
            "schema_id": entry.file.schema_id,
            "min_sequence_number": entry.file.min_sequence_number,
            "max_sequence_number": entry.file.max_sequence_number,
            "min_key_hex": entry.file.min_key.hex(),
            "max_key_hex": entry.file.max_key.hex(),
            "first_row_id": entry.file.first_row_id,
            "write_cols": None if entry.file.write_cols is None else list(entry.file.write_cols),
        }
        for entry in live_entries(entries_of(table, base + delta))
    ]
    by_name = sorted(found, key=lambda file: str(file["file_name"]))
    assert by_name == sorted(expected, key=lambda file: str(file["file_name"]))


@pytest.mark.parametrize("table", TABLES, ids=named)
def test_rewriting_loses_nothing(table: Path) -> None:
    """Snapshots, lists, manifests and index manifests of other writers survive being written by us."""
    memory, paths = MemoryFileIO(f"rewrite-{named(table)}"), TablePaths("t")
    _, types = partition_columns(table)
    source = SnapshotStore(FILES, TablePaths(str(table)))
    for snapshot_id in source.ids():
        snapshot = source.get(snapshot_id)
        assert Snapshot.from_json(snapshot.to_json(), "p") == snapshot
        for metas in lists_of(table, snapshot):
            lists = ManifestListStore(memory, paths)
            assert lists.read(*lists.write(metas)) == metas
            for meta in metas:
                entries = entries_of(table, [meta])
                manifests = ManifestStore(memory, paths)
                (ours,) = manifests.write(entries, types)
                assert manifests.read(ours.file_name, ours.size_bytes) == entries
                assert ours.partition_stats == meta.partition_stats
                assert ours.schema_id == meta.schema_id
        if snapshot.index_manifest is not None:
            index = IndexManifestStore(FILES, TablePaths(str(table))).read(snapshot.index_manifest)
            rewritten = IndexManifestStore(memory, paths)
            assert rewritten.read(rewritten.write(index)) == index


def table_named(name: str) -> Path:
    """A fixture by its table name."""
    return next(table for table in TABLES if table.name == name)


def test_java_upgrades_a_file_between_levels() -> None:
    """The compacted Java table: the same file name deleted on level 0 and added on a higher level."""
    table = table_named("j_dv")
    upgraded = set()
    store = SnapshotStore(FILES, TablePaths(str(table)))
    for snapshot in store.newest_first():
        if snapshot.commit_kind is CommitKind.COMPACT:
            delta = entries_of(table, lists_of(table, snapshot)[1])
            removed = {entry.file.file_name for entry in delta if entry.kind == 1}
            upgraded |= removed & {entry.file.file_name for entry in delta if entry.kind == 0}
    assert upgraded


def test_java_embeds_a_file_index() -> None:
    """The bytes of an embedded index arrive untouched."""
    table = table_named("j_app")
    snapshot = SnapshotStore(FILES, TablePaths(str(table))).latest()
    assert snapshot is not None
    base, delta, *_ = lists_of(table, snapshot)
    assert any(entry.file.embedded_index for entry in live_entries(entries_of(table, base + delta)))


def test_deletion_vectors_of_both_writers_are_located() -> None:
    """Ranges in the index manifests of Java (nullable items) and pypaimon (plain items)."""
    for name, cardinality in (("j_dv", None), ("dv_append", 2)):
        paths = TablePaths(str(table_named(name)))
        snapshot = SnapshotStore(FILES, paths).latest()
        assert snapshot is not None
        assert snapshot.index_manifest is not None
        (entry,) = IndexManifestStore(FILES, paths).read(snapshot.index_manifest)
        assert entry.deletion_vector_ranges is not None
        (vector,) = entry.deletion_vector_ranges
        assert (entry.index_type, vector.offset, vector.length) == ("DELETION_VECTORS", 1, 24)
        assert vector.cardinality == cardinality
        assert FILES.size(paths.index_file(entry.file_name)) == entry.size_bytes


def test_tags_branches_and_consumers_are_found() -> None:
    """Tags with and without time to live, a branch with a commit of its own, and a consumer."""
    paths = TablePaths(str(table_named("tags_branches")))
    tags = {tag.name: tag for tag in TagStore(FILES, paths).list()}
    assert (tags["t1"].create_time, tags["t1"].retained) == (None, None)
    assert tags["t2"].create_time == datetime(2026, 11, 15, 18, 10, 37, 633595)
    assert tags["t2"].retained == timedelta(seconds=1576800000)
    assert ConsumerStore(FILES, paths).next_snapshot("c1") == 2
    branch = paths.on_branch("b1")
    main, other = SnapshotStore(FILES, paths).latest(), SnapshotStore(FILES, branch).latest()
    assert main is not None
    assert other is not None
    assert main.delta_manifest_list != other.delta_manifest_list
    assert ManifestListStore(FILES, branch).read(other.delta_manifest_list, other.delta_manifest_list_size)
    java = {tag.name: tag for tag in TagStore(FILES, TablePaths(str(table_named("j_cl")))).list()}
    assert java["tg2"].retained == timedelta(days=1)
    assert java["tg"].snapshot.id == 1
