"""Statements of Flink as they are written there, run for ever against a real PostgreSQL: at rest, all is equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.continuous import Query, follow, lose_and_double_nothing, prepare, statements

pytestmark = pytest.mark.spark


@pytest.fixture
def source(database: Any) -> Iterator[tuple[Any, str]]:
    """A connection to a database with tables, and the statements of a pipeline that follows them."""
    server = database.server
    options = {
        "hostname": "127.0.0.1",
        "port": str(server.port),
        "username": server.user,
        "password": server.password,
        "database-name": database.name,
        "slot.name": database.name,
    }
    with database.connect() as connection:
        prepare(connection.execute)
        yield connection, statements("postgres-cdc", options)


def _asks(connection: Any) -> Query:
    return lambda text: connection.execute(text).fetchall()


def test_statements_of_flink_run_as_written(source: tuple[Any, str], spark: Any, tmp_path: Path) -> None:
    """Two tables and a view of a PostgreSQL."""
    connection, text = source
    follow(tmp_path, text, connection.execute, _asks(connection), spark)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_pipeline_that_is_killed_loses_and_doubles_nothing(source: tuple[Any, str], tmp_path: Path) -> None:
    """`kill -9` of `lakebed run` at any moment, 50 times, while rows change: equal to the database in the end."""
    connection, text = source
    lose_and_double_nothing(tmp_path, text, connection.execute, _asks(connection))
