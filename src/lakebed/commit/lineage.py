"""Whether a snapshot that was just published has its place in the table's history.

Ids are handed out by exclusive creation, and expiry frees them again. A committer that was held up for long can thus
find the id after its base free because that snapshot came and went: what it publishes there is no successor of
anything, and nobody would ever see its rows. Expiry removes the oldest first, so a base that is still there proves
that the id after it had never been used.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.metadata.entries import base_metas, read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry, live_entries
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores


def is_in_line(
    stores: MetadataStores, base: Snapshot | None, published: Snapshot, entries: Sequence[ManifestEntry]
) -> bool:
    """Whether later snapshots, if there are any, build on the published one, which made these changes to its base."""
    if base is not None:
        now = stores.snapshots.find(base.id)
        if now is not None:
            return now == base  # another one in its place: a branch took over
    ids = stores.snapshots.ids()
    later = [snapshot_id for snapshot_id in ids if snapshot_id > published.id]
    if not later:
        # Expiry takes the oldest first. If an older one is there and our base is not, a rollback took it away.
        return base is None or not any(snapshot_id < base.id for snapshot_id in ids)
    if later[0] != published.id + 1:
        return False  # the one after it has expired, hence so had the one in whose place it stands
    successor = stores.snapshots.get(later[0])
    before = {entry.identity for entry in live_entries(read_manifests(stores, base_metas(stores, successor)))}
    return all((entry.identity in before) == (entry.kind == EntryKind.ADD) for entry in entries)
