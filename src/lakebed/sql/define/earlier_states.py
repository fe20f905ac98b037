"""DESCRIBE HISTORY, RESTORE and VACUUM: Delta's words for what a table was, for going back, and for cleaning up.

They do nothing that `t$snapshots` and the procedures do not do, and none of them takes away what a procedure of the
same arguments would keep.
"""

from __future__ import annotations

import pyarrow as pa

from lakebed.clock import SystemClock
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, result
from lakebed.sql.statements import DescribeHistory, Restore, Vacuum

_HOUR_MS = 3_600_000
_REVIVED = dict.fromkeys(("previous_snapshot_id", "rolled_back_snapshot_id", "current_snapshot_id"), pa.int64())
_CLEANED = dict.fromkeys(("deleted_snapshots_count", "deletedFileCount", "deletedFileTotalLenInBytes"), pa.int64())


def describe_history(lake: SqlLake, statement: DescribeHistory) -> SmallResult:
    """The rows of `t$snapshots`, the newest first."""
    table = lake.table(f"{statement.name}$snapshots")
    found = table.to_arrow().sort_by([("snapshot_id", "descending")]).slice(0, statement.limit)
    columns = [column.to_pylist() for column in found.columns]
    kinds = dict(zip(found.column_names, found.schema.types, strict=True))
    return result(lake, kinds, zip(*columns, strict=True))


def restore(lake: SqlLake, statement: Restore) -> SmallResult:
    """The earlier rows as a new snapshot: what came since can still be read, and be restored in its turn."""
    table = lake.table(statement.name)
    tag, snapshot = statement.tag, statement.snapshot
    if tag is not None and tag.isdigit() and tag not in table.tags():
        snapshot, tag = int(tag), None
    found = table.rollback_to_as_latest(snapshot, tag=tag, timestamp=statement.timestamp)
    return result(lake, _REVIVED, [(found.previous, found.revived, found.current)])


def vacuum(lake: SqlLake, statement: Vacuum) -> SmallResult:
    """Snapshots go that are due, and then files that nothing needs.

    INVARIANT: however short the time to RETAIN is, files younger than a day stay unless a snapshot that went named
    them: they may be of a write that is not committed yet.
    """
    table = lake.table(statement.name)
    hours = statement.retain_hours
    older_than = None if hours is None else SystemClock().now_ms() - int(hours * _HOUR_MS)
    expired = table.expire_snapshots(older_than)
    orphans = table.remove_orphan_files()
    return result(lake, _CLEANED, [(len(expired.snapshots), orphans.file_count, orphans.size_bytes)])
