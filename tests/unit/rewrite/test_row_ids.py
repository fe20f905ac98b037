"""`reassign_row_ids`: rows of a partition get ids that follow one another, and nothing but ids changes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.errors import CommitConflict, NotFound, Unsupported
from lakebed.rewrite.rows_by_place import ReplaceRows
from lakebed.table.plans import plan_write

COLUMNS = {"p": "STRING", "k": "INT", "b": "INT"}
OPTIONS = {
    "row-tracking.enabled": "true",
    "data-evolution.enabled": "true",
    "deletion-vectors.enabled": "true",
    "write-only": "true",
}


def _rows(part: str, *numbers: int) -> pa.Table:
    return pa.table({"p": [part] * len(numbers), "k": ints(*numbers), "b": ints(*numbers)})


def _shown(table: lakebed.Table) -> list[tuple[object, ...]]:
    shown = table.to_arrow(columns=["p", "k", "b", "_ROW_ID"])
    return sorted((tuple(row.values()) for row in shown.to_pylist()), key=lambda row: row[3])


def _set(table: lakebed.Table, base: lakebed.Snapshot | None, rows: pa.Table, value: int) -> lakebed.Snapshot | None:
    changed = rows.set_column(2, "b", ints(*[value] * rows.num_rows))
    return ReplaceRows(plan_write(table)[0], base, "UPDATE").commit({}, changed)


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """Partition a has ids 0 to 2 and 5 to 7, b has 3 and 4; one row of each piece is deleted."""
    made = warehouse.table("t", COLUMNS, partition_by=["p"], options=OPTIONS)
    made.write(_rows("a", 0, 1, 2))
    made.write(_rows("b", 3, 4))
    made.write(_rows("a", 5, 6, 7))
    made.delete_where(pc.field("k").isin([1, 3, 6]))
    return made


def test_ids_of_a_partition_follow_one_another(table: lakebed.Table) -> None:
    """Partitions with gaps get the next free ids, deleted rows counted; marks, files and older states stay."""
    before = {file.file_name for file in table.scan().files}
    done = table.reassign_row_ids()
    assert done is not None
    assert (done.first, done.next_row_id, done.files, done.rows, done.current - done.previous) == (8, 14, 2, 6, 1)
    wanted = [("b", 4, 4, 4), ("a", 0, 0, 8), ("a", 2, 2, 10), ("a", 5, 5, 11), ("a", 7, 7, 13)]
    assert _shown(table) == wanted
    assert {file.file_name for file in table.scan().files} == before
    assert [row[3] for row in _shown(table.at(snapshot=done.previous))] == [0, 2, 4, 5, 7]
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.commit_kind, latest.next_row_id, latest.delta_record_count) == ("OVERWRITE", 14, 0)
    table.write(_rows("b", 8))
    table.delete_where(pc.field("_ROW_ID").isin([8, 13]))
    assert _shown(table) == [wanted[0], wanted[2], wanted[3], ("b", 8, 8, 14)]
    assert table.check(deep=True) == []


def test_columns_move_with_their_rows(table: lakebed.Table) -> None:
    """Files with columns of the same rows get the same ids, and are found for later changes."""
    rows = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 5)
    _set(table, table.latest_snapshot(), rows, 55)
    assert table.reassign_row_ids() is not None
    rows = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 7)
    _set(table, table.latest_snapshot(), rows, 77)
    assert [row[1:] for row in _shown(table)] == [(4, 4, 4), (0, 0, 8), (2, 2, 10), (5, 55, 11), (7, 77, 13)]
    assert table.compact(full=True) is not None
    assert [file.row_count for file in table.scan().files if file.first_row_id == 8] == [6]
    assert table.check(deep=True) == []


def test_what_was_read_before_is_refused(table: lakebed.Table) -> None:
    """A change that names rows by ids that are theirs no longer is not made to other rows."""
    base = table.latest_snapshot()
    rows = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 5)
    table.reassign_row_ids()
    with pytest.raises(CommitConflict, match="meanwhile"):
        _set(table, base, rows, 55)
    assert (5, 5, 11) in [row[1:] for row in _shown(table)]


def test_an_old_state_has_its_old_ids(table: lakebed.Table) -> None:
    """A state that comes back brings the ids it had: files with columns would be of no row otherwise."""
    rows = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 5)
    without = table.latest_snapshot()
    changed = _set(table, without, rows, 55)
    assert without is not None
    assert changed is not None
    table.rollback_to_as_latest(snapshot=without.id)
    table.reassign_row_ids()
    table.rollback_to_as_latest(snapshot=changed.id)
    assert [row[1:] for row in _shown(table)] == [(0, 0, 0), (2, 2, 2), (4, 4, 4), (5, 55, 5), (7, 7, 7)]
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.next_row_id == 14
    assert table.check(deep=True) == []


def test_only_what_has_gaps_and_was_asked_for(table: lakebed.Table) -> None:
    """Partitions without gaps, those that were not chosen, and pieces above the limit keep their ids."""
    assert table.reassign_row_ids(pc.field("p") == "b") is None
    large = table.with_options({"data-evolution.reassign.skip-contiguous-row-count": "2"})
    assert large.reassign_row_ids() is None
    assert table.reassign_row_ids(pc.field("p") == "a") is not None
    assert table.reassign_row_ids() is None


def test_tables_without_such_ids(warehouse: Warehouse) -> None:
    """Ids that are stored stay, a table without partitions has nothing to do, and one without snapshots no ids."""
    stored = warehouse.table("s", COLUMNS, options={"row-tracking.enabled": "true"})
    with warehouse.refuses(Unsupported, "data-evolution.enabled"):
        stored.reassign_row_ids()
    plain = warehouse.table("n", COLUMNS, options=OPTIONS)
    with warehouse.refuses(NotFound, "no snapshots"):
        plain.reassign_row_ids()
    plain.write(_rows("a", 1))
    assert plain.reassign_row_ids() is None
