"""`t$audit_log`: every row with its kind in front."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.unit.changes.test_changelog_producers import COMMITS
from tests.unit.changes.test_incremental import between
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import InvalidArgument, InvalidOption, LakebedError, NotFound

Rows = list[tuple[Any, ...]]


def worked(warehouse: Warehouse, commits: int, **options: Any) -> lakebed.Table:
    """The audit log of the table of 4.2 after some of its commits."""
    table = warehouse.table(
        "t", {"k": "INT NOT NULL", "v": "STRING"}, primary_key=["k"], options={"bucket": 1, **options}
    )
    for commit in COMMITS[:commits]:
        items = [item if isinstance(item, tuple) else ("+I", item) for item in commit]
        columns = {"k": ints(*(row[0] for _, row in items)), "v": pa.array([row[1] for _, row in items])}
        table.write(pa.table({**columns, "op": [kind for kind, _ in items]}), row_kind="op")
    return warehouse.lake.table("t$audit_log")


def rows(table: lakebed.Table, **more: Any) -> Rows:
    return [tuple(row.values()) for row in table.to_arrow(**more).to_pylist()]


def test_s_20_delta_with_kinds(warehouse: Warehouse) -> None:
    """S-20: the deletes that plain reads drop are there."""
    log = worked(warehouse, 5).with_options(between(1, 3, "delta"))
    assert rows(log) == [("+I", 1, "c"), ("-D", 2, "b"), ("+I", 1, "c")]


def test_s_21_diff_with_kinds(warehouse: Warehouse) -> None:
    """S-21: of an updated key the new row, of one that is gone a delete."""
    assert rows(worked(warehouse, 5).with_options(between(1, 3, "diff"))) == [("+I", 1, "c"), ("-D", 2, "b")]


def test_s_22_changelog_with_kinds(warehouse: Warehouse) -> None:
    """S-22: both halves of an update are there."""
    log = worked(warehouse, 2, **{"changelog-producer": "lookup"})
    told = rows(log.with_options(between(2, 4)))
    assert told == [("-U", 1, "a"), ("+U", 1, "c"), ("-D", 2, "b")]
    assert rows(log.with_options(between(2, 4, "changelog"))) == told
    assert rows(warehouse.lake.table("t").with_options(between(2, 4))) == [(1, "c")]


def test_shows_merged_rows_as_they_were_written(warehouse: Warehouse) -> None:
    """Without a range the merged rows are shown with their kinds, deletes as long as compaction keeps them."""
    log = worked(warehouse, 2)
    assert log.arrow_schema.names == ["rowkind", "k", "v"]
    assert rows(log) == [("+I", 1, "c"), ("-D", 2, "b")]
    assert rows(log, filter=[("rowkind", "==", "-D")], columns=["k"]) == [(2,)]
    assert rows(log.at(snapshot=1)) == [("+I", 1, "a"), ("+I", 2, "b")]
    table = warehouse.lake.table("t")
    table.write(pa.table({"k": ints(1), "v": ["d"], "op": ["+U"]}), row_kind="op")
    assert rows(log) == [("+U", 1, "d"), ("-D", 2, "b")]
    table.compact(full=True)
    assert rows(log) == [("+U", 1, "d")]


def test_columns_and_filters(warehouse: Warehouse) -> None:
    """The kind is a column like any other; filters may name it together with those of the table."""
    log = worked(warehouse, 5).with_options(between(0, 5, "delta"))
    assert rows(log, columns=["rowkind"], filter=[("k", "==", 2)]) == [("+I",), ("-D",)]
    assert rows(log, columns=["v"], filter=[("rowkind", "==", "-D")]) == [("b",), ("x",)]
    assert rows(log, columns=["v", "rowkind"], filter=[("rowkind", "==", "-D"), ("k", "==", 3)]) == [("x", "-D")]
    assert [batch.num_rows for batch in log.to_batches(["k"], [("v", "==", "y")])] == [1]
    for columns, kind in ((["nope"], NotFound), (["k", "k"], InvalidArgument), ("k", InvalidArgument)):
        with pytest.raises(kind):
            log.to_arrow(columns=columns)
    with pytest.raises(LakebedError, match="nope"):
        log.to_arrow(filter=[("nope", "==", 1)])


@pytest.mark.parametrize("compacts", [False, True])
def test_sequence_numbers(warehouse: Warehouse, compacts: bool) -> None:
    """With the option, rows come with their sequence numbers behind the kind, read merged or as stored."""
    log = worked(warehouse, 3)
    if compacts:
        warehouse.lake.table("t").compact(full=True)
    log = log.with_options({"table-read.sequence-number.enabled": "true"})
    assert log.arrow_schema.names == ["rowkind", "_SEQUENCE_NUMBER", "k", "v"]
    assert rows(log) == [("+I", 4, 1, "c")] + ([] if compacts else [("-D", 3, 2, "b")])
    told = rows(log.with_options(between(1, 3)))
    assert told == [("+I", 2, 1, "c"), ("-D", 3, 2, "b"), ("+I", 4, 1, "c")]
    assert rows(log.with_options(between(1, 3, "diff"))) == [("+I", 4, 1, "c"), ("-D", 1, 2, "b")]
    assert rows(log, columns=["v"], filter=[("_SEQUENCE_NUMBER", ">", 3)]) == [("c",)]
    assert rows(warehouse.lake.table("t").with_options({"table-read.sequence-number.enabled": "true"})) == [(1, "c")]


def test_tables_without_a_key(warehouse: Warehouse) -> None:
    """All rows are inserts; sequence numbers they have none."""
    warehouse.table("t", {"v": "INT"}, pa.table({"v": ints(1, 2)}))
    log = warehouse.lake.table("t$audit_log")
    assert rows(log) == rows(log.with_options(between(0, 1))) == [("+I", 1), ("+I", 2)]
    assert rows(log, columns=["rowkind"]) == rows(log.with_options(between(0, 1)), columns=["rowkind"])
    with pytest.raises(InvalidOption, match="sequence"):
        log.with_options({"table-read.sequence-number.enabled": "true"}).to_arrow()


def test_changes(warehouse: Warehouse) -> None:
    """The changes of the view are those of the table."""
    log = worked(warehouse, 2)
    assert [tuple(row.values()) for row in log.changes(1).to_pylist()] == [("+I", 1, "c"), ("-D", 2, "b")]


def test_shown_defaults(warehouse: Warehouse) -> None:
    """Values shown in place of null are shown in the log too, and a filter sees them."""
    table = warehouse.table(
        "t", {"k": "INT NOT NULL", "v": "INT"}, primary_key=["k"], options={"bucket": 1, "fields.v.default-value": "7"}
    )
    table.write(pa.table({"k": ints(1), "v": ints(None)}))
    log = warehouse.lake.table("t$audit_log")
    for mode in ("delta", "diff"):
        assert rows(log.with_options(between(0, 1, mode)), filter=[("v", "==", 7)]) == [("+I", 1, 7)]


def test_is_read_only(warehouse: Warehouse) -> None:
    """Nothing can be written through the view."""
    warehouse.table("t", {"k": "INT NOT NULL"}, primary_key=["k"], options={"bucket": 1})
    with warehouse.refuses(InvalidArgument, "default.t$audit_log", "open `default.t`"):
        warehouse.lake.table("t$audit_log").write(pa.table({"k": ints(1)}))
