"""Rows that wait for their buckets survive whatever fails while they are brought there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.faults.fault_tables import SCHEMA, check_sound, copy_of, data, fresh_disk, open_lake, rows_of, take_inventory

from lakebed.errors import LakebedError
from lakebed.fileio.memory import MemoryFileIO
from lakebed.testing.faulty_io import FaultMode, FaultyFileIO, SimulatedCrash

FIRST = [(1, key, key) for key in range(6)]
LATER = [(1, 1, 101), (2, 1, 201)]
PLACED = sorted([*(row for row in FIRST if row[1] != 1), *LATER])


@pytest.fixture
def disk() -> Iterator[MemoryFileIO]:
    """A table with rows in buckets and rows that wait."""
    made = fresh_disk()
    options = {"bucket": "-2", "postpone.default-bucket-num": "2", "file.format": "avro"}
    table = open_lake(made).create_table("t", SCHEMA, primary_key=["p", "id"], partition_by=["p"], options=options)
    table.write(data(FIRST))
    table.with_options({"postpone.batch-write-fixed-bucket": "false"}).write(data(LATER))
    yield made
    made.delete_directory("lake")


@pytest.mark.parametrize("mode", ["error", "error-after-effect", "crash"])
def test_every_operation_of_placing_rows(disk: MemoryFileIO, mode: FaultMode) -> None:
    """After any failure rows wait still or are in their buckets, once; the next compaction finishes what is left."""
    operations = FaultyFileIO(copy_of(disk), None, "error")
    open_lake(operations).table("t").compact()
    count = len(operations.ops)
    assert count > 20
    for number in range(1, count + 1):
        copy = copy_of(disk)
        faulty = FaultyFileIO(copy, number, mode)
        has_failed = False
        try:
            open_lake(faulty).table("t").compact()
        except (LakebedError, SimulatedCrash):
            has_failed = True
        table = open_lake(copy).table("t")
        check_sound(table)
        assert rows_of(table) in (sorted(FIRST), PLACED), f"operation {number}"
        if has_failed and mode == "error":
            assert not take_inventory(table).orphans, f"operation {number}"
        table.compact()
        assert rows_of(table) == PLACED, f"operation {number}"
        assert not take_inventory(table).missing
        copy.delete_directory("lake")
