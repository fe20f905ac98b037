"""`kill -9` of the server and of the application, again and again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pymysql.err import Error
from tests.cdc.application import Application

import lakebed
from lakebed.cdc.sources.mysql.log.dump import BinlogDump
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader
from lakebed.errors import LakebedError, StorageError
from lakebed.testing.sql_server import PASSWORD, USER

from .conftest import Database, make_server
from .replica import Follower
from .test_following import TABLES, _assert_equal, _prepare, _transaction


@pytest.fixture
def durable(server_kind: str) -> Iterator[Database]:
    """A database on a server of its own that keeps what it has committed, whatever happens to it."""
    with make_server(server_kind, durable=True) as server:
        server.execute("CREATE DATABASE shop")
        connection = server.connect(database="shop")
        yield Database(
            server, "shop", connection, ServerSettings("127.0.0.1", server.port, USER, keep_password(PASSWORD))
        )
        connection._force_close()


@contextmanager
def _writing(db: Database, writers: int, pause_s: float = 0.0, *, two_phases: bool = True) -> Iterator[None]:
    """Writers that go on, whatever happens to the server."""
    stop = threading.Event()

    def write(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            with suppress(Error, OSError, RuntimeError):
                connection = db.server.connect(database=db.name)
                try:
                    while not stop.is_set():
                        _transaction(rng, connection, 400, two_phases=two_phases)
                        stop.wait(pause_s)
                finally:
                    connection._force_close()
            stop.wait(0.05)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _kill_server(db: Database, kills: int) -> None:
    rng = random.Random(kills)
    _prepare(db, 300)
    follow = Follow(databases=re.escape(db.name), copy_chunk_rows=60, copy_chunks_per_batch=2)
    follower = Follower(MySqlStreamReader(db.settings, follow))
    done = threading.Event()

    def kill() -> None:
        for _ in range(kills):
            time.sleep(rng.uniform(0.1, 1.0))
            db.server.kill()
            db.server.start()
        done.set()

    killer = threading.Thread(target=kill)
    # A server that dies between logging the second phase of a transaction and doing it contradicts its own log: with
    # such transactions nothing that reads the log can be equal to the tables.
    with _writing(db, 2, two_phases=False):
        killer.start()
        while not done.is_set():
            with suppress(LakebedError):
                follower.step(crashes=rng.choice([0, 0, 1]))
        killer.join()
    db.reconnect()
    follower.catch_up()
    _assert_equal(db, follower)
    assert follower.is_copied
    follower.reader.stop()


def test_the_server_dies(durable: Database) -> None:
    """The server is killed while tables are copied and followed, and written to."""
    _kill_server(durable, 3)


@pytest.mark.nightly
def test_the_server_dies_often(durable: Database) -> None:
    """The same, thirty times."""
    _kill_server(durable, 30)


def _kill_application(db: Database, place: Path, kills: int) -> None:
    rng = random.Random(kills)
    _prepare(db, 300)
    lakebed.connect(place / "warehouse").create_database("shop")
    secret = place / "password"
    secret.write_text(PASSWORD)
    settings = {
        "port": db.server.port,
        "user": USER,
        "password_file": os.fspath(secret),
        "database": db.name,
        "copy_chunk_rows": 100,
        "copy_chunks_per_batch": 2,
    }
    conf = {"bucket": "1"}
    application = Application(
        place, {"source": "mysql", "database": "shop", "source_options": settings, "table_conf": conf}
    )
    with _writing(db, 1, 0.005):
        for _ in range(kills):
            application.run_until_death(rng, most_steps=12, most_s=0.5)
    application.run_until(lambda: _differing(db, place))


def _differing(db: Database, place: Path) -> list[str]:
    lake = lakebed.connect(place / "warehouse")
    known = lake.tables("shop")
    differing = []
    for table in TABLES:
        names = [row[0] for row in db.run(f"SHOW COLUMNS FROM {table}")]
        expected = sorted(map(repr, db.run(f"SELECT * FROM {table}")))
        if table not in known:
            differing.append(table)
            continue
        rows = lake.table(f"shop.{table}").to_arrow().to_pylist()
        if sorted(repr(tuple(row[name] for name in names)) for row in rows) != expected:
            differing.append(table)
    return differing


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_the_application_dies_often(durable: Database, tmp_path: Path) -> None:
    """The Spark application is killed while it copies and follows; the next one goes on from the checkpoint."""
    _kill_application(durable, tmp_path, int(os.environ.get("LAKEBED_TEST_KILLS", "30")))


def test_a_connection_that_breaks_while_the_log_is_asked_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as an error of ours, so that whoever reads the log tries again."""
    connect = ServerSettings.connect_patiently

    def broken(self: ServerSettings, **more: Any) -> Any:
        connection = connect(self, **more)
        connection._sock.shutdown(socket.SHUT_RDWR)
        return connection

    monkeypatch.setattr(ServerSettings, "connect_patiently", broken)
    with pytest.raises(StorageError, match="gave up"):
        BinlogDump(db.settings, ("", 4), 7)
