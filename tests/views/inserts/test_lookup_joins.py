"""Lookup joins in streaming INSERTs: rows are joined with what a table shows when they come."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.views.inserts.targets import insert

import lakebed
from lakebed.errors import Unsupported
from lakebed.lake import Lake

_QUERY = (
    "SELECT e.id, d.name, e.qty FROM events AS e "
    "{} JOIN customers FOR SYSTEM_TIME AS OF e.proctime AS d ON e.cust = d.cid"
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Events, and customers to look up."""
    found = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    found.create_table("events", {"id": "BIGINT", "cust": "INT", "qty": "INT"})
    found.create_table("customers", {"cid": "INT NOT NULL", "name": "STRING"}, primary_key=["cid"], options=keyed)
    found.create_table("orders", {"id": "BIGINT NOT NULL", "cust": "INT"}, primary_key=["id"], options=keyed)
    found.create_table("log", {"id": "BIGINT", "name": "STRING", "qty": "INT"})
    found["customers"].write([{"cid": 1, "name": "ann"}, {"cid": 2, "name": "bob"}])
    found["events"].write([{"id": 1, "cust": 1, "qty": 5}, {"id": 2, "cust": 3, "qty": 6}])
    return found


def _rows(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(lake.query("SELECT * FROM log").fetchall())


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_rows_keep_what_was_looked_up(lake: Lake, kind: str) -> None:
    """A change of the table changes nothing of rows that were sent, and is no step; rows that come later see it."""
    each = insert(lake, "log", _QUERY.format(kind))
    each.check()
    assert each.reads == ("default.events", "default.customers")
    assert list(each.lag()) == ["default.events"]
    each.step()
    alone: list[tuple[object, ...]] = [(2, None, 6)] if kind else []
    assert _rows(lake) == [(1, "ann", 5), *alone]
    for name in ("anna", "anne"):
        lake["customers"].write([{"cid": 1, "name": name}, {"cid": 3, "name": "cid"}])
    lake["customers"].expire_snapshots(retain_max=1, retain_min=1)
    assert each.step().reason == "nothing changed"
    lake["events"].write([{"id": 3, "cust": 1, "qty": 7}, {"id": 4, "cust": 3, "qty": 8}])
    each.step()
    assert _rows(lake) == [(1, "ann", 5), *alone, (3, "anne", 7), (4, "cid", 8)]


def test_the_same_table_looked_up_and_followed(lake: Lake) -> None:
    """Where the table is joined plainly its changes count, where it is looked up they do not."""
    query = (
        "SELECT e.id, d.name, e.qty FROM events e JOIN customers FOR SYSTEM_TIME AS OF PROCTIME() d ON e.cust = d.cid "
        "UNION ALL SELECT c.cid, c.name, 0 FROM customers c"
    )
    lake.create_table(
        "wide",
        {"id": "BIGINT NOT NULL", "name": "STRING", "qty": "INT"},
        primary_key=["id"],
        options={"bucket": "1", "merge-engine": "partial-update", "ignore-delete": "true"},
    )
    each = insert(lake, "wide", query)
    assert sorted(each.lag()) == ["default.customers", "default.events"]
    each.step()
    lake["customers"].write([{"cid": 2, "name": "bert"}])
    assert each.step().changed == 1
    assert sorted(lake.query("SELECT id, name FROM wide").fetchall()) == [(1, "ann"), (2, "bert")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.id, d.name, 1 FROM orders o JOIN customers FOR SYSTEM_TIME AS OF o.proctime AS d ON o.cust = d.cid",
        "SELECT max(e.id), d.name, 1 FROM events e JOIN customers FOR SYSTEM_TIME AS OF e.proctime AS d "
        "ON e.cust = d.cid GROUP BY d.name",
    ],
)
def test_rows_that_change_are_not_joined_so(lake: Lake, query: str) -> None:
    """What was looked up for a row could not be looked up again to take it back."""
    with pytest.raises(Unsupported, match="after a lookup join") as said:
        insert(lake, "log", query).check()
    assert "leave FOR SYSTEM_TIME AS OF out" in str(said.value.hint)


def test_deleted_rows_are_not_taken_back(lake: Lake) -> None:
    """Of a table that could take them back, too."""
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.qty.aggregate-function": "sum"}
    lake.create_table("sums", {"name": "STRING NOT NULL", "qty": "INT"}, primary_key=["name"], options=options)
    query = "SELECT d.name, e.qty FROM events e JOIN customers FOR SYSTEM_TIME AS OF e.proc_time AS d ON e.cust = d.cid"
    each = insert(lake, "sums", query)
    each.step()
    lake["events"].delete_where("id = 1")
    with pytest.raises(Unsupported, match=r"rows of `default\.events` were deleted"):
        each.step()


def test_a_fixed_time_is_no_lookup(lake: Lake) -> None:
    """A constant is a past state, which is not followed."""
    query = _QUERY.format("").replace("e.proctime", "TIMESTAMP '2090-01-01 00:00:00'")
    with pytest.raises(Unsupported, match="fixed state"):
        insert(lake, "log", query).check()
