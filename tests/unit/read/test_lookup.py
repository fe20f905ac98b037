"""Looking up rows by key: what callers may hand over, in which order rows come, and which files are never touched."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.datafiles.read_file import FileReader
from lakebed.errors import InvalidArgument, InvalidData, NotFound, Unsupported
from lakebed.metadata.data_file import DataFile
from lakebed.types.logical import INT

COLUMNS = {"k": "INT NOT NULL", "v": "STRING"}


def _rows(keys: range | list[int], text: str = "v") -> pa.Table:
    return pa.table({"k": pa.array(list(keys), pa.int32()), "v": [f"{text}{key}" for key in keys]})


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """Keys 0 to 99 in four buckets."""
    return warehouse.table("t", COLUMNS, _rows(range(100)), primary_key=["k"], options={"bucket": "4"})


@pytest.mark.parametrize(
    "keys",
    [
        [7, 3, 500, 7],
        pa.array([7, 3, 500, 7]),
        pa.chunked_array([[7, 3], [500, 7]]),
        np.array([7, 3, 500, 7]),
        pd.Series([7, 3, 500, 7]),
        pa.table({"k": pa.array([7, 3, 500, 7], pa.int64())}),
        pa.record_batch({"k": pa.array([7, 3, 500, 7], pa.int16())}),
        pd.DataFrame({"other": list("abcd"), "k": [7, 3, 500, 7]}),
        pl.DataFrame({"k": [7, 3, 500, 7]}),
        [{"k": 7, "x": 1}, {"k": 3}, {"k": 500}, {"k": 7}],
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_keys_of_all_sorts(table: lakebed.Table, keys: Any) -> None:
    """Rows come in the order of the keys, once for each time a key is given; keys without a row give none."""
    assert table.lookup(keys).to_pydict() == {"k": [7, 3, 7], "v": ["v7", "v3", "v7"]}


def test_find_tells_which_keys_are_there(table: lakebed.Table) -> None:
    """The mask is over the keys as given; its true places are those of the rows."""
    found, rows = table.key_lookup(["v"]).find([1, 1000, None, 2])
    assert found.to_pylist() == [True, False, False, True]
    assert rows.to_pydict() == {"v": ["v1", "v2"]}


def test_columns_are_those_asked_for(table: lakebed.Table) -> None:
    """In the order asked, with or without those of the key."""
    assert table.lookup([3], ["v", "k"]).column_names == ["v", "k"]
    assert table.lookup([3], ["v"]).to_pydict() == {"v": ["v3"]}
    assert table.lookup([], ["v"]).to_pydict() == {"v": []}
    assert table.lookup([], None).schema == table.arrow_schema


def test_empty_table(warehouse: Warehouse) -> None:
    """Nothing is found where nothing is."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"])
    assert table.lookup([1, 2]).num_rows == 0


def test_current_rows(table: lakebed.Table) -> None:
    """Updates and deletes of later commits count, and a view of the past shows what was there then."""
    table.write(_rows([5, 100], "new"))
    gone = pa.table({"k": pa.array([6], pa.int32()), "v": pa.array([None], pa.string()), "kind": ["-D"]})
    table.write(gone, row_kind="kind")
    assert table.lookup([5, 6, 100])["v"].to_pylist() == ["new5", "new100"]
    assert table.at(snapshot=1).lookup([5, 6, 100])["v"].to_pylist() == ["v5", "v6"]
    table.compact(full=True)
    assert table.lookup([5, 6, 100])["v"].to_pylist() == ["new5", "new100"]


def test_a_lookup_belongs_to_a_snapshot(table: lakebed.Table) -> None:
    """Later commits do not show in it."""
    finder = table.key_lookup()
    table.write(_rows([5], "new"))
    assert finder.rows([5])["v"].to_pylist() == ["v5"]
    assert table.key_lookup().rows([5])["v"].to_pylist() == ["new5"]


@contextmanager
def _opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the data files that are opened meanwhile."""
    names: list[str] = []
    real = FileReader._open

    def noted(self: FileReader, path: str, file: DataFile) -> pa.NativeFile:
        names.append(os.path.basename(path))
        return real(self, path, file)

    with monkeypatch.context() as patch:
        patch.setattr(FileReader, "_open", noted)
        yield names


def _local(tmp_path: Path, columns: dict[str, str], **more: Any) -> lakebed.Table:
    return lakebed.connect(tmp_path / "lake").create_table("t", columns, **more)


def test_only_files_that_may_hold_a_key_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By partition, by bucket, and by the smallest and largest key: of 2 x 4 x 2 files, one."""
    columns = {"p": "INT NOT NULL", **COLUMNS}
    table = _local(
        tmp_path,
        columns,
        primary_key=["p", "k"],
        partition_by=["p"],
        options={"bucket": "4", "write-only": "true"},
    )
    for keys in (range(100), range(1000, 1100)):
        for p in (1, 2):
            table.write(_rows(keys).append_column("p", pa.array([p] * 100, pa.int32())))
    assert len(table.scan().files) == 16
    with _opened(monkeypatch) as names:
        assert table.lookup([{"p": 2, "k": 1050}])["v"].to_pylist() == ["v1050"]
    assert len(names) == 1
    with _opened(monkeypatch) as names:
        assert table.lookup([{"p": 3, "k": 1050}, {"p": 1, "k": 500}]).num_rows == 0
    assert names == []


