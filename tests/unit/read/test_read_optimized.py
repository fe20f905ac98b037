"""`t$ro`: only what a full compaction has brought to the highest level, read without any merge."""

from __future__ import annotations

import pyarrow as pa
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed.errors import InvalidArgument


def test_shows_the_highest_level(warehouse: Warehouse) -> None:
    """New rows are left out until they are fully compacted; old ones are shown as they were."""
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1})
    view = warehouse.lake.table("default.t$ro")
    assert view.to_arrow().num_rows == 0
    table.write(pa.table({"k": ints(1, 2), "v": ints(1, 2)}))
    assert view.to_arrow().num_rows == 0
    table.compact(full=True)
    table.write(pa.table({"k": ints(2, 3), "v": ints(20, 30)}))
    assert view.to_arrow().to_pydict() == {"k": [1, 2], "v": [1, 2]}
    assert view.to_arrow(filter=[("v", "==", 2)]).to_pydict() == {"k": [2], "v": [2]}
    assert view.at(snapshot=1).to_arrow().num_rows == 0
    assert len(view.scan().files) == 1
    table.compact(full=True)
    assert view.to_arrow().sort_by("k").to_pydict() == {"k": [1, 2, 3], "v": [1, 20, 30]}


def test_of_a_table_without_key(warehouse: Warehouse) -> None:
    """Without a key there is nothing to merge: the view is the table."""
    warehouse.table("t", {"v": "INT"}, pa.table({"v": ints(1, 2)}))
    assert warehouse.lake.table("t$ro").to_arrow().to_pydict() == {"v": [1, 2]}


def test_is_read_only(warehouse: Warehouse) -> None:
    """Nothing can be written, compacted or changed through the view, nor can it be made or dropped."""
    warehouse.table("t", {"k": "INT NOT NULL"}, primary_key=["k"], options={"bucket": 1})
    view = warehouse.lake.table("t$ro")
    with warehouse.refuses(InvalidArgument, "default.t$ro", "open `default.t`"):
        view.write(pa.table({"k": ints(1)}))
    with warehouse.refuses(InvalidArgument, "default.t$ro"):
        view.compact(full=True)
    with warehouse.refuses(InvalidArgument, "view"):
        warehouse.lake.create_table("x$ro", {"k": "INT"})
    with warehouse.refuses(InvalidArgument, "view"):
        warehouse.lake.drop_table("t$ro")
