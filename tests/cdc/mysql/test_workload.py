"""A random workload in a real server, followed by a sync: at every quiet point the lake equals the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.mysql.conftest import Database
from tests.cdc.pipeline.comparing import follow, follow_locally
from tests.cdc.pipeline.dialects import MariaDb, MySql
from tests.cdc.pipeline.workload import Workload

import lakebed
from lakebed.testing.sql_server import PASSWORD, USER


def _dialect(db: Database) -> MariaDb:
    return MariaDb(db.connection) if db.server.mariadb else MySql(db.connection)


def _options(db: Database) -> dict[str, Any]:
    return {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}


def _follow(db: Database, spark: Any, place: Path, seed: int, rounds: int, steps: int) -> None:
    lake = lakebed.connect(place / "warehouse", spark=spark)
    workload = Workload(_dialect(db), seed)
    options = _options(db)
    follow(lake, workload, rounds, steps, "mysql", source_options=options, checkpoint=place / "checkpoint")


@pytest.mark.spark
def test_the_lake_equals_the_database(db: Database, spark: Any, tmp_path: Path) -> None:
    """Random rows, transactions and schema changes: equal at every quiet point, and the changelog replays to it."""
    _follow(db, spark, tmp_path, seed=1, rounds=1, steps=15)


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10, 20))
def test_the_lake_equals_the_database_for_long(db: Database, spark: Any, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _follow(db, spark, tmp_path, seed, rounds=8, steps=30)


def test_batches_that_die_and_are_repeated(db: Database, tmp_path: Path) -> None:
    """Without Spark: schema changes of every kind, and batches that die at any step: equal at every quiet point."""
    workload = Workload(_dialect(db), 6)
    follow_locally(workload, tmp_path, 6, 1, 15, "mysql", source_options=_options(db))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 130))
def test_batches_that_die_often(db: Database, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    workload = Workload(_dialect(db), seed)
    follow_locally(workload, tmp_path, seed, 4, 25, "mysql", source_options=_options(db))
