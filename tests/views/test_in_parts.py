"""Changes that are followed in parts give the same as those that are followed at once, whatever the query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.views.histories import PRODUCERS, History
from tests.views.in_parts import follow_in_parts
from tests.views.judging import bag, difference, folded
from tests.views.queries import FOLLOWED
from tests.views.test_random_queries import lived

import lakebed
from lakebed.lake import Lake
from lakebed.views import shared_delta
from lakebed.views.by_spark import most_changes, most_rows
from lakebed.views.refresh import Refresh
from lakebed.views.store import definition_of

_WHOLE = {"growing windows"}
"""What has no values by which rows could be shared."""
_BY_DAY = {("lookup", 0), ("none", 5)}


def _compared(path: Path, patch: pytest.MonkeyPatch, producer: str, seed: int, chosen: list[str], rounds: int) -> None:
    """Each query twice: once followed in parts, once at once. All columns that are stored have to be the same."""
    history = History(str(path), producer, seed)
    lake, shared = history.lake, 0
    history.fill()
    for number, name in enumerate(chosen):
        for way in ("once", "parts"):
            lake.materialize(f"{way}{number}", FOLLOWED[name], policy="incremental")
    for turn in range(rounds):
        history.happen()
        for number, name in enumerate(chosen):
            expected = lake.refresh(f"once{number}")
            with patch.context() as parts:
                follow_in_parts(parts)
                done = lake.refresh(f"parts{number}")
            assert done.way in ("incremental", "none"), f"{name}: {done}"
            shared += "; by Spark: " in done.reason
            assert ("not by Spark" in done.reason) <= (name in _WHOLE), f"{name}: {done}"
            changed = [(each.inserted, each.updated, each.deleted) for each in (done, expected)]
            assert changed[0] == changed[1], f"{name}, round {turn}: {done}, {expected}"
            columns = lake.table(f"once{number}").schema.field_names
            rows = [bag(lake.table(f"{way}{number}").to_arrow(columns)) for way in ("once", "parts")]
            assert rows[0] == rows[1], (
                f"{name}, round {turn}: missing {rows[0] - rows[1]}, too many {rows[1] - rows[0]}"
            )
    assert shared, "nothing was shared"
    for number, name in enumerate(chosen):
        wrong = folded(lake, f"parts{number}")
        assert wrong is None, f"{name}: {wrong}"


@pytest.mark.parametrize(
    ("producer", "part"),
    [
        pytest.param(name, part, marks=() if (name, part) in _BY_DAY else pytest.mark.nightly)
        for name in PRODUCERS
        for part in range(10)
    ],
)
def test_parts_give_what_the_whole_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, producer: str, part: int
) -> None:
    """Rows, types, keys, counts that are kept beside, and the changelog."""
    _compared(tmp_path, monkeypatch, producer, part, list(FOLLOWED)[part::10], 1)


@pytest.mark.parametrize("seed", [3])
def test_random_queries_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever the query, what is followed in parts is what a computation from scratch gives."""
    follow_in_parts(monkeypatch, 4)
    lived(tmp_path, seed, queries=3, rounds=2)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2000, 2100))
def test_random_queries_in_parts_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The same for a thousand queries."""
    follow_in_parts(monkeypatch, 2 + seed % 4)
    lived(tmp_path, seed, queries=10, rounds=4)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Orders and customers."""
    found = lakebed.connect(str(tmp_path))
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    orders = {"id": "INT NOT NULL", "cust": "INT", "amount": "INT", "x": "DOUBLE"}
    found.create_table("orders", orders, primary_key=["id"], options=keyed)
    found.create_table("customers", {"cid": "INT NOT NULL", "name": "STRING"}, primary_key=["cid"], options=keyed)
    _orders(found, {n: (n % 4, n) for n in range(12)})
    found["customers"].write([{"cid": n, "name": f"c{n}"} for n in range(4)])
    return found


