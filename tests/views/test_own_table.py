"""The table of a materialized table: nobody gives its rows another meaning, and none of them is lost to upkeep."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidOption
from lakebed.lake import Lake

_QUERY = "SELECT id, v, kind, at FROM t"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with rows."""
    found = lakebed.connect(str(tmp_path))
    columns = {"id": "INT NOT NULL", "v": "INT", "kind": "STRING", "at": "TIMESTAMP(3)"}
    found.create_table("t", columns, primary_key=["id"], options={"bucket": "1", "changelog-producer": "lookup"})
    found["t"].write([{"id": 1, "v": 1, "kind": "+I", "at": None}, {"id": 2, "v": 2, "kind": "-D", "at": None}])
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"ignore-delete": "true"},
        {"ignore-update-before": "true"},
        {"sequence.field": "v"},
        {"rowkind.field": "kind"},
        {"bucket": "-2"},
        {"changelog-producer.ignore-delete": "true"},
        {"record-level.expire-time": "1 d", "record-level.time-field": "at"},
        {"partition.expiration-time": "1 d"},
        {"fields.v.default-value": "7"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_give_rows_another_meaning(lake: Lake, options: dict[str, str]) -> None:
    """They are refused by name, at the creation as well as later, and change nothing."""
    option = next(iter(options))
    with pytest.raises(InvalidOption, match=f"`{option}` = "):
        lake.materialize("v", _QUERY, options=options)
    assert not lake.has_table("v")
    lake.materialize("v", _QUERY)
    before = lake["v"].options
    changes = [lakebed.SetOption(key, value) for key, value in options.items()]
    with pytest.raises(InvalidOption, match=option):
        lake["v"].alter(*changes)
    assert lake["v"].options == before


def test_its_changelog_stays_what_its_refresh_says(lake: Lake) -> None:
    """Other materialized tables follow it, so no other producer is set."""
    lake.materialize("v", _QUERY)
    with pytest.raises(InvalidOption, match="`changelog-producer` = `none`"):
        lake.sql("ALTER TABLE v SET ('changelog-producer' = 'none')")
    lake.sql("ALTER TABLE v SET ('snapshot.num-retained.max' = '30')")
