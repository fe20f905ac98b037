"""Rows that are looked for by their keys are those that a read of the whole table gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.thinning import by_day
from tests.views.histories import History
from tests.views.judging import difference
from tests.views.queries import FOLLOWED

from lakebed.read.keyed_reader import lookup_store
from lakebed.read.lookup import KeyLookup
from lakebed.read.value_lookup import ValueLookup
from lakebed.table.opened import opened_of
from lakebed.views import found_rows
from lakebed.views.lake_in import remembering


@pytest.mark.parametrize("producer", by_day(["lookup", "none"], "lookup"))
def test_rows_found_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, producer: str) -> None:
    """With a search for every key the views are what their queries give, and searches there are."""
    monkeypatch.setattr(found_rows, "_FEWEST_ROWS", 0)
    monkeypatch.setattr(found_rows, "_SHARE", 0)
    searched: list[str] = []
    find = KeyLookup.find
    monkeypatch.setattr(KeyLookup, "find", lambda self, keys: (searched.append(self.context.name), find(self, keys))[1])
    history = History(str(tmp_path), producer, seed=11)
    history.fill()
    lake = history.lake
    chosen = ["inner join", "left join", "three tables", "self left join", "left then where", "join and group", "in"]
    for number, name in enumerate(chosen):
        lake.materialize(f"v{number}", FOLLOWED[name], policy="incremental")
    for _ in range(4):
        history.happen()
        for number, name in enumerate(chosen):
            done = lake.refresh(f"v{number}")
            assert done.way in ("incremental", "none"), done
            assert difference(lake, f"v{number}", FOLLOWED[name]) is None, name
    assert "default.customers" in searched


def test_rows_found_by_the_first_columns_of_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join with a part of a key searches for that part, whichever side changed, and nothing else comes out."""
    monkeypatch.setattr(found_rows, "_FEWEST_ROWS", 0)
    monkeypatch.setattr(found_rows, "_SHARE", 0)
    searched: list[tuple[str, ...]] = []
    rows = ValueLookup.rows

    def noted(self: ValueLookup, values: Any) -> Any:
        searched.append(tuple(field.name for field in self.by))
        return rows(self, values)

    monkeypatch.setattr(ValueLookup, "rows", noted)
    history = History(str(tmp_path), "lookup", seed=5)
    history.fill()
    query = "SELECT o.id, s.b, s.v FROM orders o JOIN stock s ON o.cust = s.a AND o.amount = s.v"
    history.lake.materialize("v", query, policy="incremental")
    for _ in range(6):
        history.happen()
        assert history.lake.refresh("v").way in ("incremental", "none")
        assert difference(history.lake, "v", query) is None
    assert ("a",) in searched


def test_what_is_known_of_files_outlives_a_refresh(tmp_path: Path) -> None:
    """The next refresh in a process has the copies of files that the one before has made; a new table begins anew."""
    lake = History(str(tmp_path), "lookup", seed=5).lake
    first = opened_of(remembering(lake, lake["orders"])).context
    store = lookup_store(first)
    second = opened_of(remembering(lake, lake["orders"])).context
    assert second.memory is not first.memory
    assert lookup_store(second) is store
    lake.drop_table("orders")
    lake.create_table("orders", {"id": "INT NOT NULL"}, primary_key=["id"])
    assert lookup_store(opened_of(remembering(lake, lake["orders"])).context) is not store
