"""The random workload of PostgreSQL once more, without Spark: batches that die anywhere and are repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.pipeline.comparing import follow_locally
from tests.cdc.pipeline.dialects import Postgres
from tests.cdc.pipeline.workload import Workload


def _follow(database: Any, place: Path, seed: int, rounds: int, steps: int) -> None:
    mode = ("peek", "replication")[seed % 2]
    options = {"url": database.url, "slot": database.name, "discovery_ms": 100, "mode": mode}
    with database.connect() as connection:
        workload = Workload(Postgres(connection), seed)
        follow_locally(workload, place, seed, rounds, steps, "postgres", source_options=options)


def test_batches_that_die_and_are_repeated(database: Any, tmp_path: Path) -> None:
    """Schema changes of every kind, and batches that die at any step: equal at every quiet point.

    How versions differ shows on Spark, by day too (`test_postgres_workload`): what dies is the same code for all.
    """
    _follow(database, tmp_path, seed=116, rounds=1, steps=15)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 130))
def test_batches_that_die_often(any_database: Any, tmp_path: Path, seed: int) -> None:
    """The same with more of everything."""
    _follow(any_database, tmp_path, seed, rounds=4, steps=25)
