"""`data-evolution.enabled`: columns of existing rows are replaced by files that hold only those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.warehouse_under_test import Warehouse, ints

import lakebed
from lakebed.commit.replay import CommitIdentity
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import CommitConflict, InvalidArgument, InvalidOption, Unsupported
from lakebed.maintenance.check import check_row_ids
from lakebed.metadata.entries import live_files
from lakebed.rewrite.rows_by_place import ReplaceRows
from lakebed.rewrite.sorting import sort_compact
from lakebed.table.plans import plan_write

OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
COLUMNS = {"k": "INT", "b": "INT", "c": "STRING"}
SHOWN = ["k", "b", "c", "_ROW_ID", "_SEQUENCE_NUMBER"]


def _rows(*rows: tuple[int, int | None, str]) -> pa.Table:
    return pa.table(
        {"k": ints(*(row[0] for row in rows)), "b": ints(*(row[1] for row in rows)), "c": [r[2] for r in rows]}
    )


def _shown(table: lakebed.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(columns=SHOWN).to_pylist())


def _update(
    table: lakebed.Table, where: pc.Expression, new: Mapping[str, object], added: pa.Table | None = None
) -> lakebed.Snapshot | None:
    """UPDATE, and INSERT of other rows in the same commit."""
    context, _ = plan_write(table)
    base = table.latest_snapshot()
    old = table.to_arrow(columns=[*COLUMNS, "_ROW_ID", "__paimon_file_path", "__paimon_row_index"], filter=where)
    places = {
        path: old.filter(pc.field("__paimon_file_path") == path)["__paimon_row_index"].to_numpy()
        for path in set(old["__paimon_file_path"].to_pylist())
    }
    changed = old.select([*COLUMNS, "_ROW_ID"])
    for name, value in new.items():
        index = changed.schema.get_field_index(name)
        kind = changed.schema.field(index).type
        changed = changed.set_column(index, name, pa.array([value] * changed.num_rows, kind))
    return ReplaceRows(context, base, "UPDATE").commit(places, changed, added)


@pytest.fixture
def table(warehouse: Warehouse) -> lakebed.Table:
    """Two files: rows 0 to 2 of the first commit, row 3 of the second."""
    made = warehouse.table("t", COLUMNS, options=OPTIONS)
    made.write(_rows((1, 10, "x"), (2, 20, "y"), (3, 30, "z")))
    made.write(_rows((4, 40, "w")))
    return made


def test_only_changed_columns_are_written(table: lakebed.Table) -> None:
    """An update adds a file with one column for the whole range; other rows and files stay as they are."""
    _update(table, pc.field("k") == 2, {"b": 22})
    new = table.scan().files[1]
    assert (new.write_cols, new.first_row_id, new.row_count) == (("b",), 0, 3)
    assert _shown(table) == [(1, 10, "x", 0, 3), (2, 22, "y", 1, 3), (3, 30, "z", 2, 3), (4, 40, "w", 3, 2)]
    latest = table.latest_snapshot()
    assert latest is not None
    assert (latest.commit_kind, latest.next_row_id) == ("APPEND", 4)


def test_several_changes_of_the_same_rows(table: lakebed.Table) -> None:
    """The newest file of each column counts, also where a value becomes null."""
    _update(table, pc.field("k") == 2, {"b": 22})
    _update(table, pc.field("k") >= 2, {"c": "q"})
    _update(table, pc.field("k") == 1, {"b": None})
    assert [row[:3] for row in _shown(table)] == [(1, None, "x"), (2, 22, "q"), (3, 30, "q"), (4, 40, "q")]
    assert table.to_arrow(filter=pc.field("b") == 22)["c"].to_pylist() == ["q"]


def test_new_rows_in_the_same_commit(table: lakebed.Table) -> None:
    """Rows that are added with a change get the next ids."""
    _update(table, pc.field("k") == 4, {"b": 44}, added=_rows((5, 50, "v")))
    assert _shown(table)[-2:] == [(4, 44, "w", 3, 3), (5, 50, "v", 4, 3)]


def test_a_change_to_the_same_is_none(table: lakebed.Table) -> None:
    """Nothing is committed if all values are there already."""
    assert _update(table, pc.field("k") == 2, {"b": 20}) is None
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("full", [False, True])
def test_compaction_joins_neighbours(table: lakebed.Table, full: bool) -> None:
    """Ranges become one file with all columns; rows keep their ids, and the largest sequence number is all rows'."""
    table = table.with_options({"compaction.min.file-num": "3"})
    _update(table, pc.field("k") == 2, {"b": 22})
    assert table.compact(full=full) is not None
    (file,) = table.scan().files
    assert (file.first_row_id, file.row_count, file.write_cols) == (0, 4, None)
    assert _shown(table) == [(1, 10, "x", 0, 3), (2, 22, "y", 1, 3), (3, 30, "z", 2, 3), (4, 40, "w", 3, 3)]
    _update(table, pc.field("k") == 4, {"c": "new"})
    assert _shown(table)[-1] == (4, 40, "new", 3, 5)
    assert table.at(snapshot=3).to_arrow().num_rows == 4


