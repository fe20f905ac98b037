"""`t$binlog`: one row for every change, with the values before and after."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.unit.changes.test_audit_log import rows, worked
from tests.unit.changes.test_incremental import between
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed.errors import InvalidArgument


def test_updates_are_one_row(warehouse: Warehouse) -> None:
    """6.8: `+I [v]`, `+U [old, new]`, `-D [v]`."""
    worked(warehouse, 2, **{"changelog-producer": "lookup"})
    log = warehouse.lake.table("t$binlog")
    first = [("+I", [1], ["a"]), ("+I", [2], ["b"])]
    second = [("+U", [1, 1], ["a", "c"]), ("-D", [2], ["b"])]
    assert rows(log.with_options(between(0, 4))) == first + second
    assert rows(log.with_options(between(2, 4, "diff"))) == second
    assert [tuple(row.values()) for row in log.changes(2).to_pylist()] == second
    assert rows(log) == [("+I", [1], ["c"])]


def test_columns_and_types(warehouse: Warehouse) -> None:
    """Every column is an array of its type; some of them can be asked for, and rows chosen by their kind."""
    worked(warehouse, 2, **{"changelog-producer": "lookup"})
    log = warehouse.lake.table("t$binlog").with_options(between(0, 4))
    assert log.arrow_schema.names == ["rowkind", "k", "v"]
    assert [field.type.value_type for field in list(log.arrow_schema)[1:]] == [pa.int32(), pa.string()]
    assert log.to_arrow().schema == log.arrow_schema
    assert rows(log, columns=["v"], filter=[("rowkind", "==", "+U")]) == [(["a", "c"],)]


@pytest.mark.parametrize("batch_rows", ["1", "2", "3"])
def test_pairs_cut_by_a_batch(warehouse: Warehouse, batch_rows: str) -> None:
    """A pair is one row wherever the batches of a file end."""
    options = {"changelog-producer": "lookup", "read.batch-size": batch_rows}
    table = warehouse.table("t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1, **options})
    for value in (10, 20):
        table.write(pa.table({"k": ints(1, 2, 3), "v": ints(value, value + 1, value + 2)}))
    log = warehouse.lake.table("t$binlog").with_options(between(2, 4))
    assert rows(log) == [("+U", [1, 1], [10, 20]), ("+U", [2, 2], [11, 21]), ("+U", [3, 3], [12, 22])]


def test_upserts_without_their_old_rows(warehouse: Warehouse) -> None:
    """Without a producer old rows are not known: an update is a row of one value."""
    worked(warehouse, 3)
    table = warehouse.lake.table("t")
    table.write(pa.table({"k": ints(1), "v": ["d"], "op": ["+U"]}), row_kind="op")
    assert rows(warehouse.lake.table("t$binlog").with_options(between(2, 4))) == [
        ("+I", [1], ["c"]),
        ("+U", [1], ["d"]),
    ]


def test_tables_without_a_key(warehouse: Warehouse) -> None:
    """What was appended is an insert."""
    warehouse.table("t", {"v": "INT"}, pa.table({"v": ints(1, None)}))
    log = warehouse.lake.table("t$binlog")
    assert rows(log) == rows(log.with_options(between(0, 1))) == [("+I", [1]), ("+I", [None])]


def test_is_read_only(warehouse: Warehouse) -> None:
    """Nothing can be compacted through the view."""
    warehouse.table("t", {"k": "INT NOT NULL"}, primary_key=["k"], options={"bucket": 1})
    with warehouse.refuses(InvalidArgument, "default.t$binlog", "open `default.t`"):
        warehouse.lake.table("t$binlog").compact(full=True)
