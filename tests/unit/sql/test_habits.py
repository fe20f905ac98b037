"""Statements that people bring from Delta, Flink and databases: they work, or the error says what to type instead."""

from __future__ import annotations

import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.errors import InvalidArgument, NotFound, Unsupported
from lakebed.sql.parse import parse


@pytest.fixture
def shop(warehouse: Warehouse) -> Warehouse:
    """A keyed table with three snapshots, two of which overlap."""
    warehouse.lake.sql(
        "CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1');"
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO t VALUES (1, 'c'); INSERT INTO t VALUES (3, 'd')"
    )
    return warehouse


def shown(warehouse: Warehouse) -> dict[int, str]:
    """The rows of the table."""
    found = warehouse.reopened().table("t").to_arrow()
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


# --- Delta -----------------------------------------------------------------------------------------------------------


def test_optimize_compacts(shop: Warehouse) -> None:
    """OPTIMIZE merges the files; the rows are those of before."""
    before = shown(shop)
    assert shop.lake.sql("OPTIMIZE t").columns == ["result"]
    table = shop.reopened().table("t")
    assert str(table.snapshots()[-1].commit_kind) == "COMPACT"
    assert shop.lake.table("t$files").to_arrow().num_rows == 1
    assert shown(shop) == before
    with shop.refuses(NotFound, "`default.nope`"):
        shop.lake.sql("OPTIMIZE nope")


