"""What the `scan.*` options ask for: which mode, and what it means for a read that ends.

A mode is chosen outright (`scan.mode`) or follows from the option that names a point. What a mode means for a reader
that goes on is in `stream_start`.
"""

from __future__ import annotations

from typing import Any

from lakebed.errors import InvalidArgument
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.options import (
    FULL_COMPACTION_DELTA_COMMITS,
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_PARTITIONS,
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    SCAN_WATERMARK,
    Option,
    Options,
)
from lakebed.table.context import TableContext
from lakebed.table.producers import FULL_COMPACTION, full_compaction_every, producer
from lakebed.table.scan import FileSieve, ScanPlan, plan_scan, splits_of
from lakebed.table.scan_partitions import in_scanned_partitions
from lakebed.table.shown_defaults import stored_part
from lakebed.table.stream_history import History
from lakebed.table.stream_splits import created_since
from lakebed.table.time_travel import resolve_snapshot, to_millis
from lakebed.table.vectors import vectors_at
from lakebed.types.predicate import Predicate

DEFAULT = "default"
LATEST_FULL = "latest-full"
FULL = "full"
LATEST = "latest"
COMPACTED_FULL = "compacted-full"
FROM_TIMESTAMP = "from-timestamp"
FROM_SNAPSHOT = "from-snapshot"
FROM_SNAPSHOT_FULL = "from-snapshot-full"
FROM_FILE_CREATION_TIME = "from-file-creation-time"
FROM_CREATION_TIMESTAMP = "from-creation-timestamp"
LATEST_DELTA = "latest-delta"
INCREMENTAL = "incremental"

POINTS: dict[str, tuple[Option[Any], ...]] = {
    FROM_TIMESTAMP: (SCAN_TIMESTAMP_MILLIS, SCAN_TIMESTAMP),
    FROM_SNAPSHOT: (SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, SCAN_WATERMARK, SCAN_VERSION),
    FROM_SNAPSHOT_FULL: (SCAN_SNAPSHOT_ID,),
    FROM_FILE_CREATION_TIME: (SCAN_FILE_CREATION_TIME_MILLIS,),
    FROM_CREATION_TIMESTAMP: (SCAN_CREATION_TIME_MILLIS,),
    INCREMENTAL: (INCREMENTAL_BETWEEN, INCREMENTAL_BETWEEN_TIMESTAMP, INCREMENTAL_TO_AUTO_TAG),
}
"""Modes that start at a point, and the options of which one names it. The first of a mode wins by default."""


def scan_mode(options: Options, table: str) -> str:
    """The mode, never `default`. Raises if the point it starts at is missing, or another is named."""
    mode = options[SCAN_MODE]
    given = [option for option in dict.fromkeys(o for group in POINTS.values() for o in group) if options.has(option)]
    if len(given) > 1:
        raise InvalidArgument(
            f"table `{table}`: {' and '.join(f'`{option.key}`' for option in given)} each choose a snapshot",
            hint="set only one of them",
        )
    if mode == DEFAULT:
        return next((name for name, group in POINTS.items() if given and given[0] in group), LATEST_FULL)
    needed = POINTS.get(mode, ())
    if given and given[0] not in needed:
        raise InvalidArgument(
            f"table `{table}`: `{given[0].key}` does not go with `{SCAN_MODE.key}` = `{mode}`",
            hint="leave one of them out",
        )
    if needed and not given and mode != INCREMENTAL:
        names = " or ".join(f"`{option.key}`" for option in needed)
        raise InvalidArgument(
            f"table `{table}`: `{SCAN_MODE.key}` = `{mode}` does not say where to start", hint=f"set {names} as well"
        )
    return LATEST_FULL if mode == FULL else mode


def timestamp_ms(options: Options) -> int:
    """The time that `from-timestamp` starts at."""
    millis = options[SCAN_TIMESTAMP_MILLIS]
    return int(millis) if millis is not None else to_millis(str(options[SCAN_TIMESTAMP]))


