"""Statements of Flink as they are written there, run for ever against a real PostgreSQL: at rest, all is equal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.continuous import Query, follow, lose_and_double_nothing, prepare, statements
from tests.patience import PATIENCE_S

import lakebed
from lakebed.errors import AlreadyExists

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


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_streaming_mode_lands_what_tells_changes(source: tuple[Any, str], spark: Any, tmp_path: Path) -> None:
    """A SELECT shows changes of the server as they come, alone and beside a job that lands the same source."""
    connection, text = source
    lake = lakebed.connect(tmp_path / "lake", spark=spark)
    users, *_ = text.split(";")
    lake.sql("SET 'execution.runtime-mode' = 'streaming'; SET 'execution.checkpointing.interval' = '200 ms'")
    lake.sql(
        f"{users}; CREATE TABLE copy (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')"
    )
    counting = "SELECT count(*), min(name) FROM cdc_users WHERE id < 3"
    with lake.sql(counting) as live:  # type: ignore[attr-defined]
        assert next(live).to_pydict() == {"rowkind": ["+I"], "count(1)": [3], "min(name)": ["u0"]}
        assert [job.name for job in lake.jobs()] == ["SELECT FROM default.cdc_users"]
        with pytest.raises(AlreadyExists, match="is followed already, by job `select-"):
            lake.sql("INSERT INTO copy SELECT id, name FROM cdc_users")
        connection.execute("UPDATE users SET name = 'a' WHERE id = 1")
        assert next(live).column("rowkind").to_pylist() == ["-U", "+U"]
    assert lake.jobs() == []
    lake.sql("INSERT INTO copy SELECT id, name FROM cdc_users")
    (job,) = lake.jobs()
    with pytest.raises(AlreadyExists, match=f"is followed already, by job `{job.id}`"):
        lake.sql("INSERT INTO copy SELECT id, upper(name) FROM cdc_users")
    with lake.sql("SELECT name FROM cdc_users WHERE id = 1") as live:  # type: ignore[attr-defined]
        assert next(live).column("name").to_pylist() == ["a"]
        connection.execute("UPDATE users SET name = 'b' WHERE id = 1")
        assert next(live).column("name").to_pylist() == ["a", "b"]
    assert lake.jobs() == [job]
    end = time.monotonic() + PATIENCE_S
    while lake.query("SELECT name FROM copy WHERE id = 1").fetchall() != [("b",)]:
        assert job.error is None
        assert time.monotonic() < end
        time.sleep(0.1)
    lake.sql(f"STOP JOB '{job.id}'")
