"""Statements of Flink as they are written there, run for ever against a real MariaDB or MySQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.continuous import follow, lose_and_double_nothing, prepare, statements
from tests.cdc.mysql.conftest import Database

from lakebed.testing.sql_server import PASSWORD, USER

pytestmark = pytest.mark.spark


def _statements(db: Database) -> str:
    options = {
        "hostname": "127.0.0.1",
        "port": str(db.server.port),
        "username": USER,
        "password": PASSWORD,
        "database-name": db.name,
    }
    return statements("mysql-cdc", options)


@pytest.mark.nightly  # by day the same statements follow a PostgreSQL
def test_statements_of_flink_run_as_written(db: Database, spark: Any, tmp_path: Path) -> None:
    """Two tables and a view of another server."""
    prepare(db.run)
    follow(tmp_path, _statements(db), db.run, db.run, spark)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_pipeline_that_is_killed_loses_and_doubles_nothing(db: Database, tmp_path: Path) -> None:
    """`kill -9` of `lakebed run` at any moment, 50 times, while rows change: equal to the database in the end."""
    prepare(db.run)
    lose_and_double_nothing(tmp_path, _statements(db), db.run, db.run)
