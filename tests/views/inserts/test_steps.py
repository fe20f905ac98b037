"""Streaming INSERTs when something happens to the tables that they read, to their steps, or to the table they write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.views.inserts.targets import insert, other_rows

import lakebed
from lakebed.commit.committer import Committer
from lakebed.errors import CorruptFile, InvalidArgument, InvalidSchema, StorageError, Unsupported
from lakebed.lake import Lake
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER
from lakebed.schema.changes import AddColumn, DropColumn
from lakebed.table.opened import opened_of
from lakebed.types.logical import BIGINT

_QUERY = "SELECT note, amount, 1 FROM orders WHERE note <> ''"
_SUMS = "SELECT note, sum(amount) AS total, count(*) AS n FROM orders WHERE note <> '' GROUP BY note"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with rows, one that adds up, one with the same key, and one without."""
    found = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    columns = {"id": "BIGINT NOT NULL", "note": "STRING", "amount": "INT"}
    found.create_table("orders", columns, primary_key=["id"], options=keyed)
    found.create_table("events", {"id": "BIGINT", "note": "STRING"})
    summing = {"bucket": "1", "merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}
    found.create_table(
        "sums", {"note": "STRING NOT NULL", "total": "BIGINT", "n": "BIGINT"}, primary_key=["note"], options=summing
    )
    found.create_table("copy", columns, primary_key=["id"], options={"bucket": "1"})
    found.create_table("log", {"id": "BIGINT", "note": "STRING"})
    _orders(found, (1, "a", 10), (2, "a", 20), (3, "b", 30))
    found["events"].write([{"id": 1, "note": "x"}])
    return found


def _orders(lake: Lake, *rows: tuple[int, str, int]) -> None:
    lake["orders"].write([{"id": i, "note": n, "amount": a} for i, n, a in rows])


def _right(lake: Lake) -> None:
    assert other_rows(lake, "(SELECT * FROM sums WHERE n <> 0)", _SUMS) is None


# --- two at once, and half of one ------------------------------------------------------------------------------------


def test_of_two_runners_one_counts(lake: Lake) -> None:
    """Two that began with the same state, and saw different ones of the tables, do not both send their rows."""
    one, other = insert(lake, "sums", _QUERY), insert(lake, "sums", _QUERY)
    for change in ((1, "b", 11), (4, "a", 40)):
        seen = one._look()
        chosen = one._cut(seen)
        _orders(lake, change)
        assert other.step().snapshot is not None
        late = one._first(seen, chosen) if seen.state is None else one._next(seen, seen.state, seen.state.cut, chosen)
        assert (late.way, late.snapshot) == ("none", None)
        _right(lake)
    _orders(lake, (5, "c", 50))
    assert one.step().way == "incremental"
    assert other.step().way == "none"
    _right(lake)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_step_that_dies_before_its_commit_sends_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """Rows and how far they are stand in one commit: the next step sends the same rows."""
    if not is_first:
        insert(lake, "sums", _QUERY).step()
        _orders(lake, (1, "b", 11))
    before = lake["sums"].to_arrow().to_pylist()

    def dies(self: Committer, *given: Any, **more: Any) -> None:
        raise StorageError("no space", hint="make some")

    with monkeypatch.context() as patched:
        patched.setattr(Committer, "commit", dies)
        with pytest.raises(StorageError):
            insert(lake, "sums", _QUERY).step()
    assert lake["sums"].to_arrow().to_pylist() == before
    assert insert(lake, "sums", _QUERY).step().snapshot is not None
    _right(lake)


def test_a_step_that_dies_after_its_commit_is_not_done_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever begins anew finds what was sent in the table."""
    given = Committer.commit

    def dies(self: Committer, *arguments: Any, **more: Any) -> Any:
        given(self, *arguments, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Committer, "commit", dies)
        with pytest.raises(KeyboardInterrupt):
            insert(lake, "sums", _QUERY).step()
    assert insert(lake, "sums", _QUERY).step().way == "none"
    _right(lake)


def test_a_step_without_changes_commits_nothing(lake: Lake) -> None:
    """Neither if nothing happened nor if what happened changes nothing; only far behind that is written down."""
    each = insert(lake, "sums", _QUERY)
    each.step()
    last = lake["sums"].latest_snapshot()
    assert last is not None
    assert each.step().reason == "nothing changed"
    assert each.lag() == {"default.orders": (2, 2)}
    _orders(lake, (7, "", 1))
    assert each.lag() == {"default.orders": (2, 4)}
    assert each.step().snapshot is None
    assert each.lag() == {"default.orders": (4, 4)}
    assert each.step().reason == "nothing changed"
    assert lake["sums"].latest_snapshot().id == last.id  # type: ignore[union-attr]
    assert insert(lake, "sums", _QUERY).lag() == {"default.orders": (2, 4)}
    _orders(lake, (8, "", 1))
    _orders(lake, (9, "", 1))
    assert each.step().snapshot == last.id + 1
    lake["orders"].expire_snapshots(retain_max=1, retain_min=1)
    _orders(lake, (9, "z", 1))
    assert insert(lake, "sums", _QUERY).step().way == "incremental"
    _right(lake)


def test_tables_without_rows(lake: Lake) -> None:
    """Nothing is committed before there is something to read; rows that come then are all sent."""
    lake.create_table("later", {"id": "BIGINT NOT NULL", "note": "STRING"}, primary_key=["id"], options={"bucket": "1"})
    each = insert(lake, "copy", "SELECT id, note FROM later", "id", "note")
    assert each.step().way == "none"
    assert lake["copy"].latest_snapshot() is None
    lake["later"].write([{"id": 1, "note": "x"}])
    assert each.step().inserted == 1
    assert lake["copy"].to_arrow().to_pylist() == [{"id": 1, "note": "x", "amount": None}]


# --- how far it is ---------------------------------------------------------------------------------------------------


def test_how_far_it_is_outlives_other_writers(lake: Lake) -> None:
    """Compactions, expiry, writes of others and a second INSERT keep it; each INSERT has its own."""
    one, two = insert(lake, "sums", _QUERY), insert(lake, "sums", "SELECT note, 1000, 0 FROM events", name="two")
    one.step(), two.step()
    lake["sums"].write([{"note": "by hand", "total": 1, "n": 0}])
    lake["sums"].compact(full=True)
    lake["sums"].expire_snapshots(retain_max=1, retain_min=1)
    assert (insert(lake, "sums", _QUERY).step().way, two.step().way) == ("none", "none")
    _orders(lake, (1, "b", 11))
    assert insert(lake, "sums", _QUERY).step().way == "incremental"
    lake["events"].write([{"id": 2, "note": "x"}])
    assert two.step().way == "incremental"
    _right(lake)
    totals = dict(lake.query("SELECT note, total FROM sums").fetchall())
    assert (totals["by hand"], totals["x"]) == (1, 2000)


def test_a_commit_of_another_engine_on_top(lake: Lake) -> None:
    """One that hands nothing on does not make the INSERT begin anew, nor one of ours on top of it."""
    each = insert(lake, "sums", _QUERY)
    each.step()
    table = lake.table("sums")
    latest = table.latest_snapshot()
    assert latest is not None
    foreign = replace(latest, id=latest.id + 1, properties=None, commit_user="flink", writer_version=None, uuid=None)
    foreign = replace(foreign, commit_identifier=BATCH_COMMIT_IDENTIFIER)
    opened_of(table).context.stores.snapshots.publish(foreign)
    assert insert(lake, "sums", _QUERY).step().way == "none"
    lake["sums"].write([{"note": "by hand", "total": 1, "n": 0}])
    _orders(lake, (1, "b", 11))
    assert insert(lake, "sums", _QUERY).step().way == "incremental"
    _right(lake)


def test_a_table_that_forgot_how_far_it_is(lake: Lake) -> None:
    """If the table knows that the INSERT has written and not how far, nothing is sent twice."""
    insert(lake, "sums", _QUERY).step()
    table = lake.table("sums")
    latest = table.latest_snapshot()
    assert latest is not None
    kept = {key: value for key, value in (latest.properties or {}).items() if not key.startswith("lakebed.insert.")}
    opened_of(table).context.stores.snapshots.publish(replace(latest, id=latest.id + 1, properties=kept, uuid="other"))
    with pytest.raises(CorruptFile, match="how far it was is not known"):
        insert(lake, "sums", _QUERY).step()


def test_a_table_that_was_rolled_back(lake: Lake) -> None:
    """Steps that the table has lost are done again."""
    each = insert(lake, "sums", _QUERY)
    each.step()
    _orders(lake, (1, "b", 11))
    each.step()
    _orders(lake, (7, "", 1))
    each.step()
    lake["sums"].rollback_to(snapshot=1)
    assert each.step().way == "incremental"
    _right(lake)


def test_a_table_that_was_made_anew(lake: Lake) -> None:
    """It knows of nothing, so all rows are sent."""
    each = insert(lake, "copy", "SELECT * FROM orders")
    each.step()
    columns = {"id": "BIGINT NOT NULL", "note": "STRING", "amount": "INT"}
    lake.drop_table("copy")
    lake.create_table("copy", columns, primary_key=["id"], options={"bucket": "1"})
    assert each.step().way == "full"
    assert other_rows(lake, "copy", "SELECT * FROM orders") is None


def test_a_table_that_was_replaced(lake: Lake) -> None:
    """CREATE OR REPLACE takes the rows away, so all are sent again; TRUNCATE is a change that somebody made to them."""
    each = insert(lake, "copy", "SELECT * FROM orders")
    each.step()
    lake.sql(
        "CREATE OR REPLACE TABLE copy (id BIGINT NOT NULL, note STRING, amount INT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('bucket' = '1')"
    )
    assert lake["copy"].count() == 0
    lake["copy"].compact(full=True)
    assert (each.step().way, each.step().way) == ("full", "none")
    _orders(lake, (1, "b", 11))
    assert each.step().way == "incremental"
    assert other_rows(lake, "copy", "SELECT * FROM orders") is None
    lake.sql("TRUNCATE TABLE copy")
    assert each.step().way == "none"


# --- things that happen to the tables that are read ------------------------------------------------------------------


def test_changes_that_have_expired(lake: Lake) -> None:
    """What nobody can tell any more stops the INSERT; the error names the table, and nothing is sent."""
    each = insert(lake, "sums", _QUERY)
    each.step()
    for amount in range(5):
        _orders(lake, (1, "a", amount))
    lake["orders"].expire_snapshots(retain_max=1, retain_min=1)
    before = lake["sums"].latest_snapshot()
    with pytest.raises(Unsupported, match=r"what changed in `default\.orders` can not be told.*expired") as said:
        each.step()
    assert "under another name" in str(said.value.hint)
    assert lake["sums"].latest_snapshot() == before


def test_a_source_that_was_rolled_back(lake: Lake) -> None:
    """What was sent of snapshots that are gone can not be taken back: it stops."""
    first = lake["orders"].latest_snapshot()
    assert first is not None
    _orders(lake, (1, "a", 500))
    each = insert(lake, "sums", _QUERY)
    each.step()
    lake["orders"].rollback_to(snapshot=first.id)
    _orders(lake, (2, "b", 600))
    _orders(lake, (2, "b", 700))
    with pytest.raises(Unsupported, match=r"`default\.orders`.*rolled back"):
        each.step()


def test_a_source_that_was_overwritten(lake: Lake) -> None:
    """As long as the old rows are there, both states are compared, and what is gone is taken back."""
    each = insert(lake, "sums", _QUERY)
    each.step()
    lake["orders"].write([{"id": 1, "note": "c", "amount": 1}], overwrite=True)
    assert each.step().way == "incremental"
    _right(lake)


def test_rows_deleted_of_an_append_table(lake: Lake) -> None:
    """A table that can not take rows back is not sent any, and the error names where they were deleted."""
    each = insert(lake, "log", "SELECT id, note FROM events")
    each.step()
    lake["events"].write([{"id": 2, "note": "y"}])
    assert each.step().inserted == 1
    lake["events"].delete_where("id = 1")
    with pytest.raises(Unsupported, match=r"rows of `default\.events` were deleted or replaced"):
        each.step()
    assert lake["log"].count() == 2


def test_rows_that_no_compaction_has_told_of_yet(lake: Lake) -> None:
    """Rows of a table whose compactions run elsewhere are sent once those tell of them, and not lost."""
    later = lake["orders"].with_options({"write-only": "true"})
    each = insert(lake, "sums", _QUERY)
    each.step()
    later.write([{"id": 1, "note": "b", "amount": 11}])
    assert each.step().way == "none"
    later.write([{"id": 1, "note": "a", "amount": 12}])
    lake["orders"].compact()
    assert each.step().way == "incremental"
    _right(lake)


def test_columns_of_a_source_that_come_and_go(lake: Lake) -> None:
    """`*` means the columns that there were when it began; one in use that is dropped stops it."""
    each = insert(lake, "copy", "SELECT * FROM orders")
    each.step()
    lake["orders"].alter(AddColumn("extra", BIGINT))
    lake["orders"].write([{"id": 9, "note": "n", "amount": 9, "extra": 1}])
    assert each.step().inserted == 1
    assert other_rows(lake, "copy", "SELECT id, note, amount FROM orders") is None
    lake["orders"].alter(DropColumn("amount"))
    with pytest.raises(InvalidSchema, match=r"column `amount` of `default\.orders` was dropped"):
        each.step()


def test_another_query_under_the_same_name(lake: Lake) -> None:
    """A table that was not read before has no changes since then: that is refused, not guessed."""
    insert(lake, "copy", "SELECT * FROM orders").step()
    lake["events"].write([{"id": 5, "note": "n"}])
    query = "SELECT o.id, o.note, o.amount FROM orders o LEFT SEMI JOIN events e ON o.id = e.id"
    with pytest.raises(InvalidArgument, match=r"has not read `default\.events` before"):
        insert(lake, "copy", query).step()


def test_a_materialized_table_as_source(lake: Lake) -> None:
    """Where a query can not be followed itself, it can be as a materialized table."""
    query = "SELECT max(amount) AS most, 1 AS one FROM orders"
    lake.create_table("most", {"one": "INT NOT NULL", "most": "INT"}, primary_key=["one"], options={"bucket": "1"})
    with pytest.raises(Unsupported, match="one group of all rows"):
        insert(lake, "most", f"SELECT one, most FROM ({query})").check()
    lake.materialize("v", query)
    each = insert(lake, "most", "SELECT one, most FROM v")
    with pytest.raises(InvalidArgument, match="not known to tell"):
        each.check()
    lake.sql("DROP MATERIALIZED TABLE v")
    lake.materialize("v", query, primary_key=["one"])
    each = insert(lake, "most", "SELECT one, most FROM v")
    each.step()
    _orders(lake, (1, "a", 99))
    lake.refresh("v")
    assert each.step().updated == 1
    assert lake.query("SELECT * FROM most").fetchall() == [(1, 99)]