def test_optimize_some_partitions_and_in_an_order(warehouse: Warehouse) -> None:
    """WHERE chooses partitions, ZORDER BY sorts the rows."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE p (a INT, b INT, d STRING) PARTITIONED BY (d)")
    for _ in range(3):
        lake.sql("INSERT INTO p VALUES (1, 2, 'x'), (3, 4, 'y')")
    lake.sql("OPTIMIZE p WHERE d = 'x' ZORDER BY (a, b)")
    counts = [str(row) for row in lake.table("p$files").to_arrow(["partition"])["partition"].to_pylist()]
    assert sum("x" in row for row in counts) == 1
    assert sum("y" in row for row in counts) == 3
    assert not lake.is_spark_started


def test_restore_commits_an_earlier_state(shop: Warehouse) -> None:
    """RESTORE gives the rows of a version, a tag or a time back as a new snapshot; the later ones can still be read."""
    lake = shop.lake
    moment = lake.table("t").snapshots()[1].time_millis
    lake.table("t").create_tag("begin", 1)
    assert [tuple(row) for row in lake.sql("RESTORE TABLE t TO VERSION AS OF 1").collect()] == [(3, 1, 4)]
    assert shown(shop) == {1: "a", 2: "b"}
    lake.sql(f"RESTORE t TO TIMESTAMP AS OF {moment}")
    assert shown(shop) == {1: "c", 2: "b"}
    lake.sql("RESTORE TABLE default.t TO VERSION AS OF 'begin'")
    assert shown(shop) == {1: "a", 2: "b"}
    assert len(lake.table("t").snapshots()) == 6
    with shop.refuses(NotFound, "99"):
        lake.sql("RESTORE TABLE t TO VERSION AS OF 99")
    with shop.refuses(InvalidArgument, "expected VERSION or TIMESTAMP"):
        lake.sql("RESTORE TABLE t TO 1")


def test_describe_history_lists_snapshots(shop: Warehouse) -> None:
    """The newest first, with the columns of `t$snapshots`; LIMIT gives fewer. A table of that name can be described."""
    lake = shop.lake
    history = lake.sql("DESCRIBE HISTORY t")
    assert history.columns == lake.table("t$snapshots").arrow_schema.names
    assert history.toArrow()["snapshot_id"].to_pylist() == [3, 2, 1]
    assert lake.sql("DESC HISTORY default.t LIMIT 2").toArrow()["snapshot_id"].to_pylist() == [3, 2]
    lake.sql("CREATE TABLE history (id INT)")
    assert lake.sql("DESCRIBE history").toArrow()["col_name"].to_pylist() == ["id"]
    assert not lake.is_spark_started


def test_vacuum_removes_what_nothing_needs(shop: Warehouse) -> None:
    """Snapshots that are due and files of nobody go; young ones stay, and so do rows."""
    lake = shop.lake
    before = shown(shop)
    result = lake.sql("VACUUM t")
    assert result.columns == ["deleted_snapshots_count", "deletedFileCount", "deletedFileTotalLenInBytes"]
    assert [tuple(row) for row in result.collect()] == [(0, 0, 0)]
    lake.sql("ALTER TABLE t SET ('snapshot.num-retained.min' = '1', 'snapshot.num-retained.max' = '5')")
    assert lake.sql("VACUUM t RETAIN 0 HOURS").collect()[0][0] == 2
    assert shown(shop) == before
    with shop.refuses(Unsupported, "sys.remove_orphan_files(table => 't', dry_run => true)"):
        lake.sql("VACUUM t DRY RUN")


# --- Flink -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN STATEMENT SET; INSERT INTO t VALUES (7, 'x'); INSERT INTO t VALUES (8, 'y'); END",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (7, 'x'); INSERT INTO t VALUES (8, 'y'); END;",
        "STATEMENT SET BEGIN INSERT INTO t VALUES (7, 'x'); INSERT INTO t VALUES (8, 'y'); END;",
    ],
)
def test_a_statement_set_is_its_statements(shop: Warehouse, text: str) -> None:
    """One after another, each with a commit of its own, as Flink's are."""
    shop.lake.sql(text)
    assert shown(shop) == {1: "c", 2: "b", 3: "d", 7: "x", 8: "y"}
    kinds = [str(snapshot.commit_kind) for snapshot in shop.lake.table("t").snapshots()]
    assert kinds.count("APPEND") == 5


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN STATEMENT SET",
        "BEGIN STATEMENT SET; INSERT INTO t VALUES (7, 'x')",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (7, 'x')",
        "INSERT INTO t VALUES (7, 'x'); END",
        "BEGIN STATEMENT SET; DROP TABLE t; END",
        "BEGIN STATEMENT SET; BEGIN STATEMENT SET; INSERT INTO t VALUES (7, 'x'); END; END",
    ],
)
def test_half_a_statement_set_runs_nothing(shop: Warehouse, text: str) -> None:
    """It is given as one text, holds INSERTs only, and nothing of a wrong one is carried out."""
    with shop.refuses(InvalidArgument, "STATEMENT SET"):
        shop.lake.sql(text)


def test_sets_that_are_none(shop: Warehouse) -> None:
    """CASE ... END, and names like `end`, are what they were."""
    shop.lake.sql(
        "CREATE TABLE `end` (`begin` INT, `set` STRING); INSERT INTO `end` VALUES (1, 'END; BEGIN STATEMENT SET')"
    )
    assert shop.lake.table("end").to_arrow().to_pylist() == [{"begin": 1, "set": "END; BEGIN STATEMENT SET"}]


