"""Where a stream begins: at its consumer's progress, or as `scan.mode` says."""

from __future__ import annotations

import logging

from lakebed.changes.position import SeenSnapshot, StreamPosition
from lakebed.changes.scan_modes import SCAN_MODES, StreamStart
from lakebed.definition import scan_mode as modes
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.options import (
    CONSUMER_ID,
    CONSUMER_IGNORE_PROGRESS,
    SCAN_CREATION_TIME_MILLIS,
    SCAN_FILE_CREATION_TIME_MILLIS,
    SCAN_MODE,
    Options,
)

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
    start = _start(context)
    consumer = consumer_id(context.options)
    if consumer is not None and not context.options[CONSUMER_IGNORE_PROGRESS]:
        next_snapshot = context.stores.consumers.next_snapshot(consumer)
        if next_snapshot is not None:
            last = context.stores.consumers.last_list(consumer)
            return StreamPosition(next_snapshot, seen=SeenSnapshot(next_snapshot - 1, last) if last else None)
    return start(context, history)


def created_since_ms(options: Options) -> int | None:
    """Files written before this time are left out of a stream's first plan; None: all count."""
    if options.has(SCAN_FILE_CREATION_TIME_MILLIS):
        return options[SCAN_FILE_CREATION_TIME_MILLIS]
    return options[SCAN_CREATION_TIME_MILLIS]


def _start(context: TableContext) -> StreamStart:
    """Where the mode lets a stream begin; raises for one that is for reads that end."""
    mode = modes.scan_mode(context.options, context.name)
    if mode == modes.INCREMENTAL and not any(context.options.has(each) for each in modes.POINTS[modes.INCREMENTAL]):
        _log.warning(
            "table `%s`: a stream takes `%s` = `%s` for `%s`: changes from now on",
            context.name,
            SCAN_MODE.key,
            mode,
            modes.LATEST,
        )
        mode = modes.LATEST
    start = SCAN_MODES[mode].start
    if start is None:
        raise InvalidArgument(
            f"table `{context.name}`: `{SCAN_MODE.key}` = `{mode}` is for reads that end, not for streams",
            hint=f"use `{modes.LATEST}` for changes from now on, `{modes.FROM_SNAPSHOT}` for changes since a snapshot",
        )
    return start
