"""Return to an earlier state."""

from __future__ import annotations

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.sql.procedures.registry import TABLE, Kind, Parameter, Procedure, Rows, SqlLake

_SNAPSHOT = Parameter("snapshot", Kind.NUMBER, aliases=("snapshot_id",))
_TAG = Parameter("tag", aliases=("tag_name",))
_IDS = {"previous_snapshot_id": pa.int64(), "current_snapshot_id": pa.int64()}
_REVIVED = {
    "previous_snapshot_id": pa.int64(),
    "rolled_back_snapshot_id": pa.int64(),
    "current_snapshot_id": pa.int64(),
}


def _rollback(
    lake: SqlLake, table: str, version: str | None = None, snapshot: int | None = None, tag: str | None = None
) -> Rows:
    """`version` is a tag's name or else a snapshot's number."""
    _check_one(version, snapshot, tag)
    handle = lake.table(table)
    if version is not None:
        if version in handle.tags():
            tag = version
        elif version.isdigit():
            snapshot = int(version)
        else:
            tag = version
    gone = handle.rollback_to(snapshot, tag=tag)
    return [(gone.previous, gone.current)]


def _rollback_to(lake: SqlLake, table: str, tag: str | None = None, snapshot: int | None = None) -> Rows:
    _check_one(tag, snapshot)
    if tag is not None and tag.isdigit():
        # Without names Flink tells the two by their types: a number is a snapshot.
        handle = lake.table(table)
        tag, snapshot = (tag, None) if tag in handle.tags() else (None, int(tag))
    return _rollback(lake, table, None, snapshot, tag)


def _rollback_to_timestamp(lake: SqlLake, table: str, timestamp: int | str) -> Rows:
    gone = lake.table(table).rollback_to(timestamp=timestamp)
    return [(gone.previous, gone.current)]


def _rollback_to_watermark(lake: SqlLake, table: str, watermark: int) -> Rows:
    gone = lake.table(table).rollback_to(watermark=watermark)
    return [(gone.previous, gone.current)]


def _as_latest(lake: SqlLake, table: str, tag: str | None = None, snapshot: int | None = None) -> Rows:
    _check_one(tag, snapshot)
    found = lake.table(table).rollback_to_as_latest(snapshot, tag=tag)
    return [(found.previous, found.revived, found.current)]


def _check_one(*given: object) -> None:
    if sum(value is not None for value in given) != 1:
        raise InvalidArgument("the state to return to is not given once", hint="pass a snapshot or a tag, one of them")


PROCEDURES = (
    Procedure("rollback", (TABLE, Parameter("version"), _SNAPSHOT, _TAG), _rollback, _IDS),
    Procedure("rollback_to", (TABLE, _TAG, _SNAPSHOT), _rollback_to, _IDS),
    Procedure(
        "rollback_to_timestamp",
        (TABLE, Parameter("timestamp", Kind.MOMENT, required=True)),
        _rollback_to_timestamp,
        _IDS,
    ),
    Procedure(
        "rollback_to_watermark",
        (TABLE, Parameter("watermark", Kind.NUMBER, required=True)),
        _rollback_to_watermark,
        _IDS,
    ),
    Procedure("rollback_to_as_latest", (TABLE, _TAG, _SNAPSHOT), _as_latest, _REVIVED),
)
