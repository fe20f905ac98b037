"""Tables of a lake under names of Spark's own catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import AlreadyExists, InvalidArgument
from lakebed.spark.attach import Attached


@pytest.fixture
def shop(lake: lakebed.Lake) -> lakebed.Lake:
    """A lake with a database and two tables."""
    lake.create_database("shop")
    columns = {"id": "BIGINT NOT NULL", "v": "STRING"}
    lake.create_table("shop.orders", columns, primary_key=["id"], options={"bucket": "2"}).write([{"id": 1, "v": "a"}])
    lake.create_table("shop.log", {"id": "BIGINT"})
    return lake


@pytest.fixture
def attached(shop: lakebed.Lake) -> Any:
    names = shop.attach(prefix="lb_", databases=["shop"])
    yield names
    names.detach()


def test_spark_knows_the_tables(shop: lakebed.Lake, attached: Attached, spark: Any) -> None:
    """By all of its own ways, with the newest rows; joins and streams too."""
    assert attached.names == ["lb_shop.log", "lb_shop.orders"]
    listed = spark.catalog.listTables("lb_shop")  # temporary views, which other tests have, are in every database
    assert sorted(table.name for table in listed if not table.isTemporary) == ["log", "orders"]
    assert spark.sql("SELECT v FROM lb_shop.orders").collect() == [("a",)]
    shop.table("shop.orders").write([{"id": 1, "v": "b"}, {"id": 2, "v": "c"}])
    assert sorted(spark.table("lb_shop.orders").collect()) == [(1, "b"), (2, "c")]
    spark.sql("INSERT INTO lb_shop.orders VALUES (3, 'd')")
    assert shop.table("shop.orders").to_arrow().num_rows == 3
    assert spark.sql("SELECT count(*) FROM lb_shop.orders a JOIN lb_shop.log b ON a.id = b.id").collect() == [(0,)]
    assert spark.readStream.table("lb_shop.orders").isStreaming


def test_names_follow_the_lake_when_they_are_refreshed(shop: lakebed.Lake, attached: Attached, spark: Any) -> None:
    shop.sql("ALTER TABLE shop.log ADD COLUMN w INT")
    shop.drop_table("shop.orders")
    shop.create_table("shop.later", {"id": "BIGINT"})
    assert spark.table("lb_shop.log").columns == ["id"]
    attached.refresh()
    assert attached.names == ["lb_shop.later", "lb_shop.log"]
    assert spark.table("lb_shop.log").columns == ["id", "w"]
    assert not spark.catalog.tableExists("lb_shop.orders")


def test_taking_names_away_leaves_the_tables(shop: lakebed.Lake, spark: Any) -> None:
    shop.attach(prefix="lc_", databases=["shop"]).detach()
    assert not spark.catalog.tableExists("lc_shop.orders")
    assert shop.table("shop.orders").to_arrow().num_rows == 1
    again = shop.attach(prefix="lc_", databases=["shop"])
    spark.sql("DROP TABLE lc_shop.orders")
    assert shop.table("shop.orders").to_arrow().num_rows == 1
    again.detach()


def test_names_that_are_taken(shop: lakebed.Lake, spark: Any, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS ld_shop")
    spark.sql("CREATE TABLE ld_shop.orders (id INT) USING parquet")
    with pytest.raises(AlreadyExists, match=r"ld_shop\.orders"):
        shop.attach(prefix="ld_", databases=["shop"])
    spark.sql("DROP DATABASE ld_shop CASCADE")
    with pytest.raises(InvalidArgument, match="prefix"):
        shop.attach(prefix="")


def test_a_table_that_spark_could_not_read_is_not_made(shop: lakebed.Lake, spark: Any) -> None:
    """Spark forgets the options of such tables, so it is refused at once, or at the first look."""
    place = f"{shop.location}/shop.db/orders"
    with pytest.raises(Exception, match=r"lake\.attach"):
        spark.sql(f"CREATE TABLE lost USING lakebed OPTIONS (path '{place}')")
    assert not spark.catalog.tableExists("lost")
    spark.sql("CREATE TABLE told (id BIGINT) USING lakebed")
    with pytest.raises(Exception, match=r"lake\.attach"):
        spark.table("told").collect()
    spark.sql("DROP TABLE told")
