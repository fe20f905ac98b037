"""Tables of a PostgreSQL and topics of changes that SQL defines land in the lake, and are read as they were defined."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.conftest import Database
from tests.cdc.pipeline.test_on_spark import Kafka, message
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.connectors import is_synced, land, landed_name, landing_groups, reading_query
from lakebed.errors import InvalidArgument, InvalidSchema, LakebedError, NotFound
from lakebed.sql.connectors.table import ConnectorTable
from lakebed.sql.session import connector_tables

pytestmark = pytest.mark.spark

_ONCE: Mapping[str, Any] = {"availableNow": True}
_PASSWORD = "shop"


def defined(lake: lakebed.Lake, name: str) -> ConnectorTable:
    """The definition of a table."""
    return connector_tables(lake)["default", name]


def rows(lake: lakebed.Lake, name: str) -> list[tuple[Any, ...]]:
    """What a query over the source sees now."""
    return sorted(lake.query(reading_query(lake, defined(lake, name)), engine="duckdb").fetchall())


class Shop:
    """A database with two tables, and their definitions in a lake."""

    def __init__(self, database: Database, place: Path, spark: Any) -> None:
        self.database = database
        self.place = place
        self.lake = lakebed.connect(place / "warehouse", spark=spark)
        database.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, cust int, amount numeric(10, 2), note text)",
            "CREATE TABLE customers (id int PRIMARY KEY, name text)",
            "CREATE TABLE others (id int PRIMARY KEY)",
            "INSERT INTO orders VALUES (1, 7, 1.50, 'a'), (2, 8, 2.00, 'b')",
            "INSERT INTO customers VALUES (7, 'ada'), (8, 'bob')",
        )

    def define(self, name: str, columns: str, table: str, **more: str) -> ConnectorTable:
        """CREATE TABLE over a table of the database."""
        options = {
            "connector": "postgres-cdc",
            "hostname": "127.0.0.1",
            "port": str(self.database.server.port),
            "username": "shop",
            "password": _PASSWORD,
            "database-name": self.database.name,
            "table-name": table,
            "slot.name": self.database.name,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        self.lake.sql(f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({listed})")
        return defined(self.lake, name)

    def land(self, *tables: ConnectorTable, trigger: Any = _ONCE) -> lakebed.cdc.SyncRun:
        """Starts the sync of tables."""
        return land(self.lake, tables, str(self.place / "checkpoint"), trigger=trigger)

    def catch_up(self, *tables: ConnectorTable) -> None:
        """Lands what has changed."""
        assert self.land(*tables).wait(PATIENCE_S)


@pytest.fixture
def shop(database: Database, tmp_path: Path, spark: Any) -> Shop:
    return Shop(database, tmp_path, spark)


def test_tables_of_one_slot_land_together(shop: Shop) -> None:
    """One sync lands the declared tables and no others; changes, deletes and a restart show in what is read."""
    orders = shop.define(
        "cdc_orders",
        "amount DECIMAL(12,2), id BIGINT, doubled AS amount * 2, at TIMESTAMP_LTZ(3) METADATA FROM 'op_ts' VIRTUAL, "
        "cust BIGINT, PRIMARY KEY (id) NOT ENFORCED",
        "orders",
        landing_bucket="2",
    )
    customers = shop.define("cdc_customers", "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "customers")
    assert landing_groups([orders, customers]) == [(orders, customers)]
    assert is_synced(orders)
    shop.catch_up(orders, customers)
    lake = shop.lake
    assert lake.tables() == ["landed__cdc_customers", "landed__cdc_orders"]
    landed = lake.table(landed_name(orders))
    assert landed.primary_key == ("id",)
    assert (landed.options["changelog-producer"], landed.options["bucket"]) == ("lookup", "2")
    assert "bucket" not in lake.table(landed_name(customers)).options
    found = lake.query(reading_query(lake, orders), engine="duckdb").arrow()
    assert found.schema.names == ["amount", "id", "doubled", "at", "cust"]
    assert [str(field.type) for field in found.schema][:2] == ["decimal128(12, 2)", "int64"]
    assert sorted((row["id"], float(row["doubled"]), row["cust"]) for row in found.to_pylist()) == [
        (1, 3.0, 7),
        (2, 4.0, 8),
    ]
    assert rows(lake, "cdc_customers") == [(7, "ada"), (8, "bob")]
    shop.database.execute(
        "UPDATE orders SET amount = 9 WHERE id = 1", "DELETE FROM orders WHERE id = 2", "INSERT INTO others VALUES (1)"
    )
    shop.catch_up(orders, customers)
    assert [(row[1], float(row[2])) for row in rows(lake, "cdc_orders")] == [(1, 18.0)]
    assert len([s for s in lake.table(landed_name(customers)).snapshots() if s.commit_kind == "APPEND"]) == 1


def test_following_goes_on_while_it_runs(shop: Shop) -> None:
    """A sync with an interval lands changes as they come, until it is stopped."""
    table = shop.define("c", "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "customers")
    with shop.land(table, trigger="200 milliseconds"):
        _until(lambda: shop.lake.has_table(landed_name(table)) and len(rows(shop.lake, "c")) == 2)
        shop.database.execute("INSERT INTO customers VALUES (9, 'cyd')")
        _until(lambda: len(rows(shop.lake, "c")) == 3)


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_what_is_wrong_is_said_before_the_start(shop: Shop) -> None:
    """A column, a table, a key or a password that is not there is an error by name, and makes nothing."""
    key = "PRIMARY KEY (id) NOT ENFORCED"
    good = shop.define("good", f"id BIGINT, {key}", "orders")
    wrong: list[tuple[list[ConnectorTable], type[LakebedError], str]] = [
        ([shop.define("a", f"id BIGINT, amuont INT, {key}", "orders")], InvalidSchema, "`amuont`"),
        ([shop.define("b", f"id BIGINT, {key}", "ordres")], NotFound, "`orders`"),
        ([good, shop.define("c", f"id INT, {key}", "orders")], InvalidArgument, "`default.c`"),
        ([good, shop.define("d", f"id INT, {key}", "customers", scan_startup_mode="latest-offset")], InvalidArgument,
         "`scan.startup.mode`"),
        ([good, shop.define("e", "id INT, name STRING, PRIMARY KEY (name) NOT ENFORCED", "customers")], InvalidSchema,
         "(name)"),
    ]  # fmt: skip
    for tables, kind, text in wrong:
        with pytest.raises(kind) as raised:
            shop.land(*tables)
        assert text in str(raised.value)
        assert not (shop.place / "checkpoint").exists()
        assert shop.lake.tables() == []
    assert shop.database.query("SELECT * FROM pg_replication_slots WHERE database = current_database()") == []


def test_shards_land_in_one_table(shop: Shop) -> None:
    """A regular expression for the table's name lands all tables that it fits together; changes only, if asked."""
    shop.database.execute(
        "CREATE TABLE part_1 (id int PRIMARY KEY, v text)",
        "CREATE TABLE part_2 (id int PRIMARY KEY, v text)",
        "INSERT INTO part_1 VALUES (1, 'before')",
    )
    table = shop.define("parts", "id INT, v STRING", "part_.*", scan_startup_mode="latest-offset")
    shop.catch_up(table)
    shop.database.execute("INSERT INTO part_1 VALUES (2, 'x')", "INSERT INTO part_2 VALUES (3, 'y')")
    shop.catch_up(table)
    assert rows(shop.lake, "parts") == [(2, "x"), (3, "y")]


