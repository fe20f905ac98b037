"""The words of statements about materialized tables, in both spellings, and what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.lake import Lake
from lakebed.sql.parse import parse
from lakebed.sql.statements import (
    AlterMaterialized,
    CreateMaterialized,
    DropMaterialized,
    ExplainMaterialized,
    RefreshMaterialized,
    ShowCreateMaterialized,
    ShowMaterialized,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table with a key."""
    found = lakebed.connect(str(tmp_path))
    found.sql("CREATE TABLE t (id BIGINT NOT NULL, g INT, a INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
    found.sql("INSERT INTO t VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7)")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CREATE MATERIALIZED TABLE IF NOT EXISTS db.v (PRIMARY KEY (id) NOT ENFORCED) COMMENT 'c' "
            "PARTITIONED BY (g) WITH ('bucket' = '2') FRESHNESS = INTERVAL '5' MINUTE REFRESH_MODE = FULL "
            "AS SELECT id, g FROM t",
            CreateMaterialized(
                "db.v",
                "SELECT id, g FROM t",
                ("id",),
                ("g",),
                {"bucket": "2"},
                "c",
                "5 minute",
                "full",
                if_not_exists=True,
            ),
        ),
        (
            "CREATE OR REPLACE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT SCHEDULE EVERY 2 HOURS "
            "AS SELECT 1 FROM t",
            CreateMaterialized("v", "SELECT 1 FROM t", freshness="2 hours", policy="incremental strict", replace=True),
        ),
        ("ALTER MATERIALIZED TABLE v SUSPEND", AlterMaterialized("v", "suspend")),
        ("ALTER MATERIALIZED TABLE v RESUME", AlterMaterialized("v", "resume")),
        ("ALTER MATERIALIZED TABLE v REFRESH", RefreshMaterialized("v")),
        ("ALTER MATERIALIZED TABLE v AS SELECT a FROM t", AlterMaterialized("v", "as", "SELECT a FROM t")),
        ("REFRESH MATERIALIZED VIEW v FULL", RefreshMaterialized("v", True)),
        ("DROP MATERIALIZED VIEW IF EXISTS v", DropMaterialized("v", True)),
        ("SHOW MATERIALIZED TABLES IN db LIKE 'a*'", ShowMaterialized("db", "a*")),
        ("SHOW MATERIALIZED VIEWS", ShowMaterialized()),
        ("SHOW CREATE MATERIALIZED VIEW v", ShowCreateMaterialized("v")),
        (
            "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT a FROM t",
            ExplainMaterialized(CreateMaterialized("v", "SELECT a FROM t")),
        ),
    ],
)
def test_statements_are_read(text: str, expected: object) -> None:
    """Each says what its words say."""
    assert parse(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE MATERIALIZED TABLE v (id INT) AS SELECT 1",
        "CREATE MATERIALIZED TABLE v REFRESH_MODE = NEVER AS SELECT 1",
        "ALTER MATERIALIZED TABLE v FASTER",
        "CREATE MATERIALIZED THING v AS SELECT 1",
    ],
)
def test_statements_that_are_wrong(text: str) -> None:
    """The place is pointed at."""
    with pytest.raises(InvalidArgument, match="SQL syntax"):
        parse(text)


