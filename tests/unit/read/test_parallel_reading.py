"""Reads with several threads, and with as few as the table's options say."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed import Table
from lakebed.datafiles.read_file import FileReader
from lakebed.errors import InvalidOption
from lakebed.schema import system_columns


@pytest.fixture
def table(warehouse: Warehouse) -> Table:
    """Two partitions of two buckets; some files overlap, some do not."""
    table = warehouse.table(
        "t",
        {"p": "INT", "id": "INT", "v": "STRING"},
        primary_key=["p", "id"],
        partition_by=["p"],
        options={"bucket": "2", "write-only": "true"},
    )
    for first in (0, 5, 100):
        ids = list(range(first, first + 10))
        for p in (1, 2):
            table.write(pa.table({"p": ints(*[p] * 10), "id": ints(*ids), "v": [f"{first}-{i}" for i in ids]}))
    return table


def test_the_result_does_not_depend_on_the_number_of_threads(table: Table) -> None:
    """Rows and their order are the same for every number of threads, and as a stream."""
    expected = {(p, first + i): f"{first}-{first + i}" for first in (0, 5, 100) for p in (1, 2) for i in range(10)}
    one = table.with_options({"lakebed.parallelism": 1}).to_arrow()
    assert {(row["p"], row["id"]): row["v"] for row in one.to_pylist()} == expected
    for threads in (2, 3, 50):
        assert table.with_options({"lakebed.parallelism": threads}).to_arrow().to_pylist() == one.to_pylist()
    assert table.to_arrow().to_pylist() == one.to_pylist()
    assert pa.Table.from_batches(table.to_batches()).to_pylist() == one.to_pylist()


def test_no_more_threads_read_than_allowed(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread everything happens in the caller's; with three at most three take part."""
    seen: set[int] = set()
    arrow_threads: set[bool] = set()
    read = FileReader.read

    def noted(self: FileReader, *arguments: object) -> Iterator[tuple[int, pa.RecordBatch]]:
        seen.add(threading.get_ident())
        arrow_threads.add(self.use_threads)
        yield from read(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "read", noted)
    table.with_options({"lakebed.parallelism": 1}).to_arrow()
    assert seen == {threading.get_ident()}
    assert pa.cpu_count() == 1 or arrow_threads == {False}
    seen.clear()
    table.with_options({"lakebed.parallelism": 3}).to_arrow()
    assert 1 <= len(seen) <= 3
    assert threading.get_ident() not in seen


def test_no_threads_are_refused(table: Table) -> None:
    """The option is a positive number."""
    with pytest.raises(InvalidOption, match=r"lakebed\.parallelism"):
        table.with_options({"lakebed.parallelism": 0})


def test_an_error_of_one_thread_is_the_readers_error(table: Table) -> None:
    """A file that is gone stops the read, whichever thread finds out."""
    gone = table.scan().files[-1].file_name
    lost = [path for path in _files(table) if path.endswith(gone)]
    assert len(lost) == 1
    table._opened.context.fileio.delete(lost[0])
    with pytest.raises(Exception, match=gone):
        table.with_options({"lakebed.parallelism": 3}).to_arrow()


def _files(table: Table) -> list[str]:
    return [status.path for status in table._opened.context.fileio.list_recursive(table.location)]


def test_numbers_are_read_only_where_they_decide(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that came one after the other are merged without their sequence numbers."""
    wanted: list[bool] = []
    read = FileReader.read

    def noted(self: FileReader, *arguments: object) -> Iterator[tuple[int, pa.RecordBatch]]:
        wanted.append(system_columns.SEQUENCE_NUMBER in self.wanted)
        yield from read(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "read", noted)
    assert table.to_arrow(columns=["v"], filter=[("id", "=", 7)]).to_pylist() == [{"v": "5-7"}, {"v": "5-7"}]
    assert wanted
    assert not any(wanted)