def _orders(lake: Lake, rows: Mapping[int, tuple[int, int]]) -> None:
    lake["orders"].write([{"id": n, "cust": cust, "amount": amount, "x": n / 2} for n, (cust, amount) in rows.items()])


_JOINED = "SELECT o.id, o.amount, c.name FROM orders o JOIN customers c ON o.cust = c.cid"
_SUMS = "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust"


def test_which_way_is_told_with_its_reason(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what a refresh says, in the snapshot, and in EXPLAIN; few changes are followed here."""
    lake.materialize("v", _JOINED, policy="incremental")
    follow_in_parts(monkeypatch, 2)
    monkeypatch.setenv("LAKEBED_VIEW_CHANGES", "3")
    _orders(lake, {1: (2, 5)})
    assert lake.refresh("v").reason == "2 changed rows"
    _orders(lake, {n: (3, n) for n in range(4)})
    done = lake.refresh("v")
    assert done.reason == "8 changed rows; by Spark: 8 rows are more than 3, in 2 parts by cust, cid"
    assert (lake["v"].latest_snapshot().properties or {})["lakebed.view.reason"] == done.reason  # type: ignore[union-attr]
    assert "tasks" in (lake["v"].latest_snapshot().properties or {})["lakebed.view.measures"]  # type: ignore[union-attr]
    assert "changes: by Spark, in parts by cust, cid (if they touch more than 3 rows)" in lake.explain("v")
    assert difference(lake, "v", _JOINED) is None
    monkeypatch.delenv("LAKEBED_VIEW_CHANGES")
    assert "changes: by Spark" not in lake.explain("v")


_SHARED_BY = {
    "SELECT id, amount FROM orders WHERE amount > 1": "id",
    _JOINED: "cust, cid",
    "SELECT o.id, c.cid FROM orders o JOIN customers c ON o.amount < c.cid": "id",
    "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.amount = c.cid": "amount, cid",
    "SELECT cid FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.cust = c.cid)": "cid, cust",
    _SUMS: "id",
    "SELECT cust, amount, max(x) AS m FROM orders GROUP BY cust, amount": "cust, amount",
    "SELECT c.name, o.cust, max(o.x) AS m FROM orders o JOIN customers c ON o.cust = c.cid GROUP BY c.name, o.cust": (
        "cust, cid"
    ),
    "SELECT amount + 1 AS n, max(id) AS m FROM orders GROUP BY amount + 1": "...",
    "SELECT id, row_number() OVER (PARTITION BY cust ORDER BY amount, id) AS n FROM orders": "cust",
    "SELECT id, amount FROM orders UNION ALL SELECT cid, 0 FROM customers": "id, cid",
}
"""Queries, and what their rows are shared by: rows that are joined, grouped or ordered together are in one part."""


@pytest.mark.parametrize("query", _SHARED_BY)
def test_what_rows_are_shared_by(lake: Lake, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """Both sides of a join by what has to be equal, groups by their keys, sums by anything."""
    monkeypatch.setenv("LAKEBED_VIEW_CHANGES", "0")
    assert f"changes: by Spark, in parts by {_SHARED_BY[query]} (if they touch more than 0 rows)" in lake.explain(query)


def test_no_session_is_started_for_less_than_everything_may_have(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no cluster gains nothing by Spark."""
    assert most_changes(lake) == most_rows() == 50_000_000
    with monkeypatch.context() as patched:
        patched.setattr(Lake, "is_spark_started", True)
        assert most_changes(lake) == 5_000_000
    monkeypatch.setenv("LAKEBED_VIEW_CHANGES", "x")
    with pytest.raises(lakebed.errors.InvalidOption, match="LAKEBED_VIEW_CHANGES='x' is no number of rows"):
        lake.explain(_JOINED)


def test_what_has_no_parts_is_followed_here(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grouping by fractions: zeros of two signs are one value there, and two to whoever shares rows."""
    query = "SELECT x, max(amount) AS m FROM orders GROUP BY x"
    lake.materialize("v", query, policy="incremental")
    follow_in_parts(monkeypatch)
    lake["orders"].write([{"id": 1, "cust": 2, "amount": 5, "x": 0.0}, {"id": 2, "cust": 2, "amount": 7, "x": -0.0}])
    done = lake.refresh("v")
    assert (done.way, done.reason) == (
        "incremental",
        "4 changed rows; not by Spark: the query does not fall into parts",
    )
    assert "changes: in this process: the query does not fall into parts" in lake.explain("v")
    assert difference(lake, "v", query) is None


def test_what_all_parts_would_have_to_know_is_followed_here(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of which each part needs all changes may not have many."""
    query = "SELECT o.id, c.cid FROM orders o JOIN customers c ON o.amount < c.cid"
    lake.materialize("v", query, policy="incremental")
    follow_in_parts(monkeypatch)
    monkeypatch.setattr(shared_delta, "MOST_WHOLE", 1)
    _orders(lake, {1: (1, 1)})
    lake["customers"].write([{"cid": 2, "name": "b"}])
    done = lake.refresh("v")
    assert done.reason.endswith("all parts of the query would have to know the changes of `default.customers`")
    assert difference(lake, "v", query) is None


def test_rows_that_change_parts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that goes in one part and comes in another is one that is other than it was, or the same."""
    lake.materialize("v", "SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.cid", policy="incremental")
    follow_in_parts(monkeypatch, 4)
    lake["customers"].write([{"cid": n, "name": "same"} for n in range(4)])
    assert lake.refresh("v").updated == 12
    _orders(lake, {n: ((n + 1) % 4, n) for n in range(12)})
    done = lake.refresh("v")
    assert (done.way, done.changed) == ("incremental", 0)
    assert folded(lake, "v") is None


@pytest.mark.parametrize(
    "query", [_JOINED, _SUMS, "SELECT amount FROM orders", "SELECT max(id) AS m, cust FROM orders GROUP BY cust"]
)
def test_of_two_refreshes_in_parts_one_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    """Two that began with the same state do not both count, whichever way they go."""
    lake.materialize("v", query, policy="incremental")
    _orders(lake, {1: (2, 5)})
    late = Refresh(lake, lake["v"], definition_of(lake["v"]))
    _orders(lake, {2: (1, 6)})
    follow_in_parts(monkeypatch)
    assert lake.refresh("v").way == "incremental"
    done = late.run(full=False)
    assert (done.way, done.snapshot, done.reason) == ("none", None, "another refresh was first")
    assert difference(lake, "v", query) is None
    assert folded(lake, "v") is None


def test_values_that_fail_in_a_part(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with a row is told as if it had been found here: all of it is computed then, and says so again."""
    query = "SELECT id, amount + 2147483640 AS big FROM orders WHERE amount < 1000"
    with pytest.raises(lakebed.errors.InvalidData):
        lake.materialize("v", query)
    _orders(lake, dict.fromkeys(range(12), (1, 0)))
    lake.materialize("v", query, policy="incremental")
    follow_in_parts(monkeypatch)
    _orders(lake, {1: (1, 100)})
    with pytest.raises(lakebed.errors.InvalidData):
        lake.refresh("v")
    _orders(lake, {1: (1, 1001)})
    done = lake.refresh("v")
    assert (done.way, done.deleted) == ("incremental", 1)
    assert difference(lake, "v", query) is None


def test_large_changes_beside_everything(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may choose computes everything where so many rows changed, whoever would follow them."""
    lake.materialize("v", _JOINED)
    follow_in_parts(monkeypatch)
    _orders(lake, {n: (3, n) for n in range(6)})
    done = lake.refresh("v")
    assert (done.way, done.reason) == ("full", "12 changed of 34 rows are many")
