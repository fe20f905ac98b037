"""Compaction that sorts: the order that comes out, in memory or not, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, Unsupported
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.rewrite import sorting as module
from lakebed.rewrite.sorting import STRATEGIES, sort_compact
from lakebed.table.plans import plan_write
from lakebed.write import row_order

COLUMNS = {"a": "INT", "b": "BIGINT", "s": "STRING"}
SIDE = 64


def _grid() -> pa.Table:
    """All pairs of two numbers, shuffled."""
    a, b = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    order = np.random.default_rng(7).permutation(SIDE * SIDE)
    a, b = a.ravel()[order], b.ravel()[order]
    texts = [f"{x:03}-{y:03}" for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return pa.table({"a": pa.array(a, pa.int32()), "b": b, "s": texts})


def _sort(table: lakebed.Table, strategy: str, *columns: str, where: object = None) -> Snapshot | None:
    context, identity = plan_write(table)
    return sort_compact(context, strategy, columns, where, identity)  # type: ignore[arg-type]


def _tally(table: lakebed.Table) -> list[tuple[object, ...]]:
    shown = table.to_arrow()
    return sorted(zip(*(column.to_pylist() for column in shown.columns), strict=True), key=str)


@pytest.fixture(params=[False, True], ids=["in memory", "on disk"])
def stretches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are sorted at once, and rows that are too many for that."""
    if request.param:
        monkeypatch.setattr(row_order, "_SHARE", 256 << 20 >> 14)


@pytest.mark.usefixtures("stretches")
def test_plain_order(warehouse: Warehouse) -> None:
    """Rows are in the order of the columns, nulls first, from the first file to the last."""
    table = warehouse.table("t", COLUMNS, _grid(), options={"target-file-row-num": "500"})
    table.write(pa.table({"a": pa.array([None, 5], pa.int32()), "b": [7, None], "s": ["x", None]}))
    before = _tally(table)
    snapshot = _sort(table, "order", "b", "a")
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.delta_record_count) == (CommitKind.COMPACT, 0)
    shown = [(row["b"], row["a"]) for row in table.to_arrow().to_pylist()]
    assert shown == sorted(shown, key=lambda row: tuple((value is not None, value or 0) for value in row))
    assert _tally(table) == before
    assert len(table.scan().files) == 9


@pytest.mark.usefixtures("stretches")
@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
@pytest.mark.parametrize("columns", [("a", "b"), ("s", "b")])
def test_curves_help_filters_on_all_columns(warehouse: Warehouse, strategy: str, columns: tuple[str, str]) -> None:
    """A filter on either column opens about the square root of all files; before, it opens all of them."""
    table = warehouse.table("t", COLUMNS, _grid(), options={"target-file-row-num": "64"})
    before = _tally(table)
    filters = {"a": pc.field("a") == 9, "b": pc.field("b") == 40, "s": pc.field("s") == "009-040"}
    assert min(len(table.scan(filters[name]).files) for name in ("a", "b")) > 30
    _sort(table, strategy, *columns)
    assert len(table.scan().files) == 64
    assert max(len(table.scan(filters[name]).files) for name in columns) <= 16
    assert _tally(table) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ids_stay_and_deleted_rows_go(warehouse: Warehouse, strategy: str) -> None:
    """Rows take their ids along, and marked ones are left behind with their marks."""
    options = {"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}
    table = warehouse.table("t", COLUMNS, _grid(), options=options)
    table.delete_where(pc.field("a") == 3)
    shown = ["s", "_ROW_ID", "_SEQUENCE_NUMBER"]
    before = sorted(table.to_arrow(columns=shown).to_pylist(), key=str)
    snapshot = _sort(table, strategy, "a", "b")
    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert sorted(table.to_arrow(columns=shown).to_pylist(), key=str) == before


def test_an_append_in_between(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that came while others were sorted are there afterwards."""
    table = warehouse.table("t", COLUMNS, _grid())
    commit = module.commit_rewritten

    def late(*arguments: object) -> object:
        warehouse.reopened().table("t").write(pa.table({"a": pa.array([-1], pa.int32()), "b": [0], "s": ["late"]}))
        return commit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "commit_rewritten", late)
    _sort(table, "order", "a")
    assert table.to_arrow(filter=pc.field("s") == "late").num_rows == 1
    assert table.to_arrow().num_rows == SIDE * SIDE + 1


def test_through_the_table(warehouse: Warehouse) -> None:
    """`compact` sorts the partitions that are chosen, and no others."""
    table = warehouse.table("t", COLUMNS | {"p": "INT"}, partition_by=["p"])
    for part in (1, 2):
        table.write(_grid().append_column("p", pa.array([part] * SIDE * SIDE, pa.int32())))
    assert table.compact(where=pc.field("p") == 1, order_by=["s"]) is not None
    first, second = (table.to_arrow(filter=pc.field("p") == part).column("s").to_pylist() for part in (1, 2))
    assert first == sorted(second)
    assert second == _grid().column("s").to_pylist()


def test_empty_tables(warehouse: Warehouse) -> None:
    """Nothing to sort, nothing to commit."""
    assert _sort(warehouse.table("t", COLUMNS), "hilbert", "a") is None


def test_what_can_not_be_sorted(warehouse: Warehouse) -> None:
    """Buckets, keys and nested columns are refused by name."""
    bucketed = warehouse.table("t", COLUMNS, options={"bucket": "1", "bucket-key": "a"})
    keyed = warehouse.table("k", {"a": "INT NOT NULL"}, primary_key=["a"], options={"bucket": "1"})
    nested = warehouse.table("n", {"a": "ARRAY<INT>"})
    with warehouse.refuses(Unsupported, "buckets"):
        _sort(bucketed, "order", "a")
    with warehouse.refuses(Unsupported, "primary key"):
        _sort(keyed, "order", "a")
    with warehouse.refuses(InvalidArgument, "`a`"):
        _sort(nested, "order", "a")
    with warehouse.refuses(InvalidArgument, "zorder"):
        _sort(nested, "z-order", "a")
    with warehouse.refuses(InvalidArgument, "columns"):
        _sort(nested, "order")
