"""Event-time temporal joins: each row with the version of its partner that was valid at a time of the row."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import pytest
from tests.views.histories import PRODUCERS
from tests.views.inserts.targets import as_text, counting_table, insert, other_counts
from tests.views.judging import difference, folded
from tests.views.temporal import Join, Sales

import lakebed
from lakebed.errors import Unsupported

JOINS = {
    "keyed": Join("sales", "prices", is_left=False),
    "keyed, all": Join("sales", "prices", is_left=True),
    "equal rows": Join("scans", "prices", is_left=False, dear=True),
    "equal rows, all": Join("scans", "prices", is_left=True, dear=True),
    "newest": Join("sales", "told", is_left=True),
    "newest of equal rows": Join("scans", "told", is_left=False),
}


def _lived(path: Path, producer: str, seed: int, rounds: int, joins: list[Join]) -> Counter[str]:
    """Materialized tables of joins and INSERTs into tables of two kinds, while things happen."""
    sales = Sales(str(path), producer, seed)
    lake, ways = sales.lake, Counter[str]()
    sales.happen()
    views = {f"v{n}": join for n, join in enumerate(joins)}
    for name, join in views.items():
        lake.materialize(name, join.query, policy="incremental strict")
    keyed = {"bucket": "1", "changelog-producer": "lookup"}
    columns = {"id": "BIGINT NOT NULL", "item": "STRING", "n": "INT", "since": "TIMESTAMP(3)", "price": "INT"}
    lake.create_table("sent", columns, primary_key=["id"], options=keyed)
    sent = insert(lake, "sent", JOINS["keyed, all"].query, name="a")
    counting_table(lake, "counted")
    texts = as_text(lake, JOINS["equal rows, all"].query)
    counted = insert(lake, "counted", texts, name="b")
    for turn in range(rounds):
        for name, join in views.items():
            done = lake.refresh(name)
            ways[done.way] += 1
            assert sales.wrong(join, name) is None, f"{turn}, {done}\n{join.query}\n{sales.wrong(join, name)}"
            assert sales.wrong(join, f"({join.query})") is None, f"{turn}\n{join.query}"
        sent.step(), counted.step()
        assert sales.wrong(JOINS["keyed, all"], "sent") is None, f"{turn}, {sales.wrong(JOINS['keyed, all'], 'sent')}"
        assert other_counts(lake, "counted", texts) is None, f"{turn}, {other_counts(lake, 'counted', texts)}"
        sales.happen()
    for name in views:
        assert folded(lake, name) is None
    return ways


@pytest.mark.parametrize(("seed", "producer"), list(enumerate(PRODUCERS)))
def test_random_histories(tmp_path: Path, seed: int, producer: str) -> None:
    """Rows and versions that come late, change and go: all doors give what a loop over all rows gives."""
    ways = _lived(tmp_path, producer, seed, rounds=3, joins=list(JOINS.values())[seed % 2 :: 2])
    assert ways["incremental"] > ways["full"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 150))
def test_random_histories_for_long(tmp_path: Path, seed: int) -> None:
    """The same for long."""
    _lived(tmp_path, list(PRODUCERS)[seed % len(PRODUCERS)], seed, rounds=15, joins=list(JOINS.values()))


def test_several_at_a_time(tmp_path: Path) -> None:
    """A temporal join of the rows of another one, followed and computed."""
    sales = Sales(str(tmp_path), "lookup", 7)
    query = (
        "SELECT s.id, p.price, q.price AS before FROM sales AS s "
        "LEFT JOIN prices FOR SYSTEM_TIME AS OF s.at AS p ON s.item = p.item "
        "LEFT JOIN prices FOR SYSTEM_TIME AS OF p.since AS q ON p.item = q.item AND p.price <> q.price"
    )
    sales.lake.materialize("v", query, policy="incremental strict")
    for _ in range(3):
        sales.happen()
        sales.lake.refresh("v")
        assert difference(sales.lake, "v", query) is None


def test_how_it_is_followed(tmp_path: Path) -> None:
    """Versions by partitions, rows by what matches; and the key of the result is that of the left side."""
    sales = Sales(str(tmp_path), "lookup", 1)
    said = str(sales.lake.explain(JOINS["keyed, all"].query))
    assert "query: incremental" in said
    assert "key: id" in said
    assert "left join item" in said
    assert "window by item" in said


def test_a_table_without_a_key_is_not_sent_what_may_change(tmp_path: Path) -> None:
    """A later version may take the place of one that was sent: that is refused before anything is sent."""
    lake = Sales(str(tmp_path), "lookup", 1).lake
    lake.create_table("log", {"item": "STRING", "n": "INT", "since": "TIMESTAMP(3)", "price": "INT"})
    with pytest.raises(Unsupported, match="rows of the query may change or go"):
        insert(lake, "log", JOINS["equal rows"].query).check()


def test_a_stored_column_is_event_time_whatever_it_is_called(tmp_path: Path) -> None:
    """A column `proctime` that is stored is a time of rows; one that is not is the time at which they come."""
    lake = lakebed.connect(str(tmp_path))
    moment = [dt.datetime(2024, 1, n) for n in range(1, 5)]
    lake.create_table("a", {"id": "INT", "k": "INT", "proctime": "TIMESTAMP(3)"})
    lake.create_table("b", {"id": "INT", "k": "INT"})
    key = {"k": "INT NOT NULL", "since": "TIMESTAMP(3) NOT NULL"}
    lake.create_table("v", {**key, "x": "INT"}, primary_key=["k", "since"], options={"bucket": "1"})
    lake["a"].write([{"id": 1, "k": 1, "proctime": moment[1]}])
    lake["b"].write([{"id": 1, "k": 1}])
    lake["v"].write([{"k": 1, "since": moment[0], "x": 1}, {"k": 1, "since": moment[2], "x": 3}])
    query = "SELECT {0}.id, v.x FROM {0} JOIN v FOR SYSTEM_TIME AS OF {0}.proctime ON {0}.k = v.k"
    assert lake.query(query.format("a")).fetchall() == [(1, 1)]
    lake.create_table("out", {"id": "INT", "x": "INT"})
    each = insert(lake, "out", query.format("b"))
    each.step()
    assert sorted(lake.query("SELECT * FROM out").fetchall()) == [(1, 1), (1, 3)]


def test_conditions_choose_among_versions_that_are_valid(tmp_path: Path) -> None:
    """WHERE does not bring back a version that another one has followed."""
    lake = Sales(str(tmp_path), "none", 1).lake
    moment = [dt.datetime(2024, 1, n) for n in range(1, 5)]
    versions = [{"item": "a", "since": moment[0], "price": 1}, {"item": "a", "since": moment[1], "price": 9}]
    lake["prices"].write(versions)
    lake["scans"].write([{"item": "a", "at": moment[2], "n": 1}])
    query = "SELECT * FROM scans s JOIN prices FOR SYSTEM_TIME AS OF s.at AS p ON s.item = p.item WHERE p.price = {}"
    assert lake.query(query.format(1)).fetchall() == []
    assert lake.query(query.format(9)).fetchall() == [("a", moment[2], 1, "a", moment[1], 9)]
