"""What a compaction says of itself: in the properties of its snapshot, why it was due and how long it took; to who
listens to metrics, what it merged.

Other engines let properties be. Some hand them on to commits of their own, so a note is believed of our snapshots only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakebed.commit.message import CommitMessage
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.operation import is_ours
from lakebed.metadata.snapshot import CommitKind, Snapshot
from lakebed.metrics.families import (
    COMPACTION_READ_FILES,
    COMPACTION_READ_SIZE,
    COMPACTION_WRITTEN_FILES,
    COMPACTION_WRITTEN_SIZE,
)
from lakebed.metrics.instruments import Instrument, is_heard
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


def count_compacted(messages: Iterable[CommitMessage], table: str) -> None:
    """Tells who listens of files that went and came. One that only changed its level did neither."""
    if not is_heard():
        return
    for message in messages:
        before = {file.file_name: file for file in message.compact_before}
        after = {file.file_name: file for file in message.compact_after}
        _count(COMPACTION_READ_FILES, COMPACTION_READ_SIZE, before, after, table)
        _count(COMPACTION_WRITTEN_FILES, COMPACTION_WRITTEN_SIZE, after, before, table)


def _count(
    number: Instrument, size: Instrument, files: Mapping[str, DataFile], others: Mapping[str, DataFile], table: str
) -> None:
    found = [file for name, file in files.items() if name not in others]
    number.tell(len(found), table)
    size.tell(sum(file.size_bytes for file in found), table)


__all__ = ["CompactionNote", "count_compacted"]
