"""A database followed by a cluster: payloads and notes lie where all machines see them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.bed import Bed
from tests.cluster.database import PASSWORD_ENV, reachable_postgres, source_options
from tests.cluster.s3_server import SECRET_KEY

import lakebed
import lakebed.cdc
from lakebed.errors import InvalidArgument
from lakebed.testing.postgres_server import PostgresServer

ROWS = 20_000


@pytest.fixture
def postgres(bed: Bed) -> Iterator[PostgresServer]:
    """A server that all hosts reach."""
    with reachable_postgres(bed) as server:
        text = f"SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, {ROWS}) i"
        server.execute("CREATE TABLE a (id bigint PRIMARY KEY, v text)", f"INSERT INTO a {text}")
        yield server


def _sync(bed: Bed, lake: lakebed.Lake, postgres: PostgresServer, checkpoint: str) -> None:
    os.environ[PASSWORD_ENV] = postgres.password
    run = lakebed.cdc.sync(
        lake,
        "postgres",
        "default",
        checkpoint=checkpoint,
        trigger={"availableNow": True},
        source_options=source_options(bed, postgres),
        here_bytes=1000,  # so that tasks write all of it
    )
    run.wait()


def _same(lake: lakebed.Lake, postgres: PostgresServer) -> bool:
    question = "SELECT count(*), sum(length(v)), sum(id) FROM a"
    return [tuple(map(int, row)) for row in lake.query(question).fetchall()] == [
        tuple(map(int, row)) for row in postgres.query(question)
    ]


def test_a_database_is_followed(bed: Bed, postgres: PostgresServer, shared_session: Any, tmp_path: Path) -> None:
    """Copy and log, with payloads in files that the other machine reads; then on from the same checkpoint."""
    lake = bed.lake("cdc", shared_session)
    checkpoint = bed.checkpoint("cdc-checkpoint")
    _sync(bed, lake, postgres, checkpoint)
    assert _same(lake, postgres)
    postgres.execute("UPDATE a SET v = 'x' || v WHERE id % 2 = 0", "DELETE FROM a WHERE id > 19000")
    _sync(bed, lake, postgres, checkpoint)
    assert _same(lake, postgres)
    assert SECRET_KEY not in bed.told()
    assert postgres.password not in [word.strip('"') for word in bed.told().split()]


def test_a_checkpoint_that_tasks_do_not_see_is_refused(bed: Bed, postgres: PostgresServer, shared_session: Any) -> None:
    if not bed.network.is_real:
        pytest.skip("without namespaces all processes see all directories")
    lake = bed.lake("unseen", shared_session)
    with pytest.raises(InvalidArgument, match="not seen by Spark's tasks"):
        _sync(bed, lake, postgres, str(bed.driver_only / "checkpoint"))
    assert postgres.query("SELECT count(*) FROM pg_replication_slots") == [(0,)]


@pytest.fixture(scope="module")
def shared_session(bed: Bed) -> Iterator[Any]:
    """A session whose executors know the password, and whose Spark can write to the store if that can be had."""
    session = bed.session(**{f"spark.executorEnv.{PASSWORD_ENV}": "shop"}, **bed.hadoop())
    yield session
    session.stop()
