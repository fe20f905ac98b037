"""Expiry as a table sees it: with its options, its clock and its directories. What goes is decided in `maintenance`."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from lakebed.maintenance.expiry import Expired, expire, expire_only_changelogs, still_due
from lakebed.maintenance.retention import RetentionRules
from lakebed.table.context import TableContext
from lakebed.table.files import table_files
from lakebed.table.time_travel import to_millis


def expire_table(
    context: TableContext,
    older_than: int | str | dt.datetime | dt.date | None,
    retain_max: int | None,
    retain_min: int | None,
    max_deletes: int | None,
) -> Expired:
    """Expires what the options, or the arguments in their place, say is due, and counts what the limit left."""
    older_than_ms = None if older_than is None else to_millis(older_than)
    rules = RetentionRules.of(context.options, context.clock.now_ms())
    rules = rules.with_arguments(older_than_ms, retain_max, retain_min, max_deletes)
    files = table_files(context)
    expired = expire(files, rules)
    return replace(expired, remaining=still_due(files, rules)) if expired else expired


def expire_table_changelogs(
    context: TableContext,
    older_than: int | str | dt.datetime | dt.date | None,
    retain_max: int | None,
    retain_min: int | None,
    max_deletes: int | None,
    *,
    everything: bool,
) -> Expired:
    """Expires changelogs that outlived their snapshots, as the options, or the arguments in their place, say."""
    older_than_ms = None if older_than is None else to_millis(older_than)
    rules = RetentionRules.of(context.options, context.clock.now_ms())
    rules = rules.for_changelogs(older_than_ms, retain_max, retain_min, max_deletes)
    return expire_only_changelogs(table_files(context), rules, everything=everything)
