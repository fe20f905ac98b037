"""Deleting and replacing rows where they lie: what is written, what conflicts, what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.properties.row_statements import Update, update_where
from tests.unit.warehouse_under_test import Warehouse

import lakebed
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, Unsupported
from lakebed.metadata.snapshot import CommitKind
from lakebed.rewrite.rows_by_place import ReplaceRows, RowChanges, rows_matching
from lakebed.schema.system_columns import FILE_PATH, ROW_INDEX
from lakebed.table.follow_up import after_rows_changed
from lakebed.types.predicate_parse import to_predicate

MARKING = {"deletion-vectors.enabled": "true"}
COLUMNS = {"id": "INT", "v": "STRING"}


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": [f"v{number}" for number in ids]})


def _ids(table: lakebed.Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"]).column("id").to_pylist())


def _files(table: lakebed.Table) -> set[str]:
    return {file.file_name for file in table.scan().files}


def _no_rows(found: pa.Table) -> pa.Table:
    return found.slice(0, 0)


@pytest.fixture(params=[{}, MARKING], ids=["rewriting", "marking"])
def table(request: pytest.FixtureRequest, warehouse: Warehouse) -> lakebed.Table:
    """Two files of five rows each, in a table of either kind."""
    made = warehouse.table("t", COLUMNS, _rows(0, 1, 2, 3, 4), options=request.param)
    made.write(_rows(5, 6, 7, 8, 9))
    return made


def _marks(table: lakebed.Table) -> bool:
    return table.options.get("deletion-vectors.enabled") == "true"


def test_deleted_rows_are_gone(table: lakebed.Table) -> None:
    """Only the touched file is replaced, or none if rows are marked; the snapshot says what happened."""
    before = _files(table)
    snapshot = table.delete_where(pc.field("id").isin([1, 3]))
    assert snapshot is not None
    assert (snapshot.commit_kind, snapshot.operation) == (CommitKind.OVERWRITE, "DELETE")
    assert _ids(table) == [0, 2, 4, 5, 6, 7, 8, 9]
    assert len(before - _files(table)) == (0 if _marks(table) else 1)
    assert (snapshot.index_manifest is not None) == _marks(table)
    assert snapshot.delta_record_count == (0 if _marks(table) else -2)


def test_nothing_to_delete(table: lakebed.Table) -> None:
    """A filter that is true for no row, or unknown for it, commits nothing."""
    table.write(pa.table({"id": pa.array([None], pa.int32()), "v": ["null"]}))
    latest = table.latest_snapshot()
    assert table.delete_where(pc.field("id") > 100) is None
    assert table.latest_snapshot() == latest
    table.delete_where(pc.field("id") >= 0)
    assert table.to_arrow().column("v").to_pylist() == ["null"]


def test_a_file_without_rows_goes(table: lakebed.Table) -> None:
    """When all its rows are deleted, the file is no part of the table any more, and neither are its marks."""
    table.delete_where(pc.field("id") == 7)
    table.delete_where(pc.field("id") >= 5)
    assert len(_files(table)) == 1
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None
    assert _ids(table) == [0, 1, 2, 3, 4]
    table.delete_where(pc.field("id") < 100)
    assert table.to_arrow().num_rows == 0


def test_where_rows_lie(table: lakebed.Table) -> None:
    """Path and position are columns for who asks; positions do not change when rows before are marked."""
    table.delete_where(pc.field("id") == 5)
    rows = table.to_arrow(columns=["id", FILE_PATH.name, ROW_INDEX.name], filter=pc.field("id") >= 5)
    assert len(set(rows.column(FILE_PATH.name).to_pylist())) == 1
    assert rows.column(ROW_INDEX.name).to_pylist() == ([1, 2, 3, 4] if _marks(table) else [0, 1, 2, 3])
    assert FILE_PATH.name not in table.arrow_schema.names


def test_two_deletes_of_different_rows(table: lakebed.Table) -> None:
    """Marks of two statements that read the same state add up; where files are rewritten, the second one conflicts."""
    first, second = (Update(table, pc.field("id") == number, _no_rows) for number in (1, 2))
    first.commit()
    if _marks(table):
        second.commit()
        assert _ids(table) == [0, 3, 4, 5, 6, 7, 8, 9]
    else:
        with pytest.raises(CommitConflict, match="no longer there"):
            second.commit()
        assert _ids(table) == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_two_updates_of_one_row(table: lakebed.Table) -> None:
    """The second of two statements that replace the same row conflicts: the row would be there twice."""

    def renamed(found: pa.Table) -> pa.Table:
        return found.set_column(1, "v", pa.array(["new"] * found.num_rows))

    first, second = (Update(table, pc.field("id") == 1, renamed) for _ in range(2))
    first.commit()
    with pytest.raises(CommitConflict, match="data-"):
        second.commit()
    assert sorted(table.to_arrow().column("v").to_pylist()) == ["new", "v0", *(f"v{n}" for n in range(2, 10))]


def test_a_file_that_was_compacted_away(table: lakebed.Table) -> None:
    """A statement whose files are gone when it commits changes nothing."""
    late = Update(table, pc.field("id") == 1, _no_rows)
    table.compact(full=True)
    with pytest.raises(CommitConflict, match="no longer there"):
        late.commit()
    assert _ids(table) == list(range(10))


def test_an_append_in_between(table: lakebed.Table) -> None:
    """Rows that came after the statement read the table stay."""
    late = Update(table, pc.field("id") >= 0, _no_rows)
    table.write(_rows(10))
    late.commit()
    assert _ids(table) == [10]


def test_order_in_buckets(warehouse: Warehouse) -> None:
    """Rewritten rows stay where they were among the files of their bucket; replaced ones come last."""
    table = warehouse.table("t", COLUMNS, _rows(0, 1, 2), options={"bucket": "1", "bucket-key": "id"})
    table.write(_rows(3, 4, 5))
    table.delete_where(pc.field("id") == 1)
    assert table.to_arrow().column("id").to_pylist() == [0, 2, 3, 4, 5]
    update_where(table, pc.field("id") == 2, lambda found: found)
    assert table.to_arrow().column("id").to_pylist() == [0, 3, 4, 5, 2]
    table.write(_rows(6))
    assert table.to_arrow().column("id").to_pylist() == [0, 3, 4, 5, 2, 6]


def test_difference_of_marked_states(warehouse: Warehouse) -> None:
    """Marked rows are deletes between two states, and rows that replace them are inserts."""
    table = warehouse.table("t", COLUMNS, _rows(0, 1, 2), options=MARKING)
    table.delete_where(pc.field("id") == 0)
    update_where(table, pc.field("id") == 2, lambda found: found.set_column(1, "v", pa.array(["new"])))
    told = table.diff(1, 3).to_pylist()
    assert sorted((row["rowkind"], row["id"], row["v"]) for row in told) == [
        ("+I", 2, "new"),
        ("-D", 0, "v0"),
        ("-D", 2, "v2"),
    ]
    assert [(row["rowkind"], row["id"]) for row in table.diff(1, 2).to_pylist()] == [("-D", 0)]


def test_refused_places(warehouse: Warehouse) -> None:
    """Files and rows that are not there are named, and nothing changes."""
    table = warehouse.table("t", COLUMNS, _rows(0, 1), options=MARKING)
    context = table._opened.writable()
    changes = RowChanges(context, context.stores.snapshots.latest())
    (name,) = _files(table)
    with warehouse.refuses(InvalidArgument, "data-none.parquet"):
        changes.commit({"elsewhere/data-none.parquet": np.array([0])})
    for position in (2, -1):
        with warehouse.refuses(InvalidArgument, name, str(position)):
            changes.commit({name: np.array([0, position])})
    assert changes.commit({name: []}) is None


def test_tables_with_a_key(warehouse: Warehouse) -> None:
    """Rows with a key are deleted by writing deletes."""
    table = warehouse.table("t", {"id": "INT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})
    with warehouse.refuses(Unsupported, "primary key"):
        table.delete_where(pc.field("id") == 1)


@pytest.mark.parametrize(
    ("options", "key", "texts"),
    [
        ({"merge-engine": "first-row", "bucket": "1", **MARKING}, ["id"], ("first-row",)),
        ({"changelog-producer": "full-compaction", "bucket": "1", **MARKING}, ["id"], ("full-compaction",)),
        ({"row-tracking.enabled": "true", "bucket": "1"}, ["id"], ("row-tracking.enabled", "primary key")),
        ({"row-tracking.enabled": "true", "bucket": "2", "bucket-key": "id"}, [], ("row-tracking.enabled", "bucket")),
    ],
)
def test_options_that_do_not_go_together(
    options: dict[str, str], key: list[str], texts: tuple[str, ...], warehouse: Warehouse
) -> None:
    """What marks or ids can not be for is refused when the table is created."""
    with warehouse.refuses(InvalidOption, *texts):
        warehouse.table("t", {"id": "INT NOT NULL"}, primary_key=key, options=options)


def test_when_marking_may_begin(warehouse: Warehouse) -> None:
    """A table with rows begins to mark only on purpose, and is compacted first: no old row is left unmarked."""
    options = {
        "bucket": "1",
        "num-sorted-run.compaction-trigger": "2",
        "compaction.max-size-amplification-percent": "9999",
    }
    table = warehouse.table("t", {"id": "INT NOT NULL"}, primary_key=["id"], options=options)
    table.write(pa.table({"id": pa.array(range(5000), pa.int32())}))
    table.compact(full=True)
    on = lakebed.SetOption("deletion-vectors.enabled", "true")
    with warehouse.refuses(InvalidOption, "deletion-vectors.modifiable"):
        table.alter(on)
    table.alter(lakebed.SetOption("deletion-vectors.modifiable", "true"))
    for _ in range(3):
        table.write(pa.table({"id": pa.array([7], pa.int32())}))
    assert len({file.level for file in table.scan().files if file.level}) == 2
    table.alter(on)
    assert {file.level for file in table.scan().files} == {2}
    table.write(pa.table({"id": pa.array([7, 8], pa.int32())}))
    assert _ids(table) == list(range(5000))
    table.alter(lakebed.SetOption("deletion-vectors.enabled", "false"))
    table.write(pa.table({"id": pa.array([7, 5000], pa.int32())}))
    assert _ids(table) == list(range(5001))


def test_an_interrupt_after_the_commit(table: lakebed.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is part of the table stays, also if whoever made it is stopped right afterwards."""

    def stop(context: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakebed.table.follow_up.tidy_up", stop)
    context = table._opened.writable()
    base = context.stores.snapshots.latest()
    deleted = rows_matching(context, base, to_predicate(pc.field("id") == 1, context.schema.arrow_schema))
    with pytest.raises(KeyboardInterrupt):
        after_rows_changed(context, ReplaceRows(context, base, "UPDATE").commit(deleted, None, _rows(10, 11)))
    assert _ids(table) == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_a_difference_tells_rows_whose_marks_are_taken_back(warehouse: Warehouse) -> None:
    """An old state that came back has fewer marks: its rows are told as new, not passed over."""
    table = warehouse.table("t", COLUMNS, _rows(0, 1, 2), options=MARKING)
    table.delete_where(pc.field("id") == 1)
    table.rollback_to_as_latest(snapshot=1)
    told = table.diff(2, 3).select(["rowkind", "id"]).to_pylist()
    assert told == [{"rowkind": "+I", "id": 1}]
    table.delete_where(pc.field("id") == 2)
    told = table.diff(2, 4).select(["rowkind", "id"]).to_pylist()
    assert sorted((row["rowkind"], row["id"]) for row in told) == [("+I", 1), ("-D", 2)]
