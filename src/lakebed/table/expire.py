"""Expiry as a table sees it: with its options, its clock and its directories. What goes is decided in `maintenance`."""

from __future__ import annotations

import datetime as dt

from lakebed.maintenance.expiry import Expired, expire, expire_quietly
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.table_files import TableFiles
from lakebed.table.context import TableContext
from lakebed.table.time_travel import to_millis


def expire_table(
    context: TableContext,
    older_than: int | str | dt.datetime | dt.date | None,
    retain_max: int | None,
    retain_min: int | None,
    max_deletes: int | None,
) -> Expired:
    """Expires what the options, or the arguments in their place, say is due."""
    older_than_ms = None if older_than is None else to_millis(older_than)
    rules = RetentionRules.of(context.options, context.clock.now_ms())
    return expire(_files(context), rules.with_arguments(older_than_ms, retain_max, retain_min, max_deletes))


def expire_after_commit(context: TableContext) -> None:
    """Expires what is due after a commit, which stands whatever becomes of this."""
    expire_quietly(context.name, _files(context), lambda: RetentionRules.of(context.options, context.clock.now_ms()))


def _files(context: TableContext) -> TableFiles:
    return TableFiles(context.stores, context.data_file_path)
