"""Streams and a sync that the version before this one began, stopped within a batch: they go on, each change once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.compat.version_before import changes, events, put, start_streams, start_sync, unpack
from tests.patience import PATIENCE_S

import lakebed

FIXTURES = Path(__file__).parents[1] / "fixtures" / "version-before"


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What the version before left behind."""
    unpack(FIXTURES / f"{request.param}.tar.xz", tmp_path)
    return tmp_path


def _sums(batches: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for number in range(1, batches + 1):
        for row in events(number):
            found[row["id"]] = found.get(row["id"], 0) + row["n"]
    return found


def _rows(table: lakebed.Table) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in table.to_arrow().to_pylist()}


def _commits(table: lakebed.Table) -> list[tuple[str, int]]:
    """Who committed rows, and which of its batches, from the first on."""
    found = [each for each in table.snapshots() if each.commit_kind == "APPEND"]
    return [(each.commit_user, each.commit_identifier) for each in found]


@pytest.mark.parametrize("home", ["streams"], indirect=True)
def test_streams_go_on(home: Path, spark: Any) -> None:
    """A batch that is in the table and not in Spark's log is not written again, new ones are written once, both to a
    table that counts each row and, through `read_stream`, to one behind it."""
    lake = lakebed.connect(home / "warehouse", spark=spark)
    sums, copy = lake.table("sums"), lake.table("copy")
    before = {table.name: _commits(table) for table in (sums, copy)}
    assert {key: row["n"] for key, row in _rows(sums).items()} == _sums(3)
    start_streams(lake, home)
    assert {table.name: _commits(table) for table in (sums, copy)} == before
    for number in (4, 5):
        put(home / "events", number, events(number))
    start_streams(lake, home)
    for table in (sums, copy):
        assert {key: row["n"] for key, row in _rows(table).items()} == _sums(5)
        assert table.check(deep=True) == []
        commits, (user, last) = _commits(table), before[table.name][-1]
        assert commits[: len(before[table.name])] == before[table.name]
        assert {each for each, _ in commits} == {user}  # the same query to the tables
        identifiers = [identifier for _, identifier in commits]
        assert identifiers == list(range(1, last + 1 + len(commits) - len(before[table.name])))
    assert len(_commits(sums)) == 5


@pytest.mark.parametrize("home", ["sync"], indirect=True)
def test_a_sync_goes_on(home: Path, spark: Any) -> None:
    """The table that had the last batch does not get it again, the other one gets it, and both follow from there."""
    lake = lakebed.connect(home / "warehouse", spark=spark)
    orders, lines = lake.table("shop.orders"), lake.table("shop.lines")
    had = len(_commits(orders))
    assert (had, len(_commits(lines))) == (3, 2)
    assert start_sync(lake, home).wait(PATIENCE_S)
    assert (len(_commits(orders)), len(_commits(lines))) == (3, 3)
    for number in (4, 5):
        put(home / "changes", number, changes(number))
    assert start_sync(lake, home).wait(PATIENCE_S)
    assert _rows(orders) == {
        "0": {"id": "0", "v": "count 5", "w": "column 5"},
        "5": {"id": "5", "v": "new 5", "w": "column 5"},
    }
    assert sorted(_rows(lines)) == ["1", "2", "3", "4", "5"]
    for table in (orders, lines):
        user = _commits(table)[0][0]
        assert _commits(table) == [(user, identifier) for identifier in range(1, 6)]
        written = [each for each in table.snapshots() if each.commit_kind == "APPEND"]
        assert len({frozenset(each.properties or ()) for each in written}) == 1  # under the same names as before
        assert table.check(deep=True) == []
    told = [tuple(row.values()) for row in orders.changes().to_pylist()]
    assert [row[2] for row in told if row[0] == "+I" and row[1] != "0"] == [f"new {number}" for number in range(1, 6)]
