"""Orphan cleaning as a table sees it: with its clock, its partitions and the moments users write."""

from __future__ import annotations

import datetime as dt

from lakebed.errors import InvalidArgument
from lakebed.maintenance.orphans import Orphans, remove_orphans
from lakebed.table.context import TableContext
from lakebed.table.files import table_files
from lakebed.table.time_travel import to_millis
from lakebed.units import DAY_MS


def clean_orphans(
    context: TableContext, older_than: int | str | dt.datetime | dt.date | None, dry_run: bool
) -> Orphans:
    """Removes files older than a moment (a day ago) that nothing refers to."""
    now_ms = context.clock.now_ms()
    moment_ms = now_ms - DAY_MS if older_than is None else to_millis(older_than)
    if moment_ms >= now_ms:
        raise InvalidArgument(
            f"older_than is {older_than!r}, which is not in the past",
            hint="leave time to writers that have yet to commit: a day, if older_than is left out",
        )
    return remove_orphans(table_files(context), len(context.schema.partition_keys), moment_ms, dry_run)
