"""Operators and tables that keep the past: parked, copied anew, compared, and read as of one moment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.operators.test_parked import Office
from tests.cdc.operators.test_tools import followed

from lakebed.cdc.checkpoint import SyncRecord
from lakebed.cdc.verify import verify
from lakebed.errors import InvalidArgument

_LONG = "1" * 50
"""More digits than a decimal has."""
_FORMS = ("lk.a", "lk.a_changes", "lk.a_history")


@pytest.fixture
def office(database: Any, tmp_path: Path) -> Iterator[Office]:
    """A sync of a table that parks and keeps everything."""
    database.execute("CREATE TABLE a (id int PRIMARY KEY, v numeric)")
    database.execute("INSERT INTO a SELECT g, g FROM generate_series(1, 50) g")
    office = Office(database, tmp_path, past={"deletes": "mark", "audit": True, "history": True})
    yield office
    office.sync.stop()


def _live(office: Office) -> list[str]:
    there = office.database.query("SELECT id, v FROM a ORDER BY id")
    if not office.lake.has_table("lk.a") or not office.lake.has_table("lk.a_history"):
        return ["no tables"]
    live = [(row["id"], row["v"]) for row in office.rows("a") if row["deleted_at"] is None]
    current = [(row["id"], row["v"]) for row in office.rows("a_history") if row["is_current"]]
    return [] if live == current == there else [f"{len(live)} and {len(current)} rows instead of {len(there)}"]


def test_a_table_with_its_past_is_cured_compared_and_read_together(office: Office) -> None:
    """What parks one form parks all; a new copy brings all back; newest rows alone are compared."""
    assert not office.sync.catch_up(lambda: _live(office))
    office.database.execute("UPDATE a SET v = v + 1 WHERE id < 10", "DELETE FROM a WHERE id = 7")
    assert not office.sync.catch_up(lambda: _live(office))
    record = SyncRecord.read(str(office.place / "cp"))
    office.sync._dies = 0.0
    with followed(office):
        found = verify(office.lake, str(office.place / "warehouse"), record)
    assert [(each.table, each.differences) for each in found] == [("lk.a", [])]
    with pytest.raises(InvalidArgument, match="holds the past"):
        verify(office.lake, str(office.place / "warehouse"), record, ["a_history"])
    now = office.lake.consistent(*_FORMS)
    assert set(now.snapshots) == set(_FORMS)
    assert now.table("lk.a_changes").to_arrow().num_rows == 19
    assert now.table("lk.a_history").to_arrow().num_rows == 59

    office.database.execute(f"UPDATE a SET v = {_LONG} WHERE id = 3", "DELETE FROM a WHERE id = 8")
    assert not office.sync.catch_up(lambda: [] if set(_FORMS) <= set(office.parked()) else ["not parked"])
    office.database.execute("UPDATE a SET v = 33 WHERE id = 3", "INSERT INTO a VALUES (8, 88)")
    office.resume("a")
    assert not office.sync.catch_up(lambda: [*_live(office), *office.parked()])
    history = office.lake.table("lk.a_history").to_arrow().to_pylist()
    of_three = sorted((row for row in history if row["id"] == 3), key=lambda row: row["row_version"])
    assert [row["v"] for row in of_three] == [3, 4, 33]
    assert all(row["valid_to"] == later["valid_from"] for row, later in itertools.pairwise(of_three))
    assert [row["deleted_at"] is None for row in office.rows("a") if row["id"] in (7, 8)] == [False, True]
