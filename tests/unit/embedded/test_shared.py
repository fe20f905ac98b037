"""Groups that a query names twice: DuckDB is told to compute them once, and the rows are the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lakebed
from lakebed.embedded import shared
from lakebed.sql.query.embedded import bound_text, planned
from lakebed.sql.query.pins import Pins

TOTALS = "WITH totals AS (SELECT k, sum(v) AS s FROM t WHERE v > 1 GROUP BY k)"
ONCE = {
    "side by side": f"{TOTALS} SELECT a.k, b.s FROM totals a JOIN totals b ON a.s = b.s ORDER BY 1, 2",
    "one in a subquery": f"{TOTALS} SELECT k FROM totals WHERE s = (SELECT max(s) FROM totals)",
    "other columns of it": f"{TOTALS} SELECT k, 0 FROM totals UNION ALL SELECT 0, s FROM totals",
    "other filters over it": f"{TOTALS} SELECT k FROM totals WHERE k = 1 UNION ALL SELECT s FROM totals WHERE k = 2",
    "a group of groups": f"{TOTALS}, many AS (SELECT s, count(*) AS n FROM totals GROUP BY s) "
    "SELECT a.s, b.n FROM many a, many b ORDER BY 1, 2",
    "a text like the name of a column": "WITH x AS (SELECT k, max('c1') AS c FROM t GROUP BY k) "
    "SELECT a.k, b.c FROM x a JOIN x b ON a.k = b.k",
}
EACH_TIME = {
    "once": f"{TOTALS} SELECT * FROM totals",
    "no group": "WITH few AS (SELECT k FROM t WHERE v > 2) SELECT a.k FROM few a JOIN few b ON a.k = b.k",
    "groups of other rows": "SELECT (SELECT max(v) FROM t WHERE k = 1), (SELECT max(v) FROM t WHERE k = 2)",
    "groups of the same rows in other words": "SELECT (SELECT max(v) FROM t), (SELECT max(v) FROM t)",
    "groups of a row around them": "SELECT k, (SELECT max(v) FROM t b WHERE b.k = a.k), "
    "(SELECT max(v) FROM t b WHERE b.k = a.k) FROM t a",
    "texts like names of columns": "SELECT (SELECT max('c1') FROM t), (SELECT max('c2') FROM t)",
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> lakebed.Lake:
    lake = lakebed.connect(tmp_path_factory.mktemp("lake"))
    lake.create_table("t", pa.table({"k": [1, 1, 2, 2, 3, 3, 4], "v": [1, 2, 3, 4, 5, 2, None]}))
    return lake


def _told(lake: lakebed.Lake, query: str) -> str:
    return planned(lake, bound_text(lake, query, Pins())).text()


def _rows(lake: lakebed.Lake, query: str) -> list[str]:
    return sorted(map(repr, lake.query(query, engine="duckdb").fetchall()))


@pytest.mark.parametrize("name", [*ONCE, *EACH_TIME])
def test_rows_are_the_same(lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What is computed once gives the rows of what is computed each time."""
    query = (ONCE | EACH_TIME)[name]
    found = _rows(lake, query)
    monkeypatch.setattr(shared, "_shared", lambda _: [])
    assert found == _rows(lake, query)
    assert found


@pytest.mark.parametrize("name", ONCE)
def test_a_group_that_is_named_twice_is_computed_once(lake: lakebed.Lake, name: str) -> None:
    """It stands in front of the query, and nowhere else."""
    text = _told(lake, ONCE[name])
    assert "AS MATERIALIZED" in text
    assert text.count("GROUP BY") == ONCE[name].count("GROUP BY")


@pytest.mark.parametrize("name", EACH_TIME)
def test_other_groups_stay_where_they_are(lake: lakebed.Lake, name: str) -> None:
    """Groups that differ in a word, or in the row that they are computed for, are not taken for one another."""
    assert "MATERIALIZED" not in _told(lake, EACH_TIME[name])
