"""Refreshes of materialized tables when something happens to the tables they read, to the refresh, or to themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.views.judging import difference, folded

import lakebed
from lakebed.commit.committer import Committer
from lakebed.errors import CommitConflict, InvalidSchema, StorageError, Unsupported
from lakebed.lake import Lake
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER
from lakebed.schema.changes import AddColumn, DropColumn, RemoveOption, RenameColumn, SetOption, UpdateColumnType
from lakebed.table.opened import opened_of
from lakebed.types.logical import BIGINT
from lakebed.views.refresh import Refresh
from lakebed.views.store import cut_of, definition_of

_QUERY = "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.cust = c.cid"
_SUMS = "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two tables with a key and one without, with some rows."""
    found = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    columns = {"id": "BIGINT NOT NULL", "cust": "INT", "amount": "INT", "note": "STRING"}
    found.create_table("orders", columns, primary_key=["id"], options=keyed)
    found.create_table("customers", {"cid": "INT NOT NULL", "name": "STRING"}, primary_key=["cid"], options=keyed)
    found.create_table("events", {"oid": "BIGINT", "qty": "INT"})
    _orders(found, (1, 1, 10), (2, 1, 20), (3, 2, 30))
    found["customers"].write([{"cid": 1, "name": "ann"}, {"cid": 2, "name": "bob"}])
    found["events"].write([{"oid": 1, "qty": 5}, {"oid": 1, "qty": 5}, {"oid": 2, "qty": None}])
    return found


def _orders(lake: Lake, *rows: tuple[int, int, int], note: str = "") -> None:
    lake["orders"].write([{"id": i, "cust": c, "amount": a, "note": note} for i, c, a in rows])


def _right(lake: Lake, name: str, query: str) -> None:
    assert difference(lake, name, query) is None
    assert folded(lake, name) is None


# --- two at once, and half of one ------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [_QUERY, _SUMS, "SELECT amount FROM orders"])
def test_of_two_refreshes_one_counts(lake: Lake, query: str) -> None:
    """Two refreshes that began with the same state, and saw different ones of the tables, do not both count."""
    lake.materialize("v", query, policy="incremental")
    _orders(lake, (1, 2, 11))
    first = Refresh(lake, lake.table("v"), definition_of(lake.table("v")))
    _orders(lake, (4, 1, 40))
    second = Refresh(lake, lake.table("v"), definition_of(lake.table("v")))
    assert second.run(full=False).way == "incremental"
    late = first.run(full=False)
    assert (late.way, late.snapshot, late.reason) == ("none", None, "another refresh was first")
    _right(lake, "v", query)
    _orders(lake, (5, 2, 50))
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", query)


