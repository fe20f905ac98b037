"""The names of the views that stand behind a table's name, as in `t$audit_log`. What they show is known elsewhere."""

from __future__ import annotations

READ_OPTIMIZED = "ro"
"""What full compaction has brought to the highest level."""
AUDIT_LOG = "audit_log"
"""Every row with its kind in front."""
BINLOG = "binlog"
"""One row for every change, each column an array of the value, or of the values before and after."""
ROW_TRACKING = "row_tracking"
"""Every row with its id, and the snapshot that last wrote it, behind its columns."""

VIEWS = (READ_OPTIMIZED, AUDIT_LOG, BINLOG, ROW_TRACKING)

__all__ = ["AUDIT_LOG", "BINLOG", "READ_OPTIMIZED", "ROW_TRACKING", "VIEWS"]
