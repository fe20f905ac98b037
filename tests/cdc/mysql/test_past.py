"""A sync of a real server that keeps the past, while rows and columns change, and batches die and are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.mysql.conftest import Database
from tests.cdc.pipeline.dialects import MariaDb, MySql
from tests.cdc.pipeline.past import keep_locally
from tests.cdc.pipeline.workload import Workload

from lakebed.testing.sql_server import PASSWORD, USER


def _place(transaction: str) -> tuple[int, ...]:
    """MariaDB's ids end with a number that grows, MySQL's too."""
    return (int(transaction.replace(":", "-").rpartition("-")[2]),)


def _keep(db: Database, place: Path, seed: int, rounds: int, steps: int) -> None:
    options: dict[str, Any] = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    workload = Workload(MariaDb(db.connection) if db.server.mariadb else MySql(db.connection), seed)
    keep_locally(workload, place, seed, rounds, steps, "mysql", _place, source_options=options)


@pytest.mark.mysql
def test_the_past_of_any_workload(db: Database, tmp_path: Path) -> None:
    """Rows and columns of every kind change: newest rows, current versions, marks and audit agree with the database."""
    _keep(db, tmp_path, seed=17, rounds=1, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 120))
def test_the_past_of_any_workload_for_long(db: Database, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _keep(db, tmp_path, seed, rounds=4, steps=25)