def test_a_life_in_statements(lake: Lake) -> None:
    """Created, shown, refreshed, given another query, suspended, dropped."""
    made = lake.sql("CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS SELECT g, sum(a) AS s FROM t GROUP BY g")
    assert made.collect()[0]["way"] == "full"
    lake.sql("INSERT INTO t VALUES (4, 2, 1)")
    done = lake.sql("REFRESH MATERIALIZED VIEW v").collect()[0]
    assert (done["way"], done["updated"]) == ("incremental", 1)
    assert sorted(lake.query("SELECT * FROM v").fetchall()) == [(1, 11), (2, 8)]
    shown = lake.sql("SHOW MATERIALIZED TABLES").collect()
    assert [(row["tableName"], row["policy"], row["status"]) for row in shown] == [("v", "incremental", "active")]
    text = lake.sql("SHOW CREATE MATERIALIZED VIEW v").collect()[0][0]
    lake.sql("ALTER MATERIALIZED TABLE v SUSPEND")
    assert lake.materialized("v").is_suspended
    lake.sql("ALTER MATERIALIZED TABLE v AS SELECT g, max(a) AS m FROM t GROUP BY g")
    assert sorted(lake.query("SELECT * FROM v").fetchall()) == [(1, 6), (2, 7)]
    assert lake.tables() == ["t", "v"]
    lake.sql("DROP MATERIALIZED VIEW v")
    lake.sql(text)
    assert sorted(lake.query("SELECT * FROM v").fetchall()) == [(1, 11), (2, 8)]
    lake.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT id FROM t")
    lake.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM t WHERE a > 5")
    assert sorted(lake.query("SELECT * FROM v").fetchall()) == [(2,), (3,)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO v VALUES (1, 1)",
        "UPDATE v SET s = 1",
        "DELETE FROM v WHERE g = 1",
        "TRUNCATE TABLE v",
        "ALTER TABLE v ADD COLUMN z INT",
        "ALTER TABLE v SET ('lakebed.view.query' = 'SELECT 1')",
        "ALTER TABLE t SET ('lakebed.view.query' = 'SELECT 1')",
        "DROP MATERIALIZED TABLE t",
        "REFRESH MATERIALIZED VIEW t",
    ],
)
def test_only_the_refresh_writes(lake: Lake, text: str) -> None:
    """Whatever else would change the rows or columns is refused, and nothing changes."""
    lake.materialize("v", "SELECT g, sum(a) AS s FROM t GROUP BY g")
    before = lake.table("v").latest_snapshot()
    with pytest.raises(LakebedError):
        lake.sql(text)
    assert lake.table("v").latest_snapshot() == before
    assert lake.tables() == ["t", "v"]


@pytest.mark.parametrize(
    "function",
    ["rand()", "uuid()", "now()", "current_date", "current_timestamp()", "current_user()", "unix_timestamp()"],
)
def test_functions_without_a_fixed_value_are_refused_by_name(lake: Lake, function: str) -> None:
    """They would give other rows at each refresh."""
    with pytest.raises(Unsupported, match=function.rstrip("()").split("(")[0]):
        lake.materialize("v", f"SELECT id, {function} AS x FROM t")
    assert not lake.has_table("v")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id, id FROM t", "two columns `id`"),
        ("SELECT id AS __key FROM t", "begins like"),
        ("SELECT NULL AS x, id FROM t", "has no type"),
        ("SELECT id FROM t VERSION AS OF 1", "fixed state"),
        ("SELECT snapshot_id FROM t$snapshots", "made of"),
        ("SELECT 1 AS x", "reads no table"),
    ],
)
def test_queries_that_can_not_be_kept(lake: Lake, query: str, said: str) -> None:
    """The error says why, and there is no table."""
    with pytest.raises(LakebedError, match=said):
        lake.materialize("v", query)
    assert lake.tables() == ["t"]


def test_a_key_that_is_not_known_to_be_one_is_refused(lake: Lake) -> None:
    """Or two rows of the query would be one of the table."""
    with pytest.raises(InvalidArgument, match="is not known to be a key"):
        lake.materialize("v", "SELECT g, a FROM t", primary_key=["g"])


def test_strict_is_refused_at_once_with_a_remedy(lake: Lake) -> None:
    """Not at the first refresh."""
    with pytest.raises(Unsupported, match="LIMIT") as raised:
        lake.materialize("v", "SELECT id FROM t LIMIT 2", policy="incremental strict")
    assert "row_number" in raised.value.hint


def test_explain_has_a_word_for_each_part(lake: Lake) -> None:
    """With what it reads and how."""
    text = lake.explain("SELECT g, max(s) AS m FROM (SELECT g, a, sum(id) AS s FROM t GROUP BY g, a) GROUP BY g")
    assert text.splitlines() == [
        "query: incremental, in this process",
        "key: g",
        "project              incremental    row by row",
        "  group by g         affected keys  groups with a change, replaced",
        "    project          incremental    row by row",
        "      group by g, a  affected keys  groups with a change, before and after",
        "        t            comparison     `changelog-producer` = `none` does not tell all: set `lookup`",
    ]
