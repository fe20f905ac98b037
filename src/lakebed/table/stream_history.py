"""The snapshots a stream can still read the changes of: those that are there, and changelogs that outlive theirs."""

from __future__ import annotations

from bisect import bisect_left

from lakebed.errors import NotFound
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores


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
