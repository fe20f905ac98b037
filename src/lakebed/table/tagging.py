"""Tags as a table sees them: with its options, its clock and the moments users write."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from lakebed.errors import InvalidArgument, InvalidOption, NotFound, Unsupported
from lakebed.maintenance.tags import (
    DeletedTags,
    TagLife,
    create_tag,
    delete_tags,
    expired_tags,
    find_snapshot,
    replace_tag,
)
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.tag import Tag
from lakebed.options import TAG_CALLBACKS, TAG_CREATE_SUCCESS_FILE, TAG_DEFAULT_TIME_RETAINED
from lakebed.table.arguments import new_tag_argument, snapshot_argument, tag_argument
from lakebed.table.context import TableContext
from lakebed.table.files import table_files
from lakebed.table.mark_done import write_marker
from lakebed.table.time_travel import snapshot_of_tag, to_millis
from lakebed.units import parse_duration

Duration = str | dt.timedelta
"""`1 d`, or a timedelta."""


def refuse_callbacks(context: TableContext) -> None:
    """Raises if new tags must be told to Java classes, which can not be called here."""
    if context.options[TAG_CALLBACKS]:
        key = TAG_CALLBACKS.key
        raise Unsupported(
            f"table `{context.name}` has `{key}` = `{context.options.raw[key]}`, which this version can not call",
            hint=TAG_CALLBACKS.instead,
        )


def tag_snapshot(context: TableContext, name: str, snapshot: int | None, time_retained: Duration | None) -> Tag:
    """A new tag; without a time to live, the table's option gives one."""
    refuse_callbacks(context)
    default_ms = context.options[TAG_DEFAULT_TIME_RETAINED]
    if time_retained is None and default_ms is not None:
        time_retained = dt.timedelta(milliseconds=default_ms)
    chosen = _chosen(context, snapshot)
    tag = create_tag(context.stores, new_tag_argument(name), chosen, _life(context, time_retained))
    if context.options[TAG_CREATE_SUCCESS_FILE]:
        write_marker(context, context.paths.tag_marker_file(name))
    return tag


def retag(context: TableContext, name: str, snapshot: int | None, time_retained: Duration | None) -> Tag:
    """An existing tag, put on another snapshot or given another time to live."""
    snapshot_of_tag(context.stores, tag_argument(name), context.name)
    return replace_tag(context.stores, name, _chosen(context, snapshot), _life(context, time_retained))


def rename_tag(context: TableContext, name: str, new_name: str) -> None:
    """The same tag under another name."""
    snapshot_of_tag(context.stores, tag_argument(name), context.name)
    context.stores.tags.rename(name, new_tag_argument(new_name))


def remove_tags(context: TableContext, names: Sequence[str]) -> DeletedTags:
    """Deletes tags, all of them or, if one does not exist, none."""
    for name in names:
        snapshot_of_tag(context.stores, tag_argument(name), context.name)
    done = delete_tags(table_files(context), names)
    for name in done.names:
        context.fileio.delete(context.paths.tag_marker_file(name))
    return done


def remove_expired_tags(context: TableContext, older_than: int | str | dt.datetime | dt.date | None) -> DeletedTags:
    """Deletes the tags whose time is over."""
    moment = None if older_than is None else _local(to_millis(older_than))
    due = expired_tags(context.stores, _local(context.clock.now_ms()), moment)
    return remove_tags(context, due) if due else DeletedTags()


def duration_argument(value: Duration, argument: str) -> dt.timedelta:
    """A length of time, longer than none."""
    try:
        found = dt.timedelta(milliseconds=parse_duration(value)) if isinstance(value, str) else value
    except (InvalidOption, OverflowError) as error:
        raise InvalidArgument(f"{argument} is {value!r}", hint="write it like `1 d` or `12 h`") from error
    if not isinstance(found, dt.timedelta) or found < dt.timedelta(0):
        raise InvalidArgument(f"{argument} is {value!r}", hint="pass a timedelta, or text like `1 d` or `12 h`")
    return found


def _chosen(context: TableContext, snapshot: int | None) -> Snapshot:
    stores = context.stores
    if snapshot is not None:
        return find_snapshot(stores, snapshot_argument(snapshot))
    latest = stores.snapshots.latest()
    if latest is None:
        raise NotFound(f"table `{context.name}` has no snapshot to tag", hint="write to the table first")
    return latest


def _life(context: TableContext, time_retained: Duration | None) -> TagLife:
    retained = None if time_retained is None else duration_argument(time_retained, "time_retained")
    return TagLife(_local(context.clock.now_ms()), retained)


def _local(time_ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time_ms / 1000)
