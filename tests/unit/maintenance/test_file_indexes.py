"""Indexes for files that are there already: the same as if they had been written with them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.maintenance.expiring_tables import Workshop, ids, present, rows, shown

from lakebed.datafiles.index.container import unpack
from lakebed.metadata.snapshot import CommitKind
from lakebed.schema.changes import RemoveOption, RenameColumn, SetOption
from lakebed.table.opened import OpenedTable
from lakebed.table.table import Table

THRESHOLD = "file-index.in-manifest-threshold"
BLOOM = "file-index.bloom-filter.columns"
SMALL = {"file_index__in_manifest_threshold": "1 mb"}
LARGE = {"file_index__in_manifest_threshold": "1 b"}


def index_columns(table: Table) -> list[dict[str, set[str]]]:
    """Of each live file, which columns have which indexes."""
    found = []
    for entry in table.scan().files:
        data = entry.embedded_index
        if data is None and entry.index_file is not None:
            data = table._opened.context.fileio.read_bytes(f"{table.location}/bucket-0/{entry.index_file}")
        found.append({} if data is None else {name: set(kinds) for name, kinds in unpack(data, "x").items()})
    return found


@pytest.mark.parametrize("large", [SMALL, LARGE], ids=["in the manifest", "beside the file"])
@pytest.mark.parametrize("has_key", [True, False], ids=["key", "no key"])
def test_old_files_get_the_indexes_of_today(has_key: bool, large: dict[str, Any]) -> None:
    """After the option was set, all files have the index, rows are the same, and a miss opens nothing."""
    table = Workshop().create(has_key, write_only="true", **large)
    table.write(rows((1, 10), (5, 50)))
    table.write(rows((2, 20), (7, 70)))
    table.alter(SetOption(BLOOM, "v"))
    before = shown(table)
    assert index_columns(table) == [{}, {}]
    done = table.rewrite_file_index()
    assert (done.partitions, done.files) == (1, 2)
    assert index_columns(table) == [{"v": {"bloom-filter"}}] * 2
    assert table.snapshots()[-1].commit_kind == CommitKind.COMPACT
    assert shown(table) == before
    assert table.to_arrow(filter=[("v", "==", 20)])["k"].to_pylist() == [2]
    assert table.check() == []
    written = Workshop().create(
        has_key, write_only="true", **large, **{BLOOM.replace("-", "_").replace(".", "__"): "v"}
    )
    written.write(rows((1, 10), (5, 50)))
    written.write(rows((2, 20), (7, 70)))
    if large is SMALL:
        assert [f.embedded_index for f in table.scan().files] == [f.embedded_index for f in written.scan().files]


def test_a_second_time_there_is_nothing_to_do() -> None:
    """Files that have what is asked for are left alone, and no snapshot comes."""
    table = Workshop().create(False, write_only="true", **LARGE)
    table.write(rows((1, 10)))
    table.alter(SetOption(BLOOM, "v"))
    assert table.rewrite_file_index().files == 1
    before, files = ids(table), present(table)
    assert table.rewrite_file_index().files == 0
    assert ids(table) == before
    assert present(table) == files


@pytest.mark.parametrize("large", [SMALL, LARGE], ids=["in the manifest", "beside the file"])
def test_an_index_that_comes_goes_and_comes_again(large: dict[str, Any]) -> None:
    """The file lives through all of it: an entry that was deleted once is there when it is added again."""
    table = Workshop().create(False, write_only="true", **large)
    table.write(rows((1, 10)))
    for _ in range(2):
        table.alter(SetOption(BLOOM, "v"))
        table.rewrite_file_index()
        assert index_columns(table) == [{"v": {"bloom-filter"}}]
        table.alter(RemoveOption(BLOOM))
        table.rewrite_file_index()
        assert index_columns(table) == [{}]
        assert shown(table) == [(1, 10)]
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert shown(table) == [(1, 10)]
    assert table.check() == []


def test_columns_are_found_under_the_name_that_the_file_has() -> None:
    """A column that was renamed since is indexed under its old name, where readers of the file look for it."""
    table = Workshop().create(False, write_only="true")
    table.write(rows((1, 10)))
    table.alter(RenameColumn("v", "w"), SetOption(BLOOM, "w"))
    table.rewrite_file_index()
    assert index_columns(table) == [{"v": {"bloom-filter"}}]
    assert table.to_arrow(filter=[("w", "==", 10)]).num_rows == 1
    assert table.to_arrow(filter=[("w", "==", 11)]).num_rows == 0


def test_only_the_partitions_that_are_chosen() -> None:
    """A filter on partition columns says which files are looked at."""
    schema = pa.schema([("p", pa.string()), ("v", pa.int64())])
    table = Workshop().lake.create_table("parts", schema, partition_by=["p"], options={THRESHOLD: "1 mb"})
    table.write(pa.table({"p": ["a", "b"], "v": [1, 2]}, schema=schema))
    table.alter(SetOption(BLOOM, "v"))
    done = table.rewrite_file_index(where=[("p", "==", "a")])
    assert (done.partitions, done.files) == (1, 1)
    assert sorted(file.embedded_index is not None for file in table.scan().files) == [False, True]


def test_rows_that_are_marked_as_deleted_keep_their_places() -> None:
    """An index counts rows by their places in the file, deleted ones too."""
    shop = Workshop()
    table = shop.create(False, write_only="true", deletion_vectors__enabled="true")
    table.write(rows(*((n, n) for n in range(10))))
    shop.lake.sql("DELETE FROM t WHERE k < 5")
    table = shop.lake.table("t")
    table.alter(SetOption("file-index.bitmap.columns", "v"))
    assert table.rewrite_file_index().files == 1
    assert table.to_arrow(filter=[("v", "==", 7)])["k"].to_pylist() == [7]
    assert table.to_arrow(filter=[("v", "==", 3)]).num_rows == 0


def test_compacted_meanwhile() -> None:
    """A file that somebody else replaced while it was read is left out, and its index file goes."""
    shop = Workshop()
    table = shop.create(False, write_only="true", **LARGE)
    table.write(rows((1, 10)))
    table.write(rows((2, 20)))
    table.alter(SetOption(BLOOM, "v"))
    context = table._opened.writable()
    original = context.fileio.write_bytes
    done = []

    class Meddling:
        def __getattr__(self, name: str) -> Any:
            return getattr(shop.fileio, name)

        def write_bytes(self, path: str, data: bytes) -> None:
            original(path, data)
            if path.endswith(".index") and not done:
                done.append(path)
                table.with_options({"write-only": "false"}).compact(full=True)

    from dataclasses import replace

    other = Table(OpenedTable(replace(context, fileio=Meddling())))
    assert other.rewrite_file_index().files == 0
    assert shown(table) == [(1, 10), (2, 20)]
    assert not shop.fileio.exists(done[0])
