"""Chooses the snapshot a read sees: the latest one, or the one that options or `t.at(...)` name."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left

from lakebed.errors import InvalidArgument, NotFound, did_you_mean
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores
from lakebed.options import (
    SCAN_SNAPSHOT_ID,
    SCAN_TAG_NAME,
    SCAN_TIMESTAMP,
    SCAN_TIMESTAMP_MILLIS,
    SCAN_VERSION,
    SCAN_WATERMARK,
    Options,
)

_POINTS = (SCAN_SNAPSHOT_ID, SCAN_TAG_NAME, SCAN_TIMESTAMP_MILLIS, SCAN_TIMESTAMP, SCAN_WATERMARK, SCAN_VERSION)


def is_travelling(options: Options) -> bool:
    """Whether the options point at a particular snapshot."""
    return any(options.has(option) for option in _POINTS)


def asked_time_ms(options: Options) -> int | None:
    """The time that the options ask for; None if they point at a snapshot otherwise, or at none."""
    if options.has(SCAN_TIMESTAMP_MILLIS):
        return int(str(options[SCAN_TIMESTAMP_MILLIS]))
    return to_millis(str(options[SCAN_TIMESTAMP])) if options.has(SCAN_TIMESTAMP) else None


def resolve_snapshot(stores: MetadataStores, options: Options, table: str) -> Snapshot | None:
    """The snapshot to read; None for a table without snapshots."""
    given = [option for option in _POINTS if options.has(option)]
    if len(given) > 1:
        raise InvalidArgument(
            f"table `{table}`: {' and '.join(f'`{option.key}`' for option in given)} each choose a snapshot",
            hint="set only one of them",
        )
    if not given:
        return stores.snapshots.latest()
    if given[0] is SCAN_SNAPSHOT_ID:
        return stores.snapshots.get(int(str(options[SCAN_SNAPSHOT_ID])))
    if given[0] is SCAN_TAG_NAME:
        return snapshot_of_tag(stores, str(options[SCAN_TAG_NAME]), table)
    if (time_ms := asked_time_ms(options)) is not None:
        return snapshot_at_time(stores, time_ms, table)
    if given[0] is SCAN_WATERMARK:
        return _snapshot_of_watermark(stores, int(str(options[SCAN_WATERMARK])), table)
    return _snapshot_of_version(stores, str(options[SCAN_VERSION]), table)


def _snapshot_of_version(stores: MetadataStores, version: str, table: str) -> Snapshot:
    """`VERSION AS OF x`: a tag of that name, else a watermark (`watermark-<n>`), else a snapshot id."""
    if stores.tags.exists(version):
        return stores.tags.get(version).snapshot
    watermark = version.removeprefix("watermark-")
    if watermark != version and watermark.isdigit():
        return _snapshot_of_watermark(stores, int(watermark), table)
    if version.isdigit():
        return stores.snapshots.get(int(version))
    return snapshot_of_tag(stores, version, table)


def snapshot_of_tag(stores: MetadataStores, name: str, table: str) -> Snapshot:
    """The snapshot a tag keeps."""
    if not stores.tags.exists(name):
        raise NotFound(f"table `{table}` has no tag `{name}`", hint=did_you_mean(name, stores.tags.names()))
    return stores.tags.get(name).snapshot


def _snapshot_of_watermark(stores: MetadataStores, watermark: int, table: str) -> Snapshot:
    """The first snapshot whose watermark has reached a value."""
    for snapshot_id in stores.snapshots.ids():
        snapshot = stores.snapshots.get(snapshot_id)
        if snapshot.watermark is not None and snapshot.watermark >= watermark:
            return snapshot
    raise NotFound(
        f"table `{table}` has no snapshot whose watermark has reached {watermark}",
        hint="choose an earlier watermark, or one of its snapshots",
    )


def snapshot_before_watermark(stores: MetadataStores, watermark: int, table: str) -> Snapshot:
    """The newest snapshot whose watermark has not passed a value."""
    for snapshot_id in reversed(stores.snapshots.ids()):
        snapshot = stores.snapshots.get(snapshot_id)
        if snapshot.watermark is not None and snapshot.watermark <= watermark:
            return snapshot
    raise NotFound(
        f"table `{table}` has no snapshot whose watermark is {watermark} or earlier",
        hint="choose a later watermark, or one of its snapshots",
    )


def snapshot_at_time(stores: MetadataStores, time_ms: int, table: str) -> Snapshot:
    """The newest snapshot committed at or before a time."""
    found = stores.snapshots.at_or_before_time(time_ms)
    if found is None:
        earliest = stores.snapshots.earliest_id()
        since = "it has no snapshots"
        if earliest is not None:
            since = f"its earliest snapshot, {earliest}, is of {_readable(stores.snapshots.get(earliest).time_millis)}"
        raise NotFound(
            f"table `{table}` has no snapshot at or before {_readable(time_ms)}: {since}", hint="choose a later time"
        )
    return found


def is_moment(text: str) -> bool:
    """Whether a text tells a time."""
    try:
        to_millis(text)
    except InvalidArgument:
        return False
    return True


def to_millis(moment: str | int | dt.datetime | dt.date) -> int:
    """Epoch milliseconds of a moment; wall-clock times are of the local zone."""
    if isinstance(moment, bool) or not isinstance(moment, str | int | dt.date):
        raise InvalidArgument(
            f"{moment!r} is no point in time", hint="pass milliseconds, a datetime, or text like 2024-05-14 13:45:00"
        )
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment.strip())
        except ValueError as error:
            raise InvalidArgument(
                f"`{moment}` is no point in time", hint="write it like 2024-05-14 or 2024-05-14 13:45:00.250"
            ) from error
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    try:
        return int(moment.timestamp() * 1000)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidArgument(
            f"{moment} is out of the range of times of this machine", hint="choose a later time"
        ) from error


def _readable(time_ms: int) -> str:
    try:
        moment = dt.datetime.fromtimestamp(time_ms / 1000).astimezone()
    except (OverflowError, OSError, ValueError):
        return f"{time_ms} ms"
    return f"{moment.isoformat(sep=' ', timespec='milliseconds')} ({time_ms} ms)"


# --- The snapshots a stream can still read the changes of: those that are there, and changelogs that outlive theirs


class History:
    """Snapshots by id, oldest changelog first, newest snapshot last."""

    def __init__(self, stores: MetadataStores) -> None:
        self._snapshots = stores.snapshots
        self._changelogs = stores.changelogs

    def latest_id(self) -> int | None:
        """Id of the newest snapshot."""
        return self._snapshots.latest_id()

    def earliest_snapshot_id(self) -> int | None:
        """Id of the oldest snapshot whose whole state can be read."""
        return self._snapshots.earliest_id()

    def earliest_id(self) -> int | None:
        """Id of the oldest snapshot whose changes can be read."""
        found = (self._changelogs.earliest_id(), self._snapshots.earliest_id())
        return min((number for number in found if number is not None), default=None)

    def state(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot whose whole state can be read; None if it is not there."""
        try:
            return self._snapshots.get(snapshot_id)
        except NotFound:
            return None

    def changes(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot whose changes can be read; None if it is not there."""
        # A changelog is written before its snapshot goes, so the second look finds what the first just missed.
        return self.state(snapshot_id) or self._changelogs.find(snapshot_id)

    def first_since(self, time_ms: int) -> int:
        """Id of the first snapshot committed at that time or later: the one that comes next if all are earlier."""
        earliest, latest = self.earliest_id(), self.latest_id()
        if earliest is None or latest is None:
            return 1
        ids = range(earliest, latest + 1)
        return earliest + bisect_left(ids, time_ms, key=self._time_of)

    def _time_of(self, snapshot_id: int) -> int:
        found = self.changes(snapshot_id)
        # One that vanishes meanwhile has expired, so it is older than all others.
        return found.time_millis if found is not None else -(1 << 63)
