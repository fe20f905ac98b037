"""Where a stream begins, by `scan.mode` and the consumer's progress."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebed.definition import scan_mode as modes
from lakebed.definition.context import TableContext
from lakebed.definition.moments import History
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.metadata.snapshot import Snapshot
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
from lakebed.read.scan_options import compacted_snapshot, snapshot_since

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
        compacted = compacted_snapshot(context)
        return StreamPosition(compacted.id if compacted else 1, is_full=True)
    if mode == modes.FROM_TIMESTAMP:
        return StreamPosition(history.first_since(modes.timestamp_ms(context.options)))
    if mode == modes.FROM_SNAPSHOT:
        return StreamPosition(max(_snapshot_id(context), history.earliest_id() or 1))
    if mode == modes.FROM_SNAPSHOT_FULL:
        return StreamPosition(max(_snapshot_id(context), history.earliest_snapshot_id() or 1), is_full=True)
    if mode == modes.FROM_CREATION_TIMESTAMP:
        found = snapshot_since(history, int(str(context.options[SCAN_CREATION_TIME_MILLIS])))
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


# --- Where a stream reader stands: plain data that can be kept anywhere and given back to go on from there --------


_MEMBERS = {"snapshot", "full", "index"}


@dataclass(frozen=True, slots=True)
class SeenSnapshot:
    """A snapshot that a reader knows. Ids come again after a rollback; names of manifest lists never do."""

    id: int
    delta_manifest_list: str

    @staticmethod
    def of(snapshot: Snapshot) -> SeenSnapshot:
        """What to remember of a snapshot."""
        return SeenSnapshot(snapshot.id, snapshot.delta_manifest_list)

    def to_members(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {"snapshot": self.id, "list": self.delta_manifest_list}


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """What comes next: a snapshot, whether its whole state is due or only its changes, and how much is read already.

    `index` counts the splits of the snapshot's plan that are behind. A plan is the same whenever it is made, as long as
    the table's options and the stream's filter are. `seen` is the last snapshot of which something was read.
    """

    snapshot: int
    is_full: bool = False
    index: int = 0
    seen: SeenSnapshot | None = field(default=None, compare=False)

    def to_members(self) -> dict[str, Any]:
        """The position as JSON takes it."""
        members: dict[str, Any] = {"snapshot": self.snapshot, "full": self.is_full, "index": self.index}
        return members if self.seen is None else {**members, "seen": self.seen.to_members()}

    @staticmethod
    def from_members(members: Any) -> StreamPosition:
        """The position that `to_members` gave."""
        if not isinstance(members, Mapping) or not _MEMBERS <= set(members) <= {*_MEMBERS, "seen"}:
            raise InvalidArgument(
                f"{members!r} is no position of a stream", hint="pass what `position` of a stream gave, unchanged"
            )
        snapshot, is_full, index = members["snapshot"], members["full"], members["index"]
        seen = members.get("seen")
        if (
            not _is_number(snapshot, 1)
            or not isinstance(is_full, bool)
            or not _is_number(index, 0)
            or not (seen is None or _is_seen(seen))
        ):
            raise InvalidArgument(
                f"{dict(members)!r} is no position of a stream",
                hint='it looks like {"snapshot": 3, "full": false, "index": 0}',
            )
        known = None if seen is None else SeenSnapshot(seen["snapshot"], seen["list"])
        return StreamPosition(snapshot, is_full, index, known)


def _is_seen(members: Any) -> bool:
    return (
        isinstance(members, Mapping)
        and set(members) == {"snapshot", "list"}
        and _is_number(members["snapshot"], 1)
        and isinstance(members["list"], str)
    )


def _is_number(value: Any, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum
