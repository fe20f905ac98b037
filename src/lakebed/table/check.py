"""Whether a table is in order: its metadata in all retained snapshots, levels and index files, and if asked its data.

Parts that each know one kind of rule: `metadata/consistency` (manifests and counts), `lsm/checker` (levels of a
bucket), `table/check_indexes` (index files), `table/check_row_ids` (ids of rows), `table/check_data` (what stands in
data files, `deep` only).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lakebed.errors import LakebedError
from lakebed.lsm.checker import check_levels
from lakebed.maintenance.operations import look_at_operations
from lakebed.metadata.consistency import check_history
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.check_data import check_data, check_told
from lakebed.table.check_indexes import check_indexes
from lakebed.table.check_row_ids import check_row_ids
from lakebed.table.context import TableContext


def check_table(
    context: TableContext, snapshot: Snapshot | None, history: Sequence[Snapshot] | None = None, *, deep: bool = False
) -> list[str]:
    """One sentence for every broken rule. `history`: the snapshots up to this one; without it this one alone."""
    if snapshot is None:
        return []
    findings = check_history(context.stores, [snapshot] if history is None else history)
    try:
        live = live_files(context.stores, snapshot)
    except LakebedError as error:
        return findings or [f"snapshot {snapshot.id}: its metadata can not be read: {error.message}"]
    findings += [*_check_buckets(context, live), *check_indexes(context, snapshot, live)]
    findings += check_row_ids(context, snapshot, live)
    if deep:
        findings += check_data(context, snapshot, live)
        findings += check_told(context, history or [])
    return findings


def _check_buckets(context: TableContext, live: Sequence[ManifestEntry]) -> list[str]:
    """The rules of levels, with the bucket that a sentence is about in front."""
    buckets: dict[tuple[bytes, int], list[DataFile]] = defaultdict(list)
    counts: dict[bytes, set[int]] = defaultdict(set)
    findings = []
    for entry in live:
        if entry.bucket >= 0 and context.has_key:
            buckets[entry.partition, entry.bucket].append(entry.file)
        if entry.total_buckets > 0:
            counts[entry.partition].add(entry.total_buckets)
            if entry.bucket >= entry.total_buckets:
                place = context.bucket_place(entry.partition, entry.bucket)
                findings.append(f"{place}: {entry.file.file_name} was written for {entry.total_buckets} buckets")
    for partition, found in sorted(counts.items()):
        if len(found) > 1:
            place = context.partition_directory(partition) or "the table"
            findings.append(f"{place}: files were written for {' and '.join(map(str, sorted(found)))} buckets")
    for (partition, bucket), files in sorted(buckets.items()):
        place = context.bucket_place(partition, bucket)
        findings += [f"{place}: {finding}" for finding in check_levels(files, context.key_types)]
    return findings


def check_snapshots(context: TableContext) -> list[str]:
    """One sentence for every snapshot, tag or changelog, of any branch, that others or nobody can read."""
    found = look_at_operations(context.stores)
    foreign = [
        f"{one.name} says operation {one.operation}, with which Paimon can not open it: `lakebed repair` mends that"
        for one in found.foreign
    ]
    return [*(error.message for error in found.unreadable), *foreign]


__all__ = ["check_snapshots", "check_table"]