def test_who_changes_the_same_range_is_in_the_way(table: lakebed.Table) -> None:
    """A change that was planned before another one of the same rows is refused; elsewhere it is not."""
    context, _ = plan_write(table)
    base = table.latest_snapshot()
    changed = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 1)
    other = table.to_arrow(columns=[*COLUMNS, "_ROW_ID"], filter=pc.field("k") == 4)
    _update(table, pc.field("k") == 2, {"b": 22})
    stale = ReplaceRows(context, base, "UPDATE")
    with pytest.raises(CommitConflict, match="meanwhile"):
        stale.commit({}, changed.set_column(1, "b", ints(11)))
    assert stale.commit({}, other.set_column(1, "b", ints(44))) is not None
    assert [row[1] for row in _shown(table)] == [10, 22, 30, 44]


def test_deletes_are_refused(warehouse: Warehouse, table: lakebed.Table) -> None:
    """Rows of such a table do not go away one by one."""
    with warehouse.refuses(Unsupported, "data-evolution.enabled", "deleted"):
        table.delete_where(pc.field("k") == 1)


def test_sorting_is_refused(warehouse: Warehouse, table: lakebed.Table) -> None:
    """Sorted rows would lie elsewhere, and their ids with them."""
    with warehouse.refuses(Unsupported, "data-evolution.enabled"):
        sort_compact(plan_write(table)[0], "order", ["b"], None, CommitIdentity("user"))


def test_partition_columns_stay(warehouse: Warehouse) -> None:
    """A row can not move to another partition."""
    table = warehouse.table("p", COLUMNS, partition_by=["c"], options=OPTIONS)
    table.write(_rows((1, 10, "x"), (2, 20, "y")))
    with warehouse.refuses(InvalidArgument, "partition column"):
        _update(table, pc.field("k") == 1, {"c": "z"})
    _update(table, pc.field("k") == 1, {"b": 11})
    assert [row[:3] for row in _shown(table)] == [(1, 11, "x"), (2, 20, "y")]


def test_schema_changes_between(table: lakebed.Table) -> None:
    """Renamed and added columns are found in files of either kind."""
    _update(table, pc.field("k") == 2, {"b": 22})
    table.alter(lakebed.RenameColumn("b", "bb"))
    table.alter(lakebed.AddColumn("d", "INT"))
    assert table.to_arrow(columns=["bb", "d"]).to_pylist()[1] == {"bb": 22, "d": None}
    table.compact(full=True)
    assert sorted(table.to_arrow(columns=["bb"])["bb"].to_pylist()) == [10, 22, 30, 40]


def test_options_that_do_not_go_together(warehouse: Warehouse) -> None:
    """Rows need ids."""
    with warehouse.refuses(InvalidOption, "data-evolution.enabled"):
        warehouse.table("x", COLUMNS, options={"data-evolution.enabled": "true"})


@pytest.fixture
def marked(warehouse: Warehouse) -> lakebed.Table:
    """Rows 0 to 2 in a file, column b of these in another, row 3 in a third; rows can be marked as deleted."""
    made = warehouse.table("m", COLUMNS, options={**OPTIONS, "deletion-vectors.enabled": "true"})
    made.write(_rows((1, 10, "x"), (2, 20, "y"), (3, 30, "z")))
    made.write(_rows((4, 40, "w")))
    _update(made, pc.field("k") == 2, {"b": 22})
    return made


def _marks(table: lakebed.Table) -> dict[str, list[int]]:
    context, _ = plan_write(table)
    places = vectors_at(context, table.latest_snapshot())
    return {name: context.vector_store.read(place).tolist() for name, place in places.items()}


