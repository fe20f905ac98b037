"""Rows that are looked for by their keys are those that a read of the whole table gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.views.histories import History
from tests.views.judging import difference
from tests.views.queries import FOLLOWED

from lakebed.read.lookup import KeyLookup
from lakebed.views import found_rows


@pytest.mark.parametrize("producer", ["lookup", "none"])
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
