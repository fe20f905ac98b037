"""A random workload in a real PostgreSQL, followed by a sync: at every quiet point the lake equals the database."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.application import Application
from tests.cdc.pipeline.comparing import SYNC, assert_replays, differences, follow
from tests.cdc.pipeline.dialects import Postgres
from tests.cdc.pipeline.workload import Workload

import lakebed

pytestmark = pytest.mark.spark


def _follow(database: Any, spark: Any, place: Path, seed: int, rounds: int, steps: int) -> None:
    lake = lakebed.connect(place / "warehouse", spark=spark)
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        options = {"url": database.url, "slot": database.name, "discovery_ms": 500}
        follow(lake, workload, rounds, steps, "postgres", source_options=options, checkpoint=place / "checkpoint")


def test_the_lake_equals_the_database(any_database: Any, spark: Any, tmp_path: Path) -> None:
    """Random rows, transactions and schema changes: equal at every quiet point, and the changelog replays to it."""
    _follow(any_database, spark, tmp_path, seed=1, rounds=1, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10, 20))
def test_the_lake_equals_any_database_for_long(any_database: Any, spark: Any, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _follow(any_database, spark, tmp_path, seed, rounds=8, steps=30)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sync_that_is_killed_loses_and_doubles_nothing(database: Any, tmp_path: Path, seed: int) -> None:
    """`kill -9` of the whole application while rows and columns change; the next one goes on."""
    rng = random.Random(seed)
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:{database.server.user}:{database.server.password}\n")
    passfile.chmod(0o600)
    settings = database.settings(discovery_ms=500)
    options = {name: getattr(settings, name) for name in ("host", "port", "database", "user", "slot", "discovery_ms")}
    arguments = {"source": "postgres", "database": "lk", "source_options": {**options, "passfile": str(passfile)}}
    application = Application(tmp_path, {**arguments, **SYNC})
    lake = lakebed.connect(tmp_path / "warehouse")
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        for kill in range(int(os.environ.get("LAKEBED_TEST_KILLS", "10"))):
            workload.round(10, with_ddl=kill % 2 == 0)
            application.run_until_death(rng)
        application.run_until(lambda: differences(lake, workload))
    assert_replays(lake, workload)
