"""Where a stream reader stands: plain data that can be kept anywhere and given back to go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lakebed.errors import InvalidArgument
from lakebed.metadata.snapshot import Snapshot
from lakebed.records import dataclass

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