# --- what is refused by name -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("CONVERT TO DELTA parquet.`/data/x`", "CREATE TABLE t AS SELECT * FROM parquet.`/data/x`"),
        ("DESCRIBE DETAIL t", "DESCRIBE EXTENDED t"),
        ("COPY INTO t FROM '/data/x' FILEFORMAT = parquet", "INSERT INTO t SELECT * FROM parquet.`/data/x`"),
        ("REORG TABLE t APPLY (PURGE)", "OPTIMIZE t"),
        ("FSCK REPAIR TABLE t", "CALL sys.remove_unexisting_files(table => 't')"),
        ("CREATE TABLE u SHALLOW CLONE t", "CREATE TABLE u AS SELECT * FROM t"),
        ("CREATE TABLE u CLONE t", "CREATE TABLE u AS SELECT * FROM t"),
        ("CREATE TABLE u (id INT) USING delta", "leave USING out"),
        ("SELECT * FROM table_changes('t', 1, 3)", "paimon_incremental_query('t', 1, 3)"),
        ("CREATE VIEW v AS SELECT * FROM t", "CREATE TEMPORARY VIEW v AS"),
        ("CREATE OR REPLACE VIEW v AS SELECT * FROM t", "CREATE OR REPLACE TEMPORARY VIEW v AS"),
        ("CREATE VIEW v COMMENT 'x' AS SELECT id FROM default.t", "CREATE TEMPORARY VIEW v AS"),
        (
            "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), SUM(x) FROM t GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
            "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end",
        ),
        (
            "SELECT SUM(x) FROM t GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '1' HOUR)",
            "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR)",
        ),
        (
            "SELECT o.id FROM bystander AS o JOIN t FOR SYSTEM_TIME AS OF o.proctime AS c ON o.id = c.id",
            "leave `FOR SYSTEM_TIME AS OF o.proctime` out",
        ),
        ("CREATE TABLE c (id INT) WITH ('connector' = 'jdbc')", "CREATE TEMPORARY VIEW t USING jdbc OPTIONS"),
        ("CREATE TABLE c (id INT) WITH ('connector' = 'mariadb-cdc')", "`mysql-cdc`"),
        ("CREATE TABLE c (id INT) WITH ('connector' = 'hbase-2.2')", "`postgres-cdc`"),
        ("CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.acme.F'", "lake.spark.udf.register"),
        ("CREATE TEMPORARY FUNCTION f AS 'm.f' LANGUAGE PYTHON", "lake.spark.udf.register"),
        ("CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON", "lake.spark.udf.register"),
        ("SELECT * FROM t@v1", "VERSION AS OF 1"),
        ("SELECT id FROM t@v12, bystander", "VERSION AS OF 12"),
        ("SELECT * FROM delta.`/data/x`", "parquet.`/data/x`"),
        ("SHOW FULL TABLES", "SHOW TABLES"),
        ("STOP JOB 'x' WITH DRAIN", "STOP JOB 'x'"),
        ("SHOW MODULES", "leave it out"),
        ("LOAD MODULE hive", "leave it out"),
        ("SHOW JARS", "LIST JARS"),
        ("COMPILE PLAN 'x' FOR INSERT INTO t VALUES (1, 'a')", "EXPLAIN"),
        ("EXPLAIN CHANGELOG_MODE SELECT * FROM t", "EXPLAIN SELECT"),
        ("ALTER TABLE t COMPACT", "OPTIMIZE t"),
        ("ALTER TABLE default.t PARTITION (d = 'x') COMPACT", "OPTIMIZE default.t"),
        ("ALTER TABLE t EXECUTE optimize", "OPTIMIZE t"),
        ("UPSERT INTO t VALUES (1, 'a')", "INSERT INTO"),
        ("REPLACE INTO t VALUES (1, 'a')", "INSERT INTO"),
        ("INSERT INTO t VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET v = 'a'", "primary key"),
        ("INSERT INTO t VALUES (1, 'a') ON DUPLICATE KEY UPDATE v = 'a'", "primary key"),
        ("CREATE INDEX i ON t (v)", "`file-index.bloom-filter.columns`"),
        ("GRANT SELECT ON t TO somebody", "directory"),
        ("REVOKE SELECT ON t FROM somebody", "directory"),
        ("BEGIN TRANSACTION", "one statement"),
        ("BEGIN", "one statement"),
        ("START TRANSACTION", "one statement"),
        ("COMMIT", "one statement"),
        ("ROLLBACK", "RESTORE TABLE t TO VERSION AS OF"),
        ("SHOW SNAPSHOTS FROM t", "SELECT * FROM t$snapshots"),
        ("SHOW BRANCHES t", "SELECT * FROM t$branches"),
        ("CALL system.rewrite_data_files(table => 't')", "CALL sys.compact("),
        ("CALL lakebed.system.rollback_to_snapshot('t', 1)", "CALL sys.rollback_to("),
        ("SET 'execution.runtime-mode' = 'turbo'", "streaming"),
        ("SELECT ts AT TIME ZONE 'Asia/Tokyo' FROM t", "convert_timezone('Asia/Tokyo', ts)"),
        ("SELECT count(v) at time zone 'UTC' FROM t", "convert_timezone('UTC', ts)"),
    ],
)
def test_what_is_to_be_typed_instead(shop: Warehouse, text: str, instead: str) -> None:
    """The error names it, nothing changes, and no Spark is started to say so."""
    with shop.refuses(Unsupported, instead):
        shop.lake.sql(text)
    assert not shop.lake.is_spark_started


