"""Expiry of a table as a whole: snapshots, and the changelogs that outlive them where options say so.

    expired │ changelogs 4 5 6 │ snapshots 7 8 9 10

Two expiries at once do the same work twice and nothing else: deleting what is gone is no error, and a plan that the
other one pulled the ground from is made again.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from dataclasses import replace

from lakebed.definition.context import TableContext
from lakebed.definition.moments import to_millis
from lakebed.errors import FileMissing, LakebedError, NotFound
from lakebed.maintenance.retention import RetentionRules
from lakebed.maintenance.snapshots import (
    Expired,
    Overtaken,
    due_changelogs,
    expire_changelogs,
    expire_snapshots,
    first_kept_snapshot,
    line_of,
    outliving_ids,
)
from lakebed.maintenance.table_files import TableFiles, table_files

_log = logging.getLogger(__name__)
_ATTEMPTS = 5
"""How often to plan anew because another expiry was faster."""


def expire(files: TableFiles, rules: RetentionRules) -> Expired:
    """Expires what is due, oldest first. Where it can not be told what is needed, nothing more is deleted."""
    if rules.is_decoupled:
        return _overtaken_or(expire_snapshots, files, rules) + _overtaken_or(expire_changelogs, files, rules)
    line = line_of(files.stores.snapshots.ids())
    if first_kept_snapshot(files, rules, line) == line.start:
        return Expired()  # by far the most frequent case: nothing is due
    # Changelogs of a time when they lived longer may share files with snapshots: they go first.
    done = _overtaken_or(expire_changelogs, files, rules)
    if outliving_ids(files):
        return done  # held by a consumer, or more than may go at once
    return done + _overtaken_or(expire_snapshots, files, rules)


def _expire_only_changelogs(files: TableFiles, rules: RetentionRules, *, everything: bool) -> Expired:
    """Expires changelogs that outlived their snapshots, or `everything` of them, and no snapshot."""
    done = _overtaken_or(lambda *given: expire_changelogs(*given, everything=everything), files, rules)
    return replace(done, remaining=due_changelogs(files, rules)) if done and not everything else done


def _still_due(files: TableFiles, rules: RetentionRules) -> int:
    """How many snapshots and changelogs the rules let go, were there no most that may go at once."""
    line = line_of(files.stores.snapshots.ids())
    try:
        return first_kept_snapshot(files, rules, line, at_once=False) - line.start + due_changelogs(files, rules)
    except NotFound:
        return 0  # another expiry is at it


def expire_quietly(table: str, files: TableFiles, rules: Callable[[], RetentionRules]) -> None:
    """As `expire`, after a commit that stands whatever happens here: failures are logged, the next commit repeats.

    The rules are asked for here, since options that another engine stored may be of no use either.
    """
    try:
        expired = expire(files, rules())
    except LakebedError as error:
        _log.warning("table %s: nothing expired after the commit: %s", table, error.message)
        return
    if expired:
        _log.info("table %s: expired snapshots %s, changelogs %s", table, expired.snapshots, expired.changelogs)


def _overtaken_or(
    action: Callable[[TableFiles, RetentionRules], Expired], files: TableFiles, rules: RetentionRules
) -> Expired:
    """Acts again if something is missing because another expiry removed the oldest meanwhile."""
    done = Expired()
    for _ in range(_ATTEMPTS):
        before = _oldest(files)
        try:
            return done + action(files, rules)
        except Overtaken as overtaken:
            done += overtaken.done
        except (FileMissing, NotFound):
            if _oldest(files) == before:
                raise
    return done  # somebody else is at it


def _oldest(files: TableFiles) -> tuple[list[int], list[int]]:
    return files.stores.snapshots.ids()[:1], files.stores.changelogs.ids()[:1]


# ------------------------------------------------------------------------------------------------------------------
# Expiry as a table sees it: with its options, its clock and its directories. What goes is decided in `maintenance`.


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
    return replace(expired, remaining=_still_due(files, rules)) if expired else expired


def due_snapshots(context: TableContext) -> int:
    """How many snapshots and changelogs the options let go by now."""
    return _still_due(table_files(context), RetentionRules.of(context.options, context.clock.now_ms()))


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
    return _expire_only_changelogs(table_files(context), rules, everything=everything)


__all__ = ["Expired", "expire", "expire_quietly"]