def test_a_deleted_row_is_gone_from_all_columns(marked: lakebed.Table) -> None:
    """One mark, in the oldest file of the range, hides the row in whatever is read; others keep their ids."""
    oldest = marked.scan().files[0]
    marked.delete_where(pc.field("b") == 22)
    assert _marks(marked) == {oldest.file_name: [1]}
    assert [row[:4] for row in _shown(marked)] == [(1, 10, "x", 0), (3, 30, "z", 2), (4, 40, "w", 3)]
    assert marked.to_arrow(columns=["b"], filter=pc.field("_ROW_ID") >= 1)["b"].to_pylist() == [30, 40]
    assert marked.to_arrow(columns=[]).num_rows == 3
    assert len(_shown(marked.at(snapshot=3))) == 4
    assert marked.check(deep=True) == []


def test_a_difference_has_the_columns_of_its_time(marked: lakebed.Table) -> None:
    """Rows are told apart by their ids: deleted ones with the columns they had last, changed ones as pairs."""
    marked.delete_where(pc.field("k") == 2)
    kinds = ["rowkind", *COLUMNS]
    assert marked.diff(3, 4).select(kinds).to_pylist() == [{"rowkind": "-D", "k": 2, "b": 22, "c": "y"}]
    assert marked.diff(4, 3).select(kinds).to_pylist() == [{"rowkind": "+I", "k": 2, "b": 22, "c": "y"}]
    assert [tuple(row.values()) for row in marked.diff(2, 3).select(kinds).to_pylist()] == [
        ("-U", 2, 20, "y"),
        ("+U", 2, 22, "y"),
    ]
    marked.compact(full=True)
    assert marked.diff(4, 5).num_rows == 0


def test_columns_change_beside_deleted_rows(marked: lakebed.Table) -> None:
    """New columns have a place for deleted rows too, and these stay hidden."""
    marked.delete_where(pc.field("k") == 2)
    _update(marked, pc.field("k") == 3, {"b": 33, "c": "q"})
    assert [row[:4] for row in _shown(marked)] == [(1, 10, "x", 0), (3, 33, "q", 2), (4, 40, "w", 3)]
    assert marked.check(deep=True) == []


def test_a_compaction_takes_marks_along(marked: lakebed.Table) -> None:
    """Joined files have marks in other places, for the same ids."""
    marked.delete_where(pc.field("k") == 2)
    marked.write(_rows((5, 50, "v"), (6, 60, "u")))
    marked.delete_where(pc.field("k") == 5)
    before = _shown(marked)
    assert marked.compact(full=True) is not None
    (joined,) = marked.scan().files
    assert (joined.first_row_id, joined.row_count, _marks(marked)) == (0, 6, {joined.file_name: [1, 4]})
    assert [row[:4] for row in _shown(marked)] == [row[:4] for row in before]
    assert marked.check(deep=True) == []


def test_a_range_without_rows_goes_with_all_its_files(marked: lakebed.Table) -> None:
    """If the last row of a range is deleted, no file with one of its columns stays."""
    marked.delete_where(pc.field("k") <= 2)
    marked.delete_where(pc.field("k") == 3)
    assert [file.first_row_id for file in marked.scan().files] == [3]
    assert _marks(marked) == {}
    assert marked.check(deep=True) == []


def test_rows_get_other_ids_only_where_it_is_allowed(marked: lakebed.Table) -> None:
    """With the option a compaction leaves deleted rows out, and numbers the rest as if it were new."""
    marked.delete_where(pc.field("k") == 1)
    assert marked.with_options({"data-evolution.compaction.rewrite-row-ids": "true"}).compact(full=True) is not None
    (file,) = marked.scan().files
    assert (file.first_row_id, file.row_count, _marks(marked)) == (4, 3, {})
    assert [row[:4] for row in _shown(marked)] == [(2, 22, "y", 4), (3, 30, "z", 5), (4, 40, "w", 6)]
    latest = marked.latest_snapshot()
    assert latest is not None
    assert (latest.commit_kind, latest.next_row_id) == ("COMPACT", 7)
    marked.write(_rows((5, 50, "v")))
    assert _shown(marked)[-1][3] == 7
    assert marked.check(deep=True) == []


