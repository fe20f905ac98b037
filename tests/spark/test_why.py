"""`t$why` through Spark: a filter that names keys gives their stored versions."""

from __future__ import annotations

import pyarrow as pa

import lakebed


def test_versions_of_a_key(lake: lakebed.Lake) -> None:
    """The same rows as in this process, joined and grouped as any table of Spark."""
    table = lake.create_table("t", {"id": "BIGINT", "a": "INT"}, primary_key=["id"], options={"bucket": "1"})
    for value in (1, 5):
        table.write(pa.table({"id": [1, 2], "a": [value, value]}, schema=table.arrow_schema))
    told = lake.sql("SELECT _version, _kind, _state, a, _roles['a'] AS role FROM t$why WHERE id = 1 ORDER BY _version")
    rows = [tuple(row) for row in told.collect()]
    assert [row[:4] for row in rows] == [(1, "+I", "merged", 1), (2, "+I", "merged", 5)]
    assert rows[1][4] == "its value is shown"
    here = lake.query("SELECT _version, _kind, _state, a FROM t$why WHERE id = 1 ORDER BY _version").fetchall()
    assert [row[:4] for row in rows] == [tuple(row) for row in here]
    counted = lake.sql("SELECT id, count(*) AS n FROM t$why WHERE id IN (1, 2) GROUP BY id ORDER BY id").collect()
    assert [(row["id"], row["n"]) for row in counted] == [(1, 2), (2, 2)]
