"""Drives a source as Spark does, without Spark, and compares what comes out with the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

from lakebed.cdc.envelope import SourceName, chunks_from_arrow
from lakebed.cdc.sources.postgres.connect import session
from lakebed.cdc.sources.postgres.copy.read import copy_out, csv_texts
from lakebed.cdc.sources.postgres.log.chunk_rows import copied_chunks
from lakebed.cdc.sources.postgres.log.relations import followed_table
from lakebed.cdc.sources.postgres.names import Offset, parse_lsn, quote_name, quote_table
from lakebed.cdc.sources.postgres.planner import StreamPlanner, read_piece
from lakebed.cdc.sources.postgres.server.catalog import Catalog
from lakebed.cdc.sources.postgres.settings import PostgresSettings
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.testing.followed_rows import FollowedRows


class Follower:
    """A stream with its checkpoint: offsets are kept in memory, rows in dictionaries."""

    def __init__(self, settings: PostgresSettings, directory: Path, *, is_strict: bool = True) -> None:
        self.settings = settings
        self.state = SourceState(str(directory / "state"))
        self.rows = FollowedRows(is_strict=is_strict)
        self.offset: Offset | None = None
        self.planner = StreamPlanner(settings, self.state)
        self.batches = 0

    def restart(self) -> None:
        """A new process with the same checkpoint."""
        self.planner.stop()
        self.planner = StreamPlanner(self.settings, self.state)

    def step(self, *, commits: bool = True, between: Callable[[], None] | None = None) -> bool:
        """One batch; False if there was nothing to do."""
        if self.offset is None:
            self.offset = self.planner.initial()
        end = self.planner.latest(self.offset, self.settings.max_wal_bytes_per_batch)
        if end == self.offset:
            return False
        self.read(self.offset, end, between)
        self.offset = end
        self.batches += 1
        if commits:
            self.planner.commit(end)
        return True

    def read(self, start: Offset, end: Offset, between: Callable[[], None] | None = None) -> None:
        """Reads a batch and applies it, if all of it could be read."""
        chunks = []
        for piece in self.planner.pieces(start, end):
            for batch in read_piece(self.settings, self.state, piece):
                chunks += chunks_from_arrow(batch)
            if between is not None:
                between()
        self.rows.apply(chunks)

    def follow(self) -> None:
        """Reads all that is there now."""
        with session(self.settings) as connection:
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert row is not None
        self.planner._looked_at = -float("inf")
        deadline = time.monotonic() + PATIENCE_S
        while (
            self.offset is None or self.offset.chunks < len(self.state.parts()) or self.offset.lsn < parse_lsn(row[0])
        ):
            self.planner._moved_at = -float("inf")  # no waiting for heartbeats
            assert time.monotonic() < deadline
            if not self.step():
                time.sleep(0.02)
        while self.settings.mode == "peek" and self.step():
            pass

    def compare(self) -> None:
        """What was followed equals the database, and no change came twice or to a key that was not there."""
        assert self.rows.faults == []
        expected = database_rows(self.settings)
        assert set(self.rows.tables) >= {name for name, rows in expected.items() if rows}
        for name, rows in expected.items():
            found = self.rows.tables.get(name, {})
            assert found.keys() == rows.keys(), name
            for key in rows:
                assert found[key] == rows[key], (name, key)


def database_rows(settings: PostgresSettings) -> dict[SourceName, dict[tuple[Any, ...], dict[str, Any]]]:
    """All rows of all tables that match, through the same casts."""
    rows = FollowedRows()
    with session(settings) as connection:
        catalog = Catalog(connection, settings)
        for table in catalog.tables(catalog.publication()):
            followed = followed_table(table, settings)
            rows.tables.setdefault(followed.name, {})
            names = ", ".join(quote_name(column.name) for column in table.columns)
            only = "" if table.is_partitioned else "ONLY "
            query = f"COPY (SELECT {names} FROM {only}{quote_table(table.schema, table.name)}) TO STDOUT (FORMAT csv)"
            for block in copy_out(connection, query, 1000, 1 << 20):
                rows.apply(list(copied_chunks(csv_texts(block, len(table.columns)), followed, settings)))
    return rows.tables
