"""`kill -9` of the server and of the application, again and again: nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pymysql.err import Error

import lakebed
from lakebed.cdc.sources.mysql.follow import Follow, any_of
from lakebed.cdc.sources.mysql.settings import ServerSettings, keep_password
from lakebed.cdc.sources.mysql.spark_source import MySqlStreamReader
from lakebed.errors import LakebedError
from lakebed.testing.mariadb_server import PASSWORD, USER, MariaDbServer, mariadb_missing

from .conftest import Database
from .replica import Follower
from .test_following import TABLES, _assert_equal, _prepare, _transaction

ROOT = Path(__file__).parents[3]
_START_S = 300.0


@pytest.fixture
def durable() -> Iterator[Database]:
    """A database on a server of its own that keeps what it has committed, whatever happens to it."""
    if (reason := mariadb_missing()) is not None:
        pytest.skip(reason)
    with MariaDbServer(durable=True) as server:
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
    follow = Follow(databases=any_of([db.name]), copy_chunk_rows=60, copy_chunks_per_batch=2)
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
    with _writing(db, 1, 0.005):
        for _ in range(kills):
            _run_until_death(place, settings, rng.randrange(12), rng.uniform(0.0, 0.5))
    _catch_up(db, place, settings)


def _application(place: Path, settings: dict[str, object]) -> subprocess.Popen[str]:
    with (place / "errors").open("w") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cdc.mysql.sync_worker", os.fspath(place), json.dumps(settings)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def _run_until_death(place: Path, settings: dict[str, object], steps: int, moment_s: float) -> None:
    """Starts the application and kills it with its JVM and its workers, a moment after so many steps of its batches."""
    with _application(place, settings) as application:
        assert application.stdout is not None
        try:
            while (line := application.stdout.readline()) and "started" not in line:
                pass
            for _ in range(steps):
                line = line and application.stdout.readline()
            assert line, (place / "errors").read_text()[-3000:]
            time.sleep(moment_s)
            assert application.poll() is None, (place / "errors").read_text()[-3000:]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(application.pid, signal.SIGKILL)


def _catch_up(db: Database, place: Path, settings: dict[str, object]) -> None:
    """Runs the application until the lake equals the database, which is at rest."""
    with _application(place, settings) as application:
        try:
            deadline = time.monotonic() + _START_S
            while (differing := _differing(db, place)) and time.monotonic() < deadline:
                assert application.poll() is None, (place / "errors").read_text()[-3000:]
                time.sleep(1)
            assert not differing
        finally:
            with suppress(ProcessLookupError):
                os.killpg(application.pid, signal.SIGKILL)


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
