"""From a snapshot to the manifest entries behind it: all live files, or just what one snapshot changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lakebed.fileio.together import answers_late, ask_together
from lakebed.metadata.data_file import creation_time_to_epoch
from lakebed.metadata.manifest import ManifestEntry, live_entries
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.snapshot import Snapshot
from lakebed.metadata.stores import MetadataStores

READ_THREADS = 4
SMALL_BYTES = 1 << 20
"""Below this, starting threads takes longer than reading."""

Bucket = tuple[bytes, int]
"""A partition, as its row, and the number of one of its buckets."""

MetaFilter = Callable[[list[ManifestMeta]], list[ManifestMeta]]
Keep = Callable[[list[ManifestEntry]], list[ManifestEntry]]
"""Chooses among entries."""


def all_metas(stores: MetadataStores, snapshot: Snapshot | None) -> list[ManifestMeta]:
    """Manifests that together describe the state of the snapshot: its base, then its delta."""
    if snapshot is None:
        return []
    base, delta = ask_together(
        stores.fileio, [lambda: base_metas(stores, snapshot), lambda: delta_metas(stores, snapshot)]
    )
    return base + delta


def base_metas(stores: MetadataStores, snapshot: Snapshot) -> list[ManifestMeta]:
    """Manifests of the state before the snapshot."""
    return stores.manifest_lists.read(snapshot.base_manifest_list, snapshot.base_manifest_list_size)


def delta_metas(stores: MetadataStores, snapshot: Snapshot) -> list[ManifestMeta]:
    """Manifests of what the snapshot changed."""
    return stores.manifest_lists.read(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)


def changelog_metas(stores: MetadataStores, snapshot: Snapshot) -> list[ManifestMeta]:
    """Manifests of the snapshot's changelog files."""
    if snapshot.changelog_manifest_list is None:
        return []
    return stores.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)


def read_manifests(
    stores: MetadataStores, metas: Iterable[ManifestMeta], keep: Keep | None = None
) -> list[ManifestEntry]:
    """Entries of these manifests in order. `keep` must treat all entries of one file alike: it runs before merging."""

    def read(meta: ManifestMeta) -> list[ManifestEntry]:
        entries = stores.manifests.read(meta.file_name, meta.size_bytes)
        return keep(entries) if keep else entries

    wanted = list(metas)
    if answers_late(stores.fileio):
        answers = ask_together(stores.fileio, [partial(read, meta) for meta in wanted])
        return [entry for entries in answers for entry in entries]
    if sum(meta.size_bytes for meta in wanted) < SMALL_BYTES:
        return [entry for meta in wanted for entry in read(meta)]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        return [entry for entries in pool.map(read, wanted) for entry in entries]


def live_files(
    stores: MetadataStores,
    snapshot: Snapshot | None,
    *,
    keep_metas: MetaFilter | None = None,
    keep_entries: Keep | None = None,
) -> list[ManifestEntry]:
    """The files that make up the snapshot's state, pruned by the filters."""
    metas = all_metas(stores, snapshot)
    if keep_metas:
        metas = keep_metas(metas)
    return live_entries(read_manifests(stores, metas, keep_entries))


def changelog_entries(
    stores: MetadataStores, snapshot: Snapshot, keep_entries: Keep | None = None
) -> list[ManifestEntry]:
    """The changelog files that the snapshot brought."""
    return read_manifests(stores, changelog_metas(stores, snapshot), keep_entries)


def delta_entries(stores: MetadataStores, snapshot: Snapshot, keep_entries: Keep | None = None) -> list[ManifestEntry]:
    """What the snapshot added and deleted."""
    return read_manifests(stores, delta_metas(stores, snapshot), keep_entries)


def in_buckets(buckets: Collection[Bucket]) -> Keep:
    """Keeps the entries of these (partition, bucket) pairs."""
    wanted = frozenset(buckets)
    return lambda entries: [entry for entry in entries if (entry.partition, entry.bucket) in wanted]


def in_partitions(partitions: Collection[bytes]) -> Keep:
    """Keeps the entries of these partitions."""
    wanted = frozenset(partitions)
    return lambda entries: [entry for entry in entries if entry.partition in wanted]


def created_since(entries: Iterable[ManifestEntry], time_ms: int) -> list[ManifestEntry]:
    """Files that were written at that time or later, and those of which it is not known."""
    return [
        entry
        for entry in entries
        if entry.file.creation_time_ms is None or creation_time_to_epoch(entry.file.creation_time_ms) >= time_ms
    ]
