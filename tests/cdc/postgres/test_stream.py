"""Copy and stream together, driven as Spark drives them: what comes out is the database."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cdc.postgres.following import Follower

from lakebed.testing.postgres_workload import RandomWorkload


def _settings(database: Any, **given: Any) -> Any:
    return database.settings(**({"mode": "peek", "copy_chunk_bytes": 8192, "copy_chunks_per_batch": 3} | given))


@pytest.mark.parametrize("mode", ["peek", "replication"])
def test_copy_then_stream_gives_the_database(any_database: Any, tmp_path: Path, mode: str) -> None:
    """Rows that were there, and random changes of all types afterwards, arrive once each, in every mode."""
    with any_database.connect() as connection:
        workload = RandomWorkload(connection, 11)
        workload.create_tables()
        workload.run(60)
        follower = Follower(_settings(any_database, mode=mode), tmp_path)
        follower.follow()
        follower.compare()
        for _ in range(3):
            workload.run(40)
            follower.follow()
            follower.compare()
        follower.planner.stop()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 12))])
def test_copy_under_writers_has_no_gap_and_no_duplicate(any_database: Any, tmp_path: Path, seed: int) -> None:
    """Parts are copied and the log is read while others write: no change is lost, none comes twice."""
    with any_database.connect() as connection:
        RandomWorkload(connection, seed).create_tables()
        RandomWorkload(connection, seed).run(80)
    is_over = threading.Event()
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            with any_database.connect() as own:
                workload = RandomWorkload(own, 100 * seed + number)
                while not is_over.is_set():
                    _careful(workload)
        except Exception as error:  # noqa: BLE001 - shown at the end
            failures.append(error)

    writers = [threading.Thread(target=write, args=[number]) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        follower = Follower(_settings(any_database, copy_chunks_per_batch=2), tmp_path)
        for _ in range(25):
            follower.step()
    finally:
        is_over.set()
        for writer in writers:
            writer.join()
    assert not failures
    follower.follow()
    follower.compare()
    follower.planner.stop()


def _careful(workload: RandomWorkload) -> None:
    """A step that may lose against another writer."""
    with contextlib.suppress(psycopg.OperationalError, psycopg.errors.UniqueViolation):
        workload.step()
