"""Materialized tables and Spark: it recomputes what was followed, and computes what only it can."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.views.histories import History
from tests.views.judging import difference, folded
from tests.views.queries import COMPUTED, FOLLOWED

import lakebed
from lakebed.lake import Lake

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
