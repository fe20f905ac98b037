"""What happens to rows between writing and committing: memory, local disk, and the files that come of it."""

from __future__ import annotations

import gc
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidOption
from lakebed.lsm import spill
from lakebed.metadata.entries import live_files
from lakebed.write import buffers as bucket_writers

COLUMNS = {"k": "INT NOT NULL", "v": "INT"}
SMALL = {"bucket": "1", "write-only": "true", "write-buffer-size": "4 kb"}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_writers, "_LEAST_PIECE_BYTES", 1024)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary directory of the process, empty."""
    directory = tmp_path / "local"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def batches(count: int = 8) -> Iterator[pa.RecordBatch]:
    """Batches of 200 rows (2.6 kb with kind and number) over the same 500 keys."""
    random = np.random.default_rng(1)
    for number in range(count):
        keys = pa.array(random.choice(500, 200, replace=False), pa.int32())
        yield pa.record_batch({"k": keys, "v": pa.array([number] * 200, pa.int32())})


def expected(count: int = 8) -> dict[int, int]:
    """What the batches say of each key."""
    return {row["k"]: row["v"] for batch in batches(count) for row in batch.to_pylist()}


def seen(table: lakebed.Table) -> dict[int, int]:
    """The table's rows."""
    found = table.to_arrow()
    rows = dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert len(rows) == found.num_rows
    return rows


def file_rows(table: lakebed.Table) -> list[int]:
    """Row counts of all live files."""
    stores = table._opened.context.stores
    return [entry.file.row_count for entry in live_files(stores, stores.snapshots.latest())]


def test_a_commit_larger_than_memory_makes_one_run(warehouse: Warehouse, disk: Path) -> None:
    """Full buffers go to local disk and come back merged: one file, every key once, nothing left on disk."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)
    with table.writer() as writer:
        for batch in batches():
            writer.write(batch)
        assert list(disk.rglob("*.arrows")) != []
    assert seen(table) == expected()
    assert file_rows(table) == [len(expected())]
    assert list(disk.iterdir()) == []


def test_a_batch_larger_than_memory_goes_in_parts(warehouse: Warehouse, disk: Path) -> None:
    """One large batch is cut, so that it spills as a stream of small ones does."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)
    with table.writer() as writer:
        writer.write(pa.Table.from_batches(batches()).combine_chunks())
        assert len(list(disk.rglob("*.arrows"))) > 1
    assert seen(table) == expected()


def test_without_local_disk_every_full_buffer_is_a_file(warehouse: Warehouse, disk: Path) -> None:
    """`write-buffer-spillable` = false: several files that repeat keys, and the rows are the same."""
    options = {**SMALL, "write-buffer-spillable": "false"}
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=options)
    table.write(list(batches()))
    assert seen(table) == expected()
    assert len(file_rows(table)) > 2
    assert list(disk.iterdir()) == []


def test_the_limit_of_local_disk(warehouse: Warehouse, disk: Path) -> None:
    """What would pass the limit becomes files of the table, which frees the disk for more."""
    options = {**SMALL, "write-buffer-spill.max-disk-size": "10 kb", "spill-compression": "none"}
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=options)
    with table.writer() as writer:
        for batch in batches(24):
            writer.write(batch)
            assert sum(path.stat().st_size for path in disk.rglob("*.arrows")) <= 10 * 1024
    assert seen(table) == expected(24)
    assert 1 < len(file_rows(table)) < 12


def test_a_failing_local_disk_costs_files_not_rows(
    warehouse: Warehouse, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nothing can be put to disk, full buffers become files, and a warning says why."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)
    disk.rmdir()
    with caplog.at_level(logging.WARNING):
        table.write(list(batches()))
    assert seen(table) == expected()
    assert len(file_rows(table)) > 2
    assert caplog.text.count(str(disk) + " ") == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_giving_up_leaves_nothing(warehouse: Warehouse, disk: Path, error: type[BaseException]) -> None:
    """An error or an interrupt in the middle removes spilled rows and files alike."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)
    before = warehouse.contents()

    def write() -> None:
        with table.writer() as writer:
            for batch in batches():
                writer.write(batch)
            raise error

    with pytest.raises(error):
        write()
    assert list(disk.iterdir()) == []
    assert {path for path in warehouse.contents() if path.endswith(".parquet")} <= set(before)


def test_an_error_while_merging_leaves_nothing(
    warehouse: Warehouse, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that fails between disk and table removes both sides."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)

    def fail(*_: object) -> None:
        raise RuntimeError("in between")

    monkeypatch.setattr(spill, "merge_runs", fail)
    with pytest.raises(RuntimeError, match="in between"):
        table.write(list(batches()))
    assert list(disk.iterdir()) == []
    assert table.snapshots() == []


def test_buckets_share_memory_and_disk(warehouse: Warehouse, disk: Path) -> None:
    """Each bucket's rows come together again, in one file per bucket."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options={**SMALL, "bucket": "3"})
    table.write(list(batches(20)))
    assert seen(table) == expected(20)
    assert len(file_rows(table)) == 3
    assert list(disk.iterdir()) == []


def test_an_interpreter_that_forgets_its_writer(warehouse: Warehouse, disk: Path) -> None:
    """A writer that is neither committed nor aborted takes its spilled rows along when it goes."""
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=SMALL)
    writer = table.writer()
    for batch in batches():
        writer.write(batch)
    assert list(disk.iterdir()) != []
    del writer
    gc.collect()
    assert list(disk.iterdir()) == []


