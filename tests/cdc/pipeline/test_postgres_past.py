"""A sync of a real PostgreSQL that keeps the past: deleted rows, changes, versions, while batches die and are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.dialects import Postgres
from tests.cdc.pipeline.past import keep_locally
from tests.cdc.pipeline.workload import Workload

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