def _stale(table: lakebed.Table, where: pc.Expression) -> tuple[ReplaceRows, dict[str, object], pa.Table]:
    """A statement that has read some rows."""
    context, _ = plan_write(table)
    old = table.to_arrow(columns=[*COLUMNS, "_ROW_ID", "__paimon_file_path", "__paimon_row_index"], filter=where)
    places = {path: old["__paimon_row_index"].to_numpy() for path in old["__paimon_file_path"].to_pylist()}
    return ReplaceRows(context, table.latest_snapshot(), "UPDATE"), places, old.select([*COLUMNS, "_ROW_ID"])


def test_who_changes_a_row_that_was_deleted_is_in_the_way(marked: lakebed.Table) -> None:
    """New columns of a row that others deleted meanwhile are not lost in silence; those of its neighbour are fine."""
    same, places, rows = _stale(marked, pc.field("k") == 1)
    other, other_places, other_rows = _stale(marked, pc.field("k") == 3)
    marked.delete_where(pc.field("k") == 1)
    with pytest.raises(CommitConflict, match="deleted meanwhile"):
        same.commit(places, rows.set_column(1, "b", ints(11)))
    assert other.commit(other_places, other_rows.set_column(1, "b", ints(33))) is not None
    assert [row[:3] for row in _shown(marked)] == [(2, 22, "y"), (3, 33, "z"), (4, 40, "w")]


def test_who_deletes_what_was_changed_is_in_the_way(marked: lakebed.Table) -> None:
    """A DELETE that has seen old columns begins anew: the row may be no longer the one that was meant."""
    stale, places, _ = _stale(marked, pc.field("b") == 10)
    _update(marked, pc.field("k") == 1, {"b": 11})
    with pytest.raises(CommitConflict, match="meanwhile"):
        stale.commit(places)
    assert len(_shown(marked)) == 4


def test_who_deletes_what_was_compacted_is_in_the_way(marked: lakebed.Table) -> None:
    """Marks of a file that is no longer there would be lost; and so would a compaction lose marks that came between."""
    stale, places, _ = _stale(marked, pc.field("k") == 1)
    marked.compact(full=True)
    with pytest.raises(CommitConflict, match="no longer there"):
        stale.commit(places)
    assert len(_shown(marked)) == 4


def test_a_check_finds_marks_that_others_do_not_look_for(marked: lakebed.Table) -> None:
    """A mark in a newer file of a range, and ids that were never given out, are told."""
    context, _ = plan_write(marked)
    latest = marked.latest_snapshot()
    assert latest is not None
    live = live_files(context.stores, latest)
    assert check_row_ids(context, latest, live) == []
    newer = next(entry for entry in live if entry.file.write_cols == ("b",))
    marked.delete_where(pc.field("k") == 1)
    after = marked.latest_snapshot()
    assert after is not None
    # As if the file with a column were the oldest of the range.
    aged = [
        replace(entry, file=replace(entry.file, max_sequence_number=0)) if entry == newer else entry for entry in live
    ]
    assert "has to be in" in " ".join(check_row_ids(context, after, aged))
    assert "gives out 2 next" in " ".join(check_row_ids(context, replace(latest, next_row_id=2), live))
    shifted = [replace(entry, file=replace(entry.file, first_row_id=1)) if entry == newer else entry for entry in live]
    assert "do not hold the same rows" in " ".join(check_row_ids(context, latest, shifted))


_STEPS = st.lists(
    st.tuples(st.just("write"), st.integers(1, 3))
    | st.tuples(st.sampled_from(["b", "c"]), st.integers(0, 8))
    | st.tuples(st.just("compact"), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30)
@given(_STEPS)
def test_rows_are_what_a_model_says(steps: list[tuple[str, int]]) -> None:
    """Random writes, changes and compactions: every row has its values and its id."""
    table = lakebed.connect(f"memory://{uuid4()}").create_table("default.t", COLUMNS, options=OPTIONS)
    model: list[list[object]] = []
    for number, (what, value) in enumerate(steps):
        if what == "write":
            rows = [(len(model) + i, number, "new") for i in range(value)]
            table.write(_rows(*rows))
            model += [[*row, row[0]] for row in rows]
        elif what == "compact":
            table.compact(full=bool(value))
        else:
            _update(table, pc.field("k") >= value, {what: (new := number if what == "b" else str(number))})
            for row in model[value:]:
                row["kbc".index(what)] = new
    found = sorted([list(row.values()) for row in table.to_arrow(columns=SHOWN[:4]).to_pylist()])
    assert found == model