def test_bloom_filters_leave_files_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose index knows none of the keys is not opened, although its range holds them."""
    options = {
        "bucket": "1",
        "write-only": "true",
        "file-index.bloom-filter.columns": "k",
        "file-index.bloom-filter.k.items": "1000",
        "file-index.bloom-filter.k.fpp": "0.001",
    }
    table = _local(tmp_path, COLUMNS, primary_key=["k"], options=options)
    table.write(_rows(range(0, 1000, 2)))
    table.write(_rows(range(1, 1001, 2)))
    with _opened(monkeypatch) as names:
        assert table.lookup([500])["v"].to_pylist() == ["v500"]
    assert len([name for name in names if name.endswith(".parquet")]) == 1


def test_hash_indexes_leave_buckets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dynamic buckets only those are searched whose index knows the key."""
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "10", "write-only": "true"}
    table = _local(tmp_path, COLUMNS, primary_key=["k"], options=options)
    keys = list(range(50))
    random.Random(0).shuffle(keys)
    table.write(_rows(keys))
    assert len(table.scan().files) == 5
    with _opened(monkeypatch) as names:
        assert table.lookup([25])["v"].to_pylist() == ["v25"]
    assert len(names) == 1


def test_files_asked_for_again_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second question makes a local copy, the third opens nothing any more."""
    table = _local(tmp_path, COLUMNS, primary_key=["k"], options={"bucket": "1"})
    table.write(_rows(range(100)))
    counts = []
    for key in (1, 2, 3):
        with _opened(monkeypatch) as names:
            assert table.lookup([key])["v"].to_pylist() == [f"v{key}"]
        counts.append(len(names))
    assert counts == [1, 1, 0]


def test_rows_marked_as_deleted_are_not_found_in_copies(warehouse: Warehouse) -> None:
    """A copy holds all rows of its file: which of them are gone is a matter of the snapshot."""
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "20"}
    table = warehouse.table("t", COLUMNS, _rows(range(1000)), primary_key=["k"], options=options)
    before = table.key_lookup()
    for _ in range(3):
        assert table.lookup([1, 2])["v"].to_pylist() == ["v1", "v2"]
    gone = pa.table({"k": pa.array([1], pa.int32()), "v": pa.array([None], pa.string()), "kind": ["-D"]})
    table.write(gone, row_kind="kind")
    for _ in range(3):
        assert table.lookup([1, 2])["v"].to_pylist() == ["v2"]
    assert before.rows([1, 2])["v"].to_pylist() == ["v1", "v2"]


def test_keys_that_do_not_tell_their_partition(warehouse: Warehouse) -> None:
    """Such a key is looked for in all partitions, and found where it went last."""
    columns = {"p": "STRING", **COLUMNS}
    table = warehouse.table("t", columns, primary_key=["k"], partition_by=["p"], options={"bucket": "-1"})
    table.write(_rows([1, 2]).append_column("p", pa.array(["a", "a"])))
    table.write(_rows([2], "moved").append_column("p", pa.array(["b"])))
    assert table.lookup([2, 1]).to_pydict() == {"p": ["b", "a"], "k": [2, 1], "v": ["moved2", "v1"]}


def test_partitions_with_other_numbers_of_buckets(warehouse: Warehouse) -> None:
    """The bucket follows from the number of buckets that a partition was written with."""
    columns = {"p": "INT NOT NULL", **COLUMNS}
    table = warehouse.table("t", columns, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2"})
    table.write(_rows(range(20)).append_column("p", pa.array([1] * 20, pa.int32())))
    table.alter(lakebed.SetOption("bucket", "7"))
    table.write(_rows(range(20)).append_column("p", pa.array([2] * 20, pa.int32())))
    keys = pa.table({"p": pa.array([1, 2] * 20, pa.int32()), "k": pa.array(sorted([*range(20)] * 2), pa.int32())})
    assert table.lookup(keys).num_rows == 40


def test_schema_changes(table: lakebed.Table) -> None:
    """Columns that were added or renamed show as in any read, also from copies made before."""
    for _ in range(2):
        table.lookup([1])
    table.alter(lakebed.RenameColumn("v", "text"), lakebed.AddColumn("n", INT))
    for _ in range(3):
        assert table.lookup([1]).to_pydict() == {"k": [1], "text": ["v1"], "n": [None]}


def test_views(warehouse: Warehouse, table: lakebed.Table) -> None:
    """The view of compacted rows finds those; views of changes have no keys."""
    assert warehouse.lake.table("t$ro").lookup([1]).num_rows == 0
    table.compact(full=True)
    assert warehouse.lake.table("t$ro").lookup([1]).num_rows == 1
    with pytest.raises(InvalidArgument, match="changes"):
        warehouse.lake.table("t$audit_log").lookup([1])


def test_what_can_not_be_looked_up(warehouse: Warehouse, table: lakebed.Table) -> None:
    """Each refusal names what is wrong."""
    with warehouse.refuses(InvalidData, "lack column `k`"):
        table.lookup(pa.table({"x": [1]}))
    with warehouse.refuses(InvalidData, "column `k`"):
        table.lookup(["text"])
    with warehouse.refuses(InvalidData, "can not be read"):
        table.lookup([1, "text"])
    with warehouse.refuses(NotFound, "nope"):
        table.lookup([1], ["nope"])
    with warehouse.refuses(InvalidArgument, "`v` twice"):
        table.lookup([1], ["v", "v"])
    with warehouse.refuses(Unsupported, "scan.fallback-branch"):
        table.with_options({"scan.fallback-branch": "b"}).lookup([1])
    with warehouse.refuses(InvalidArgument, "latest-delta"):
        table.with_options({"scan.mode": "latest-delta"}).lookup([1])
    plain = warehouse.table("plain", {"a": "INT"})
    with warehouse.refuses(InvalidArgument, "no primary key"):
        plain.lookup([1])
    both = warehouse.table("both", {"a": "INT NOT NULL", "b": "INT NOT NULL"}, primary_key=["a", "b"])
    with warehouse.refuses(InvalidData, "2 columns"):
        both.lookup([1])
