"""Where a stream reader stands: plain data that can be kept anywhere and given back to go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """What comes next: a snapshot, whether its whole state is due or only its changes, and how much is read already.

    `index` counts the splits of the snapshot's plan that are behind. A plan is the same whenever it is made, as long as
    the table's options are.
    """

    snapshot: int
    is_full: bool = False
    index: int = 0

    def to_members(self) -> dict[str, Any]:
        """The position as JSON takes it."""
        return {"snapshot": self.snapshot, "full": self.is_full, "index": self.index}

    @staticmethod
    def from_members(members: Any) -> StreamPosition:
        """The position that `to_members` gave."""
        if not isinstance(members, Mapping) or set(members) != {"snapshot", "full", "index"}:
            raise InvalidArgument(
                f"{members!r} is no position of a stream", hint="pass what `position` of a stream gave, unchanged"
            )
        snapshot, is_full, index = members["snapshot"], members["full"], members["index"]
        if not _is_number(snapshot, 1) or not isinstance(is_full, bool) or not _is_number(index, 0):
            raise InvalidArgument(
                f"{dict(members)!r} is no position of a stream",
                hint='it looks like {"snapshot": 3, "full": false, "index": 0}',
            )
        return StreamPosition(snapshot, is_full, index)


def _is_number(value: Any, minimum: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum
