"""`kill -9` of the server and of the application, again and again: nothing is lost, nothing comes twice.

A ledger that only grows shows duplicates, which tables with keys would hide: an entry is one insert in the changelog.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cdc.application import Application
from tests.cdc.conftest import VERSIONS
from tests.cdc.postgres.following import Follower, database_rows

import lakebed
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.errors import LakebedError
from lakebed.testing.followed_rows import plain_values
from lakebed.testing.postgres_server import PostgresServer
from lakebed.testing.postgres_workload import RandomWorkload

KILLS = int(os.environ.get("LAKEBED_TEST_KILLS", "30"))
LEDGER = "CREATE TABLE ledger (id bigserial PRIMARY KEY, note text)"


def _prepare(server: PostgresServer) -> None:
    with server.connect() as connection:
        workload = RandomWorkload(connection, 0)
        workload.create_tables()
        workload.run(60)
        connection.execute(LEDGER)
        connection.execute("INSERT INTO ledger (note) SELECT 'first' FROM generate_series(1, 500)")


@contextmanager
def _writing(server: PostgresServer, writers: int, pause_s: float) -> Iterator[None]:
    """Writers that go on, whatever happens to the server."""
    is_over = threading.Event()

    def write(seed: int) -> None:
        while not is_over.is_set():
            with suppress(psycopg.Error), server.connect() as connection:
                workload = RandomWorkload(connection, random.getrandbits(30) + seed)
                while not is_over.is_set():
                    with suppress(psycopg.errors.UniqueViolation):
                        workload.step()
                        connection.execute("INSERT INTO ledger (note) VALUES ('more')")
                    is_over.wait(pause_s)
            is_over.wait(0.05)

    threads = [threading.Thread(target=write, args=[seed]) for seed in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_the_server_dies_often(tmp_path: Path, version: int, mode: str) -> None:
    """The server is killed while tables are copied, followed and written to; batches fail and are read again."""
    rng = random.Random(version)
    with PostgresServer(version) as server:
        _prepare(server)
        settings = PostgresSettings.of(server.url, mode=mode, copy_chunk_bytes=8192, copy_chunks_per_batch=2)
        follower = Follower(settings, tmp_path)
        is_done = threading.Event()

        def kill() -> None:
            try:
                for _ in range(KILLS):
                    time.sleep(rng.uniform(0.1, 1.5))
                    server.kill()
                    server.start()
            finally:
                is_done.set()

        killer = threading.Thread(target=kill)
        with _writing(server, 2, 0.0):
            killer.start()
            while not is_done.is_set():
                with suppress(LakebedError, psycopg.Error):
                    follower.step(commits=rng.random() < 0.7)
            killer.join()
        follower.follow()
        follower.compare()
        follower.planner.stop()


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("mode", ["replication", "peek"])
def test_the_application_dies_often(tmp_path: Path, mode: str) -> None:
    """The application is killed at any moment and at each step of a batch; the next one goes on from the checkpoint."""
    rng = random.Random(7)
    with PostgresServer(VERSIONS[-1]) as server:
        _prepare(server)
        lakebed.connect(tmp_path / "warehouse").create_database("shop")
        passfile = tmp_path / "pgpass"
        passfile.write_text(f"*:*:*:{server.user}:{server.password}\n")
        passfile.chmod(0o600)
        given: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": server.port,
            "user": server.user,
            "database": server.database,
            "passfile": str(passfile),
            "excluding": "Odd.*",
            "mode": mode,
            "copy_chunk_bytes": 8192,
            "copy_chunks_per_batch": 2,
            "heartbeat_ms": 1000,
        }
        conf = {"bucket": "1", "changelog-producer": "input"}
        arguments = {"source": "postgres", "database": "shop", "source_options": given, "table_conf": conf}
        application = Application(tmp_path, arguments)
        with _writing(server, 1, 0.02):
            for _ in range(KILLS):
                application.run_until_death(rng)
        application.run_until(lambda: _differing(PostgresSettings.of(**given), tmp_path))
        _assert_once(server, tmp_path)


def _differing(settings: PostgresSettings, place: Path) -> list[str]:
    lake = lakebed.connect(place / "warehouse")
    known = lake.tables("shop")
    differing = []
    for name, expected in database_rows(settings).items():
        if name.table not in known:
            differing.append(name.table)
            continue
        table = lake.table(f"shop.{name.table}")
        rows = table.to_arrow().combine_chunks()
        columns = {column: plain_values(rows.column(column).combine_chunks()) for column in rows.schema.names}
        found = {}
        for i in range(rows.num_rows):
            row = {column: values[i] for column, values in columns.items()}
            found[tuple(row[column] for column in table.primary_key)] = row
        if found != expected:
            differing.append(name.table)
    return differing


def _assert_once(server: PostgresServer, place: Path) -> None:
    """Every entry of the ledger is one insert in the changelog of its table."""
    changes = lakebed.connect(place / "warehouse").table("shop.ledger").changes()
    assert set(changes.column("rowkind").to_pylist()) == {"+I"}
    counts = Counter(changes.column("id").to_pylist())
    assert max(counts.values()) == 1
    assert set(counts) == {key for (key,) in server.query("SELECT id FROM ledger")}
