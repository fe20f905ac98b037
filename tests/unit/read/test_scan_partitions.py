"""`scan.partitions`: named partitions, and the largest ones."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidOption, Unsupported


@pytest.fixture
def flat(warehouse: Warehouse) -> lakebed.Table:
    """One partition column, with a null among its values."""
    rows = pa.table({"pt": ["a", "b", "b", "c", None], "v": ints(1, 2, 3, 4, 5)})
    return warehouse.table("flat", {"pt": "STRING", "v": "INT"}, rows, partition_by=["pt"])


@pytest.fixture
def deep(warehouse: Warehouse) -> lakebed.Table:
    """Two partition columns, the second a number."""
    rows = pa.table({"d": ["x", "x", "y", "y", "y"], "h": ints(9, 10, 2, 10, None), "v": ints(1, 2, 3, 4, 5)})
    return warehouse.table("deep", {"d": "STRING", "h": "INT", "v": "INT"}, rows, partition_by=["d", "h"])


def _read(table: lakebed.Table, text: str, **more: object) -> list[int]:
    opened = table.with_options({"scan.partitions": text, **more})
    return sorted(opened.to_arrow(columns=["v"])["v"].to_pylist())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("pt=b;pt=c", [2, 3, 4]),
        (" pt = b ", [2, 3]),
        ("pt=nothing", []),
        ("pt=__DEFAULT_PARTITION__", [5]),
        ("max_pt()", [4]),
        ("MAX_TWO_PT()", [2, 3, 4]),
    ],
)
def test_chosen_partitions_are_read(flat: lakebed.Table, text: str, values: list[int]) -> None:
    """Only the rows of the partitions that are named, or of the largest, are read; null is the smallest."""
    assert _read(flat, text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("d=y,h=10", [4]),
        ("d=y", [5]),
        ("max_pt()", [4]),
        ("max_two_pt()", [3, 4]),
        ("d=max_pt()", [3, 4, 5]),
        ("d=max_pt(),h=max_pt()", [4]),
    ],
)
def test_two_partition_columns(deep: lakebed.Table, text: str, values: list[int]) -> None:
    """A column that is left out is null, numbers are compared as such, and the largest may be that of a prefix."""
    assert _read(deep, text) == values


def test_the_largest_is_that_of_the_state_read(flat: lakebed.Table) -> None:
    """Reads of an earlier snapshot take the largest partition of that snapshot."""
    flat.write(pa.table({"pt": ["z"], "v": ints(9)}))
    assert _read(flat, "max_pt()") == [9]
    assert _read(flat, "max_pt()", **{"scan.snapshot-id": "1"}) == [4]
    opened = flat.with_options({"scan.partitions": "max_pt()"})
    assert opened.at(snapshot=1).to_arrow()["v"].to_pylist() == [4]


def test_only_files_of_chosen_partitions_are_planned(flat: lakebed.Table) -> None:
    """Other partitions are not even opened, and a filter applies besides."""
    opened = flat.with_options({"scan.partitions": "pt=b;pt=c"})
    assert len(opened.scan().files) == 2
    assert opened.to_arrow(filter=[("v", ">", 2)])["v"].to_pylist() == [3, 4]


def test_changes_of_chosen_partitions(flat: lakebed.Table) -> None:
    """Incremental reads and followers see the named partitions only."""
    flat.write(pa.table({"pt": ["b", "d"], "v": ints(6, 7)}))
    assert _read(flat, "pt=b", **{"incremental-between": "0,2"}) == [2, 3, 6]
    opened = flat.with_options({"scan.partitions": "pt=b"})
    assert [part["v"].to_pylist() for part in opened.follow(options={"scan.mode": "latest-full"})] == [[2, 3, 6]]
    assert opened.changes(since=1)["v"].to_pylist() == [6]


def test_the_largest_can_not_be_followed(warehouse: Warehouse, flat: lakebed.Table) -> None:
    """A follower can not be bound to what changes under it."""
    opened = flat.with_options({"scan.partitions": "max_pt()"})
    with warehouse.refuses(Unsupported, "largest", "scan.partitions"):
        list(opened.follow())


@pytest.mark.parametrize("text", ["b", "=b", "pt=max_pt(),v=1", "d=max_pt();d=x"])
def test_ill_formed_texts_are_refused(warehouse: Warehouse, flat: lakebed.Table, text: str) -> None:
    """A text that names no partition is refused by the option's name."""
    with warehouse.refuses(InvalidOption, "scan.partitions"):
        _read(flat, text)


def test_tables_without_partitions_refuse_it(warehouse: Warehouse) -> None:
    """There is nothing to choose from."""
    table = warehouse.table("plain", {"v": "INT"}, pa.table({"v": ints(1)}))
    with warehouse.refuses(InvalidOption, "not partitioned"):
        _read(table, "v=1")


def test_writes_are_not_narrowed(flat: lakebed.Table) -> None:
    """A compaction under the option works on all partitions."""
    flat.write(pa.table({"pt": ["a", "c"], "v": ints(6, 7)}))
    flat.with_options({"scan.partitions": "pt=b"}).compact(full=True)
    assert sorted(flat.to_arrow()["v"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]
    assert len(flat.scan().files) == 4
