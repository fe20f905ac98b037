"""Keeps the number of manifests small: at each commit, runs of small manifests are written again as one.

A table that is committed to a thousand times would otherwise have to open a thousand manifests to plan a read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.metadata.entries import read_manifests
from lakebed.metadata.manifest import EntryKind, ManifestEntry, merge_entries
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.metadata.stores import MetadataStores
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
    """Live files only. Large manifests that lost no file stay as they are."""
    deleted = {
        entry.identity
        for entry in read_manifests(stores, [meta for meta in metas if meta.num_deleted_files])
        if entry.kind == EntryKind.DELETE
    }
    kept: list[ManifestMeta] = []
    entries: list[ManifestEntry] = []
    for meta in metas:
        found = read_manifests(stores, [meta])
        is_clean = not meta.num_deleted_files and meta.size_bytes >= rules.target_size_bytes
        if is_clean and not any(entry.identity in deleted for entry in found):
            kept.append(meta)
        else:
            entries += [e for e in found if e.kind == EntryKind.ADD and e.identity not in deleted]
    return kept + (stores.manifests.write(entries, partition_types, rules.target_size_bytes) if entries else [])
