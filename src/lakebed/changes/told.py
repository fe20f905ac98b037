"""Up to which snapshot a table's changelog is complete, and at which one all rows are shown.

With the producers `lookup` and `full-compaction` a write shows rows whose changes are told by the compaction after it.
Who reads a state and goes on with changes, or takes changes up to a state, must do so at a snapshot of which nothing is
told later: at any other one, rows would be missed or come twice.

Rows in files that reads leave out until a compaction (of tables with deletion vectors, of `first-row`, and those that
wait for a bucket) are not shown by the commit that brings them. Who wants the states of several tables to fit together
must read each where nothing is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from lakebed.changes.splits import as_told_in, lowest_level_told
from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, producer
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import shows_waiting_rows
from lakebed.errors import FileMissing, NotFound
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import Snapshot

_WAITING = -1
"""In place of a level: files that wait for a bucket."""

Levels = Counter[int]
"""How many files lie on which level."""
_IsRight = Callable[[Snapshot, Levels | None], bool]
"""Whether a snapshot will do, by its levels; without levels, whether these do not matter."""


def told_snapshot(context: TableContext, latest: Snapshot | None) -> Snapshot | None:
    """The newest snapshot, from `latest` back, of which no change is told later; None if none is there any more."""
    return _newest(context, latest, lambda snapshot, levels: _is_told(context, snapshot, levels))


def shown_snapshot(context: TableContext, latest: Snapshot | None, *, told: bool) -> Snapshot | None:
    """The newest snapshot, from `latest` back, that shows all rows, and with `told` is told; None if none is there."""

    def is_right(snapshot: Snapshot, levels: Levels | None) -> bool:
        return _is_shown(context, levels) and (not told or _is_told(context, snapshot, levels))

    return _newest(context, latest, is_right)


def is_told(context: TableContext, snapshot: Snapshot | None) -> bool:
    """Whether no change of a snapshot's rows is told later."""
    if snapshot is None or _is_told(context, snapshot, None):
        return True
    return _is_told(context, snapshot, _levels(context, snapshot))


def _newest(context: TableContext, latest: Snapshot | None, is_right: _IsRight) -> Snapshot | None:
    if latest is None or is_right(latest, None):
        return latest
    levels, snapshot = _levels(context, latest), latest
    while not is_right(snapshot, levels):
        # What a snapshot added was not there before it, and what it deleted was.
        for entry in delta_entries(context.stores, snapshot):
            levels[_level(entry)] += -1 if entry.kind == EntryKind.ADD else 1
        try:
            snapshot = context.stores.snapshots.get(snapshot.id - 1)
        except (NotFound, FileMissing):
            return None
    return snapshot


def _levels(context: TableContext, snapshot: Snapshot) -> Levels:
    return Counter(_level(entry) for entry in live_files(context.stores, snapshot))


def _level(entry: ManifestEntry) -> int:
    return entry.file.level if entry.bucket >= 0 else _WAITING


def _is_told(context: TableContext, snapshot: Snapshot, levels: Levels | None) -> bool:
    """Whether no file lies below the level from which rows are told. Those that wait for a bucket are not shown yet."""
    told = as_told_in(context, snapshot)
    if not told.has_key or producer(told.options) not in (LOOKUP, FULL_COMPACTION):
        return True
    lowest = lowest_level_told(told)
    return levels is not None and not any(count and _WAITING < level < lowest for level, count in levels.items())


def _is_shown(context: TableContext, levels: Levels | None) -> bool:
    """Whether no file lies where reads leave it out."""
    lowest = context.lowest_visible_level
    waits = context.bucket_mode.postpones and not shows_waiting_rows(context)
    if not waits and lowest == 0:
        return True
    if levels is None:
        return False
    left_out = [level for level in levels if (waits if level == _WAITING else level < lowest)]
    return not any(levels[level] for level in left_out)


__all__ = ["is_told", "shown_snapshot", "told_snapshot"]
