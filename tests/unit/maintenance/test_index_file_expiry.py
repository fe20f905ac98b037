"""Index files go with the last snapshot that names them, and not before."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.faults.fault_tables import take_inventory
from tests.unit.warehouse_under_test import Warehouse

import lakebed

MARKING = {"deletion-vectors.enabled": "true"}


def _rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int32())})


def _ids(table: lakebed.Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def _index_files(warehouse: Warehouse) -> int:
    return sum("/index/" in path for path in warehouse.contents())


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """Three files with marked rows: of two of them in one index file, which only one outlives."""
    table = warehouse.table("t", {"id": "INT"}, options={**MARKING, "target-file-size": "1 b"})
    for start in (0, 10, 20):
        table.write(_rows(start, start + 10))
    table.delete_where(pc.field("id") == 3)
    table.delete_where(pc.field("id").isin([4, 14]))
    table.delete_where(pc.field("id") == 25)
    return table


def test_only_what_nobody_names_goes(table: lakebed.Table, warehouse: Warehouse) -> None:
    """After expiry each index file that is left belongs to the last snapshot, and all its rows are right."""
    wanted = [number for number in range(30) if number not in (3, 4, 14, 25)]
    table.expire_snapshots(retain_max=1, older_than="2100-01-01")
    assert len(table.snapshots()) == 1
    assert _ids(table) == wanted
    assert not take_inventory(table).orphans
    assert _index_files(warehouse) == 2


def test_an_index_file_that_is_used_in_part(table: lakebed.Table, warehouse: Warehouse) -> None:
    """A compaction of one data file leaves the marks of its neighbour in the same index file."""
    table.delete_where(pc.field("id") < 6)
    assert table.compact() is not None
    table.expire_snapshots(retain_max=1, older_than="2100-01-01")
    assert _ids(table) == [number for number in range(6, 30) if number not in (14, 25)]
    assert not take_inventory(table).orphans
    assert _index_files(warehouse) == 2


def test_a_tag_keeps_its_marks(table: lakebed.Table) -> None:
    """What was deleted at the time of a tag is deleted when the tag is read, however much was expired since."""
    table.create_tag("then")
    table.delete_where(pc.field("id") >= 0)
    table.expire_snapshots(retain_max=1, older_than="2100-01-01")
    assert _ids(table) == []
    assert _ids(table.at(tag="then")) == [number for number in range(30) if number not in (3, 4, 14, 25)]
