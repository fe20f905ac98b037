"""What snapshots say about the order of rows: files numbered by the snapshot they came with, and the highest number.

Rows of a table that orders by snapshot carry no numbers that count: the manifest gives each file the id of its
snapshot, which only the commit knows. Other tables may keep their highest number so far as a property of each snapshot,
so that writers need not look at all files for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakebed.errors import CorruptFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores

MAX_SEQUENCE_NUMBER = "sequence.generation.max-sequence-number"
"""Property of a snapshot."""


def stamped(entries: Iterable[ManifestEntry], snapshot_id: int) -> list[ManifestEntry]:
    """The entries, with the snapshot's id as the number of all rows of new files."""
    return [
        replace(entry, file=replace(entry.file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id))
        if entry.kind == EntryKind.ADD
        else entry
        for entry in entries
    ]


def kept_number(snapshot: Snapshot | None) -> int | None:
    """The highest sequence number of the table that a snapshot keeps; None if it keeps none."""
    text = (snapshot.properties or {}).get(MAX_SEQUENCE_NUMBER) if snapshot is not None else None
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise CorruptFile(
            f"snapshot {snapshot.id if snapshot else 0}: property `{MAX_SEQUENCE_NUMBER}` is `{text}`, not a number",
            hint="restore the snapshot file, or set `write.sequence-number-init-mode` to `scan`",
        ) from error


def next_kept_number(stores: MetadataStores, latest: Snapshot | None, entries: Sequence[ManifestEntry]) -> int | None:
    """What the snapshot after `latest` keeps; None as long as nothing was written."""
    # INVARIANT: the kept number never falls, also when the file that had it is gone: writers go on from it without a
    # look at files, and rows numbered below others of their key would lose against them.
    before = kept_number(latest)
    if before is None:
        before = _highest(live_files(stores, latest))
    found = [number for number in (before, _highest(entries)) if number is not None]
    return max(found, default=None)


def _highest(entries: Iterable[ManifestEntry]) -> int | None:
    return max((entry.file.max_sequence_number for entry in entries if entry.kind == EntryKind.ADD), default=None)


__all__ = ["MAX_SEQUENCE_NUMBER", "kept_number", "next_kept_number", "stamped"]