def compacted_snapshot(context: TableContext) -> Snapshot | None:
    """The newest snapshot that a compaction made: a full one, if the table's options say how often they come."""
    every = 1
    if producer(context.options) == FULL_COMPACTION or context.options.has(FULL_COMPACTION_DELTA_COMMITS):
        every = full_compaction_every(context.options) or 1
    for snapshot in context.stores.snapshots.newest_first():
        identifier = snapshot.commit_identifier
        is_counted = identifier % every == 0 or identifier == BATCH_COMMIT_IDENTIFIER
        if snapshot.commit_kind == CommitKind.COMPACT and is_counted:
            return snapshot
    return context.stores.snapshots.latest()


def snapshot_since(history: History, time_ms: int) -> int | None:
    """The first snapshot since a time, if the time lies between two snapshots that are there; else None."""
    found, earliest, latest = history.first_since(time_ms), history.earliest_id(), history.latest_id()
    if earliest is None or latest is None:
        return None
    return found if earliest < found <= latest else None


def batch_snapshot(context: TableContext) -> Snapshot | None:
    """The snapshot whose whole state a read shows; modes that show a part of one are refused."""
    mode = scan_mode(context.options, context.name)
    if mode in (LATEST_DELTA, FROM_FILE_CREATION_TIME, FROM_CREATION_TIMESTAMP):
        raise InvalidArgument(
            f"table `{context.name}` is opened with `{SCAN_MODE.key}` = `{mode}`, which shows a part of it",
            hint="open the table without the option",
        )
    if mode == COMPACTED_FULL:
        return compacted_snapshot(context)
    return resolve_snapshot(context.stores, context.options, context.name)


def plan_batch(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    """The state that a read shows, by the mode that the options ask for. Reads of changes are planned elsewhere."""
    options, stores = context.options, context.stores
    mode = scan_mode(options, context.name)
    if options.has(SCAN_PARTITIONS):
        predicate = in_scanned_partitions(context, resolve_snapshot(stores, options, context.name), predicate)
    if mode == COMPACTED_FULL:
        return plan_scan(context, compacted_snapshot(context), predicate)
    if mode == LATEST_DELTA:
        return _plan_latest_delta(context, predicate)
    if mode == FROM_FILE_CREATION_TIME:
        return _plan_created_since(context, int(str(options[SCAN_FILE_CREATION_TIME_MILLIS])), predicate)
    if mode == FROM_CREATION_TIMESTAMP:
        time_ms = int(str(options[SCAN_CREATION_TIME_MILLIS]))
        found = snapshot_since(History(stores), time_ms)
        if found is None or not stores.snapshots.exists(found):
            return _plan_created_since(context, time_ms, predicate)
        return plan_scan(context, stores.snapshots.get(found), predicate)
    return plan_scan(context, resolve_snapshot(stores, options, context.name), predicate)


def _plan_created_since(context: TableContext, time_ms: int, predicate: Predicate | None) -> ScanPlan:
    snapshot = context.stores.snapshots.latest()
    sieve = _sieve(context, predicate)
    entries = live_files(context.stores, snapshot, keep_metas=sieve.keep_metas, keep_entries=sieve.keep_entries)
    return _plan_entries(context, snapshot, created_since(entries, time_ms), sieve)


def _plan_latest_delta(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    snapshot = context.stores.snapshots.latest()
    if snapshot is None or snapshot.commit_kind != CommitKind.APPEND:
        return ScanPlan(snapshot, ())
    sieve = _sieve(context, predicate)
    entries = delta_entries(context.stores, snapshot, sieve.keep_entries)
    return _plan_entries(context, snapshot, [entry for entry in entries if entry.kind == EntryKind.ADD], sieve)


def _sieve(context: TableContext, predicate: Predicate | None) -> FileSieve:
    return FileSieve(context, stored_part(predicate, context.schema, context.shown_defaults))


def _plan_entries(
    context: TableContext, snapshot: Snapshot | None, entries: list[ManifestEntry], sieve: FileSieve
) -> ScanPlan:
    lowest = context.lowest_visible_level
    shown = [entry for entry in entries if entry.file.level >= lowest]
    vectors = vectors_at(context, snapshot)
    return ScanPlan(snapshot, tuple(splits_of(context, sieve.keep_live(shown), sieve, vectors)))
