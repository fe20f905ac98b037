"""Materialized tables and Spark: it recomputes what was followed, and computes what only it can."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.thinning import by_day
from tests.views.histories import History
from tests.views.judging import bag, difference, folded
from tests.views.queries import COMPUTED, FOLLOWED

import lakebed
from lakebed.lake import Lake
from lakebed.views import refresh
from lakebed.views.store import definition_of

pytestmark = pytest.mark.spark

_QUERIES = {**FOLLOWED, **COMPUTED}


def _compared(path: Path, spark: Any, chosen: list[str], producer: str, rounds: int) -> None:
    """Follows changes without a session, and asks Spark for the same rows."""
    history = History(str(path), producer, seed=7)
    lake, other = history.lake, lakebed.connect(str(path), spark=spark)
    history.fill()
    names = {name: f"v{number}" for number, name in enumerate(chosen)}
    for name, view in names.items():
        lake.materialize(view, _QUERIES[name], policy="incremental")
    for _ in range(rounds):
        history.happen()
        for view in names.values():
            lake.refresh(view)
    for name, view in names.items():
        wrong = difference(other, view, _QUERIES[name], engine="spark")
        assert wrong is None, f"{name}: {wrong}"


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=() if part == 0 else pytest.mark.nightly) for part in range(8)]
)
def test_what_was_followed_is_what_spark_computes(tmp_path: Path, spark: Any, part: int) -> None:
    """The other engine computes each query from scratch, and gives the rows and types that are stored."""
    _compared(tmp_path, spark, list(_QUERIES)[part::8], "lookup", 3)


@pytest.fixture
def lake(tmp_path: Path, spark: Any) -> Lake:
    """A table with a key, on a session."""
    found = lakebed.connect(str(tmp_path), spark=spark)
    found.create_table("t", {"id": "INT NOT NULL", "g": "INT"}, primary_key=["id"], options={"bucket": "1"})
    found["t"].write([{"id": 1, "g": 1}, {"id": 2, "g": 1}, {"id": 3, "g": 2}])
    return found


def test_what_only_spark_answers_is_computed_there(lake: Lake) -> None:
    """The difference is written, the reason is told, and equal rows are kept apart."""
    query = "SELECT soundex(CAST(g AS STRING)) AS s, power(g, 3) AS p FROM t"
    made = lake.materialize("v", query)
    assert made is not None
    assert made.way == "full"
    lake["t"].write([{"id": 2, "g": 5}, {"id": 4, "g": 2}])
    done = lake.refresh("v")
    assert (done.way, done.inserted, done.deleted) == ("full", 2, 1)
    assert "only Spark answers the query" in done.reason
    assert difference(lake, "v", query, engine="spark") is None
    assert folded(lake, "v") is None
    assert "by Spark" in lake.explain("v")


def test_a_key_of_what_spark_computes_is_checked(lake: Lake) -> None:
    """A key that the user names is taken, and rows that share it are refused."""
    query = "SELECT id, power(g, 3) AS p FROM t"
    lake.materialize("v", query, primary_key=["id"])
    lake["t"].write([{"id": 1, "g": 7}])
    assert lake.refresh("v").updated == 1
    lake["t"].write([{"id": 4, "g": 2}])
    with pytest.raises(lakebed.errors.InvalidData, match="two rows of the query have the key"):
        lake.materialize("w", "SELECT g, power(g, 3) AS p FROM t", primary_key=["g"])
    assert not lake.has_table("w")


def test_a_refresh_beside_a_session_shows_in_it(lake: Lake) -> None:
    """Columns that the table keeps for itself are not shown by Spark either."""
    lake.materialize("v", "SELECT g, count(*) AS n FROM t GROUP BY g", policy="incremental")
    lake["t"].write([{"id": 9, "g": 2}])
    assert lake.refresh("v").way == "incremental"
    frame = lake.sql("SELECT * FROM v ORDER BY g")
    assert frame.columns == ["g", "n"]
    assert [tuple(row) for row in frame.collect()] == [(1, 2), (2, 2)]


def _odd(number: int) -> dict[str, Any]:
    """A row with a bit of everything."""
    return {
        "id": number,
        "x": [-0.0, 0.0, float("nan"), 1.5, None][number % 5],
        "name": ["a", "Ä", "", None][number % 4],
        "d": Decimal(number) / 100,
        "m": [("k", number % 2)] if number % 3 else None,
        "l": [0.0 if number % 2 else -0.0],
        "at": dt.datetime(2024, 3, 31, 1, number % 60, tzinfo=dt.UTC),
    }


@pytest.mark.parametrize(
    "shape", by_day(["keyed", "hashed", "numbered", "partitioned", "grouped"], "keyed", "partitioned")
)
def test_large_ones_are_jobs_of_spark(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """What has too many rows for this process is computed, compared and written by tasks, and the same comes out."""
    lake = lakebed.connect(str(tmp_path), spark=spark)
    columns = {"id": "INT NOT NULL", "x": "DOUBLE", "name": "STRING", "d": "DECIMAL(9, 2)"}
    columns |= {"m": "MAP<STRING, INT>", "l": "ARRAY<DOUBLE>", "at": "TIMESTAMP_LTZ(6)"}
    lake.create_table("t", columns, primary_key=["id"], options={"bucket": "1", "changelog-producer": "lookup"})
    lake["t"].write([_odd(number) for number in range(30)])
    query, named = {
        "keyed": ("SELECT id, x, name, d, m, l, at FROM t", {"options": {"bucket": "2"}}),
        "hashed": ("SELECT name, count(DISTINCT id) AS n FROM t GROUP BY name", {}),
        "numbered": ("SELECT x, name FROM t UNION ALL SELECT x, name FROM t", {}),
        "partitioned": ("SELECT id, id % 3 AS p, x FROM t", {"partition_by": ["p"]}),
        "grouped": ("SELECT id % 7 AS g, max(d) AS d FROM t GROUP BY id % 7", {}),
    }[shape]
    lake.materialize("v", query, **named)
    monkeypatch.setenv("LAKEBED_VIEW_ROWS", "10")
    monkeypatch.setattr(refresh.Refresh, "_everything", None)
    monkeypatch.setattr(refresh.Refresh, "_commit", None)
    lake.materialize("w", query, **named)
    assert "by Spark" in (lake.materialized("w").reason or "")
    assert "everything: by Spark (30 rows are more than 10)" in lake.explain("w")
    lake["t"].write([_odd(number + 1) | {"id": number} for number in range(0, 9, 2)])
    lake["t"].write([{**_odd(number), "kind": "-D"} for number in (20, 21)], row_kind="kind")
    lake["t"].write([_odd(number) for number in (50, 51)])
    done = lake.refresh("w", full=True)
    assert (done.way, done.reason.startswith("it was asked for; by Spark: ")) == ("full", True)
    monkeypatch.undo()
    expected = lake.refresh("v", full=True)
    assert (done.inserted, done.updated, done.deleted) == (expected.inserted, expected.updated, expected.deleted)
    names = lake["v"].schema.field_names
    assert bag(lake["w"].to_arrow(names)) == bag(lake["v"].to_arrow(names)), "down to hashes, numbers and signs of zero"
    assert difference(lake, "w", query, engine="spark") is None
    assert folded(lake, "w") is None
    lake["t"].write([_odd(number + 3) | {"id": number} for number in (1, 51)])
    assert lake.alter_materialized("w", policy="incremental") is None
    assert lake.refresh("w").way == "incremental", "what Spark has written is followed here"
    assert difference(lake, "w", query) is None


def test_of_two_refreshes_by_spark_one_counts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that began with the same state as another is dropped, whoever computes it."""
    query = "SELECT id, power(g, 3) AS p FROM t"
    lake.materialize("v", query, primary_key=["id"])
    lake["t"].write([{"id": 2, "g": 5}, {"id": 4, "g": 2}])
    late = refresh.Refresh(lake, lake["v"], definition_of(lake["v"]))
    assert lake.refresh("v").inserted == 1
    assert late.run(full=False).reason == "another refresh was first"
    assert folded(lake, "v") is None
    assert difference(lake, "v", query, engine="spark") is None


def test_what_keeps_columns_beside_is_computed_here(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums to which changes are added are no columns of the query, so Spark is not asked, and the reason says so."""
    monkeypatch.setenv("LAKEBED_VIEW_ROWS", "1")
    done = lake.materialize("v", "SELECT g, sum(id) AS s FROM t GROUP BY g")
    assert done is not None
    assert "everything: in this process: it keeps columns of its own (3 rows are more than 1)" in lake.explain("v")
    assert done.reason == "it is the first refresh; not by Spark: it keeps columns of its own"
    monkeypatch.setenv("LAKEBED_VIEW_ROWS", "many")
    with pytest.raises(lakebed.errors.InvalidOption, match="is no number of rows"):
        lake.refresh("v", full=True)
