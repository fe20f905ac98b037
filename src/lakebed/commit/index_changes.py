"""From the index files of one snapshot to those of the next: an index manifest lists all there are, not what changed.

    entries = current_entries(stores, latest)                       # of the snapshot that the commit builds on
    entries = replace_entries(entries, removed, added, table=...)   # index files that came and went
    entries = without_vectors(entries, {names of data files that the commit deletes})
    entries = without_partitions(entries, {partitions that an overwrite replaces})
    Changes(delta, index_entries=entries)                           # the committer writes the manifest

Key hashes are one file per bucket, so a new one takes the place of the old. Deletion vectors come and go by name, which
shows if somebody else changed them meanwhile. Everything here is pure but `current_entries`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from lakebed.errors import CommitConflict
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, HASH_INDEX, IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores


def current_entries(stores: MetadataStores, snapshot: Snapshot | None) -> list[IndexEntry]:
    """The index files of a snapshot."""
    if snapshot is None or snapshot.index_manifest is None:
        return []
    return stores.index_manifests.read(snapshot.index_manifest)


def replace_entries(
    current: Sequence[IndexEntry], removed: Iterable[IndexEntry], added: Iterable[IndexEntry], *, table: str
) -> list[IndexEntry]:
    """The entries after a change. Raises `CommitConflict` when it does not fit what is there."""
    entries = {entry.file_name: entry for entry in current}
    # INVARIANT: an index file is replaced only as it was read. If another stands there by now, it holds marks that the
    # new one lacks: rows that somebody deleted would come back.
    for entry in removed:
        if entries.pop(entry.file_name, None) != entry:
            raise _conflict(table, f"index file {entry.file_name} that this commit replaces is no longer there")
    for entry in added:
        if entry.index_type == HASH_INDEX:
            entries = {name: other for name, other in entries.items() if not _is_same_place(other, entry)}
        entries[entry.file_name] = entry
    result = list(entries.values())
    # INVARIANT: a data file has one vector. A reader takes one, and would show the rows that the other marks.
    masked = [part.data_file_name for entry in result for part in entry.deletion_vector_ranges or ()]
    if len(set(masked)) < len(masked):
        twice = next(name for name in masked if masked.count(name) > 1)
        raise _conflict(table, f"data file {twice} would have two deletion vectors")
    return result


def without_vectors(entries: Sequence[IndexEntry], gone: Collection[str]) -> list[IndexEntry]:
    """The entries without the vectors of data files that are gone.

    An index file that still holds vectors of others stays as it is, and is said to hold only those: so data files can
    go without a conflict with whoever marks rows of their neighbours.
    """
    if not gone:
        return list(entries)
    kept: list[IndexEntry] = []
    for entry in entries:
        if entry.index_type != DELETION_VECTORS_INDEX:
            kept.append(entry)
            continue
        ranges = tuple(part for part in entry.deletion_vector_ranges or () if part.data_file_name not in gone)
        if ranges:
            kept.append(replace(entry, deletion_vector_ranges=ranges, row_count=len(ranges)))
    return kept


def without_partitions(entries: Sequence[IndexEntry], gone: Collection[bytes]) -> list[IndexEntry]:
    """The entries without the key hashes and deletion vectors of whole partitions."""
    kinds = (HASH_INDEX, DELETION_VECTORS_INDEX)
    return [entry for entry in entries if entry.index_type not in kinds or entry.partition not in gone]


def _is_same_place(entry: IndexEntry, other: IndexEntry) -> bool:
    return (entry.partition, entry.bucket, entry.index_type) == (other.partition, other.bucket, other.index_type)


def _conflict(table: str, what: str) -> CommitConflict:
    return CommitConflict(
        f"table `{table}`: {what}",
        hint="another job changed the same files in the meantime: read the table again and redo the work",
    )


__all__ = ["current_entries", "replace_entries", "without_partitions", "without_vectors"]
