"""What a compaction writes down of itself in the properties of its snapshot: why it was due, and how long it took.

Other engines let properties be. Some hand them on to commits of their own, so a note is believed of our snapshots only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakebed.metadata.operation import is_ours
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.records import dataclass

_REASON = "lakebed.compaction.reason"
_MILLIS = "lakebed.compaction.millis"


@dataclass(frozen=True, slots=True)
class CompactionNote:
    """Why buckets were picked, each reason once, and the time from the plan to the commit."""

    reason: str
    millis: int

    @staticmethod
    def of_plans(reasons: Iterable[str], millis: int) -> CompactionNote:
        """From the reasons of all plans."""
        return CompactionNote(", ".join(dict.fromkeys(reasons)), max(0, millis))

    def to_properties(self) -> Mapping[str, str]:
        """As properties of the snapshot."""
        return {_REASON: self.reason, _MILLIS: str(self.millis)}

    @staticmethod
    def find(snapshot: Snapshot) -> CompactionNote | None:
        """The note of a snapshot; None if nobody has left one."""
        given = snapshot.properties or {}
        if snapshot.commit_kind is not CommitKind.COMPACT or not is_ours(snapshot.writer_version):
            return None
        millis = given.get(_MILLIS, "")
        return CompactionNote(given.get(_REASON, ""), int(millis)) if millis.isdigit() else None


__all__ = ["CompactionNote"]