# --- deletes as barriers -------------------------------------------------------------------------------------------

REMOVING = {
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "sequence group": {
        "merge-engine": "partial-update",
        "fields.g.sequence-group": "b",
        "partial-update.remove-record-on-sequence-group": "g",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "aggregation.remove-record-on-delete": "true",
        "fields.b.aggregate-function": "sum",
    },
}
WIDE = {"k": "INT NOT NULL", "a": "INT", "b": "INT", "g": "INT"}


def wide(*rows: tuple[str, int, int | None, int | None, int | None]) -> pa.Table:
    """Rows of (kind, k, a, b, g)."""
    kinds, *columns = zip(*rows, strict=True)
    return pa.table({"op": list(kinds), **{name: ints(*values) for name, values in zip("kabg", columns, strict=True)}})


@pytest.mark.parametrize("buffer_size", ["256 mb", "1 b"])
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("name", list(REMOVING))
def test_m_22_a_delete_is_a_barrier_within_a_commit(
    warehouse: Warehouse, name: str, compacted: bool, buffer_size: str
) -> None:
    """-D and an add in one commit: nothing of what earlier commits wrote shows through, compacted or not."""
    options = {"bucket": "1", "write-buffer-size": buffer_size, **REMOVING[name]}
    table = warehouse.table("t", WIDE, primary_key=["k"], options=options)
    table.write(wide(("+I", 1, 10, 10, 1), ("+I", 2, 20, 20, 1), ("+I", 3, 30, 30, 1)), row_kind="op")
    table.write(
        wide(
            ("+U", 1, 11, None, 2),
            ("-D", 1, 10, 10, 3),
            ("+I", 1, None, 5, 4),
            ("-D", 2, 20, 20, 2),
            ("+I", 4, 4, 4, 1),
            ("-D", 4, 4, 4, 2),
        ),
        row_kind="op",
    )
    if compacted:
        table.compact(full=True)
    assert table.to_arrow().to_pylist() == [{"k": 1, "a": None, "b": 5, "g": 4}, {"k": 3, "a": 30, "b": 30, "g": 1}]


def test_a_late_delete_is_no_barrier(warehouse: Warehouse) -> None:
    """With sequence groups a -D that comes too late removes nothing, and hides no removal before it."""
    options = {"bucket": "1", **REMOVING["sequence group"]}
    table = warehouse.table("t", WIDE, primary_key=["k"], options=options)
    table.write(wide(("+I", 1, 10, 10, 1), ("+I", 2, 20, 20, 9)), row_kind="op")
    table.write(
        wide(
            ("-D", 1, 0, 0, 3),
            ("+I", 1, None, 5, 7),
            ("-D", 1, 0, 0, 4),
            ("+U", 1, None, 6, 8),
            ("-D", 2, 0, 0, 3),
            ("+U", 2, 21, None, None),
        ),
        row_kind="op",
    )
    assert table.to_arrow().to_pylist() == [{"k": 1, "a": None, "b": 6, "g": 8}, {"k": 2, "a": 21, "b": 20, "g": 9}]


# --- sequence.auto-padding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("padding", "shown"),
    [
        ("true", [{"k": 1, "v": 5}]),
        ("row-kind-flag,millis-to-micro", [{"k": 1, "v": 5}]),
        ("false", []),
        ("", []),
        ("second-to-micro", []),
    ],
)
@pytest.mark.parametrize("buffer_size", ["256 mb", "1 b"])
def test_n_14_auto_padding(
    warehouse: Warehouse, padding: str, shown: list[object], buffer_size: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A delete that comes after an add with the same sequence value counts as before it, if the table says so."""
    bucket_writers._warn_of_padding.cache_clear()
    options = {"bucket": "1", "sequence.field": "v", "write-buffer-size": buffer_size, "sequence.auto-padding": padding}
    table = warehouse.table("t", COLUMNS, primary_key=["k"], options=options)
    with caplog.at_level(logging.WARNING), table.writer(row_kind="op") as writer:
        writer.write(pa.table({"k": ints(1), "v": ints(5), "op": ["+I"]}))
        writer.write(pa.table({"k": ints(1), "v": ints(5), "op": ["-D"]}))
    assert table.to_arrow().to_pylist() == shown
    assert ("auto-padding" in caplog.text) == bool(shown)
    assert caplog.text.count("auto-padding") <= 1


def test_n_14_other_words_are_refused(warehouse: Warehouse) -> None:
    """A word that auto padding does not know is an error, not a no-op."""
    with warehouse.refuses(InvalidOption, "sequence.auto-padding", "row-kind-flag"):
        warehouse.table("t", COLUMNS, primary_key=["k"], options={"bucket": "1", "sequence.auto-padding": "yes"})
