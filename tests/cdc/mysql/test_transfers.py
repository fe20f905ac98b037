"""Transfers between two tables of a MariaDB or MySQL: nobody who reads both at one cut sees half of one."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.mysql.conftest import Database
from tests.cdc.pipeline.local_sync import LocalSync
from tests.cdc.transfers import SUM, TOTAL, create, transfer
from tests.patience import PATIENCE_S

import lakebed
from lakebed.errors import NotFound
from lakebed.testing.sql_server import PASSWORD, USER


@pytest.mark.mysql
def test_no_transfer_is_seen_in_part(db: Database, tmp_path: Path) -> None:
    """While tables are copied there is no cut; after that each shows the same total, and says the server's position."""
    create(db.run)
    rng = random.Random(5)
    lake = lakebed.connect(tmp_path / "warehouse")
    seen: list[tuple[int, str | None]] = []
    newest: set[int] = set()
    is_quiet: list[bool] = []

    class Looking(LocalSync):
        def _step_made(self, name: str) -> None:
            if name == "commit" and self._batch_id % 3 and not is_quiet:
                transfer(db.run, rng)  # comes while a batch is made
            if name in ("committed", "note"):
                newest.add(lake.query(SUM).fetchall()[0][0])
                try:
                    found = lake.consistent("accounts_a", "accounts_b")
                except NotFound:
                    return
                seen.append((found.query(SUM).fetchall()[0][0], found.position))
            super()._step_made(name)

    server = {"port": db.server.port, "user": USER, "password": PASSWORD, "database": db.name}
    options = {**server, "copy_chunk_rows": 7, "copy_chunks_per_batch": 1}
    lake.create_database("lk")
    lake.use("lk")
    sync = Looking(lake, "mysql", tmp_path / "checkpoint", source_options=options, table_conf={"bucket": "1"})
    try:
        for _ in range(12):
            for _ in range(5):
                transfer(db.run, rng)
            sync.step()
        is_quiet.append(True)
        _catch_up(sync, db)
        assert {total for total, _ in seen} == {TOTAL}
        assert newest - {TOTAL}
        assert json.loads(json.dumps(sync._offset))["position"] == lake.consistent("accounts_a", "accounts_b").position
        middle = seen[len(seen) // 2][1]
        assert middle is not None
        assert lake.at("accounts_a", "accounts_b", position=middle).query(SUM).fetchall() == [(TOTAL,)]
    finally:
        sync.stop()
    found = lake.consistent("accounts_a", "accounts_b")
    for name in found:
        rows: list[Any] = db.run(f"SELECT id, v FROM {name.partition('.')[2]} ORDER BY id")
        assert sorted(found.query(f"SELECT id, v FROM {name}").fetchall()) == rows


def _catch_up(sync: LocalSync, db: Database) -> None:
    """Batches up to the end of the log, while nobody writes."""
    deadline = time.monotonic() + PATIENCE_S
    while sync._offset["position"] != str(db.position()) or sync._offset["copy"]:
        assert time.monotonic() < deadline
        sync.step()