def test_a_refresh_that_dies_before_its_commit_changes_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is seen, and the next one has the same changes."""
    lake.materialize("v", _SUMS, policy="incremental")
    before = lake.table("v").to_arrow().to_pylist()
    _orders(lake, (1, 2, 11))

    def dies(self: Committer, *given: Any, **more: Any) -> None:
        raise StorageError("no space", hint="make some")

    with monkeypatch.context() as patched:
        patched.setattr(Committer, "commit", dies)
        with pytest.raises(StorageError):
            lake.refresh("v")
    assert lake.table("v").to_arrow().to_pylist() == before
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", _SUMS)


# --- the cut ---------------------------------------------------------------------------------------------------------


def test_the_cut_is_in_the_snapshot_and_outlives_compaction_and_expiry(lake: Lake) -> None:
    """Whatever is committed on top says of the rows what the refresh said."""
    lake.materialize("v", _QUERY, policy="incremental")
    _orders(lake, (1, 2, 11))
    lake.refresh("v")
    view = lake.table("v")
    told = cut_of(view.latest_snapshot())
    assert told is not None
    assert {name: place.id for name, place in told.tables.items()} == {
        f"default.{name}": lake[name].latest_snapshot().id  # type: ignore[union-attr]
        for name in ("orders", "customers")
    }
    properties = view.latest_snapshot().properties or {}  # type: ignore[union-attr]
    assert properties["lakebed.view.way"] == "incremental"
    view.compact(full=True)
    view.expire_snapshots(retain_max=1, retain_min=1)
    assert len(view.snapshots()) == 1
    assert cut_of(lake.table("v").latest_snapshot()) == told
    _orders(lake, (1, 2, 12))
    assert lake.refresh("v").way == "incremental"
    assert difference(lake, "v", _QUERY) is None


def test_a_refresh_without_changes_moves_the_cut(lake: Lake) -> None:
    """A change of a column that is not used is seen, and no row is written for it; the next refresh commits nothing."""
    lake.materialize("v", "SELECT id, amount FROM orders", policy="incremental")
    _orders(lake, (1, 1, 10), note="other")
    done = lake.refresh("v")
    assert (done.changed, done.snapshot) == (0, 2)
    cut = lake.materialized("v").cut
    assert cut is not None
    assert cut.tables["default.orders"].id == lake["orders"].latest_snapshot().id  # type: ignore[union-attr]
    assert lake.refresh("v").snapshot is None


def test_rows_that_no_compaction_has_told_of_yet(lake: Lake) -> None:
    """Rows of a table whose compactions run elsewhere are seen once those tell of them, and not lost."""
    later = lake["orders"].with_options({"write-only": "true"})
    lake.materialize("v", _SUMS, policy="incremental")
    later.write([{"id": 1, "cust": 2, "amount": 11, "note": None}])
    assert lake.refresh("v").way == "none"
    later.write([{"id": 1, "cust": 1, "amount": 12, "note": None}])
    lake["orders"].compact()
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", _SUMS)


# --- stacks ----------------------------------------------------------------------------------------------------------


def test_a_table_is_read_as_the_view_below_saw_it(lake: Lake) -> None:
    """One view never mixes two states of a table that it reaches on two ways."""
    lake.materialize("sums", _SUMS, policy="incremental")
    query = "SELECT o.id, o.amount, s.total FROM orders o JOIN sums s ON o.cust = s.cust"
    lake.materialize("shares", query, policy="incremental")
    _orders(lake, (1, 1, 100))
    lake.refresh("shares")  # `sums` has not seen that yet
    assert sorted(lake.query("SELECT id, amount, total FROM shares").fetchall()) == [
        (1, 10, 30),
        (2, 20, 30),
        (3, 30, 30),
    ]
    lake.refresh("sums")
    assert lake.refresh("shares").way == "incremental"
    _right(lake, "shares", query)
    assert sorted(lake.query("SELECT id, total FROM shares").fetchall()) == [(1, 120), (2, 120), (3, 30)]


def test_views_that_saw_different_states_are_not_mixed(lake: Lake) -> None:
    """A view of two views goes back to where they agree."""
    lake.materialize("sums", _SUMS, policy="incremental")
    lake.materialize("counts", "SELECT cust, count(*) AS n FROM orders GROUP BY cust", policy="incremental")
    query = "SELECT s.cust, s.total, c.n FROM sums s JOIN counts c ON s.cust = c.cust"
    lake.materialize("both", query, policy="incremental")
    _orders(lake, (4, 1, 100))
    lake.refresh("sums")
    lake.refresh("both")
    assert sorted(lake.query("SELECT * FROM both").fetchall()) == [(1, 30, 2), (2, 30, 1)]
    lake.refresh("counts")
    lake.refresh("both")
    assert sorted(lake.query("SELECT * FROM both").fetchall()) == [(1, 130, 3), (2, 30, 1)]
    lake["sums"].expire_snapshots(retain_max=1, retain_min=1)
    _orders(lake, (5, 1, 100))
    lake.refresh("counts")
    lake["counts"].expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CommitConflict, match=r"different states of `default\.orders`"):
        lake.refresh("both")


def test_a_view_of_all_columns_of_a_view(lake: Lake) -> None:
    """`*` does not mean what a materialized table keeps for itself."""
    lake.materialize("sums", _SUMS, policy="incremental")
    lake.materialize("copy", "SELECT * FROM sums WHERE total > 25", policy="incremental strict")
    _orders(lake, (4, 3, 100))
    lake.refresh("sums")
    assert lake.refresh("copy").way == "incremental"
    _right(lake, "copy", "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust HAVING sum(amount) > 25")


# --- things that happen to the tables --------------------------------------------------------------------------------


def _gone(lake: Lake, name: str, query: str, reason: str) -> None:
    """A full refresh with a note, refused if only changes may be followed."""
    strict = lake.refresh
    with pytest.raises(Unsupported, match=reason):
        strict("strictly")
    done = lake.refresh(name)
    assert done.way == "full"
    assert reason in done.reason
    _right(lake, name, query)
    assert lake.refresh("strictly", full=True).way == "full"
    _right(lake, "strictly", query)


def _both(lake: Lake, query: str) -> None:
    lake.materialize("v", query, policy="incremental")
    lake.materialize("strictly", query, policy="incremental strict")


def test_changes_that_have_expired(lake: Lake) -> None:
    """What nobody can tell any more is computed anew, and said so."""
    _both(lake, _SUMS)
    for amount in range(5):
        _orders(lake, (1, 1, amount))
    lake["orders"].expire_snapshots(retain_max=1, retain_min=1)
    _gone(lake, "v", _SUMS, "expired")


def test_a_table_that_was_rolled_back(lake: Lake) -> None:
    """Another snapshot with the same number is not taken for the one that was seen."""
    first = lake["orders"].latest_snapshot()
    assert first is not None
    _orders(lake, (1, 1, 500))
    _both(lake, _SUMS)
    lake["orders"].rollback_to(snapshot=first.id)
    _orders(lake, (2, 2, 600))
    _orders(lake, (2, 2, 700))
    _gone(lake, "v", _SUMS, "rolled back")


def test_a_table_that_was_overwritten(lake: Lake) -> None:
    """With a key, the states before and after are compared."""
    lake.materialize("v", _QUERY, policy="incremental strict")
    lake["orders"].write([{"id": 1, "cust": 2, "amount": 1, "note": None}], overwrite=True)
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", _QUERY)


def test_an_append_table_that_was_overwritten(lake: Lake) -> None:
    """Without a key, the rows of both states are compared, equal ones by their number."""
    query = "SELECT oid, sum(qty) AS n FROM events GROUP BY oid"
    lake.materialize("v", query, policy="incremental strict")
    lake["events"].write([{"oid": 1, "qty": 7}], overwrite=True)
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", query)


def test_rows_deleted_of_an_append_table(lake: Lake) -> None:
    """Whether they are told or not, the result is right."""
    query = "SELECT oid, qty FROM events"
    lake.materialize("v", query, policy="incremental")
    lake["events"].delete_where("oid = 2")
    lake.refresh("v")
    _right(lake, "v", query)


def test_appended_rows_and_compactions(lake: Lake) -> None:
    """Compactions of an append table are no changes."""
    query = "SELECT oid, count(*) AS n FROM events GROUP BY oid"
    lake.materialize("v", query, policy="incremental strict")
    for number in range(4):
        lake["events"].write([{"oid": number, "qty": 1}])
    lake["events"].compact(full=True)
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", query)


def test_a_view_that_was_rolled_back_goes_on_from_there(lake: Lake) -> None:
    """Its older rows belong to the older cut, which their snapshot names."""
    lake.materialize("v", _SUMS, policy="incremental")
    _orders(lake, (1, 1, 100))
    lake.refresh("v")
    lake["v"].rollback_to(snapshot=1)
    _orders(lake, (2, 1, 200))
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", _SUMS)


@pytest.mark.parametrize("query", [_QUERY, _SUMS, "SELECT amount FROM orders"])
def test_a_view_whose_old_state_came_back_goes_on_from_there(lake: Lake, query: str) -> None:
    """A new snapshot with old rows belongs to the old state of the tables, and tells what went back."""
    lake.materialize("v", query, policy="incremental")
    lake.materialize("above", "SELECT count(*) AS n FROM v", policy="incremental")
    for row in ((1, 2, 11), (4, 1, 40)):
        _orders(lake, row)
        lake.refresh("v")
    lake.refresh("above")
    before = cut_of(lake["v"].snapshots()[1])
    lake.sql("RESTORE TABLE v TO VERSION AS OF 2")
    assert cut_of(lake["v"].latest_snapshot()) == before
    assert folded(lake, "v") is None
    lake.refresh("above")
    _right(lake, "above", "SELECT count(*) AS n FROM v")
    _orders(lake, (5, 2, 50))
    assert lake.refresh("v").way == "incremental"
    lake.refresh("above")
    _right(lake, "v", query)
    _right(lake, "above", "SELECT count(*) AS n FROM v")


@pytest.mark.parametrize("option", ["fields.amount.default-value", "scan.fallback-branch"])
def test_options_that_decide_what_a_table_shows(lake: Lake, option: str) -> None:
    """When such an option is set or dropped, the same snapshot shows other rows, and so does the materialized table."""
    lake["orders"].create_branch("b")
    lake["orders$branch_b"].write([{"id": 9, "cust": 1, "amount": 9, "note": ""}])
    lake["orders"].write([{"id": 4, "cust": 2, "amount": None, "note": ""}])
    lake.materialize("v", _SUMS, policy="incremental")
    for change in (SetOption(option, "b" if "branch" in option else "7"), RemoveOption(option)):
        lake["orders"].alter(change)
        assert lake.refresh("v").way == "full"
        _right(lake, "v", _SUMS)
    _orders(lake, (1, 2, 11))
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", _SUMS)


# --- columns that change ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (DropColumn("amount"), "column `amount` of `default.orders` was dropped"),
        (RenameColumn("amount", "worth"), "column `amount` of `default.orders` is called `worth` now"),
        (UpdateColumnType("amount", BIGINT), "column `amount` of `default.orders` is of type BIGINT now, it was INT"),
    ],
)
def test_a_column_in_use_that_is_changed_stops_the_view(lake: Lake, change: Any, said: str) -> None:
    """The error names the column and what became of it, and the rows stay."""
    lake.materialize("v", _SUMS, policy="incremental")
    before = lake["v"].count()
    lake["orders"].alter(change)
    with pytest.raises(InvalidSchema, match=said):
        lake.refresh("v")
    assert lake["v"].count() == before


def test_columns_that_are_not_in_use_do_not_matter(lake: Lake) -> None:
    """`*` means the columns that there were, and others come and go."""
    lake.materialize("v", "SELECT * FROM customers", policy="incremental strict")
    lake.materialize("w", _SUMS, policy="incremental strict")
    lake["customers"].alter(AddColumn("extra", BIGINT))
    lake["orders"].alter(DropColumn("note"))
    lake["customers"].write([{"cid": 3, "name": "cid", "extra": 5}])
    lake["orders"].write([{"id": 4, "cust": 1, "amount": 7}])
    assert lake.refresh("v").way == "incremental"
    assert lake.refresh("w").way == "incremental"
    _right(lake, "v", "SELECT cid, name FROM customers")
    _right(lake, "w", _SUMS)


def test_plain_names_belong_to_the_database_of_the_creation(lake: Lake) -> None:
    """Whoever refreshes may be in another database."""
    lake.materialize("v", _SUMS, policy="incremental")
    lake.create_database("elsewhere")
    lake.use("elsewhere")
    _orders_there = lake["default.orders"]
    _orders_there.write([{"id": 9, "cust": 9, "amount": 9, "note": None}])
    assert lake.refresh("default.v").way == "incremental"
    lake.use("default")
    _right(lake, "v", _SUMS)


def test_partitions_and_a_key_of_its_own(lake: Lake) -> None:
    """A row that moves to another partition is taken from the old one."""
    query = "SELECT id, cust AS part, amount FROM orders WHERE cust IS NOT NULL"
    lake.materialize("v", query, policy="incremental", primary_key=["id"], partition_by=["part"])
    _orders(lake, (1, 2, 10), (2, 2, 21))
    assert lake.refresh("v").way == "incremental"
    _right(lake, "v", query)
    assert lake["v"].primary_key == ("part", "id")


def test_a_commit_of_another_engine_on_top(lake: Lake) -> None:
    """One that forgets how far the table is makes the next refresh compute everything, and it counts."""
    lake.materialize("v", _SUMS, policy="incremental")
    _orders(lake, (1, 2, 11))
    lake.refresh("v")
    view = lake.table("v")
    latest = view.latest_snapshot()
    assert latest is not None
    foreign = replace(latest, id=latest.id + 1, properties=None, commit_user="flink", writer_version=None, uuid=None)
    foreign = replace(foreign, commit_identifier=BATCH_COMMIT_IDENTIFIER)
    opened_of(view).context.stores.snapshots.publish(foreign)
    _orders(lake, (2, 2, 21))
    done = lake.refresh("v")
    assert (done.way, done.snapshot) == ("full", latest.id + 2)
    assert difference(lake, "v", _SUMS) is None
    _orders(lake, (2, 1, 22))
    assert lake.refresh("v").way == "incremental"
    assert difference(lake, "v", _SUMS) is None


def test_a_table_like_a_materialized_one_is_an_ordinary_one(lake: Lake) -> None:
    """It has no query, and takes rows."""
    lake.materialize("v", _SUMS)
    lake.sql("CREATE TABLE copy LIKE v")
    assert [each.name for each in lake.materialized_tables()] == ["default.v"]
    with pytest.raises(lakebed.errors.InvalidArgument, match="not set by hand"):
        lake.sql("CREATE TABLE x (a INT) WITH ('lakebed.view.query' = 'SELECT 1')")


def test_a_table_that_was_made_anew_with_another_key(lake: Lake) -> None:
    """Rows that are told apart otherwise are not stored by the old key: the error says how to go on."""
    queries = {"v": "SELECT amount FROM orders", "w": "SELECT id, amount FROM orders", "sums": _SUMS}
    for name, query in queries.items():
        lake.materialize(name, query)
    columns = {"id": "BIGINT NOT NULL", "cust": "INT", "amount": "INT", "note": "STRING"}
    lake.drop_table("orders")
    lake.create_table("orders", columns)
    _orders(lake, (1, 1, 10), (1, 2, 20))
    for name in ("v", "w"):
        with pytest.raises(InvalidSchema, match=r"keys of `default\.orders`") as caught:
            lake.refresh(name)
        assert queries[name] in str(caught.value)
        lake.sql(f"ALTER MATERIALIZED TABLE {name} AS {queries[name]}")
    assert lake.refresh("sums").way == "full"
    for name, query in queries.items():
        _right(lake, name, query)
