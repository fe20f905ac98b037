"""Which snapshot brought a file, and which took it away: read from what each snapshot says it changed.

Manifests do not tell the snapshot of a file, and what an expired snapshot changed is not told any more. So an origin is
known as far as snapshots are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from lakebed.commit.replay import SYNC_POSITION
from lakebed.definition.context import TableContext
from lakebed.definition.memory import Slot
from lakebed.errors import FileMissing, NotFound
from lakebed.metadata.entries import delta_entries
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakebed.metadata.source_position import own_words
from lakebed.records import dataclass

_MOST_ENTRIES = 200_000
"""So many entries of earlier snapshots are remembered by a handle."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What one snapshot changed: files that came and files that went. One that only changed its level did neither."""

    snapshot: Snapshot
    came: Mapping[str, ManifestEntry]
    went: Mapping[str, ManifestEntry]

    @staticmethod
    def of(snapshot: Snapshot, entries: list[ManifestEntry]) -> Delta:
        """From the entries of a snapshot."""
        added = {entry.file.file_name: entry for entry in entries if entry.kind == EntryKind.ADD}
        removed = {entry.file.file_name: entry for entry in entries if entry.kind == EntryKind.DELETE}
        return Delta(
            snapshot,
            {name: entry for name, entry in added.items() if name not in removed},
            {name: entry for name, entry in removed.items() if name not in added},
        )

    @property
    def size(self) -> int:
        """Entries that it holds."""
        return len(self.came) + len(self.went)


_DELTAS: Slot[dict[int, Delta]] = Slot("deltas of snapshots", is_shared=True)


def deltas_back_from(context: TableContext, snapshot: Snapshot | None) -> Iterator[Delta]:
    """What this snapshot changed, the one before it, and so on, as far as snapshots are kept."""
    if snapshot is None:
        return
    memory = context.memory
    with memory.lock:
        known = memory[_DELTAS]
        if known is None:
            known = memory[_DELTAS] = {}
    kept = [number for number in context.stores.snapshots.ids() if number < snapshot.id]
    for number in (snapshot.id, *reversed(kept)):
        found = _delta(context, snapshot if number == snapshot.id else None, number, known)
        if found is not None:
            yield found
    if sum(delta.size for delta in list(known.values())) > _MOST_ENTRIES:
        known.clear()


def _delta(context: TableContext, snapshot: Snapshot | None, number: int, known: dict[int, Delta]) -> Delta | None:
    found = known.get(number)
    # A rollback may have begun a number anew: only the newest few can be others than we know.
    if found is not None and (snapshot is None or found.snapshot == snapshot):
        return found
    try:
        at = snapshot or context.stores.snapshots.get(number)
        known[number] = Delta.of(at, delta_entries(context.stores, at))
    except (NotFound, FileMissing):  # it expired since we looked
        return None
    return known[number]


@dataclass(frozen=True)
class Origins:
    """Where the files of a state came from, and which files of earlier states are not in it any more."""

    brought: dict[str, Snapshot] = field(default_factory=dict)
    """By name of the file the snapshot that brought it."""
    gone: dict[str, tuple[ManifestEntry, Snapshot]] = field(default_factory=dict)
    """Files that came in a snapshot that is kept, and went in the one that is named."""
    positions: dict[int, str] = field(default_factory=dict)
    """By snapshot the place in a source of changes up to which it has read."""
    earliest: int | None = None
    """The oldest snapshot that is kept."""

    @staticmethod
    def of(context: TableContext, snapshot: Snapshot | None) -> Origins:
        """As of a snapshot."""
        found = Origins()
        went: dict[str, Snapshot] = {}
        deltas = list(deltas_back_from(context, snapshot))
        for delta in deltas:
            for name in delta.went:
                went.setdefault(name, delta.snapshot)
            for name, entry in delta.came.items():
                found.brought.setdefault(name, delta.snapshot)
                if name in went:
                    found.gone.setdefault(name, (entry, went[name]))
        for number, delta in enumerate(deltas, 1):
            position = _own_position(delta.snapshot, deltas[number].snapshot if number < len(deltas) else None)
            if position is not None:
                found.positions[delta.snapshot.id] = position
        earliest = deltas[-1].snapshot.id if deltas else None
        return Origins(found.brought, found.gone, found.positions, earliest)


def _own_position(snapshot: Snapshot, before: Snapshot | None) -> str | None:
    """How far a sync had read when it made a snapshot; others hand its words on, and are not meant."""
    if snapshot.commit_kind is CommitKind.COMPACT or snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    offset = (snapshot.properties or {}).get(SYNC_POSITION)
    if offset is None or (before is not None and (before.properties or {}).get(SYNC_POSITION) == offset):
        return None
    return own_words(offset)


__all__ = ["Delta", "Origins", "deltas_back_from"]