def test_topics_of_changes_land_as_declared(spark: Any, tmp_path: Path) -> None:
    """Messages without types become the declared types; the landed table is there before the first message is."""
    kafka = Kafka()
    kafka.send("shop", message("insert", {"id": "1", "v": "1.5"}), message("insert", {"id": "2", "v": "2"}))
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    lake.sql(
        "CREATE TABLE k (id BIGINT, v DECIMAL(10,2), more AS v + 1, part INT METADATA FROM 'partition' VIRTUAL, "
        "PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'shop', "
        f"'properties.bootstrap.servers' = '{kafka.address}', 'properties.group.id' = 'g', 'format' = 'maxwell-json')"
    )

    def catch_up() -> None:
        assert land(lake, [defined(lake, "k")], tmp_path / "cp", trigger=_ONCE).wait(PATIENCE_S)

    catch_up()
    assert [(row[0], float(row[1]), float(row[2])) for row in rows(lake, "k")] == [(1, 1.5, 2.5), (2, 2.0, 3.0)]
    kafka.send("shop", message("delete", {"id": "1", "v": "1.5"}))
    kafka.send("shop", message("update", {"id": "2", "v": "7"}, {"v": "2"}))
    catch_up()
    assert [(row[0], float(row[1])) for row in rows(lake, "k")] == [(2, 7.0)]
