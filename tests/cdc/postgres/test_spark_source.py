"""The source inside Spark: batches, restarts, both triggers; and no secret in anything Spark shows."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cdc.postgres.following import database_rows
from tests.patience import PATIENCE_S

from lakebed.cdc.envelope import chunks_from_arrow
from lakebed.cdc.sources.postgres import PostgresSource
from lakebed.testing.followed_rows import FollowedRows
from lakebed.testing.postgres_workload import RandomWorkload

pytestmark = pytest.mark.spark


def _source(database: Any, tmp_path: Path, **given: Any) -> PostgresSource:
    source = PostgresSource(database.url, slot=database.name, copy_chunk_bytes=8192, heartbeat_ms=500, **given)
    source.check()
    source.keep_state_in(str(tmp_path / "checkpoint" / "source"))
    source.prepare()
    return source


def _start(
    spark: Any, source: PostgresSource, rows: FollowedRows, tmp_path: Path, is_over: threading.Event, **trigger: Any
) -> Any:
    def apply(batch: Any, batch_id: int) -> None:
        try:
            rows.apply(chunks_from_arrow(batch.toArrow()))
        except Exception:
            if not is_over.is_set():  # a query that is stopped interrupts its batch
                raise

    writer = source.stream(spark).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    return writer.foreachBatch(apply).trigger(**trigger).start()


def test_available_now_follows_the_database(spark: Any, database: Any, tmp_path: Path) -> None:
    """Two runs that catch up and end: copy and changes arrive, the slot moves on, the password shows nowhere."""
    with database.connect() as connection:
        workload = RandomWorkload(connection, 3)
        workload.create_tables()
        workload.run(40)
        source, rows = _source(database, tmp_path), FollowedRows()
        for _ in range(2):
            workload.run(20)
            query = _start(spark, source, rows, tmp_path, threading.Event(), availableNow=True)
            query.awaitTermination(PATIENCE_S)
            assert query.exception() is None
            assert rows.faults == []
            assert rows.tables == database_rows(source.settings)
        shown = str(query.lastProgress) + repr(source) + str(source.reader_options())
        assert database.server.password not in shown.replace(database.server.database, "")


def test_continuous_stream_keeps_one_connection(spark: Any, database: Any, tmp_path: Path) -> None:
    """Changes arrive while the query runs; after a stop and a new start it goes on; idle, the slot still moves on."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    database.execute("CREATE TABLE noise (id int)")
    source, rows = _source(database, tmp_path, including="t"), FollowedRows()
    for turn in range(2):
        is_over = threading.Event()
        query = _start(spark, source, rows, tmp_path, is_over, processingTime="100 milliseconds")
        try:
            database.execute(f"INSERT INTO t VALUES ({10 + turn}, 'x')", "UPDATE t SET v = v || '!' WHERE id = 1")
            _until(lambda: rows.tables == database_rows(source.settings), query)
            database.execute("INSERT INTO noise SELECT generate_series(1, 1000)")
            place = _flushed(database)
            _until(lambda place=place: _confirmed(database) >= place, query)
        finally:
            is_over.set()
            query.stop()
    assert rows.faults == []


def _flushed(database: Any) -> int:
    return int(database.query("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")[0][0])


def _confirmed(database: Any) -> int:
    slots = database.query(
        "SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = current_database()"
    )
    return int(slots[0][0])


def _until(is_so: Any, query: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        time.sleep(0.2)
