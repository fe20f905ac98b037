"""How the syncs of a lake are, told without asking their sources: what they have noted beside their checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.cdc.operate import SyncStatus, noted_status, syncs_of
from lakebed.cdc.storage import PLAIN, Storage
from lakebed.explain.health import Finding, Severity
from lakebed.units import size_text

_LONG_S = 600
"""A sync that is so far behind is slower than its source."""


def sync_findings(warehouse: str, storage: Storage = PLAIN) -> list[Finding]:
    """What is not as it should be with the syncs that have their checkpoints in a lake."""
    return [
        finding
        for sync in syncs_of(warehouse, storage)
        for finding in _of(noted_status(sync, storage), f"--checkpoint {sync.checkpoint}")
    ]


def _of(status: SyncStatus, which: str) -> Iterator[Finding]:
    sync, progress = status.sync, status.progress
    name = f"{sync.source} into {sync.database}"
    for table, parked in status.parked.items():
        said = f"{name}: the table is parked, its changes wait: {parked.why}"
        cure = f"{parked.hint}; then: lakebed cdc resume {table} {which}"
        yield Finding(table, "sync-parked", Severity.CRITICAL, 1, said, cure)
    if status.state == "waiting":
        said = f"{name} waits for its source: {status.trouble}"
        yield Finding(sync.database, "sync-waiting", Severity.WARNING, 1, said, f"lakebed cdc status {which}")
    if status.state == "stopped":
        said = f"{name} does not run; its source may keep its log for it"
        yield Finding(sync.database, "sync-stopped", Severity.WARNING, 1, said, f"lakebed cdc {sync.source} …")
    if status.state == "paused":
        said = f"{name} was told to pause"
        yield Finding(sync.database, "sync-paused", Severity.INFO, 1, said, f"lakebed cdc resume {which}")
    lag_s = progress.lag_seconds
    if status.state == "running" and lag_s is not None and lag_s > _LONG_S:
        size = "" if progress.lag_bytes is None else f" and {size_text(progress.lag_bytes)} of log"
        said = f"{name} is {lag_s:.0f} s{size} behind, at {progress.rows_per_second:.0f} rows/s"
        yield Finding(sync.database, "sync-behind", Severity.WARNING, round(lag_s), said, f"lakebed cdc status {which}")
    if progress.dead_letters:
        said = f"{name}: {progress.dead_letters} rows went to the table of dead letters"
        cure = "read that table, mend the rows, and write them again"
        yield Finding(sync.database, "dead-letters", Severity.INFO, progress.dead_letters, said, cure)


__all__ = ["sync_findings"]