def test_names_that_are_also_habits(shop: Warehouse) -> None:
    """Tables and columns may be called as these words."""
    lake = shop.lake
    for name in ("hop", "optimize", "vacuum", "restore", "detail", "jobs", "compact"):
        lake.sql(f"CREATE TABLE {name} (jobs INT, session INT); INSERT INTO {name} (jobs, session) VALUES (1, 2)")
        assert lake.table(name).to_arrow().to_pylist() == [{"jobs": 1, "session": 2}]
        assert lake.sql(f"DESCRIBE {name}").count() == 2
    lake.sql("ALTER TABLE hop RENAME TO tumble; TRUNCATE TABLE tumble; DROP TABLE tumble")
    assert not lake.is_spark_started


def test_views_are_known_without_spark(shop: Warehouse) -> None:
    """Where no Spark runs, there are no views."""
    shown_views = shop.lake.sql("SHOW VIEWS")
    assert (shown_views.columns, shown_views.count()) == (["namespace", "viewName", "isTemporary"], 0)
    assert not shop.lake.is_spark_started


def test_columns_by_a_pattern(shop: Warehouse) -> None:
    """Flink's SHOW COLUMNS chooses with LIKE and NOT LIKE."""
    lake = shop.lake
    assert [row[0] for row in lake.sql("SHOW COLUMNS FROM t LIKE 'i%'").collect()] == ["id"]
    assert [row[0] for row in lake.sql("SHOW COLUMNS IN t NOT LIKE 'i%'").collect()] == ["v"]
    with shop.refuses(InvalidArgument, "expected LIKE"):
        lake.sql("SHOW COLUMNS FROM t NOT")


@pytest.mark.parametrize("text", ["DESCRIBE CATALOG paimon", "DESC CATALOG EXTENDED c", "SHOW CREATE CATALOG c"])
def test_there_is_one_catalog(shop: Warehouse, text: str) -> None:
    """Statements about catalogs say what shows the lake."""
    with shop.refuses(Unsupported, "the only catalog", "SHOW DATABASES"):
        shop.lake.sql(text)


@pytest.mark.parametrize("unit", ["DAY", "HOUR", "MINUTE"])
@pytest.mark.parametrize("function", ["FLOOR", "CEIL"])
def test_rounded_times(warehouse: Warehouse, function: str, unit: str) -> None:
    """What is said in place of Flink's FLOOR and CEIL of a time gives what they mean."""
    lake = warehouse.lake
    warehouse.table("t", {"ts": "TIMESTAMP(6)"})
    lake.sql("INSERT INTO t VALUES (TIMESTAMP '2024-02-29 13:45:07.5'), (TIMESTAMP '2024-03-01 00:00:00')")
    with pytest.raises(Unsupported, match="is Flink's") as refused:
        lake.query(f"SELECT {function}(ts TO {unit}) FROM t")
    instead = refused.value.hint.removeprefix("type ")
    found = lake.query(f"SELECT CAST({instead} AS STRING) FROM t ORDER BY ts").fetchall()
    begins = {"DAY": "2024-02-29 00:00:00", "HOUR": "2024-02-29 13:00:00", "MINUTE": "2024-02-29 13:45:00"}
    ends = {"DAY": "2024-03-01 00:00:00", "HOUR": "2024-02-29 14:00:00", "MINUTE": "2024-02-29 13:46:00"}
    expected = begins[unit] if function == "FLOOR" else ends[unit]
    assert [row[0] for row in found] == [expected, "2024-03-01 00:00:00"]


