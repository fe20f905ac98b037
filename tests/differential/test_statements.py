"""UPDATE, DELETE and MERGE change the same and say the same with and without a Spark session."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.differential.statements import random_statement, random_table
from tests.thinning import thinned

import lakebed
from lakebed.errors import LakebedError, Unsupported
from lakebed.expressions.nodes import NotProven
from lakebed.sql.change import target_rows

_DEFAULT, _NIGHTLY, _STATEMENTS = 5, 200, 3

_COLUMNS = "id INT, p STRING, v BIGINT, s STRING, d DECIMAL(8, 2), at TIMESTAMP(9)"
_KEY = "PRIMARY KEY (id) NOT ENFORCED"
TABLES = {
    "deduplicate": f"({_COLUMNS}, {_KEY})",
    "partial-update": f"({_COLUMNS}, {_KEY}) WITH ('merge-engine' = 'partial-update')",
    "aggregation": f"({_COLUMNS}, {_KEY}) WITH ('merge-engine' = 'aggregation', "
    "'fields.v.aggregate-function' = 'sum', 'bucket' = '1')",
    "first row": f"({_COLUMNS}, {_KEY}) WITH ('merge-engine' = 'first-row', 'changelog-producer' = 'lookup')",
    "told": f"({_COLUMNS}, {_KEY}) WITH ('changelog-producer' = 'lookup', 'deletion-vectors.enabled' = 'true')",
    "postponed": f"({_COLUMNS}, {_KEY}) WITH ('bucket' = '-2')",
    "partitioned": f"({_COLUMNS}, PRIMARY KEY (p, id) NOT ENFORCED) PARTITIONED BY (p) WITH ('bucket' = '2')",
    "sequenced, write-only": f"({_COLUMNS}, {_KEY}) WITH ('sequence.field' = 'v', 'write-only' = 'true')",
    "plain": f"({_COLUMNS})",
    "plain, partitioned": f"({_COLUMNS}) PARTITIONED BY (p)",
    "marked": f"({_COLUMNS}) WITH ('deletion-vectors.enabled' = 'true')",
    "tracked": f"({_COLUMNS}) WITH ('row-tracking.enabled' = 'true')",
    "evolving": f"({_COLUMNS}) WITH ('row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', "
    "'deletion-vectors.enabled' = 'true')",
}
STATEMENTS = {
    "update": "UPDATE t SET v = v * 2, s = 'new' WHERE id <= 2",
    "update to null": "UPDATE t SET s = NULL, d = id / 7 WHERE v > 5",
    "update by a query": "UPDATE t SET v = (SELECT max(k) FROM f) WHERE id IN (SELECT k FROM f)",
    "move": "UPDATE t SET p = 'c' WHERE id = 1",
    "delete": "DELETE FROM t WHERE v IS NULL OR s = 'a'",
    "delete a partition": "DELETE FROM t WHERE p = 'a'",
    "delete by a query": "DELETE FROM t AS o WHERE EXISTS (SELECT 1 FROM f WHERE f.k = o.id)",
    "delete all": "DELETE FROM t",
    "delete nothing": "DELETE FROM t WHERE id = 77",
    "merge": "MERGE INTO t USING f ON t.id = f.k WHEN MATCHED THEN UPDATE SET v = f.v, s = f.s "
    "WHEN NOT MATCHED THEN INSERT (id, p, v, s) VALUES (k, 'b', v, s)",
    "merge with conditions": "MERGE INTO t USING (SELECT * FROM f WHERE k > 0) AS g ON t.id = g.k "
    "WHEN MATCHED AND g.v > 15 THEN UPDATE SET v = g.v + t.v WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED AND g.v IS NOT NULL THEN INSERT (id, p) VALUES (k, 'a')",
    "merge all": "MERGE INTO t USING f ON t.id = f.k WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id, p, at) VALUES (k, 'a', TIMESTAMP_NTZ '2024-05-14 13:45:00.123456') "
    "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN UPDATE SET s = 'left'",
    "merge itself": "MERGE INTO t USING (SELECT id AS k, max(v) AS m FROM t GROUP BY id) AS g ON t.id = g.k "
    "WHEN MATCHED THEN UPDATE SET v = m + 1",
    "two rows for one": "MERGE INTO t USING (SELECT k % 2 + 1 AS k, v FROM f) AS f ON t.id = f.k "
    "WHEN MATCHED THEN UPDATE SET v = f.v",
    "update a key": "UPDATE t SET id = 5",
    "too large": "UPDATE t SET d = v * 100000000",
    "no number": "UPDATE t SET v = s WHERE id = 1",
    "no column": "UPDATE t SET nope = 1",
}
_EXACT = ("two rows for one", "update a key", "no number", "no column")
"""Statements whose errors are said in the same words."""


def _make(lake: lakebed.Lake, table: str) -> None:
    lake.sql(f"CREATE TABLE t {TABLES[table]}")
    moment = "TIMESTAMP '2024-05-14 13:45:00.123456'"
    lake.sql(f"INSERT INTO t VALUES (1, 'a', 10, 'a', 1.50, {moment}), (2, 'b', NULL, NULL, NULL, NULL)")
    lake.sql("INSERT INTO t VALUES (2, 'b', 7, 'x', 2.25, NULL), (3, 'a', 30, 'b', NULL, NULL)")
    lake.sql("CREATE TABLE f (k INT, v BIGINT, s STRING)")
    lake.sql("INSERT INTO f VALUES (2, 20, 'two'), (3, 3, NULL), (4, NULL, 'four'), (5, 50, 'five')")


def _state(lake: lakebed.Lake) -> tuple[Any, ...]:
    table = lake.table("t")
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    rows = sorted(map(str, table.to_arrow().to_pylist()))
    return rows, _told(table), kinds


def _told(table: lakebed.Table) -> Counter[str] | None:
    if not table.snapshots():
        return Counter()
    try:
        return Counter(map(str, table.changes(since=0).to_pylist()))
    except Unsupported:
        return None  # there are no changes of parts of rows


def _outcome(lake: lakebed.Lake, statement: str) -> tuple[str, str] | None:
    try:
        lake.sql(statement)
    except LakebedError as error:
        return type(error).__name__, error.message
    return None


@pytest.mark.parametrize(
    ("table", "statement"),
    thinned(itertools.product(TABLES, STATEMENTS), lambda table, statement: [table, statement]),
)
def test_statements_do_the_same(table: str, statement: str, tmp_path: Path, spark: Any) -> None:
    """Rows, changes, kinds of commits and errors are those of Spark, and the one lake has started no session."""
    alone, beside = lakebed.connect(tmp_path / "alone"), lakebed.connect(tmp_path / "beside", spark)
    for lake in (alone, beside):
        _make(lake, table)
    outcomes = [_outcome(lake, STATEMENTS[statement]) for lake in (alone, beside)]
    assert _state(alone) == _state(beside), outcomes
    first, second = outcomes
    assert first == second if statement in _EXACT else (first and first[0]) == (second and second[0])
    assert not alone.is_spark_started


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < _DEFAULT else pytest.mark.nightly) for seed in range(_NIGHTLY)]
)
def test_random_statements_do_the_same(seed: int, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of random statements on random tables, one after the other, wherever they are carried out here."""
    unproven: list[NotProven] = []
    monkeypatch.setattr(target_rows, "leave_to_spark", unproven.append)
    draw = random.Random(seed)
    made = random_table(draw)
    made.make(lakebed.connect(tmp_path / "alone"))
    beside = lakebed.connect(tmp_path / "beside", spark)
    made.make(beside)
    for _ in range(_STATEMENTS):
        statement = random_statement(draw, made)
        alone = lakebed.connect(tmp_path / "alone")
        outcomes = _outcome(alone, statement), _outcome(beside, statement)
        assert _state(alone) == _state(beside), f"{made.text}\n{statement}\n{outcomes}"
        kind = [None if each is None else each[0] for each in outcomes]
        assert kind[0] == kind[1], f"{made.text}\n{statement}\n{outcomes}"
    assert len(unproven) < _STATEMENTS, unproven
