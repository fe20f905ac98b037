"""Which names of a query are tables of the lake."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidArgument, NotFound
from lakebed.sql.parse import parse
from lakebed.sql.query.references import references


@pytest.fixture
def lake(tmp_path: Path) -> lakebed.Lake:
    """A lake with tables `t` and `u`, of which `t` has two snapshots."""
    lake = lakebed.connect(tmp_path)
    lake.sql("CREATE TABLE t (k INT); CREATE TABLE u (k INT); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
    return lake


def _names(lake: lakebed.Lake, query: str) -> list[str]:
    return [reference.name for reference in references(lake, parse(query)[0].sql)]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM t JOIN default.u ON TRUE", ["t", "default.u"]),
        ("SELECT * FROM paimon.default.t, `t$snapshots`", ["default.t", "t$snapshots"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("SELECT /*+ BROADCAST(a), MERGE(u) */ * FROM t a JOIN u ON TRUE", ["t", "u"]),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a, u) SELECT * FROM b, A", ["u"]),
        ("SELECT * FROM range(3), VALUES (1) AS v(x), t", ["t"]),
        ("SELECT * FROM (WITH u AS (SELECT 1) SELECT * FROM u) JOIN u ON TRUE", ["u"]),
        ("SELECT * FROM parquet.`/some/file`", []),
        ("SELECT (SELECT max(k) FROM u) FROM t WHERE k IN (SELECT k FROM `t$branch_main`)", None),
    ],
)
def test_names(lake: lakebed.Lake, query: str, names: list[str] | None) -> None:
    """Common table expressions hide tables only where they can be seen; functions and files are Spark's."""
    if names is None:
        with pytest.raises(InvalidArgument):
            _names(lake, query)
    else:
        assert _names(lake, query) == names


def _rows(lake: lakebed.Lake, relation: str) -> list[int]:
    (reference,) = references(lake, parse(f"SELECT * FROM {relation}")[0].sql)
    found: list[int] = sorted(reference.table.to_arrow().column("k").to_pylist())
    return found


@pytest.mark.parametrize(
    "relation",
    [
        "t VERSION AS OF 1",
        "t FOR SYSTEM_VERSION AS OF '1' AS x",
        "t /*+ OPTIONS('scan.snapshot-id' = '1') */",
        "paimon_incremental_query('t', '0', '1')",
        "paimon_incremental_query('`default`.`t`', 0, 1) AS x",
    ],
)
def test_the_past(lake: lakebed.Lake, relation: str) -> None:
    """Time travel, hints and table functions open the table at that point."""
    assert _rows(lake, relation) == [1]


def test_a_moment(lake: lakebed.Lake) -> None:
    """TIMESTAMP AS OF takes texts of the local zone and seconds."""
    first = lake.table("t").snapshots()[0].time_millis
    assert _rows(lake, "t TIMESTAMP AS OF '2099-01-01 00:00:00'") == [1, 2]
    assert _rows(lake, f"t TIMESTAMP AS OF {first // 1000 + 86400}") == [1, 2]
    with pytest.raises(NotFound, match="1900"):
        _rows(lake, "t FOR SYSTEM_TIME AS OF TIMESTAMP '1900-01-01 00:00:00'")


def test_settings_apply_to_reads(lake: lakebed.Lake) -> None:
    """What SET says holds for all references, and a hint before it."""
    lake.sql("SET spark.paimon.scan.snapshot-id = 1")
    assert _rows(lake, "t") == [1]
    lake.sql("RESET spark.paimon.scan.snapshot-id")
    assert _rows(lake, "t") == [1, 2]


def test_a_missing_table_is_named(lake: lakebed.Lake) -> None:
    """A name that is nobody's is an error of ours, with a suggestion."""
    with pytest.raises(NotFound, match=r"default\.tt"):
        _names(lake, "SELECT * FROM tt")


def test_wrong_arguments_of_a_function(lake: lakebed.Lake) -> None:
    """Too few arguments, or arguments that are no literals, are refused."""
    with pytest.raises(InvalidArgument, match="takes 3"):
        _names(lake, "SELECT * FROM paimon_incremental_query('t', '1')")
    with pytest.raises(InvalidArgument, match="no literal"):
        _names(lake, "SELECT * FROM paimon_incremental_query('t', 1 + 1, 2)")
