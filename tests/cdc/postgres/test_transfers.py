"""Transfers between two tables of a PostgreSQL under load: nobody who reads both at one cut sees half of one."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.application import Application
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.transfers import TOTAL, Watch, create, transferring
from tests.patience import PATIENCE_S
from tests.thinning import by_day

import lakebed

CONF = {"bucket": "1", "snapshot.num-retained.min": "100000", "snapshot.num-retained.max": "100000"}


def _followed(database: Any, place: Path, transactions: int, dies: float, **conf: str) -> Watch:
    """Batches of a sync in one thread, transfers in others, and somebody who looks all the time."""
    with database.connect() as connection:
        create(connection.execute)
    options = {"url": database.url, "slot": database.name, "discovery_ms": 100, "copy_chunks_per_batch": 1}
    options |= {"max_wal_bytes_per_batch": 3000}
    lake = lakebed.connect(place / "warehouse")
    sync = LocalSync(lake, "postgres", place / "checkpoint", dies=dies, source_options=options, table_conf=CONF | conf)
    watch = Watch(lakebed.connect(place / "warehouse"), "lk")
    watch.make_views()
    is_over = threading.Event()
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            while not is_over.is_set():
                if not sync.step():
                    time.sleep(0.01)
        except BaseException as error:  # noqa: BLE001 - told by the other thread
            failed.append(error)

    follower = threading.Thread(target=follow)
    try:
        with transferring(database.connect, 3, 0.01) as made:
            follower.start()
            while not failed and (made() < transactions or len(watch.cuts) < 2):
                watch.look()
        deadline = time.monotonic() + PATIENCE_S
        while not failed and watch.rows() != _rows_of(database) and time.monotonic() < deadline:
            watch.look()
    finally:
        is_over.set()
        follower.join()
        sync.stop()
    assert not failed
    assert watch.rows() == _rows_of(database)
    return watch


def _rows_of(database: Any) -> list[Any]:
    return [database.query(f"SELECT * FROM {name} ORDER BY id") for name in ("accounts_a", "accounts_b")]


@pytest.mark.parametrize("producer", by_day(["input", "lookup"], "input"))
def test_no_transfer_is_seen_in_part(database: Any, tmp_path: Path, producer: str) -> None:
    """All totals are the same, of each read and of each snapshot of each view, while batches die between commits."""
    watch = _followed(database, tmp_path, transactions=200, dies=0.05, **{"changelog-producer": producer})
    watch.assert_right()
    assert len(watch.cuts) > 1
    assert watch.refreshes > 1


def _killed(database: Any, place: Path, transactions: int, kills: int, worker: str) -> Watch:
    """A sync in a process of its own, which is killed with all it has started and begun again."""
    with database.connect() as connection:
        create(connection.execute)
    lake = lakebed.connect(place / "warehouse")
    lake.create_database("lk")
    watch = Watch(lake, "lk")
    passfile = place / "pgpass"
    passfile.write_text(f"*:*:*:{database.server.user}:{database.server.password}\n")
    passfile.chmod(0o600)
    options = {
        **{"host": "127.0.0.1", "port": database.server.port, "user": database.server.user, "database": database.name},
        **{"passfile": str(passfile), "slot": database.name, "copy_chunks_per_batch": 1, "heartbeat_ms": 500},
        "max_wal_bytes_per_batch": 20_000,
    }
    conf = CONF | {"changelog-producer": "input"}
    arguments = {"source": "postgres", "source_options": options, "table_conf": conf}
    if worker == "sync_worker":
        arguments["database"] = "lk"
    application = Application(place, arguments, worker)
    rng = random.Random(kills)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            if {"accounts_a", "accounts_b"} <= set(watch.lake.tables()):
                watch.make_views()
                watch.look()
            is_over.wait(0.05)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            with transferring(database.connect, 2, 0.02) as made:
                for _ in range(kills):
                    application.run_until_death(rng, most_s=3.0)
                application.run_until(
                    lambda: ["more"] if not looking.done() and (made() < transactions or len(watch.cuts) < 3) else []
                )
            application.run_until(lambda: ["rows"] if not looking.done() and watch.rows() != _rows_of(database) else [])
        finally:
            is_over.set()
        looking.result()
    watch.look()
    return watch


def test_the_sync_is_killed(database: Any, tmp_path: Path) -> None:
    """A few hundred transfers, and the process dies by SIGKILL: every total is the same."""
    _killed(database, tmp_path, 200, 2, "local_worker").assert_right()


@pytest.mark.nightly
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("worker", ["local_worker", pytest.param("sync_worker", marks=pytest.mark.spark)])
def test_the_sync_is_killed_often(database: Any, tmp_path: Path, worker: str) -> None:
    """Ten thousand transfers, and many deaths, on Spark too; the newest snapshots were seen not to fit together."""
    watch = _killed(database, tmp_path, 10_000, 20, worker)
    watch.assert_right()
    assert watch.newest - {TOTAL}


@pytest.mark.nightly
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_ten_thousand_transfers(database: Any, tmp_path: Path, producer: str) -> None:
    """The same as with a few, for long; the newest snapshots were seen not to fit together."""
    watch = _followed(database, tmp_path, transactions=10_000, dies=0.03, **{"changelog-producer": producer})
    watch.assert_right()
    assert watch.newest - {TOTAL}
