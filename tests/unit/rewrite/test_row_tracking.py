"""Rows with ids: worked examples, the view, and what becomes of ids when files are rewritten."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.properties.row_statements import update_where
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import InvalidArgument, NotFound

SHOWN = ["id", "data", "_ROW_ID", "_SEQUENCE_NUMBER"]


@pytest.fixture(params=["false", "true"], ids=["rewriting", "marking"])
def table(request: pytest.FixtureRequest, warehouse: Warehouse) -> lakebed.Table:
    """The table of the examples, after its first insert."""
    options = {"row-tracking.enabled": "true", "deletion-vectors.enabled": request.param}
    made = warehouse.table("t", {"id": "INT", "data": "STRING"}, options=options)
    made.write(_rows((11, "a"), (22, "b")))
    return made


def _rows(*rows: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([row[0] for row in rows], pa.int32()), "data": [row[1] for row in rows]})


def _shown(table: lakebed.Table) -> list[tuple[object, ...]]:
    shown = table.to_arrow(columns=SHOWN)
    return sorted(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def _to(text: str) -> object:
    return lambda found: found.set_column(1, "data", pa.array([text] * found.num_rows))


def test_n_26_ids_are_selectable_columns(table: lakebed.Table) -> None:
    """The first snapshot gives ids from 0, and itself as the sequence number."""
    assert _shown(table) == [(11, "a", 0, 1), (22, "b", 1, 1)]
    assert table.to_arrow().column_names == ["id", "data"]


@pytest.mark.parametrize("condition", [pc.field("id") == 11, pc.field("_ROW_ID") == 0], ids=["value", "id"])
def test_t_10_to_t_13(table: lakebed.Table, condition: pc.Expression) -> None:
    """Updated rows keep their ids and get the sequence number of the update; others keep both."""
    update_where(table, condition, _to("x"))
    assert _shown(table) == [(11, "x", 0, 2), (22, "b", 1, 1)]
    update_where(table, pc.field("id") == 22, _to("m"))
    table.write(_rows((33, "c")))
    assert _shown(table) == [(11, "x", 0, 2), (22, "m", 1, 3), (33, "c", 2, 4)]
    table.delete_where(pc.field("id") == 11)
    assert _shown(table) == [(22, "m", 1, 3), (33, "c", 2, 4)]
    assert table.compact(full=True) is not None
    assert _shown(table) == [(22, "m", 1, 3), (33, "c", 2, 4)]
    table.write(_rows((44, "d")))
    assert _shown(table)[-1] == (44, "d", 3, 7)


def test_ids_are_not_given_twice(table: lakebed.Table) -> None:
    """Neither a delete nor an overwrite gives ids back."""
    table.delete_where(pc.field("id") >= 0)
    table.write(_rows((1, "x")), overwrite=True)
    assert _shown(table) == [(1, "x", 2, 3)]


def test_the_view(table: lakebed.Table, warehouse: Warehouse) -> None:
    """`t$row_tracking` shows the columns without asking for them, as filters see them."""
    view = warehouse.lake.table("t$row_tracking")
    assert view.arrow_schema.names == SHOWN
    assert view.to_arrow(filter=pc.field("_ROW_ID") == 1).to_pylist() == [
        {"id": 22, "data": "b", "_ROW_ID": 1, "_SEQUENCE_NUMBER": 1}
    ]
    with pytest.raises(InvalidArgument, match="read-only view"):
        view.write(_rows((1, "x")))


def test_tables_without_ids(warehouse: Warehouse) -> None:
    """The view and the columns of a table that gives no ids are refused by name."""
    warehouse.table("plain", {"id": "INT"})
    with pytest.raises(InvalidArgument, match=r"row-tracking\.enabled"):
        warehouse.lake.table("plain$row_tracking").to_arrow()
    with pytest.raises(NotFound, match="_ROW_ID"):
        warehouse.lake.table("plain").to_arrow(columns=["_ROW_ID"])


def test_earlier_states(table: lakebed.Table) -> None:
    """A snapshot shows the ids and sequence numbers of its time."""
    update_where(table, pc.field("id") == 11, _to("x"))
    table.compact(full=True)
    assert _shown(table.at(snapshot=1)) == [(11, "a", 0, 1), (22, "b", 1, 1)]
    assert _shown(table.at(snapshot=2)) == [(11, "x", 0, 2), (22, "b", 1, 1)]
