"""CREATE, DROP, ALTER, SHOW, CALL, SET: what each text says, in Flink's and in Spark's spelling."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakebed.errors import InvalidArgument, LakebedError, Unsupported
from lakebed.sql import statements as ds
from lakebed.sql.parse import parse
from lakebed.sql.statements import Column, CreateTable, Position
from lakebed.types.logical import parse_type

CASES_OF_PAIMON = Path(__file__).parents[2] / "conformance" / "cases"


def one(text: str) -> Any:
    """The single statement of a text."""
    (statement,) = parse(text)
    return statement


def columns(*pairs: tuple[str, str]) -> tuple[Column, ...]:
    """Columns without anything but a type."""
    return tuple(Column((name,), kind) for name, kind in pairs)


AB = columns(("a", "INT"), ("b", "STRING"))

CREATES = [
    ("CREATE TABLE t (a INT, b STRING)", CreateTable("t", AB)),
    ("create table if not exists db.t (a int, b string)", CreateTable("db.t", AB, if_not_exists=True)),
    ("CREATE TABLE t (a INT, b STRING, PRIMARY KEY (a) NOT ENFORCED)", CreateTable("t", AB, ("a",))),
    ("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b STRING)", CreateTable("t", AB, ("a",))),
    ("CREATE TABLE t (a INT PRIMARY KEY, b STRING)", CreateTable("t", AB, ("a",))),
    (
        "CREATE TABLE t (a INT, b STRING, CONSTRAINT pk PRIMARY KEY (a, b) NOT ENFORCED)",
        CreateTable("t", AB, ("a", "b")),
    ),
    (
        "CREATE TABLE t (a INT, b STRING) PARTITIONED BY (b) WITH ('bucket' = '2', 'merge-engine'='first-row')",
        CreateTable("t", AB, (), ("b",), {"bucket": "2", "merge-engine": "first-row"}),
    ),
    (
        "CREATE TABLE t (a INT, b STRING) USING paimon COMMENT 'it''s' PARTITIONED BY (b) "
        "TBLPROPERTIES ('primary-key'='a,b', bucket=2, file.format='avro')",
        CreateTable("t", AB, (), ("b",), {"primary-key": "a,b", "bucket": "2", "file.format": "avro"}, "it's"),
    ),
    (
        "CREATE TABLE t (a INT) PARTITIONED BY (b STRING)",
        CreateTable("t", AB, (), ("b",)),
    ),
    ("CREATE TABLE t (a INT) OPTIONS (k 'v')", CreateTable("t", AB[:1], options={"k": "v"})),
    (
        "CREATE TABLE t (a INT) DISTRIBUTED BY (a) INTO 4 BUCKETS",
        CreateTable("t", AB[:1], options={"bucket-key": "a", "bucket": "4"}),
    ),
    ("CREATE TABLE t LIKE `s$branch_b`", CreateTable("t", like="s$branch_b")),
    ("CREATE TABLE t LIKE s (INCLUDING ALL)", CreateTable("t", like="s")),
    ("CREATE OR REPLACE TABLE t (a INT, b STRING)", CreateTable("t", AB, replace=True)),
    ("REPLACE TABLE t (a INT, b STRING)", CreateTable("t", AB, replace=True, must_exist=True)),
    ("DROP TABLE t", ds.DropTable("t")),
    ("DROP TABLE IF EXISTS paimon.db.t PURGE", ds.DropTable("db.t", True)),
    ("CREATE DATABASE d", ds.CreateDatabase("d")),
    (
        "CREATE SCHEMA IF NOT EXISTS d COMMENT 'x' WITH DBPROPERTIES ('a'='b')",
        ds.CreateDatabase("d", True, "x", {"a": "b"}),
    ),
    ("DROP NAMESPACE IF EXISTS d CASCADE", ds.DropDatabase("d", True, True)),
    ("USE d", ds.UseDatabase("d")),
    ("USE DATABASE d", ds.UseDatabase("d")),
    ("USE paimon.d", ds.UseDatabase("d")),
    ("USE CATALOG paimon", ds.UseCatalog("paimon")),
    ("TRUNCATE TABLE t", ds.Truncate("t")),
    ("REFRESH TABLE db.t", ds.RefreshTable("db.t")),
    ("TRUNCATE TABLE t PARTITION (p = null, q = 1)", ds.Truncate("t", {"p": None, "q": 1})),
    ("ANALYZE TABLE t COMPUTE STATISTICS", ds.Analyze("t")),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", ds.Analyze("t", None)),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b", ds.Analyze("t", ("a", "b"))),
]


@pytest.mark.parametrize(("text", "expected"), CREATES)
def test_definitions(text: str, expected: object) -> None:
    """Statements about tables and databases say what they say."""
    assert one(text) == expected


def test_column_clauses() -> None:
    """Comments, nullability, defaults and comments of ROW members are kept."""
    table = one(
        "CREATE TABLE t (a INT NOT NULL COMMENT 'key', b ROW<x INT COMMENT 'inner', y STRING NOT NULL> NULL,"
        " c DECIMAL(10, 2) DEFAULT 1.5 COMMENT 'd', `d e` STRING DEFAULT 'x,y' NOT NULL)"
    )
    assert isinstance(table, CreateTable)
    a, b, c, d = table.columns
    assert (a.type, a.comment) == ("INT NOT NULL", "key")
    assert b.type == "ROW<`x` INT COMMENT 'inner', `y` STRING NOT NULL>"
    assert c.default is not None
    assert (c.default.text, c.comment) == ("1.5", "d")
    assert d.default is not None
    assert (d.path, d.type, d.default.text) == (("d e",), "STRING NOT NULL", "'x,y'")


def test_table_from_a_query() -> None:
    """AS SELECT is kept as a query, with the clauses in front of it."""
    table = one("CREATE TABLE t PARTITIONED BY (p) TBLPROPERTIES ('a'='b') AS SELECT 1 AS x, 2 AS p FROM s")
    assert isinstance(table, CreateTable)
    assert table.query is not None
    assert (table.query.text, table.partition_by, table.options) == ("SELECT 1 AS x, 2 AS p FROM s", ("p",), {"a": "b"})


TYPES = [
    ("TIMESTAMP(3)", "TIMESTAMP(3)", "TIMESTAMP(3)"),
    ("TIMESTAMP", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)"),
    ("TIMESTAMP_NTZ", "TIMESTAMP(6)", "TIMESTAMP(6)"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)"),
    ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)"),
    ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP(6)", "TIMESTAMP(6)"),
    ("BINARY", "BINARY(1)", "BYTES"),
    ("BINARY(4)", "BINARY(4)", "BINARY(4)"),
    ("BYTES", "BYTES", "BYTES"),
    ("LONG", "BIGINT", "BIGINT"),
    ("DOUBLE PRECISION", "DOUBLE", "DOUBLE"),
    ("NUMERIC(5, 2)", "DECIMAL(5, 2)", "DECIMAL(5, 2)"),
    ("ARRAY<MAP<STRING, INT NOT NULL>>", "ARRAY<MAP<STRING, INT NOT NULL>>", "ARRAY<MAP<STRING, INT NOT NULL>>"),
    ("ROW(a INT, b ARRAY<ARRAY<INT>>)", "ROW<a INT, b ARRAY<ARRAY<INT>>>", "ROW<a INT, b ARRAY<ARRAY<INT>>>"),
    ("MULTISET<STRING>", "MULTISET<STRING>", "MULTISET<STRING>"),
    ("VARIANT", "VARIANT", "VARIANT"),
]


@pytest.mark.parametrize(("text", "flink", "spark"), TYPES)
def test_types(text: str, flink: str, spark: str) -> None:
    """A type means what it means in the spelling of its statement."""
    plain, marked = one(f"CREATE TABLE t (c {text})"), one(f"CREATE TABLE t (c {text}) TBLPROPERTIES ('a'='b')")
    assert parse_type(plain.columns[0].type) == parse_type(flink)
    assert parse_type(marked.columns[0].type) == parse_type(spark)


ALTERS: list[tuple[str, object]] = [
    ("SET ('a' = 'b', 'c'='d')", ds.SetOptions({"a": "b", "c": "d"})),
    ("SET TBLPROPERTIES ('a'='b')", ds.SetOptions({"a": "b"})),
    ("UNSET TBLPROPERTIES IF EXISTS ('a', b.c)", ds.UnsetOptions(("a", "b.c"), True)),
    ("RESET ('a')", ds.UnsetOptions(("a",))),
    ("ADD x INT", ds.AddColumns((Column(("x",), "INT"),))),
    (
        "ADD (x INT, y STRING FIRST)",
        ds.AddColumns((Column(("x",), "INT"), Column(("y",), "STRING", position=Position()))),
    ),
    (
        "ADD COLUMN v.f2.f3 BIGINT AFTER f2",
        ds.AddColumns((Column(("v", "f2", "f3"), "BIGINT", position=Position("f2")),)),
    ),
    ("ADD COLUMNS (x TIMESTAMP COMMENT 'c')", ds.AddColumns((Column(("x",), "TIMESTAMP_LTZ", "c"),))),
    ("ADD COLUMNS x INT, y INT", ds.AddColumns((Column(("x",), "INT"), Column(("y",), "INT")))),
    ("DROP x", ds.DropColumns((("x",),))),
    ("DROP (x, y)", ds.DropColumns((("x",), ("y",)))),
    ("DROP COLUMNS x, v.a", ds.DropColumns((("x",), ("v", "a")))),
    ("DROP COLUMN IF EXISTS x", ds.DropColumns((("x",),), True)),
    ("RENAME a TO b", ds.RenameColumn(("a",), "b")),
    ("RENAME COLUMN v.element.a TO b", ds.RenameColumn(("v", "element", "a"), "b")),
    ("RENAME TO u", ds.RenameTable("u")),
    ("RENAME TO db.u", ds.RenameTable("db.u")),
    ("MODIFY x INT NOT NULL", ds.RedefineColumns((Column(("x",), "INT NOT NULL"),))),
    (
        "MODIFY (x INT, y TIMESTAMP AFTER x)",
        ds.RedefineColumns((Column(("x",), "INT"), Column(("y",), "TIMESTAMP", position=Position("x")))),
    ),
    ("CHANGE COLUMN v.x x BIGINT COMMENT 'c'", ds.RedefineColumns((Column(("v", "x"), "BIGINT", "c"),), "x", True)),
    ("ALTER COLUMN x TYPE DOUBLE", ds.AlterColumn(("x",), type="DOUBLE")),
    ("ALTER COLUMN x SET NOT NULL", ds.AlterColumn(("x",), nullable=False)),
    ("ALTER x DROP NOT NULL", ds.AlterColumn(("x",), nullable=True)),
    ("ALTER COLUMN x COMMENT 'c'", ds.AlterColumn(("x",), comment="c")),
    ("ALTER COLUMN x FIRST", ds.AlterColumn(("x",), position=Position())),
    ("ALTER COLUMN x AFTER y", ds.AlterColumn(("x",), position=Position("y"))),
    ("ALTER COLUMN x DROP DEFAULT", ds.AlterColumn(("x",), drops_default=True)),
    ("DROP PRIMARY KEY", ds.DropPrimaryKey()),
    ("DROP CONSTRAINT pk", ds.DropPrimaryKey()),
    ("ADD PRIMARY KEY (a, b) NOT ENFORCED", ds.AddPrimaryKey(("a", "b"))),
    ("DROP PARTITION (p = 1, q = 'x'), PARTITION (p = -2)", ds.DropPartitions(({"p": 1, "q": "x"}, {"p": -2}))),
    ("DROP IF EXISTS PARTITION (p = DATE '2024-01-01')", ds.DropPartitions(({"p": dt.date(2024, 1, 1)},), True)),
    ("ADD IF NOT EXISTS PARTITION (p = 1.5)", ds.AddPartitions(({"p": Decimal("1.5")},), True)),
    ("CREATE TAG `t-1`", ds.CreateTag("t-1")),
    ("CREATE TAG IF NOT EXISTS x AS OF VERSION 3 RETAIN 2 DAYS", ds.CreateTag("x", 3, "2 day", True)),
    ("CREATE OR REPLACE TAG x RETAIN 1 HOURS", ds.CreateTag("x", None, "1 hour", replaces=True)),
    ("REPLACE TAG x AS OF VERSION 1", ds.CreateTag("x", 1, creates=False, replaces=True)),
    ("DELETE TAG IF EXISTS `a, b`", ds.DeleteTag("a, b", True)),
    ("RENAME TAG a TO `b-c`", ds.RenameTag("a", "b-c")),
]


@pytest.mark.parametrize(("text", "expected"), ALTERS)
def test_alter(text: str, expected: object) -> None:
    """Each action of ALTER TABLE, in both spellings."""
    assert one(f"ALTER TABLE db.t {text}") == ds.AlterTable("db.t", (expected,))  # type: ignore[arg-type]


OTHERS = [
    ("ALTER TABLE IF EXISTS t DROP x", ds.AlterTable("t", (ds.DropColumns((("x",),)),), True)),
    ("COMMENT ON TABLE t IS 'c'", ds.AlterTable("t", (ds.SetComment("c"),))),
    ("SHOW DATABASES LIKE 'a*'", ds.ShowDatabases("a*")),
    ("SHOW SCHEMAS", ds.ShowDatabases()),
    ("SHOW TABLES IN db 'x|y'", ds.ShowTables("db", "x|y")),
    ("SHOW TABLES", ds.ShowTables()),
    ("SHOW CREATE TABLE db.t", ds.ShowCreateTable("db.t")),
    ("SHOW COLUMNS FROM t IN db", ds.ShowColumns("db.t")),
    ("SHOW PARTITIONS t PARTITION (p = 1)", ds.ShowPartitions("t", {"p": 1})),
    ("SHOW TAGS t", ds.ShowTags("t")),
    ("SHOW TBLPROPERTIES t ('a.b')", ds.ShowOptions("t", "a.b")),
    ("SHOW CURRENT NAMESPACE", ds.ShowCurrent("namespace")),
    ("SHOW CATALOGS", ds.ShowCatalogs()),
    ("SHOW PROCEDURES IN paimon.sys", ds.ShowProcedures()),
    ("DESC t", ds.Describe("t")),
    ("DESCRIBE TABLE EXTENDED db.t", ds.Describe("db.t", True)),
    ("DESCRIBE t v.x", ds.Describe("t", False, ("v", "x"))),
    ("DESCRIBE DATABASE d", ds.DescribeDatabase("d")),
    ("SET spark.sql.ansi.enabled=false", ds.SetSetting("spark.sql.ansi.enabled", "false")),
    ("SET `spark.paimon.a`=`b c`", ds.SetSetting("spark.paimon.a", "b c")),
    ("SET 'a.b' = 'c'", ds.SetSetting("a.b", "c")),
    ("SET spark.x", ds.SetSetting("spark.x")),
    ("SET", ds.SetSetting()),
    ("SET TIME ZONE 'UTC'", ds.SetSetting("spark.sql.session.timeZone", "UTC")),
    ("RESET `spark.paimon.a`", ds.ResetSetting("spark.paimon.a")),
    ("RESET", ds.ResetSetting()),
    ("CALL sys.compact('t')", ds.Call("compact", ((None, "t"),))),
    ("CALL paimon.sys.x(`table` => 't', n => 3, f = true)", ds.Call("x", (("table", "t"), ("n", 3), ("f", True)))),
    ("CALL sys.x()", ds.Call("x")),
    (
        "CALL sys.x(cast(10 as bigint), null, -1, 1.5)",
        ds.Call("x", ((None, 10), (None, None), (None, -1), (None, Decimal("1.5")))),
    ),
    ("CALL sys.x(m => map('a', 1), l => array('b', 'c'))", ds.Call("x", (("m", {"a": 1}), ("l", ["b", "c"])))),
]


@pytest.mark.parametrize(("text", "expected"), OTHERS)
def test_other_statements(text: str, expected: object) -> None:
    """SHOW, DESCRIBE, SET, CALL and their like."""
    assert one(text) == expected


REFUSED = [
    ("CREATE TABLE t (a INT, b AS a + 1)", Unsupported, "computed"),
    ("CREATE TABLE t (a INT METADATA)", Unsupported, "METADATA"),
    ("CREATE TABLE t (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)", Unsupported, "WATERMARK"),
    ("CREATE TABLE t (a INT, UNIQUE (a))", Unsupported, "UNIQUE"),
    ("CREATE TABLE t (a INT) USING parquet", Unsupported, "parquet"),
    ("CREATE TABLE t (a INT) LOCATION '/x'", Unsupported, "/x"),
    ("CREATE TABLE t (a INT) PARTITIONED BY (substr(a, 1))", Unsupported, "substr"),
    ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", InvalidArgument, "twice"),
    ("CREATE TABLE other.db.t (a INT)", InvalidArgument, "catalog `other`"),
    ("ALTER TABLE t REPLACE COLUMNS (a INT)", Unsupported, "REPLACE COLUMNS"),
    ("ALTER TABLE t RENAME PARTITION (a=1) TO PARTITION (a=2)", Unsupported, "partitions"),
    ("ALTER TABLE t FLY", InvalidArgument, "FLY"),
    ("CREATE CATALOG c WITH ('type' = 'paimon')", Unsupported, "catalog"),
    ("CREATE TEMPORARY TABLE t (a INT)", Unsupported, "temporary"),
    ("ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')", Unsupported, "databases"),
    ("CREATE TABLE t LIKE s (EXCLUDING COLUMNS)", InvalidArgument, "LIKE knows ALL"),
    ("CREATE TABLE t (a)", InvalidArgument, "expected a type"),
    ("SHOW PARTITIONS", InvalidArgument, "the end"),
    ("CALL sys.x(a => )", InvalidArgument, "expected a value"),
    ("ALTER TABLE t CREATE TAG x RETAIN 1 MOON", InvalidArgument, "DAYS"),
]


@pytest.mark.parametrize(("text", "kind", "says"), REFUSED)
def test_refusals_name_the_reason(text: str, kind: type[LakebedError], says: str) -> None:
    """What a table can not have is refused with a reason, not with a syntax error."""
    with pytest.raises(kind, match=says):
        parse(text)


def _statements() -> list[str]:
    found = {}
    for path in sorted(CASES_OF_PAIMON.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            steps = json.loads(line)["steps"] if line.strip() else []
            found |= {step["sql"]: None for step in steps if "sql" in step and "error" not in step}
    return list(found)


def test_every_statement_of_the_conformance_cases_parses() -> None:
    """No statement of Paimon's own cases is refused by the parser."""
    statements = _statements()
    assert len(statements) > 300
    for text in statements:
        assert len(parse(text)) == 1, text
