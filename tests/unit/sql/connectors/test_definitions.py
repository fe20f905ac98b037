"""Tables of other systems in SQL: what a statement says of them, what is kept, what is refused, and what is shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.warehouse_under_test import Warehouse

from lakebed.errors import (
    AlreadyExists,
    InvalidArgument,
    InvalidOption,
    InvalidSchema,
    LakebedError,
    NotFound,
    Unsupported,
)
from lakebed.sql.connectors.registry import DEFINITIONS
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.parse import parse
from lakebed.sql.session import connector_tables
from lakebed.sql.statements import ConnectorColumn, CreateConnectorTable, DropTable

_POSTGRES = """
CREATE TEMPORARY TABLE IF NOT EXISTS db.orders (
  `id` BIGINT NOT NULL COMMENT 'the key',
  amount DECIMAL(10, 2),
  twice AS amount * 2 COMMENT 'computed',
  ts TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL,
  table_name STRING METADATA,
  proc AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'orders' WITH (
  'connector' = 'postgres-cdc', 'hostname' = 'h', 'port' = '5433', 'username' = 'u', 'password' = 'hunter2',
  'database-name' = 'd', 'table-name' = 'orders', 'slot.name' = 's'
)
"""
_SMALL = "'connector' = 'datagen', 'number-of-rows' = '3', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', "
_SMALL += "'fields.id.end' = '3'"


def test_every_part_is_read() -> None:
    """Columns of all kinds, the key, the watermark and the options; secrets are not in what the statement shows."""
    (statement,) = parse(_POSTGRES)
    assert isinstance(statement, CreateConnectorTable)
    assert statement.columns == (
        ConnectorColumn("id", "BIGINT NOT NULL", comment="the key"),
        ConnectorColumn("amount", "DECIMAL(10, 2)"),
        ConnectorColumn("twice", value="amount * 2", comment="computed"),
        ConnectorColumn("ts", "TIMESTAMP_LTZ(3)", metadata="op_ts", is_virtual=True),
        ConnectorColumn("table_name", "STRING", metadata="table_name"),
        ConnectorColumn("proc", value="current_timestamp()"),
    )
    assert (statement.name, statement.primary_key, statement.comment) == ("db.orders", ("id",), "orders")
    assert statement.watermark == ("ts", "ts - INTERVAL '5' SECOND")
    assert (statement.is_temporary, statement.if_not_exists) == (True, True)
    assert statement.options["password"] == "hunter2"
    assert "hunter2" not in repr(statement)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP TEMPORARY TABLE t", DropTable("t", is_temporary=True)),
        ("DROP TEMPORARY TABLE IF EXISTS db.t", DropTable("db.t", True, True)),
        (
            "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'print')",
            CreateConnectorTable("t", (ConnectorColumn("a", "INT"),), ("a",), options={"connector": "print"}),
        ),
    ],
)
def test_other_forms(text: str, statement: Any) -> None:
    """DROP TEMPORARY, and a key that stands with its column."""
    assert parse(text) == [statement]


def _defined(warehouse: Warehouse, columns: str, options: str, name: str = "t") -> ConnectorTable:
    warehouse.lake.sql(f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({options})")
    return connector_tables(warehouse.lake)["default", name]


def test_what_is_kept_and_shown(warehouse: Warehouse) -> None:
    """The definition lies in memory only: nothing is written, and what is shown holds no secret."""
    lake = warehouse.lake
    lake.create_database("db")
    before = warehouse.contents()
    lake.sql(_POSTGRES)
    table = connector_tables(lake)["db", "orders"]
    assert warehouse.contents() == before
    assert [field.name for field in table.columns] == ["id", "amount"]
    assert table.order == ("id", "amount", "twice", "ts", "table_name", "proc")
    assert table.whole("port") == 5433
    assert table.option("scan.startup.mode") == "initial"
    described = lake.sql("DESCRIBE EXTENDED db.orders").collect()
    assert [tuple(row)[:2] for row in described[:5]] == [
        ("id", "bigint"), ("amount", "decimal(10,2)"), ("twice", "decimal(12,2)"), ("ts", "timestamp"),
        ("table_name", "string"),
    ]  # fmt: skip
    text = lake.sql("SHOW CREATE TABLE db.orders").collect()[0][0]
    assert "'password' = '******'" in text
    assert [row["tableName"] for row in lake.sql("SHOW TABLES IN db").collect() if row["isTemporary"]] == ["orders"]
    assert lake.sql("SHOW COLUMNS IN db.orders").collect()[2][0] == "twice"
    for shown in (repr(table), str(connector_tables(lake)), str(described), text):
        assert "hunter2" not in shown
    lake.sql("DROP TABLE db.orders")
    lake.sql(text)
    again = connector_tables(lake)["db", "orders"]
    assert again.shown_options() == table.shown_options()
    assert (again.columns, again.computed, again.metadata) == (table.columns, table.computed, table.metadata)
    assert (again.primary_key, again.watermark) == (table.primary_key, table.watermark)
    assert connector_tables(warehouse.reopened()) == {}


_CDC = "'hostname' = 'h', 'username' = 'u', 'password' = 'hunter2', 'database-name' = 'd', 'table-name' = 't'"
_PG = f"'connector' = 'postgres-cdc', 'slot.name' = 's', {_CDC}"
_MY = f"'connector' = 'mysql-cdc', {_CDC}"
_KAFKA = "'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'b'"
_UPSERT = _KAFKA.replace("'kafka'", "'upsert-kafka'") + ", 'key.format' = 'json', 'value.format' = 'json'"
_WRONG: tuple[tuple[str, str, type[LakebedError], tuple[str, ...]], ...] = (
    ("a INT", "'connector' = 'postgre-cdc'", Unsupported, ("`postgre-cdc`", "did you mean `postgres-cdc`", "`kafka`")),
    ("a INT", "'connector' = 'postgres-cdc', 'password' = 'hunter2'", InvalidOption,
     ("`hostname`", "`username`", "`database-name`", "`table-name`", "`slot.name`")),
    ("a INT", f"{_PG}, 'slotname' = 'x'", InvalidOption, ("`slotname`", "did you mean `slot.name`", "heartbeat")),
    ("a INT", f"{_PG}, 'passwort' = 'hunter2'", InvalidOption, ("`passwort`", "did you mean `password`")),
    ("a INT", f"{_PG}, 'decoding.plugin.name' = 'wal2json'", InvalidOption, ("`decoding.plugin.name`", "`pgoutput`")),
    ("a INT", f"{_PG}, 'port' = 'hunter'", InvalidOption, ("`port`", "whole number")),
    ("a INT", f"{_PG}, 'scan.startup.mode' = 'earliest-offset'", InvalidOption, ("`scan.startup.mode`", "`initial`")),
    ("a INT", f"{_PG}, 'scan.incremental.snapshot.chunk.size' = '1'", Unsupported, ("chunk.size", "leave it out")),
    ("a INT", f"{_PG}, 'scan.incremental.snapshot.enabled' = 'false'", InvalidOption, ("`true`",)),
    ("a INT", f"{_PG}, 'debezium.snapshot.mode' = 'never'", Unsupported, ("debezium.snapshot.mode", "Debezium")),
    ("a INT", f"{_MY}, 'heartbeat.interval' = '3 s'", Unsupported, ("heartbeat.interval", "binary log")),
    ("a INT", f"{_MY}, 'server-id' = 'x'", InvalidOption, ("`server-id`", "5400")),
    ("a INT, b STRING METADATA FROM 'offset'", _PG, InvalidSchema, ("`offset`", "`op_ts`")),
    ("a INT, b AS nope + 1", _PG, InvalidArgument, ("nope",)),
    ("a INT, A STRING", _PG, InvalidSchema, ("twice",)),
    ("a INT, PRIMARY KEY (b) NOT ENFORCED", _PG, NotFound, ("`b`", "primary key")),
    ("a INT, WATERMARK FOR b AS b", _PG, NotFound, ("`b`", "watermark")),
    ("b AS 1", _PG, InvalidSchema, ("no columns",)),
    ("a INT", _KAFKA, InvalidOption, ("`format`", "debezium-json")),
    ("a INT", f"{_KAFKA}, 'format' = 'avro'", InvalidOption, ("`avro`",)),
    ("a INT", f"{_KAFKA}, 'format' = 'canal-json'", InvalidSchema, ("primary key",)),
    ("a INT, PRIMARY KEY (a) NOT ENFORCED", f"{_KAFKA}, 'format' = 'json'", InvalidSchema, ("leave PRIMARY KEY out",)),
    ("a INT", f"{_KAFKA}, 'format' = 'json', 'sink.semantic' = 'x'", Unsupported, ("sink.semantic", "transaction")),
    ("a INT", f"{_KAFKA}, 'format' = 'json', 'sink.delivery-guarantee' = 'none'", InvalidOption, ("`exactly-once`",)),
    ("a INT", f"{_KAFKA}, 'format' = 'json', 'properties.transactional.id' = 'x'", Unsupported, ("prefix",)),
    ("a INT", f"{_KAFKA}, 'format' = 'json', 'key.format' = 'json'", InvalidOption, ("'key.fields'",)),
    ("a INT", f"{_KAFKA}, 'format' = 'json', 'key.fields' = 'b'", NotFound, ("`b`", "key.fields")),
    ("a INT, b INT, PRIMARY KEY (a) NOT ENFORCED", f"{_KAFKA}, 'format' = 'debezium-json', 'key.fields' = 'b'",
     InvalidOption, ("one partition",)),
    ("a INT", _UPSERT, InvalidSchema, ("primary key", "NOT ENFORCED")),
    ("a INT, b INT, PRIMARY KEY (a, b) NOT ENFORCED", f"{_UPSERT}, 'key.fields' = 'a'", InvalidOption, ("key.fields",)),
    ("a INT, PRIMARY KEY (a) NOT ENFORCED", f"{_UPSERT}, 'sink.buffer-flush.max-rows' = '9'", Unsupported, ("whole",)),
    ("a INT", "'connector' = 'upsert-kafka', 'topic' = 'a'", InvalidOption, ("`key.format`", "`value.format`")),
    ("a INT", "'connector' = 'datagen', 'fields.b.min' = '1'", InvalidOption, ("fields.b.min", "fields.#.min")),
    ("a INT", "'connector' = 'datagen', 'fields.a.kind' = 'sequence'", InvalidOption, ("fields.a.start", "a.end")),
    ("a INT", "'connector' = 'datagen', 'fields.a.min' = '5', 'fields.a.max' = '4'", InvalidOption, ("above",)),
    ("a ARRAY<INT>", "'connector' = 'datagen'", Unsupported, ("ARRAY<INT>", "`a`")),
    ("a INT", "'connector' = 'filesystem', 'path' = '/x'", InvalidOption, ("`format`",)),
    ("a INT", "'connector' = 'filesystem', 'path' = '/x', 'format' = 'xml'", InvalidOption, ("`xml`", "`parquet`")),
)  # fmt: skip


@pytest.mark.parametrize(("columns", "options", "kind", "texts"), _WRONG)
def test_what_is_wrong_is_named(
    warehouse: Warehouse, columns: str, options: str, kind: type[LakebedError], texts: tuple[str, ...]
) -> None:
    """Options, columns and keys that can not be are refused by name, with what to do; passwords are not repeated."""
    with warehouse.refuses(kind, *texts):
        _defined(warehouse, columns, options)
    with pytest.raises(kind) as raised:
        _defined(warehouse, columns, options)
    assert "hunter2" not in str(raised.value)
    assert connector_tables(warehouse.lake) == {}


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT) WITH ('connector' = 'mysql-cdc', 'password' = 'hunter2' 'port' = '1')",
        "CREATE TABLE t (a INT) WITH ('connector' = 'mysql-cdc', 'password' 'hunter2' 'hunter3')",
        "CREATE TABLE t (a INT) WITH ('connector' = 'mysql-cdc', 'password' = 'x'hunter2', 'a' = 'b')",
        "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'properties.sasl.jaas.config' = 'a hunter2') oops",
        "CREATE TABLE t (a INT) WITH ('connector' = 'mysql-cdc', 'password' = 'hunter2'); SELEC",
        "CREATE TABLE t (a WITH ('connector' = 'mysql-cdc', 'password' = 'hunter2')",
        "CREATE TABLE t (a INT) WITH ('connector' = 'mysql-cdc', 'password' = 'hunter2",
    ],
)
def test_errors_of_syntax_show_no_secret(warehouse: Warehouse, text: str) -> None:
    """The line that an error shows has stars in the place of a password, also of one that is ill quoted."""
    with pytest.raises(LakebedError) as raised:
        warehouse.lake.sql(text)
    assert "hunter" not in str(raised.value)


def test_a_temporary_table_hides_one_of_the_lake(warehouse: Warehouse) -> None:
    """Statements mean the temporary one, and never change the hidden one in its place; DROP TEMPORARY uncovers it."""
    lake = warehouse.lake
    lake.sql("CREATE TABLE t (id BIGINT); INSERT INTO t VALUES (7)")
    with warehouse.refuses(AlreadyExists, "CREATE TEMPORARY TABLE"):
        lake.sql(f"CREATE TABLE t (id BIGINT) WITH ({_SMALL})")
    lake.sql(f"CREATE TABLE IF NOT EXISTS t (id BIGINT) WITH ({_SMALL})")
    assert connector_tables(lake) == {}
    _defined(warehouse, "id BIGINT", _SMALL)
    assert lake.query("SELECT * FROM t").fetchall() == [(1,), (2,), (3,)]
    assert lake.query("WITH t AS (SELECT 9 AS id) SELECT * FROM t").fetchall() == [(9,)]
    for text in (
        "INSERT INTO t VALUES (8)", "UPDATE t SET id = 1", "DELETE FROM t", "TRUNCATE TABLE t", "OPTIMIZE t; VACUUM t",
        "ALTER TABLE t ADD COLUMN x INT", "DROP TABLE t", "SHOW PARTITIONS t", "ANALYZE TABLE t COMPUTE STATISTICS",
        "MERGE INTO t USING bystander AS b ON t.id = b.id WHEN MATCHED THEN DELETE", "DESCRIBE HISTORY t",
    ):  # fmt: skip
        if not text.startswith("OPTIMIZE"):
            with pytest.raises((InvalidArgument, Unsupported)):
                lake.sql(text)
    assert [tuple(row)[1:] for row in lake.sql("SHOW TABLES").collect()] == [("bystander", False), ("t", True)]
    lake.sql("DROP TEMPORARY TABLE t")
    assert lake.query("SELECT * FROM t").fetchall() == [(7,)]
    with warehouse.refuses(NotFound, "temporary table `t`"):
        lake.sql("DROP TEMPORARY TABLE t")
    lake.sql("DROP TEMPORARY TABLE IF EXISTS t")


def test_names_are_given_once(warehouse: Warehouse) -> None:
    """A second definition needs another name, IF NOT EXISTS or OR REPLACE; tables of the lake can not take the name."""
    lake = warehouse.lake
    lake.sql(f"CREATE TABLE s (id BIGINT) WITH ({_SMALL})")
    with warehouse.refuses(AlreadyExists, "`s`"):
        lake.sql(f"CREATE TABLE s (id BIGINT) WITH ({_SMALL})")
    lake.sql("CREATE TABLE IF NOT EXISTS s (id INT) WITH ('connector' = 'print')")
    assert connector_tables(lake)["default", "s"].connector == "datagen"
    with warehouse.refuses(AlreadyExists, "`default.s`", "DROP TABLE s"):
        lake.sql("CREATE TABLE s (id BIGINT)")
    lake.sql("CREATE OR REPLACE TABLE s (id INT) WITH ('connector' = 'print')")
    assert connector_tables(lake)["default", "s"].connector == "print"
    lake.sql("DROP TABLE s; CREATE TABLE s (id BIGINT)")
    assert "s" in lake.tables()
    with warehouse.refuses(NotFound, "`nope`"):
        lake.sql(f"CREATE TEMPORARY TABLE nope.s (id BIGINT) WITH ({_SMALL})")
    lake.sql(f"CREATE DATABASE d; CREATE TABLE d.x (id BIGINT) WITH ({_SMALL}); DROP DATABASE d CASCADE")
    assert connector_tables(lake) == {}


def test_rows_with_an_end_are_read(warehouse: Warehouse) -> None:
    """A plain SELECT, a join, an INSERT and a view read them, with computed columns; endless ones are refused."""
    lake = warehouse.lake
    _defined(warehouse, "id BIGINT, sq AS id * id", _SMALL, "g")
    assert lake.query("SELECT * FROM g ORDER BY id").fetchall() == [(1, 1), (2, 4), (3, 9)]
    joined = "SELECT x.sq, b.id FROM default.g AS x JOIN bystander b ON x.sq = b.id"
    assert lake.query(joined).fetchall() == [(1, 1)]
    lake.sql("CREATE TABLE t AS SELECT sq FROM g WHERE id > 1; CREATE TEMPORARY VIEW v AS SELECT max(sq) AS m FROM g")
    assert sorted(lake.query("SELECT * FROM t").fetchall()) == [(4,), (9,)]
    assert lake.query("SELECT m FROM v").fetchall() == [(9,)]
    assert not lake.is_spark_started
    for text in ("SELECT * FROM g /*+ OPTIONS('number-of-rows' = '1') */", "SELECT * FROM g VERSION AS OF 1"):
        with warehouse.refuses(Unsupported, "`default.g`", "definition"):
            lake.query(text)
    _defined(warehouse, "id BIGINT", "'connector' = 'datagen'", "endless")
    _defined(warehouse, "id BIGINT", _PG, "cdc")
    for name in ("endless", "cdc"):
        with warehouse.refuses(Unsupported, f"`default.{name}`", "lakebed run"):
            lake.query(f"SELECT * FROM {name}")
        with warehouse.refuses(Unsupported, f"`default.{name}`", "lakebed run"):
            lake.sql(f"CREATE MATERIALIZED TABLE m AS SELECT * FROM {name}")


def test_values_from_the_environment(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read when they are needed, as a whole or as a part; what is not set is named, what it holds is not."""
    options = _PG.replace("'hunter2'", "'${env:LAKEBED_T_PW}'").replace("'h'", "'${env:LAKEBED_T_H}.example'")
    table = _defined(warehouse, "id INT", f"{options}, 'port' = '${{env:LAKEBED_T_PORT}}'")
    assert table.environment("password") == "LAKEBED_T_PW"
    assert table.environment("hostname") is None
    with pytest.raises(NotFound, match="`LAKEBED_T_PW` of option `password`"):
        table.option("password")
    monkeypatch.setitem(os.environ, "LAKEBED_T_PW", "hunter2")
    monkeypatch.setitem(os.environ, "LAKEBED_T_H", "db")
    monkeypatch.setitem(os.environ, "LAKEBED_T_PORT", "many")
    assert (table.option("password"), table.option("hostname")) == ("hunter2", "db.example")
    with pytest.raises(LakebedError, match="whole number") as raised:
        table.whole("port")
    assert "many" not in str(raised.value)
    assert "${env:LAKEBED_T_PW}" in warehouse.lake.sql("SHOW CREATE TABLE t").collect()[0][0]


def test_every_connector_says_what_it_is() -> None:
    """The registry: each can be read or written, and each option says what it is for."""
    for name, definition in DEFINITIONS.items():
        assert definition.name == name
        assert definition.is_source or definition.is_sink
        assert all(option.says for option in definition.options)
        assert len({option.name for option in definition.options}) == len(definition.options)


def test_the_page_names_every_option() -> None:
    """The document has each connector with each of its options and metadata."""
    page = (Path(__file__).parents[4] / "docs" / "sources.md").read_text()
    for name, definition in DEFINITIONS.items():
        section = page.partition(f"### `{name}`")[2].partition("\n##")[0]
        for word in (*(option.name for option in definition.options), *definition.metadata):
            assert f"`{word}`" in section, f"{name}: {word}"
