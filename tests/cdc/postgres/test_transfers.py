"""Transfers between two tables of a PostgreSQL under load: nobody who reads both at one cut sees half of one."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.transfers import TOTAL, Watch, create, transferring
from tests.patience import PATIENCE_S

import lakebed

CONF = {"bucket": "1", "snapshot.num-retained.min": "100000", "snapshot.num-retained.max": "100000"}


def _followed(database: Any, place: Path, each: int, dies: float, **conf: str) -> Watch:
    """Batches of a sync in one thread, transfers in others, and somebody who looks all the time."""
    with database.connect() as connection:
        create(connection.execute)
    options = {"url": database.url, "slot": database.name, "discovery_ms": 100, "copy_chunks_per_batch": 1}
    options |= {"max_wal_bytes_per_batch": 8000}
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
        with transferring(database.connect, 3, each, 0.01) as is_done:
            follower.start()
            while not is_done() and not failed:
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


@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_no_transfer_is_seen_in_part(database: Any, tmp_path: Path, producer: str) -> None:
    """All totals are the same, of each read and of each snapshot of each view, while batches die between commits."""
    watch = _followed(database, tmp_path, each=60, dies=0.05, **{"changelog-producer": producer})
    watch.assert_right()
    assert len(watch.cuts) > 3
    assert watch.refreshes > 3
    assert watch.newest - {TOTAL}, "the newest snapshots always fitted together: the test shows nothing"
