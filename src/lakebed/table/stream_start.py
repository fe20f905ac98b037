"""Where a stream begins, by `scan.mode` and the consumer's progress."""

from __future__ import annotations

import logging

from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.options import (
    CONSUMER_ID,
    CONSUMER_IGNORE_PROGRESS,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    SCAN_SNAPSHOT_ID,
    SCAN_VERSION,
    Options,
)
from lakebed.table import scan_modes as modes
from lakebed.table.context import TableContext
from lakebed.table.stream_history import History
from lakebed.table.stream_position import SeenSnapshot, StreamPosition

_log = logging.getLogger(__name__)


def consumer_id(options: Options) -> str | None:
    """The name under which progress is kept; it becomes part of a file name."""
    name = options[CONSUMER_ID]
    if name is not None and (not name.strip() or "/" in name or "\\" in name):
        raise InvalidOption(
            f"option `{CONSUMER_ID.key}` is `{name}`, which is no name", hint="use letters, digits, `-` and `_`"
        )
    return name


def start_position(context: TableContext, history: History) -> StreamPosition:
    """The consumer's progress if it has any, else what the mode says. A table may be empty: then ids begin at 1."""
    mode = _streaming_mode(context)
    consumer = consumer_id(context.options)
    if consumer is not None and not context.options[CONSUMER_IGNORE_PROGRESS]:
        next_snapshot = context.stores.consumers.next_snapshot(consumer)
        if next_snapshot is not None:
            last = context.stores.consumers.last_list(consumer)
            return StreamPosition(next_snapshot, seen=SeenSnapshot(next_snapshot - 1, last) if last else None)
    latest = history.latest_id()
    if mode == modes.LATEST_FULL:
        return StreamPosition(latest or 1, is_full=True)
    if mode == modes.LATEST:
        return StreamPosition((latest or 0) + 1)
    if mode == modes.COMPACTED_FULL:
        compacted = modes.compacted_snapshot(context)
        return StreamPosition(compacted.id if compacted else 1, is_full=True)
    if mode == modes.FROM_TIMESTAMP:
        return StreamPosition(history.first_since(modes.timestamp_ms(context.options)))
    if mode == modes.FROM_SNAPSHOT:
        return StreamPosition(max(_snapshot_id(context), history.earliest_id() or 1))
    if mode == modes.FROM_SNAPSHOT_FULL:
        return StreamPosition(max(_snapshot_id(context), history.earliest_snapshot_id() or 1), is_full=True)
    if mode == modes.FROM_CREATION_TIMESTAMP:
        found = modes.snapshot_since(history, int(str(context.options[SCAN_CREATION_TIME_MILLIS])))
        if found is not None:
            return StreamPosition(found)
    return StreamPosition(latest or 1, is_full=True)


def created_since_ms(options: Options) -> int | None:
    """Files written before this time are left out of a stream's first plan; None: all count."""
    if options.has(SCAN_FILE_CREATION_TIME_MILLIS):
        return options[SCAN_FILE_CREATION_TIME_MILLIS]
    return options[SCAN_CREATION_TIME_MILLIS]


def _streaming_mode(context: TableContext) -> str:
    mode = modes.scan_mode(context.options, context.name)
    is_between = any(context.options.has(option) for option in modes.POINTS[modes.INCREMENTAL])
    if mode == modes.LATEST_DELTA or (mode == modes.INCREMENTAL and is_between):
        raise InvalidArgument(
            f"table `{context.name}`: `{SCAN_MODE.key}` = `{mode}` is for reads that end, not for streams",
            hint=f"use `{modes.LATEST}` for changes from now on, `{modes.FROM_SNAPSHOT}` for changes since a snapshot",
        )
    if mode == modes.INCREMENTAL:
        _log.warning(
            "table `%s`: a stream takes `%s` = `%s` for `%s`: changes from now on",
            context.name,
            SCAN_MODE.key,
            mode,
            modes.LATEST,
        )
        return modes.LATEST
    return mode


def _snapshot_id(context: TableContext) -> int:
    options = context.options
    if options.has(SCAN_SNAPSHOT_ID):
        return int(str(options[SCAN_SNAPSHOT_ID]))
    version = options[SCAN_VERSION]
    if version is not None and version.isdigit() and not context.stores.tags.exists(version):
        return int(version)
    given = next(option for option in modes.POINTS[modes.FROM_SNAPSHOT] if options.has(option))
    raise InvalidArgument(
        f"table `{context.name}`: a stream can not start at `{given.key}` = `{options[given]}`",
        hint=f"name the snapshot with `{SCAN_SNAPSHOT_ID.key}`",
    )
