"""Clustering on write: rows of a batch are sorted before they are cut into files, so that filters skip files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import InvalidOption, LakebedError
from lakebed.schema.changes import DropColumn, RenameColumn, SetOption

SIZE = 20_000
COLUMNS = {"a": "BIGINT", "b": "BIGINT", "s": "STRING"}


def _rows(seed: int = 0) -> pa.Table:
    places = np.random.default_rng(seed).permutation(SIZE)
    return pa.table({"a": places % 200, "b": places // 100, "s": [f"{place:06}" for place in places]})


def _create(path: Path, options: dict[str, str], **more: Any) -> lakebed.Table:
    small = {"target-file-row-num": str(SIZE // 20), "write-only": "true"}
    return lakebed.connect(path).create_table("t", COLUMNS, options=small | options, **more)


def _read_files(table: lakebed.Table, where: list[Any]) -> int:
    return sum(len(split.files) for split in table.scan(filter=where).splits)


def _same(table: lakebed.Table, *written: pa.Table) -> None:
    order = [("a", "ascending"), ("b", "ascending"), ("s", "ascending")]
    assert table.to_arrow().sort_by(order).equals(pa.concat_tables(written).sort_by(order))


def test_files_of_a_sorted_column_follow_each_other(tmp_path: Path) -> None:
    """One column sorts: a filter on it reads one or two of twenty files, without clustering all of them."""
    plain = _create(tmp_path / "plain", {})
    table = _create(tmp_path / "sorted", {"clustering.columns": "s"})
    for each in (plain, table):
        each.write(_rows())
    assert _read_files(plain, [("s", "=", "000777")]) == 20
    assert _read_files(table, [("s", "=", "000777")]) == 1
    assert table.to_arrow().column("s").to_pylist() == sorted(_rows().column("s").to_pylist())
    _same(table, _rows())


@pytest.mark.parametrize(("strategy", "columns"), [("auto", "a,b"), ("zorder", "a,b"), ("hilbert", "b, a")])
def test_rows_that_are_close_lie_together(strategy: str, columns: str, tmp_path: Path) -> None:
    """Along a curve, filters on each of two columns skip files."""
    table = _create(tmp_path, {"clustering.columns": columns, "clustering.strategy": strategy})
    table.write(_rows())
    for column in ("a", "b"):
        assert _read_files(table, [(column, "=", 17)]) <= 10
    _same(table, _rows())


def test_auto_follows_the_number_of_columns(tmp_path: Path) -> None:
    """`order` sorts by the first of two columns, `auto` along a curve on which no single one is sorted."""
    firsts = {}
    for strategy in ("order", "auto"):
        table = _create(tmp_path / strategy, {"clustering.columns": "a,b", "clustering.strategy": strategy})
        table.write(_rows())
        firsts[strategy] = table.to_arrow().column("a").to_pylist()
    assert firsts["order"] == sorted(firsts["order"])
    assert firsts["auto"] != sorted(firsts["auto"])


@pytest.mark.parametrize("budget", ["256 kb", "256 mb"])
def test_partitions_and_little_memory(budget: str, tmp_path: Path) -> None:
    """Each partition is sorted by itself, and rows that do not fit into memory are sorted all the same."""
    options = {"clustering.columns": "p,s", "clustering.strategy": "order", "write-buffer-size": budget}
    columns = COLUMNS | {"p": "INT"}
    table = lakebed.connect(tmp_path).create_table(
        "t", columns, partition_by=["p"], options=options | {"target-file-row-num": "1000", "write-only": "true"}
    )
    rows = _rows().append_column("p", pa.array(np.arange(SIZE) % 2, pa.int32()))
    with table.writer() as writer:
        for start in range(0, SIZE, 1000):
            writer.write(rows.slice(start, 1000))
    for partition in (0, 1):
        texts = table.to_arrow(filter=[("p", "=", partition)]).column("s").to_pylist()
        assert texts == sorted(texts)
        assert len(texts) == SIZE // 2
        assert _read_files(table, [("p", "=", partition), ("s", "=", texts[5000])]) == 1


def test_every_commit_is_sorted_by_itself(tmp_path: Path) -> None:
    """Two writes overlap; an overwrite is sorted too; nulls and deletes by vectors do no harm."""
    table = _create(tmp_path, {"clustering.columns": "s", "deletion-vectors.enabled": "true"})
    table.write(_rows())
    nulls = pa.table({"a": pa.array([None, 1], pa.int64()), "b": pa.array([1, 2], pa.int64()), "s": [None, "x"]})
    table.write(nulls)
    assert _read_files(table, [("s", "=", "000777")]) == 1
    assert table.to_arrow().num_rows == SIZE + 2
    table.write(_rows(1), overwrite=True)
    assert _read_files(table, [("s", "=", "000777")]) == 1
    _same(table, _rows(1))
    assert table.check(deep=True) == []


def test_a_handle_may_ask_for_it(tmp_path: Path) -> None:
    """The options, under their older names too, count for one write alone; streams of commits are not sorted."""
    table = _create(tmp_path, {})
    table.with_options({"sink.clustering.by-columns": "s"}).write(_rows())
    assert _read_files(table, [("s", "=", "000777")]) == 1
    with table.with_options({"clustering.columns": "s"}).writer(commit_user="u", commit_identifier=1) as writer:
        writer.write(_rows())
    assert _read_files(table, [("s", "=", "000777")]) == 21


def test_a_row_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    """Rows that are held back are given up with the writer."""
    table = _create(tmp_path, {"clustering.columns": "s"})
    writer = table.writer()
    writer.write(_rows())
    with pytest.raises(LakebedError):
        writer.write(pa.table({"nothing": [1]}))
    writer.abort()
    assert table.latest_snapshot() is None
    assert not list(tmp_path.glob("**/bucket-0/*"))


@pytest.mark.parametrize(
    ("columns", "options", "more", "words"),
    [
        ({"a": "INT"}, {"clustering.columns": "b"}, {}, "column `b`"),
        ({"a": "ARRAY<INT>"}, {"clustering.columns": "a"}, {}, "nested"),
        ({"a": "INT"}, {"clustering.columns": "a", "clustering.strategy": "curly"}, {}, "clustering.strategy"),
    ],
)
def test_what_can_not_be_sorted(
    columns: dict[str, str], options: dict[str, str], more: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """Columns that are not there, or have no order, are refused when a table is created, altered or opened so."""
    lake = lakebed.connect(tmp_path)
    with pytest.raises(InvalidOption, match=words):
        lake.create_table("t", columns, options=options, **more)
    table = lake.create_table("t", columns, **more)
    with pytest.raises(InvalidOption, match=words):
        table.alter(*(SetOption(key, value) for key, value in options.items()))
    with pytest.raises(InvalidOption, match=words):
        table.with_options(options)


def test_tables_that_have_an_order(tmp_path: Path) -> None:
    """With a key or buckets it has no effect, which is said, as by Paimon; steps of it are refused as Paimon does."""
    lake = lakebed.connect(tmp_path)
    with pytest.warns(UserWarning, match="has no effect: rows of a table with a primary key"):
        lake.create_table(
            "k", {"a": "INT NOT NULL"}, primary_key=["a"], options={"clustering.columns": "a", "bucket": "1"}
        )
    with pytest.warns(UserWarning, match="has no effect: rows of a table with buckets"):
        lake.create_table("b", {"a": "INT"}, options={"clustering.columns": "a", "bucket": "1", "bucket-key": "a"})
    for name in ("k", "b"):
        table = lake.table(name)
        table.write(pa.table({"a": pa.array([2, 1], pa.int32())}))
        assert sorted(table.to_arrow().column("a").to_pylist()) == [1, 2]
    with pytest.raises(InvalidOption, match=r"clustering\.incremental"):
        lake.create_table(
            "i", {"a": "INT NOT NULL"}, primary_key=["a"], options={"clustering.incremental": "true", "bucket": "1"}
        )


def test_the_columns_may_change(tmp_path: Path) -> None:
    """The option follows a column that is renamed; one that rows are sorted by can not be dropped."""
    table = _create(tmp_path, {"clustering.columns": "s"})
    table.alter(RenameColumn(("s",), "t"))
    table.write(_rows().rename_columns(["a", "b", "t"]))
    assert _read_files(table, [("t", "=", "000777")]) == 1
    with pytest.raises(LakebedError, match=r"clustering\.columns"):
        table.alter(DropColumn(("t",)))
    table.alter(SetOption("clustering.columns", "a"))
    table.alter(DropColumn(("t",)))
    table.write(_rows(1).drop_columns(["s"]))
    assert table.to_arrow().num_rows == 2 * SIZE