def test_numbers_are_rounded(warehouse: Warehouse) -> None:
    """FLOOR and CEIL of numbers are functions, whatever words follow."""
    query = "SELECT floor(2.5), ceil((1 + 1.5)), CAST('1-2' AS INTERVAL YEAR TO MONTH) = INTERVAL '1-2' YEAR TO MONTH"
    assert [tuple(map(int, row[:2])) for row in warehouse.lake.query(query.rpartition(",")[0]).fetchall()] == [(2, 3)]
    assert parse(query)


def test_the_first_rows_in_the_words_of_the_standard(shop: Warehouse) -> None:
    """FETCH FIRST n ROWS ONLY is LIMIT n; without a number it is one row."""
    query = "SELECT id FROM t ORDER BY id"
    assert shop.lake.query(f"{query} FETCH FIRST 2 ROWS ONLY").fetchall() == [(1,), (2,)]
    assert shop.lake.query(f"{query} OFFSET 1 FETCH NEXT ROW ONLY").fetchall() == [(2,)]
    assert shop.lake.sql(f"SELECT * FROM ({query} FETCH FIRST 2 ROWS ONLY) AS x").count() == 2


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SUMMARIZE t", "min(a)"),
        ("PIVOT t ON v USING sum(id)", "FROM t PIVOT"),
        ("COPY t TO 'out.parquet'", "write_parquet"),
        ("COPY (SELECT * FROM t) TO 'out.csv' (HEADER)", "to_csv"),
        ("PRAGMA show_tables", "SHOW TABLES"),
        ("ATTACH 'x.db'", "SHOW DATABASES"),
        ("INSTALL httpfs", "leave it out"),
        ("SELECT * FROM 'files/x.parquet'", "parquet.`files/x.parquet`"),
    ],
)
def test_words_of_duckdb(shop: Warehouse, text: str, hint: str) -> None:
    """Statements of DuckDB are answered with what does the same here."""
    with shop.refuses(Unsupported, hint):
        shop.lake.sql(text)
    assert not shop.lake.is_spark_started


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT DISTINCT ON (v) id FROM t", "QUALIFY row_number()"),
        ("SELECT v->>'x' FROM t", "get_json_object(text, '$.a')"),
        ("SELECT * FROM t WHERE id = ANY(array(1, 2))", "array_contains"),
        ("SELECT * FROM t WHERE id = ANY (ARRAY[1, 2])", "array_contains"),
        ("SELECT * FROM information_schema.tables", "SELECT * FROM sys.tables"),
        ("SELECT relname FROM pg_catalog.pg_class", "SHOW TABLES"),
        ("INSERT INTO t VALUES (1, 'x') RETURNING id", "a SELECT behind it"),
        ("VACUUM ANALYZE t", "VACUUM t, and OPTIMIZE t"),
        ("VACUUM (FULL, ANALYZE) t", "VACUUM t, and OPTIMIZE t"),
        ("LOCK TABLE t", "one statement"),
        ("CREATE USER x", "directory"),
        ("CREATE SEQUENCE s", "uuid()"),
        ("SHOW search_path", "SHOW CURRENT DATABASE"),
        ("SHOW ALL", "type SET"),
        ("\\dt", "SHOW TABLES"),
        ("\\d t", "DESCRIBE t"),
    ],
)
def test_words_of_postgresql(shop: Warehouse, text: str, hint: str) -> None:
    """Statements of psql are answered with what does the same here."""
    with shop.refuses(Unsupported, hint):
        shop.lake.sql(text)
    assert not shop.lake.is_spark_started


