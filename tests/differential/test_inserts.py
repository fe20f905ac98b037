"""INSERT ... SELECT and CREATE TABLE AS SELECT store the same rows with and without a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed

SETUP = """
CREATE TABLE a (
    id BIGINT NOT NULL, i INT, s STRING, d DECIMAL(10, 2), x DOUBLE, t TIMESTAMP(6), PRIMARY KEY (id) NOT ENFORCED
);
INSERT INTO a VALUES (1, 10, 'x', 1.50, 0.25, TIMESTAMP '2024-05-14 13:45:00'), (2, NULL, 'ß', -2.50, NULL, NULL);
CREATE TABLE b (id BIGINT, s STRING, n INT) PARTITIONED BY (n);
CREATE TABLE c (id BIGINT NOT NULL, total BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'merge-engine' = 'aggregation', 'fields.total.aggregate-function' = 'sum')
"""
STATEMENTS = [
    "INSERT INTO b SELECT id, upper(s), 7 FROM a",
    "INSERT INTO b PARTITION (n = 9) SELECT id, s FROM a WHERE id > 1",
    "INSERT OVERWRITE b PARTITION (n = 9) SELECT id + 10, s FROM a",
    "INSERT INTO b (s, id) SELECT s, i FROM a",
    "INSERT INTO b BY NAME SELECT 3 AS n, 'z' AS s",
    "INSERT INTO c SELECT id, sum(i) FROM a GROUP BY id",
    "INSERT INTO c SELECT id, count(*) FROM a GROUP BY id",
    "INSERT INTO b VALUES (1 + 1, concat('a', 'b'), 4)",
    "CREATE TABLE e AS SELECT id, s, d * 2 AS dd, t, x / 3 AS third, i IS NULL AS gone FROM a",
    "INSERT INTO b SELECT * FROM b",
]
REFUSED = [
    "INSERT INTO b SELECT id, s FROM a",
    "INSERT INTO b (id, nope) SELECT id, s FROM a",
    "INSERT INTO a (id, s) SELECT nullif(id, 1), s FROM a",
    "INSERT INTO b SELECT id, s, i / (i - 10) FROM a",
]


def _lake(path: Path, spark: Any = None) -> lakebed.Lake:
    lake = lakebed.connect(path, spark=spark)
    lake.sql(SETUP)
    return lake


def _state(lake: lakebed.Lake) -> dict[str, Any]:
    tables = {name: lake.table(name) for name in lake.tables()}
    return {
        name: (str(table.schema.fields), sorted(map(str, table.to_arrow().to_pylist())))
        for name, table in tables.items()
    }


def test_the_same_is_stored(tmp_path: Path, spark: Any) -> None:
    """After every statement tables have the same columns and rows, and the one lake has started no Spark."""
    alone, beside = _lake(tmp_path / "alone"), _lake(tmp_path / "beside", spark)
    for statement in STATEMENTS:
        alone.sql(statement)
        beside.sql(statement)
        assert _state(alone) == _state(beside), statement
    assert not alone.is_spark_started


@pytest.mark.parametrize("statement", REFUSED)
def test_the_same_is_refused(tmp_path: Path, spark: Any, statement: str) -> None:
    """What can not be stored is refused with and without a session, and changes nothing."""
    for lake in (_lake(tmp_path / "alone"), _lake(tmp_path / "beside", spark)):
        before = _state(lake)
        with pytest.raises(lakebed.errors.LakebedError):
            lake.sql(statement)
        assert _state(lake) == before
