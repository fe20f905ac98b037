"""Keeps the number of manifests small: at each commit, runs of small manifests are written again as one.

A table that is committed to a thousand times would otherwise have to open a thousand manifests to plan a read.

INVARIANT: before a file that was deleted is added again, all manifests are merged, which leaves no deletion behind
(`adds_again`). Other readers of the format know no order among the manifests of a state: a file that one of them
deletes is gone to them, and so are its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.metadata.entries import read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry, merge_entries
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.metadata.stores import MetadataStores
from lakebed.records import dataclass
from lakebed.types.logical import DataType


@dataclass(frozen=True, slots=True)
class ManifestMergeRules:
    """When manifests are merged, and how large they get."""

    target_size_bytes: int
    merge_min_count: int
    full_threshold_bytes: int


def merge_manifests(
    stores: MetadataStores,
    metas: Sequence[ManifestMeta],
    partition_types: Sequence[DataType],
    rules: ManifestMergeRules,
) -> list[ManifestMeta]:
    """The same state in fewer manifests."""
    dirty = [meta for meta in metas if meta.num_deleted_files or meta.size_bytes < rules.target_size_bytes]
    if sum(meta.size_bytes for meta in dirty) >= rules.full_threshold_bytes:
        return _merge_all(stores, metas, partition_types, rules)
    # INVARIANT: only neighbours are merged, and what they become stands in their place. Whether a file is live follows
    # from the order of its entries: an ADD that got behind its DELETE would bring replaced rows back.
    merged: list[ManifestMeta] = []
    group: list[ManifestMeta] = []
    for meta in metas:
        group.append(meta)
        if sum(member.size_bytes for member in group) >= rules.target_size_bytes:
            merged += _merge_group(stores, group, partition_types, rules)
            group = []
    if len(group) >= rules.merge_min_count:
        merged += _merge_group(stores, group, partition_types, rules)
    else:
        merged += group
    return merged


def _merge_group(
    stores: MetadataStores,
    group: Sequence[ManifestMeta],
    partition_types: Sequence[DataType],
    rules: ManifestMergeRules,
) -> list[ManifestMeta]:
    if len(group) == 1:
        return list(group)
    entries = merge_entries(read_manifests(stores, group))
    return stores.manifests.write(entries, partition_types, rules.target_size_bytes) if entries else []


def _merge_all(
    stores: MetadataStores,
    metas: Sequence[ManifestMeta],
    partition_types: Sequence[DataType],
    rules: ManifestMergeRules,
) -> list[ManifestMeta]:
    """Live files only. Large manifests that lost no file stay as they are, in front of what is written again.

    INVARIANT: rows that wait for a bucket are placed in the order of the manifests, and the later ones win. So a
    manifest that tells of such files does not get in front of one that told of others before.
    """
    deleted_at = {
        entry.identity: (number, place)
        for number, meta in enumerate(metas)
        if meta.num_deleted_files
        for place, entry in enumerate(read_manifests(stores, [meta]))
        if entry.kind == EntryKind.DELETE
    }
    kept: list[ManifestMeta] = []
    entries: list[ManifestEntry] = []
    for number, meta in enumerate(metas):
        found = read_manifests(stores, [meta])
        live = [
            entry
            for place, entry in enumerate(found)
            if entry.kind == EntryKind.ADD and (number, place) > deleted_at.get(entry.identity, (-1, -1))
        ]
        overtakes = any(map(_waits, live)) and any(map(_waits, entries))
        if len(live) == len(found) and meta.size_bytes >= rules.target_size_bytes and not overtakes:
            kept.append(meta)
        else:
            entries += live
    return kept + (stores.manifests.write(entries, partition_types, rules.target_size_bytes) if entries else [])


def _waits(entry: ManifestEntry) -> bool:
    return entry.bucket == POSTPONE_BUCKET


def adds_again(stores: MetadataStores, metas: Sequence[ManifestMeta], entries: Sequence[ManifestEntry]) -> bool:
    """Whether the entries add a file that a manifest of the state before deletes.

    Only a file that changes its level can be one: all others that are added are new.
    """
    moved = {entry.file.file_name for entry in entries if entry.kind == EntryKind.DELETE}
    again = {entry.identity for entry in entries if entry.kind == EntryKind.ADD and entry.file.file_name in moved}
    return bool(again) and any(
        entry.kind == EntryKind.DELETE and entry.identity in again
        for entry in read_manifests(stores, [meta for meta in metas if meta.num_deleted_files])
    )
