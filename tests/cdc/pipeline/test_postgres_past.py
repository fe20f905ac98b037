"""A sync of a real PostgreSQL that keeps the past, while rows and columns change, and batches die and are repeated."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.application import Application
from tests.cdc.pipeline.dialects import Postgres
from tests.cdc.pipeline.past import PAST, keep_locally, past_differences
from tests.cdc.pipeline.workload import Workload
from tests.patience import PATIENCE_S

import lakebed
import lakebed.cdc
from lakebed.cdc.sources.postgres.names import parse_lsn


def _keep(database: Any, place: Path, seed: int, rounds: int, steps: int) -> None:
    mode = ("peek", "replication")[seed % 2]
    options = {"url": database.url, "slot": database.name, "discovery_ms": 100, "mode": mode}
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        keep_locally(workload, place, seed, rounds, steps, "postgres", parse_lsn, source_options=options)


def test_the_past_of_any_workload(database: Any, tmp_path: Path) -> None:
    """Rows and columns of every kind change: newest rows, current versions, marks and audit agree with the database."""
    _keep(database, tmp_path, seed=117, rounds=1, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 120))
def test_the_past_of_any_workload_for_long(any_database: Any, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _keep(any_database, tmp_path, seed, rounds=4, steps=25)


@pytest.mark.spark
def test_the_past_by_tasks_of_spark(database: Any, spark: Any, tmp_path: Path) -> None:
    """Every batch is written by tasks: they find what rows were, and the past agrees with the database."""
    lake = lakebed.connect(tmp_path / "warehouse", spark=spark)
    options = {"url": database.url, "slot": database.name, "discovery_ms": 500}
    with database.connect() as connection:
        workload = Workload(Postgres(connection), 5)
        run = lakebed.cdc.sync(
            lake,
            "postgres",
            "lk",
            source_options=options,
            checkpoint=tmp_path / "checkpoint",
            trigger="200 milliseconds",
            audit=True,
            here_bytes=-1,
            **PAST,
        )
        try:
            for _ in range(2):
                deadline = time.monotonic() + PATIENCE_S
                while (wrong := past_differences(lake, workload, parse_lsn)) and time.monotonic() < deadline:
                    run.check()
                    time.sleep(0.5)
                assert not wrong, (wrong[:5], workload.done[-40:])
                workload.round(20)
        finally:
            run.stop()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sync_that_is_killed_keeps_the_whole_past(database: Any, tmp_path: Path, seed: int) -> None:
    """`kill -9` of the whole application while rows and columns change; the next one loses no version."""
    rng = random.Random(seed)
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:{database.server.user}:{database.server.password}\n")
    passfile.chmod(0o600)
    settings = database.settings(discovery_ms=500)
    options = {name: getattr(settings, name) for name in ("host", "port", "database", "user", "slot", "discovery_ms")}
    arguments = {"source": "postgres", "database": "lk", "source_options": {**options, "passfile": str(passfile)}}
    application = Application(tmp_path, {**arguments, **PAST, "audit": True, "here_bytes": -1 if seed % 2 else 1 << 24})
    lake = lakebed.connect(tmp_path / "warehouse")
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        for kill in range(int(os.environ.get("LAKEBED_TEST_KILLS", "10"))):
            workload.round(10, with_ddl=kill % 2 == 0)
            application.run_until_death(rng)
        application.run_until(lambda: past_differences(lake, workload, parse_lsn))
