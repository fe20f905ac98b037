"""Tags: create, replace, rename, delete, expire."""

from __future__ import annotations

import pyarrow as pa

from lakebed.errors import NotFound
from lakebed.metadata.snapshot import Snapshot
from lakebed.sql.define.alter import delete_tags
from lakebed.sql.procedures.registry import DONE, TABLE, Kind, Parameter, Procedure, Rows, SqlLake
from lakebed.table.table import Table

_TAG = Parameter("tag", required=True, aliases=("tag_name",))
_SNAPSHOT = Parameter("snapshot", Kind.NUMBER, aliases=("snapshot_id",))
_RETAINED = Parameter("time_retained")
_CREATED = {"tagName": pa.string(), "snapshot": pa.int64(), "commit_time": pa.int64(), "watermark": pa.string()}


def _create(lake: SqlLake, table: str, tag: str, snapshot: int | None = None, time_retained: str | None = None) -> Rows:
    lake.table(table).create_tag(tag, snapshot, time_retained)
    return DONE


def _replace(
    lake: SqlLake, table: str, tag: str, snapshot: int | None = None, time_retained: str | None = None
) -> Rows:
    lake.table(table).replace_tag(tag, snapshot, time_retained)
    return DONE


def _create_at_time(lake: SqlLake, table: str, tag: str, timestamp: int, time_retained: str | None = None) -> Rows:
    """The first snapshot that was committed at the time or later."""
    handle = lake.table(table)
    found = next((item for item in _snapshots_and_tagged(handle) if item.time_millis >= timestamp), None)
    if found is None:
        raise NotFound(f"table `{handle.name}` has no snapshot from {timestamp} on", hint="choose an earlier time")
    handle.create_tag(tag, found.id, time_retained)
    return [(tag, found.id, found.time_millis, _text(found.watermark))]


def _create_at_watermark(lake: SqlLake, table: str, tag: str, watermark: int, time_retained: str | None = None) -> Rows:
    """The first snapshot whose watermark has reached the value."""
    handle = lake.table(table)
    found = next((item for item in _snapshots_and_tagged(handle) if (item.watermark or -1) >= watermark), None)
    if found is None:
        raise NotFound(
            f"table `{handle.name}` has no snapshot whose watermark has reached {watermark}",
            hint="choose an earlier watermark; streams set them, and `end-input.watermark` of an INSERT",
        )
    handle.create_tag(tag, found.id, time_retained)
    return [(tag, found.id, found.time_millis, _text(found.watermark))]


def _snapshots_and_tagged(table: Table) -> list[Snapshot]:
    """All snapshots, oldest first, those among them that have expired and live on in a tag."""
    tagged = {tag.snapshot.id: tag.snapshot for tag in table.tags(detail=True)}
    there = {snapshot.id: snapshot for snapshot in table.snapshots()}
    return [snapshot for _, snapshot in sorted({**tagged, **there}.items())]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _rename(lake: SqlLake, table: str, tag: str, target_tag: str) -> Rows:
    lake.table(table).rename_tag(tag, target_tag)
    return DONE


def _delete(lake: SqlLake, table: str, tag: str) -> Rows:
    """Tags that are not there are deleted already; only ALTER TABLE ... DELETE TAG minds."""
    delete_tags(lake.table(table), tag, if_exists=True)
    return DONE


def _expire(lake: SqlLake, table: str, older_than: str | int | None = None) -> Rows:
    gone = lake.table(table).expire_tags(older_than)
    return [(name,) for name in gone.names] or [("No expired tags.",)]


def _create_due(lake: SqlLake, table: str) -> Rows:
    """The tags that the table's own options ask for by now."""
    lake.table(table).create_due_tags()
    return DONE


PROCEDURES = (
    Procedure("create_tag", (TABLE, _TAG, _SNAPSHOT, _RETAINED), _create),
    Procedure("replace_tag", (TABLE, _TAG, _SNAPSHOT, _RETAINED), _replace),
    Procedure(
        "create_tag_from_timestamp",
        (TABLE, _TAG, Parameter("timestamp", Kind.NUMBER, required=True), _RETAINED),
        _create_at_time,
        _CREATED,
    ),
    Procedure(
        "create_tag_from_watermark",
        (TABLE, _TAG, Parameter("watermark", Kind.NUMBER, required=True), _RETAINED),
        _create_at_watermark,
        _CREATED,
    ),
    Procedure(
        "rename_tag", (TABLE, _TAG, Parameter("target_tag", required=True, aliases=("target_tag_name",))), _rename
    ),
    Procedure("delete_tag", (TABLE, _TAG), _delete),
    Procedure("trigger_tag_automatic_creation", (TABLE,), _create_due),
    Procedure("expire_tags", (TABLE, Parameter("older_than", Kind.MOMENT)), _expire, {"expired_tags": pa.string()}),
)
