"""A MariaDB into the lake through Spark: copy, stream, changed tables, and again after a stop."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import lakebed
import lakebed.cdc
from lakebed.cdc.sources.mysql import MySqlSource
from lakebed.testing.sql_server import PASSWORD, USER

from .conftest import Database
from .test_following import TABLES, _prepare, _transaction

pytestmark = pytest.mark.spark


def _sync(db: Database, lake: lakebed.Lake, checkpoint: Path, **more: Any) -> None:
    """Catches up with the database."""
    source = MySqlSource(
        port=db.server.port,
        user=USER,
        password=PASSWORD,
        database=db.name,
        copy_chunk_rows=100,
        copy_chunks_per_batch=2,
    )
    run = lakebed.cdc.sync(
        lake, source, "shop", checkpoint=checkpoint, trigger={"availableNow": True}, table_conf={"bucket": "1"}, **more
    )
    run.wait()


def _assert_equal(db: Database, lake: lakebed.Lake) -> None:
    for table in TABLES:
        names = [row[0] for row in db.run(f"SHOW COLUMNS FROM {table}")]
        expected = db.run(f"SELECT * FROM {table}")
        rows = [tuple(row[name] for name in names) for row in lake.table(f"shop.{table}").to_arrow().to_pylist()]
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), table


@pytest.mark.nightly
def test_a_database_into_the_lake(db: Database, spark: Any, tmp_path: Path) -> None:
    """Copy, changes, an added column with a default, a truncated table: the lake equals the database every time."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    lake.create_database("shop")
    rng = random.Random(7)
    _prepare(db, 300)
    writer = db.server.connect(database=db.name)
    _sync(db, lake, tmp_path / "checkpoint")
    _assert_equal(db, lake)
    for _ in range(30):
        _transaction(rng, writer, 400)
    db.run("ALTER TABLE words ADD COLUMN extra int NOT NULL DEFAULT 5", "TRUNCATE numbers")
    for _ in range(30):
        _transaction(rng, writer, 400)
    _sync(db, lake, tmp_path / "checkpoint")
    _assert_equal(db, lake)
    writer.close()


def test_the_password_is_in_no_plan(db: Database, spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Spark's plan of the stream shows options; the password is not among them."""
    db.run("CREATE TABLE t (id int PRIMARY KEY)")
    source = MySqlSource(port=db.server.port, user=USER, password=PASSWORD, database=db.name)
    source.stream(spark).explain(True)
    assert PASSWORD not in capfd.readouterr().out
