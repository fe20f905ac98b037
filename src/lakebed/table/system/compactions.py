"""`t$compactions`: one row for each compaction whose snapshot is kept: why, what of what, how long."""

from __future__ import annotations

from lakebed.explain.history import CommitRecord, compactions
from lakebed.table.system.base import SystemTable, TableState, each
from lakebed.table.system.texts import local_time_ms

COMPACTIONS = SystemTable[TableState, CommitRecord](
    "compactions",
    lambda state: compactions(state.context, state.snapshot),
    (
        each("snapshot_id", "BIGINT NOT NULL", lambda done: done.snapshot.id),
        each("commit_time", "TIMESTAMP(3) NOT NULL", lambda done: local_time_ms(done.snapshot.time_millis)),
        each("commit_user", "STRING NOT NULL", lambda done: done.snapshot.commit_user),
        each("reason", "STRING", lambda done: None if done.note is None else done.note.reason),
        each("duration_ms", "BIGINT", lambda done: None if done.note is None else done.note.millis),
        each("partitions", "INT NOT NULL", lambda done: done.partitions),
        each("buckets", "INT NOT NULL", lambda done: done.buckets),
        each("files_in", "BIGINT NOT NULL", lambda done: done.went.files),
        each("files_out", "BIGINT NOT NULL", lambda done: done.came.files),
        each("bytes_in", "BIGINT NOT NULL", lambda done: done.went.size_bytes),
        each("bytes_out", "BIGINT NOT NULL", lambda done: done.came.size_bytes),
        each("rows_in", "BIGINT NOT NULL", lambda done: done.went.rows),
        each("rows_out", "BIGINT NOT NULL", lambda done: done.came.rows),
        each("write_amplification", "DOUBLE", lambda done: done.amplification),
    ),
)

__all__ = ["COMPACTIONS"]
