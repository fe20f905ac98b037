"""What each mode of a scan means: which rows a read that ends shows, and where a stream starts.

A mode is one entry of `SCAN_MODES`, beside its word among the choices of `scan.mode`; one that starts at a point has
the options that name it in `definition/scan_mode`. Which mode the options of a table ask for is found there.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.changes.position import StreamPosition
from lakebed.definition import scan_mode as modes
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History, resolve_snapshot
from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_PARTITIONS,
    SCAN_SNAPSHOT_ID,
    SCAN_VERSION,
)
from lakebed.read.plan import ScanPlan, plan_scan
from lakebed.read.scan_options import (
    compacted_snapshot,
    in_scanned_partitions,
    plan_created_since,
    plan_latest_delta,
    snapshot_since,
)
from lakebed.records import dataclass
from lakebed.types.predicate import Predicate

ShownSnapshot = Callable[[TableContext], Snapshot | None]
"""Finds the snapshot whose whole state is shown."""
ShownPart = Callable[[TableContext, Predicate | None], ScanPlan]
"""Plans the part of the table that is shown."""
StreamStart = Callable[[TableContext, History], StreamPosition]
"""Finds where a stream starts that has no progress yet."""


def _named(context: TableContext) -> Snapshot | None:
    """The snapshot that the options name, or else the latest."""
    return resolve_snapshot(context.stores, context.options, context.name)


@dataclass(frozen=True, slots=True)
class ScanMode:
    """One mode: where a stream starts, and what a read that ends shows. That is the state of a snapshot, or `part`."""

    start: StreamStart | None
    """None for a mode that is for reads that end only."""
    snapshot: ShownSnapshot = _named
    part: ShownPart | None = None


def plan_batch(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    """The state that a read shows, by the mode that the options ask for. Reads of changes are planned elsewhere."""
    mode = SCAN_MODES[modes.scan_mode(context.options, context.name)]
    if context.options.has(SCAN_PARTITIONS):
        predicate = in_scanned_partitions(context, _named(context), predicate)
    if mode.part is not None:
        return mode.part(context, predicate)
    return plan_scan(context, mode.snapshot(context), predicate)


def shows_a_part(context: TableContext) -> bool:
    """Whether a read shows a part of a snapshot's state."""
    return SCAN_MODES[modes.scan_mode(context.options, context.name)].part is not None


def batch_snapshot(context: TableContext) -> Snapshot | None:
    """The snapshot whose whole state a read shows; modes that show a part of one are refused."""
    name = modes.scan_mode(context.options, context.name)
    mode = SCAN_MODES[name]
    if mode.part is not None:
        raise InvalidArgument(
            f"table `{context.name}` is opened with `{SCAN_MODE.key}` = `{name}`, which shows a part of it",
            hint="open the table without the option",
        )
    return mode.snapshot(context)


# --- What reads that end show -------------------------------------------------------------------------------------


def _files_since(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    return plan_created_since(context, int(str(context.options[SCAN_FILE_CREATION_TIME_MILLIS])), predicate)


def _snapshot_or_files_since(context: TableContext, predicate: Predicate | None) -> ScanPlan:
    stores, time_ms = context.stores, int(str(context.options[SCAN_CREATION_TIME_MILLIS]))
    found = snapshot_since(History(stores), time_ms)
    if found is None or not stores.snapshots.exists(found):
        return plan_created_since(context, time_ms, predicate)
    return plan_scan(context, stores.snapshots.get(found), predicate)


# --- Where streams start ------------------------------------------------------------------------------------------


def _whole_table(context: TableContext, history: History) -> StreamPosition:
    return StreamPosition(history.latest_id() or 1, is_full=True)


def _from_now_on(context: TableContext, history: History) -> StreamPosition:
    return StreamPosition((history.latest_id() or 0) + 1)


def _whole_compacted(context: TableContext, history: History) -> StreamPosition:
    compacted = compacted_snapshot(context)
    return StreamPosition(compacted.id if compacted else 1, is_full=True)


def _since_time(context: TableContext, history: History) -> StreamPosition:
    return StreamPosition(history.first_since(modes.timestamp_ms(context.options)))


def _since_snapshot(context: TableContext, history: History) -> StreamPosition:
    return StreamPosition(max(_snapshot_id(context), history.earliest_id() or 1))


def _whole_snapshot(context: TableContext, history: History) -> StreamPosition:
    return StreamPosition(max(_snapshot_id(context), history.earliest_snapshot_id() or 1), is_full=True)


def _since_creation(context: TableContext, history: History) -> StreamPosition:
    """Without a snapshot since then the whole table comes first, of which older files are left out."""
    found = snapshot_since(history, int(str(context.options[SCAN_CREATION_TIME_MILLIS])))
    return _whole_table(context, history) if found is None else StreamPosition(found)


def _snapshot_id(context: TableContext) -> int:
    options = context.options
    if options.has(SCAN_SNAPSHOT_ID):
        return int(str(options[SCAN_SNAPSHOT_ID]))
    version = options[SCAN_VERSION]
    if version is not None and version.isdigit() and not context.stores.tags.exists(version):
        return int(version)
    given = next(option for option in modes.POINTS[modes.FROM_SNAPSHOT] if options.has(option))
    raise InvalidArgument(
        f"table `{context.name}`: a stream can not start at `{given.key}` = `{options[given]}`",
        hint=f"name the snapshot with `{SCAN_SNAPSHOT_ID.key}`",
    )


SCAN_MODES: dict[str, ScanMode] = {
    modes.LATEST_FULL: ScanMode(_whole_table),
    modes.LATEST: ScanMode(_from_now_on),
    modes.COMPACTED_FULL: ScanMode(_whole_compacted, snapshot=compacted_snapshot),
    modes.FROM_TIMESTAMP: ScanMode(_since_time),
    modes.FROM_SNAPSHOT: ScanMode(_since_snapshot),
    modes.FROM_SNAPSHOT_FULL: ScanMode(_whole_snapshot),
    modes.FROM_FILE_CREATION_TIME: ScanMode(_whole_table, part=_files_since),
    modes.FROM_CREATION_TIMESTAMP: ScanMode(_since_creation, part=_snapshot_or_files_since),
    modes.LATEST_DELTA: ScanMode(None, part=plan_latest_delta),
    modes.INCREMENTAL: ScanMode(None),  # the changes that it asks for are found in `changes/range`
}
"""Modes by name. Words of `scan.mode` that stand for another mode are not among them."""


__all__ = ["SCAN_MODES", "ScanMode", "StreamStart", "batch_snapshot", "plan_batch", "shows_a_part"]
