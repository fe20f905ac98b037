"""`t$commits_metrics`: one row for each commit whose snapshot is kept: what it added, what it removed, and when."""

from __future__ import annotations

from lakebed.explain.history import CommitRecord, commits
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.texts import local_time_ms

COMMITS_METRICS = SystemTable[TableState, CommitRecord](
    "commits_metrics",
    lambda state: commits(state.context, state.snapshot),
    (
        each("snapshot_id", "BIGINT NOT NULL", lambda done: done.snapshot.id),
        each("commit_time", "TIMESTAMP(3) NOT NULL", lambda done: local_time_ms(done.snapshot.time_millis)),
        each("commit_user", "STRING NOT NULL", lambda done: done.snapshot.commit_user),
        each("commit_kind", "STRING NOT NULL", lambda done: str(done.snapshot.commit_kind)),
        each("operation", "STRING", lambda done: done.snapshot.operation),
        each("since_last_ms", "BIGINT", lambda done: done.millis_since_last),
        each("partitions", "INT NOT NULL", lambda done: done.partitions),
        each("buckets", "INT NOT NULL", lambda done: done.buckets),
        each("files_added", "BIGINT NOT NULL", lambda done: done.came.files),
        each("files_removed", "BIGINT NOT NULL", lambda done: done.went.files),
        each("bytes_added", "BIGINT NOT NULL", lambda done: done.came.size_bytes),
        each("bytes_removed", "BIGINT NOT NULL", lambda done: done.went.size_bytes),
        each("rows_added", "BIGINT NOT NULL", lambda done: done.came.rows),
        each("rows_removed", "BIGINT NOT NULL", lambda done: done.went.rows),
        each("changelog_rows", "BIGINT", lambda done: done.snapshot.changelog_record_count),
        each("total_rows", "BIGINT", lambda done: done.snapshot.total_record_count),
    ),
)

__all__ = ["COMMITS_METRICS"]
