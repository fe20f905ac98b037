"""A stream that catches up on much keeps a connection, and decodes what arrives in pieces that know each other not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cdc.postgres.following import Follower

from lakebed.cdc.sources.postgres import planner
from lakebed.cdc.sources.postgres.log import frames as copy_frames
from lakebed.cdc.sources.postgres.log import replication

TABLES = ("CREATE TABLE t (id int PRIMARY KEY, v text, n int)", "CREATE TABLE u (id int PRIMARY KEY, v text)")


@pytest.fixture
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is cut as if it were large."""
    monkeypatch.setattr(copy_frames, "_ROOM_BYTES", 4 << 10)
    monkeypatch.setattr(copy_frames, "_MOST_BYTES", 8 << 10)
    monkeypatch.setattr(replication, "_SEGMENT_BYTES", 4 << 10)
    monkeypatch.setattr(planner, "_PEEKED_BYTES", 1)
    monkeypatch.setattr(planner, "_LEAST_BATCH_BYTES", 1 << 20)
    monkeypatch.setattr(planner, "_PIECE_BYTES", 6 << 10)


def change(database: Any, first: int) -> None:
    """One transaction of many rows in two tables, and many of a few."""
    database.execute(
        f"DO $$ BEGIN INSERT INTO t SELECT i, repeat('x', i % 40), i FROM generate_series({first}, {first + 999}) i; "
        f"INSERT INTO u SELECT i, 'u' || i FROM generate_series({first}, {first + 499}) i; "
        f"UPDATE t SET n = -n WHERE id >= {first} AND id % 3 = 0; DELETE FROM u WHERE id >= {first} AND id % 5 = 0; "
        "END $$",
        f"DO $$ BEGIN FOR k IN {first}..{first + 99} LOOP UPDATE t SET v = 'changed' WHERE id = k; "
        "DELETE FROM u WHERE id = k; INSERT INTO u VALUES (k, 'again'); COMMIT; END LOOP; END $$",
        "TRUNCATE u",
        f"INSERT INTO u SELECT i, 'after' FROM generate_series({first}, {first + 199}) i",
    )


@pytest.mark.usefixtures("in_small_pieces")
def test_a_backlog_in_pieces(database: Any, tmp_path: Path) -> None:
    """Segments that begin in the middle of a transaction give the same rows, once, also if a batch is read again."""
    database.execute(*TABLES)
    follower = Follower(database.settings(max_wal_bytes_per_batch=2 << 20), tmp_path)
    while follower.offset is None or follower.offset.chunks < len(follower.state.parts()):
        follower.step()
    for first in (1, 1001):
        change(database, first)
        follower.restart()
        follower.planner.end_at_now()
        start = follower.offset
        end = follower.planner.latest(start, follower.settings.max_wal_bytes_per_batch)
        assert len(follower.planner.pieces(start, end)) > 1  # what a run that was killed has planned
        follower.restart()
        follower.planner.end_at_now()
        while follower.step():
            pass
        follower.compare()
    follower.planner.stop()
