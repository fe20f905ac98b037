"""Up to which snapshot a table's changelog is complete.

With the producers `lookup` and `full-compaction` a write shows rows whose changes are told by the compaction after it.
Who reads a state and goes on with changes, or takes changes up to a state, must do so at a snapshot of which nothing is
told later: at any other one, rows would be missed or come twice.
"""

from __future__ import annotations

from collections import Counter

from lakebed.changes.splits import as_told_in, lowest_level_told
from lakebed.definition.changelog_rules import FULL_COMPACTION, LOOKUP, producer
from lakebed.definition.context import TableContext
from lakebed.errors import FileMissing, NotFound
from lakebed.metadata.entries import delta_entries, live_files
from lakebed.metadata.manifest import EntryKind
from lakebed.metadata.snapshot import Snapshot


def told_snapshot(context: TableContext, latest: Snapshot | None) -> Snapshot | None:
    """The newest snapshot, from `latest` back, of which no change is told later; None if none is there any more."""
    if latest is None or _is_told(context, latest, None):
        return latest
    levels, snapshot = _levels(context, latest), latest
    while not _is_told(context, snapshot, levels):
        # What a snapshot added was not there before it, and what it deleted was.
        for entry in delta_entries(context.stores, snapshot):
            if entry.bucket >= 0:
                levels[entry.file.level] += -1 if entry.kind == EntryKind.ADD else 1
        try:
            snapshot = context.stores.snapshots.get(snapshot.id - 1)
        except (NotFound, FileMissing):
            return None
    return snapshot


def is_told(context: TableContext, snapshot: Snapshot | None) -> bool:
    """Whether no change of a snapshot's rows is told later."""
    if snapshot is None or _is_told(context, snapshot, None):
        return True
    return _is_told(context, snapshot, _levels(context, snapshot))


def _levels(context: TableContext, snapshot: Snapshot) -> Counter[int]:
    """How many files lie on which level; those that wait for a bucket are not shown yet."""
    return Counter(entry.file.level for entry in live_files(context.stores, snapshot) if entry.bucket >= 0)


def _is_told(context: TableContext, snapshot: Snapshot, levels: Counter[int] | None) -> bool:
    """Whether no file lies below the level from which rows are told; without levels, whether that does not matter."""
    told = as_told_in(context, snapshot)
    if not told.has_key or producer(told.options) not in (LOOKUP, FULL_COMPACTION):
        return True
    lowest = lowest_level_told(told)
    return levels is not None and not any(count and level < lowest for level, count in levels.items())


__all__ = ["is_told", "told_snapshot"]
