"""An opened system table behaves like a table that can only be read."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidArgument, NotFound, Unsupported


@pytest.fixture
def view(warehouse: Warehouse) -> lakebed.Table:
    """The snapshots of a table that has one."""
    warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    return warehouse.lake.table("t$snapshots")


def test_reads_in_all_forms(view: lakebed.Table) -> None:
    """Arrow, batches, pandas, polars and DuckDB show the same; the schema is that of the rows."""
    shown = view.to_arrow()
    assert shown.schema == view.arrow_schema
    assert list(view.schema.field_names) == shown.column_names
    assert pa.Table.from_batches(view.to_batches()) == shown
    assert view.to_pandas(["snapshot_id"])["snapshot_id"].tolist() == [1]
    assert view.to_polars(["snapshot_id"])["snapshot_id"].to_list() == [1]
    assert view.to_duckdb(["snapshot_id"]).fetchall() == [(1,)]
    assert view.to_arrow(filter=pc.field("snapshot_id") == 2).num_rows == 0
    assert (view.primary_key, view.partition_by, view.comment) == ((), (), None)
    assert view.name == "default.t$snapshots"
    assert "snapshot_id" in repr(view)


def test_names_in_any_case(warehouse: Warehouse, view: lakebed.Table) -> None:
    """The name of a system table may be written in upper case."""
    assert warehouse.lake.table("`default`.`t$SNAPSHOTS`").name == view.name


def test_columns_that_are_not_there(view: lakebed.Table) -> None:
    """A wrong column in the selection or the filter is named, with the nearest one."""
    with pytest.raises(NotFound, match="snapshot_id"):
        view.to_arrow(["snapshotid"])
    with pytest.raises(NotFound, match="commit_kind"):
        view.to_arrow(filter=[("commit_kin", "==", "APPEND")])


WRITES: list[Callable[[lakebed.Table], object]] = [
    lambda view: view.write(pa.table({"a": ints(1)})),
    lambda view: view.writer(),
    lambda view: view.truncate(),
    lambda view: view.compact(),
    lambda view: view.expire_snapshots(),
    lambda view: view.create_tag("x"),
    lambda view: view.delete_tag("x"),
    lambda view: view.alter(lakebed.AddColumn("x", "INT")),
]


@pytest.mark.parametrize("deed", range(len(WRITES)))
def test_is_read_only(warehouse: Warehouse, view: lakebed.Table, deed: int) -> None:
    """Whatever would change something is refused and leads to the table itself."""
    with warehouse.refuses(InvalidArgument, "default.t$snapshots", "open `default.t`"):
        WRITES[deed](view)


READS: list[Callable[[lakebed.Table], object]] = [
    lambda view: view.scan(),
    lambda view: view.changes(),
    lambda view: view.diff(0, 1),
    lambda view: view.check(),
]


@pytest.mark.parametrize("deed", range(len(READS)))
def test_has_no_history_of_its_own(warehouse: Warehouse, view: lakebed.Table, deed: int) -> None:
    """Plans and changes are those of the table; the error says what works."""
    with warehouse.refuses(Unsupported, "system table", "to_arrow"):
        READS[deed](view)
    with warehouse.refuses(Unsupported, "default.t$snapshots", "follow `default.t`"):
        view.follow()


def test_is_neither_made_nor_dropped(warehouse: Warehouse, view: lakebed.Table) -> None:
    """A system table comes and goes with its table."""
    with warehouse.refuses(InvalidArgument, "x$snapshots"):
        warehouse.lake.create_table("x$snapshots", {"a": "INT"})
    with warehouse.refuses(InvalidArgument, "view"):
        warehouse.lake.drop_table("t$snapshots")
    with warehouse.refuses(NotFound, "aa$bb"):
        warehouse.lake.create_table("t$aa$bb", {"a": "INT"})
    assert warehouse.lake.has_table("t$snapshots")
    assert not warehouse.lake.has_table("nope$snapshots")


def test_of_a_table_whose_rows_can_not_be_read(warehouse: Warehouse) -> None:
    """Metadata stays readable when an option keeps the rows from being read."""
    table = warehouse.table("t", {"a": "INT"}, pa.table({"a": ints(1)}))
    context = table._opened.current()
    path = context.paths.schema_file(0)
    text = context.schema.to_json().replace('"options": {}', '"options": {"type": "format-table"}')
    warehouse.fileio.overwrite(path, text.encode())
    reopened = warehouse.reopened()
    with pytest.raises(Unsupported):
        reopened.table("t").to_arrow()
    assert reopened.table("t$files").to_arrow().num_rows == 1
    assert reopened.table("t$options").to_arrow().to_pydict()["value"] == ["format-table"]


def test_opened_otherwise_it_stays_a_system_table(warehouse: Warehouse, view: lakebed.Table) -> None:
    """As it is now, on a branch, at a snapshot or under options: never the rows of the table behind it."""
    table = warehouse.lake.table("t")
    table.create_tag("one")
    table.create_branch("b", tag="one")
    table.write(pa.table({"a": ints(2)}))
    now = view.pinned()
    assert now.to_arrow(["snapshot_id"]).to_pydict() == {"snapshot_id": [1, 2]}
    assert now.fixed_to == table.latest_snapshot()
    for opened in (view.on_branch("b"), view.with_options({"branch": "b"})):
        assert opened.to_arrow(["snapshot_id"]).to_pydict() == {"snapshot_id": [1]}
    files = warehouse.lake.table("t$files").at(snapshot=1)
    assert files.to_arrow().num_rows == 1
    with pytest.raises(Unsupported):
        files.scan()
