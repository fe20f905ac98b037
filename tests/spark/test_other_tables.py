"""Tables of other systems in queries of a Spark session: the same rows as without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import Unsupported

pytestmark = pytest.mark.spark


def test_a_session_reads_what_this_process_reads(spark: Any, tmp_path: Path) -> None:
    """Computed columns, aliases, joins, names with a database, CTEs and INSERTs; endless rows are refused."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,a\n2,b\n")
    alone = lakebed.connect(tmp_path / "alone")
    beside = lakebed.connect(tmp_path / "beside", spark=spark)
    assert beside.spark is spark
    definitions = (
        "CREATE TABLE f (id INT, n STRING, up AS upper(n)) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/in', 'format' = 'csv'); "
        "CREATE TEMPORARY TABLE g (id BIGINT, v INT) WITH ('connector' = 'datagen', "
        "'number-of-rows' = '4', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '4'); "
        "CREATE TEMPORARY TABLE e (id BIGINT) WITH ('connector' = 'datagen'); CREATE TABLE t (id BIGINT, n STRING)"
    )
    queries = (
        "SELECT * FROM f ORDER BY id",
        "SELECT x.up, g.v FROM default.f AS x JOIN g ON g.id = x.id ORDER BY 1",
        "WITH f AS (SELECT 7 AS id) SELECT * FROM f",
        "SELECT count(*), max(f.up) FROM f WHERE f.id IN (SELECT id FROM g)",
    )
    answers = []
    for lake in (alone, beside):
        lake.sql(definitions)
        lake.sql("INSERT INTO t SELECT id, up FROM f")
        found = [[tuple(row) for row in lake.sql(query).collect()] for query in queries]
        answers.append([*found, sorted(map(tuple, lake.sql("SELECT * FROM t").collect()))])
        with pytest.raises(Unsupported, match=r"`default\.e`"):
            lake.sql("SELECT * FROM e").collect()
    assert answers[0] == answers[1]
    assert answers[0][0] == [(1, "a", "A"), (2, "b", "B")]
