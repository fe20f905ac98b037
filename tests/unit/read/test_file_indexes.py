"""`file-index.*`: which files get indexes, where they lie, and which files reads leave out by them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.datafiles.index.bloom import may_contain
from lakebed.datafiles.index.container import unpack
from lakebed.errors import FileMissing, InvalidOption
from lakebed.types.logical import parse_type

BLOOM = {"file-index.bloom-filter.columns": "s", "file-index.bloom-filter.s.items": "1000"}
BITMAP = {"file-index.bitmap.columns": "s"}
BLIND = {"metadata.stats-mode": "none"}
"""Without statistics, so that only an index can exclude a file."""
COLUMNS = {"k": "INT", "s": "STRING"}


def _rows(*numbers: int) -> pa.Table:
    return pa.table({"k": ints(*numbers), "s": [f"s{number}" for number in numbers]})


def _table(warehouse: Warehouse, options: Mapping[str, str], **more: object) -> lakebed.Table:
    table = warehouse.table("t", COLUMNS, options={**BLIND, **options}, **more)
    table.write(_rows(1, 2, 3))
    table.write(_rows(4, 5, 6))
    return table


def _break_first_file(warehouse: Warehouse, table: lakebed.Table) -> None:
    """Whoever opens the first file from now on, fails."""
    path = min(table.to_arrow(columns=["k", "__paimon_file_path"]).to_pylist(), key=lambda row: row["k"])
    warehouse.fileio.delete(path["__paimon_file_path"])


@pytest.mark.parametrize("options", [BLOOM, BITMAP, BLOOM | BITMAP], ids=["bloom", "bitmap", "both"])
@pytest.mark.parametrize("threshold", ["0 b", "1 mb"])
def test_files_are_left_out(warehouse: Warehouse, options: dict[str, str], threshold: str) -> None:
    """A read of one value opens only the file that has it, wherever the index lies."""
    table = _table(warehouse, {**options, "file-index.in-manifest-threshold": threshold})
    _break_first_file(warehouse, table)
    assert table.to_arrow(filter=[("s", "=", "s5")])["k"].to_pylist() == [5]
    assert table.to_arrow(filter=[("s", "in", ["s4", "s6"])])["k"].to_pylist() == [4, 6]
    unread = table.with_options({"file-index.read.enabled": "false"})
    with pytest.raises(FileMissing):
        unread.to_arrow(filter=[("s", "=", "s5")])


def test_small_indexes_stand_in_the_manifest(warehouse: Warehouse) -> None:
    """Up to 500 bytes in the manifest, above in a file beside the data file; plans know the former."""
    table = _table(warehouse, BITMAP)
    assert all(file.embedded_index and not file.extra_files for file in table.scan().files)
    assert len(table.scan(filter=[("s", "=", "s5")]).files) == 1
    table.alter(lakebed.SetOption("file-index.in-manifest-threshold", "10 b"))
    table.write(_rows(7))
    last = table.scan().files[-1]
    assert last.extra_files == (last.file_name + ".index",)
    assert last.embedded_index is None


def test_compacted_files_have_indexes(warehouse: Warehouse) -> None:
    """Compactions of append tables index what they write."""
    table = _table(warehouse, BLOOM)
    table.compact(full=True)
    (file,) = table.scan().files
    assert file.index_file is not None
    assert table.to_arrow(filter=[("s", "=", "s5")])["k"].to_pylist() == [5]


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_newer_rows_are_not_forgotten(warehouse: Warehouse, engine: str) -> None:
    """In a primary-key table, the file of a newer row counts although its index excludes the value sought."""
    options = {**BLOOM, **BITMAP, "bucket": "1", "merge-engine": engine}
    table = _table(warehouse, options, primary_key=["k"])
    table.write(pa.table({"k": ints(2), "s": ["new"]}))
    assert table.to_arrow(filter=[("s", "=", "s2")]).num_rows == 0
    assert table.to_arrow(filter=[("s", "=", "new")])["k"].to_pylist() == [2]
    table.compact(full=True)
    assert all(file.index_file or file.embedded_index for file in table.scan().files)
    assert table.to_arrow(filter=[("s", "=", "s2")]).num_rows == 0
    assert table.to_arrow(filter=[("s", "=", "s5")])["k"].to_pylist() == [5]


def test_renamed_columns_are_found(warehouse: Warehouse) -> None:
    """Indexes of files from before a rename are used under the new name, and the options follow."""
    table = _table(warehouse, BITMAP)
    table.alter(lakebed.RenameColumn("s", "text"))
    table.write(pa.table({"k": ints(7), "text": ["s7"]}))
    _break_first_file(warehouse, table)
    assert table.to_arrow(filter=[("text", "=", "s5")])["k"].to_pylist() == [5]
    assert "text" in unpack(table.scan().files[-1].embedded_index or b"", "x")


def test_a_column_dropped_and_added_again_is_another(warehouse: Warehouse) -> None:
    """The index of a dropped column says nothing of a new one with its name."""
    table = _table(warehouse, BITMAP)
    table.alter(lakebed.RemoveOption("file-index.bitmap.columns"))
    table.alter(lakebed.DropColumn("s"))
    table.alter(lakebed.AddColumn("s", "STRING"))
    table.write(pa.table({"k": ints(9), "s": ["s1"]}))
    assert table.to_arrow(filter=[("s", "=", "s1")])["k"].to_pylist() == [9]
    assert table.to_arrow(filter=pc.field("s").is_null()).num_rows == 6


def test_a_lost_index_only_costs_time(warehouse: Warehouse) -> None:
    """Without its index file a data file is read as if it never had one."""
    table = _table(warehouse, {**BLOOM, "file-index.in-manifest-threshold": "0 b"})
    first = table.to_arrow(columns=["__paimon_file_path"])["__paimon_file_path"][0].as_py()
    warehouse.fileio.delete(first + ".index")
    assert table.to_arrow(filter=[("s", "=", "s1")])["k"].to_pylist() == [1]


def test_expiry_takes_indexes_along(warehouse: Warehouse) -> None:
    """When the last snapshot that needs a data file expires, its index goes too, and nothing else."""
    table = _table(warehouse, {**BLOOM, "file-index.in-manifest-threshold": "0 b"})
    table.compact(full=True)
    assert sum(path.endswith(".index") for path in warehouse.contents()) == 3
    table.expire_snapshots(retain_max=1, retain_min=1, older_than="2100-01-01 00:00:00")
    (file,) = table.scan().files
    assert [Path(path).name for path in warehouse.contents() if path.endswith(".index")] == [file.index_file]


def test_aborted_writes_leave_no_index(warehouse: Warehouse) -> None:
    """A writer that is given up removes index files as well."""
    table = _table(warehouse, {**BLOOM, "file-index.in-manifest-threshold": "0 b"})
    before = warehouse.contents()
    writer = table.writer()
    writer.write(_rows(9))
    writer.write(_rows(10))
    writer.abort()
    assert warehouse.contents().keys() == before.keys()


def test_rows_that_lost_a_race_keep_their_index(warehouse: Warehouse) -> None:
    """Files that are written anew with later sequence numbers get their index under the new name."""
    options = {**BLOOM, **BLIND, "bucket": "1", "file-index.in-manifest-threshold": "0 b"}
    table = warehouse.table("r", COLUMNS, options=options, primary_key=["k"])
    with table.writer() as writer:
        writer.write(_rows(1, 2))
        warehouse.reopened().table("r").write(_rows(2, 3))
        writer.commit()
    files = table.scan().files
    assert {file.index_file for file in files} == {file.file_name + ".index" for file in files}
    stored = {Path(path).name for path in warehouse.contents()}
    assert {file.index_file for file in files} == {name for name in stored if name.endswith(".index")}
    assert table.to_arrow(filter=[("s", "=", "s3")])["k"].to_pylist() == [3]


def test_single_keys_of_a_map(warehouse: Warehouse) -> None:
    """The values of chosen keys of a MAP are indexed, with the column's settings and their own."""
    options = {
        "file-index.bloom-filter.columns": "m[a],m[b],m[never]",
        "file-index.bloom-filter.m.items": "10",
        "file-index.bloom-filter.m[b].fpp": "0.01",
        "file-index.in-manifest-threshold": "1 mb",
    }
    table = warehouse.table("maps", {"m": "MAP<STRING, INT>"}, options=options)
    rows = pa.array([[("a", 1), ("b", 2)], [("a", 3)], None], pa.map_(pa.string(), pa.int32()))
    table.write(pa.table({"m": rows}))
    (file,) = table.scan().files
    indexes = unpack(file.embedded_index or b"", "x")
    assert not any((indexes["m[never]"]["bloom-filter"] or b"")[4:])
    few, many = (indexes[name]["bloom-filter"] or b"" for name in ("m[a]", "m[b]"))
    assert 4 < len(few) < len(many)
    assert may_contain(few, ints(1, 3), parse_type("INT")).all()
    assert table.to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"file-index.bloom-filter.columns": "nothing"}, "nothing"),
        ({"file-index.bloom-filter.columns": "m"}, "bloom-filter"),
        ({"file-index.bloom-filter.columns": "s[a]"}, "`s[a]`"),
        ({"file-index.bloom-filter.columns": "n[a]"}, "`n`"),
        ({"file-index.bitmap.columns": "s", "file-index.bitmap.s.fpp": "0.1"}, "fpp"),
        ({"file-index.bloom-filter.columns": "s", "file-index.bloom-filter.s.fpp": "2"}, "fpp"),
        ({"file-index.bloom-filter.k.fpp": "0.1"}, "`k` does not have"),
        ({"file-index.bsi.columns": "s"}, "bsi"),
        ({"file-index.rtree.columns": "k"}, "file-index.rtree.columns"),
    ],
)
def test_indexes_that_can_not_be_are_refused(warehouse: Warehouse, options: dict[str, str], text: str) -> None:
    """Unknown columns, types, settings and kinds are refused by name when the table is made."""
    with warehouse.refuses(InvalidOption, text):
        warehouse.table("x", {**COLUMNS, "m": "MAP<STRING, INT>"}, options=options)