def test_what_only_resembles_postgresql(shop: Warehouse) -> None:
    """Those words stay names and texts, and what the hints say works."""
    lake = shop.lake
    found = lake.query("SELECT 'a ->> RETURNING' AS returning, any(id = 1) FROM t WHERE v <> 'information_schema.'")
    assert found.fetchall() == [("a ->> RETURNING", True)]
    first = lake.query("SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY v ORDER BY id) = 1")
    assert len(first.fetchall()) == 3
    assert "t" in [row[1] for row in lake.query("SELECT * FROM sys.tables").fetchall()]
    with shop.refuses(InvalidArgument, "a RLIKE 'pattern'"):
        lake.query("SELECT * FROM t WHERE v ~ '^a'")


def test_files_of_duckdb(shop: Warehouse) -> None:
    """A function that reads a file is answered with Spark's way to name one; other texts behind FROM are none."""
    with shop.refuses(NotFound, "read_parquet", "parquet.`path`"):
        shop.lake.query("SELECT * FROM read_parquet('x.parquet')")
    assert shop.lake.query("SELECT trim('x' FROM 'xa.b'), extract(SECOND FROM TIMESTAMP '2024-01-01 00:00:01.5')")


def test_a_list_is_no_member_of_a_list(shop: Warehouse) -> None:
    """IN with an array in place of values says what takes one, which then works."""
    with shop.refuses(InvalidArgument, "`in` compares INT with an array", "array_contains"):
        shop.lake.query("SELECT * FROM t WHERE id IN (:ids)", {"ids": [1, 2]})
    assert len(shop.lake.query("SELECT * FROM t WHERE array_contains(:ids, id)", {"ids": [1, 2]}).fetchall()) == 2


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT LOCALTIMESTAMP FROM t", "write localtimestamp()"),
        ("SELECT * FROM t WHERE id = $id", "write :id for a value in args"),
    ],
)
def test_names_that_are_no_columns(shop: Warehouse, text: str, hint: str) -> None:
    """What others write for the time or for a value is not taken for a column."""
    with shop.refuses(InvalidArgument, hint):
        shop.lake.query(text)


def test_marks_of_other_drivers(shop: Warehouse) -> None:
    """`%s` is answered with the mark that is known."""
    with shop.refuses(InvalidArgument, "0 question marks", "write `?` for `%s`"):
        shop.lake.query("SELECT * FROM t WHERE id = %s", [1])


def test_paimons_actions_for_flink(shop: Warehouse) -> None:
    """Who calls one as a procedure is told of the command and of the source in SQL."""
    with shop.refuses(NotFound, "sys.mysql_sync_table", "`lakebed cdc mysql PLACE`", "'mysql-cdc'"):
        shop.lake.sql("CALL sys.mysql_sync_table('x')")


def test_a_full_database_stays(shop: Warehouse) -> None:
    """The hint is in the words of both doors."""
    shop.lake.sql("CREATE DATABASE d; CREATE TABLE d.x (a INT)")
    with shop.refuses(InvalidArgument, "in SQL write CASCADE"):
        shop.lake.sql("DROP DATABASE d")


def test_files_and_pivots_without_spark(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no Spark is, the error says what to write, not only what to install."""
    monkeypatch.setattr("lakebed.sql.query.choose.find_spec", lambda name: None if name == "pyspark" else name)
    with shop.refuses(Unsupported, "pandas.read_csv('x.csv')"):
        shop.lake.query("SELECT * FROM csv.`x.csv`")
    with shop.refuses(Unsupported, "FILTER (WHERE"):
        shop.lake.query("SELECT * FROM (SELECT id, v FROM t) PIVOT (sum(id) FOR v IN ('a'))")
