"""What a sync has done so far, for people and machines that watch it. Kept in memory, by the pipeline.

Where the pipeline works in another process than the one who watches (Spark Connect), it comes through a small file
beside the checkpoint.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, field, replace
from typing import Any, Self

from lakebed.cdc.storage import PLAIN, Storage
from lakebed.errors import LakebedError
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class TableProgress:
    """One table of the lake."""

    table: str
    rows: int = 0
    commits: int = 0
    phase: str = ""
    schema_changes: int = 0
    lag_seconds: float | None = None
    """From the last change's time in the source to its commit here."""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """All of a sync, at one moment."""

    phase: str = "starting"
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    lag_bytes: int | None = None
    lag_seconds: float | None = None
    position: str | None = None
    tables: tuple[TableProgress, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    """Tables that are not followed, and why."""
    parked: dict[str, str] = field(default_factory=dict)
    """Tables that wait for a cure and `lakebed cdc resume`, and why."""
    dead_letters: int = 0
    """Rows that went to the table of dead letters."""
    skipped_records: int = 0
    """Messages that could not be read and were left out, as the source was told to."""
    skipped_why: str = ""
    """What was wrong with the last of them."""
    trouble: str = ""
    """What the sync waits for, such as a server that is away; empty while all is well."""

    def at(self, phase: str | None, lag_bytes: int | None) -> Self:
        """With what the source says of it."""
        return replace(self, phase=phase or self.phase, lag_bytes=lag_bytes)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Inverse of `to_json`."""
        return cls(**{**body, "tables": tuple(TableProgress(**table) for table in body["tables"])})


class ProgressBoard:
    """Collects what the pipeline tells. Several threads may look at it. A copy, in another process, begins empty."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, TableProgress] = {}
        self._now = SyncProgress()
        self._recent: list[tuple[float, int]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"_clock": self._clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._clock = state["_clock"]
        self._begin()

    @property
    def now(self) -> SyncProgress:
        """The state at this moment."""
        with self._lock:
            return replace(self._now, tables=tuple(self._tables.values()))

    def table_committed(self, table: str, rows: int, phase: str, changes: int, lag_seconds: float | None) -> None:
        """A table has got rows."""
        with self._lock:
            old = self._tables.get(table, TableProgress(table))
            self._tables[table] = TableProgress(
                table,
                old.rows + rows,
                old.commits + 1,
                phase,
                old.schema_changes + changes,
                old.lag_seconds if lag_seconds is None else lag_seconds,
            )

    def batch_done(self, rows: int, phase: str, position: str | None) -> None:
        """A batch is through."""
        with self._lock:
            moment = self._clock()
            self._recent = [(when, count) for when, count in self._recent if when > moment - _WINDOW_S][-_MOST:]
            self._recent.append((moment, rows))
            span = moment - self._recent[0][0]
            counted = sum(count for _, count in self._recent[1:])
            lags = [each.lag_seconds for each in self._tables.values() if each.lag_seconds is not None]
            self._now = replace(
                self._now,
                phase=phase or self._now.phase,
                batches=self._now.batches + 1,
                rows=self._now.rows + rows,
                rows_per_second=counted / span if span > 0 else 0.0,
                lag_seconds=max(lags, default=None),
                position=position or self._now.position,
            )

    def table_skipped(self, table: str, why: str) -> None:
        """A table is not followed."""
        with self._lock:
            self._now = replace(self._now, skipped={**self._now.skipped, table: why})

    def tables_parked(self, parked: dict[str, str]) -> None:
        """These tables, and no others, are parked."""
        with self._lock:
            self._now = replace(self._now, parked=parked)

    def rows_put_aside(self, count: int) -> None:
        """Rows went to the dead letters."""
        with self._lock:
            self._now = replace(self._now, dead_letters=self._now.dead_letters + count)

    def records_skipped(self, count: int, why: str) -> None:
        """Messages were left out."""
        with self._lock:
            now = self._now
            self._now = replace(now, skipped_records=now.skipped_records + count, skipped_why=why)


class ProgressFile:
    """The progress of a sync whose batches are made elsewhere, beside its checkpoint."""

    def __init__(self, checkpoint: str, storage: Storage = PLAIN) -> None:
        self._fileio, root = storage.open(checkpoint)
        self._path = f"{root}/{_FILE}"

    def write(self, progress: SyncProgress) -> None:
        """Replaces what is there."""
        self._fileio.overwrite(self._path, json.dumps(progress.to_json()).encode())

    def read(self) -> SyncProgress:
        """The last that was written; that of a sync that begins if there is none."""
        try:
            return SyncProgress.from_json(json.loads(self._fileio.read_bytes(self._path)))
        except (LakebedError, ValueError):
            return SyncProgress()

    def remove(self) -> None:
        """Forgets what an earlier run has written."""
        self._fileio.delete(self._path)


_WINDOW_S = 30.0
_MOST = 1000
_FILE = "lakebed-progress.json"

__all__ = ["ProgressBoard", "ProgressFile", "SyncProgress", "TableProgress"]
