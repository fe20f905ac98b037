"""Files that expiry and orphan cleaning delete: in tasks, if there are very many."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import lakebed
from lakebed.definition import elsewhere
from lakebed.table.opened import opened_of

FILES = 60


def test_very_many_files_are_deleted_by_tasks(lake: lakebed.Lake, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job each; what is left is what the newest snapshot needs."""
    monkeypatch.setattr(elsewhere, "MANY_FILES", FILES // 2)
    monkeypatch.setattr(elsewhere, "_FILES_OF_TASK", 10)
    monkeypatch.setattr(elsewhere, "_DELETION_BYTES", elsewhere.HERE_BYTES)
    columns = {"id": "BIGINT NOT NULL", "v": "BIGINT"}
    table = lake.create_table("t", columns, primary_key=["id"], options={"bucket": str(FILES), "write-only": "true"})
    rows = spark.range(0, 600, 1, 1).selectExpr("id", "id AS v")
    for _ in range(3):
        table.write_spark(rows, overwrite=True)
    jobs = spark.sparkContext.statusTracker()

    def last_job() -> int:
        return max(jobs.getJobIdsForGroup(None) or [0])

    before = last_job()
    expired = table.expire_snapshots(retain_max=1, retain_min=1)
    assert expired.file_count >= 2 * FILES
    assert last_job() > before
    context = opened_of(table).context
    for number in range(FILES):
        context.fileio.write_bytes(f"{context.paths.data_root}/bucket-0/data-nobody-{number}", b"x")
    before = last_job()
    orphans = table.remove_orphan_files(older_than=dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=10))
    assert orphans.file_count == FILES
    assert last_job() > before
    assert table.check() == []
    assert table.to_spark().count() == 600
    assert "delete 30 files or more in tasks" in table.explain_work()
