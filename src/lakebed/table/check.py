"""Asks the level checker about every bucket of a table, and whether others can read all of its snapshots."""

from __future__ import annotations

from collections import defaultdict

from lakebed.lsm.checker import check_levels
from lakebed.maintenance.operations import look_at_operations
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext


def check_buckets(context: TableContext, snapshot: Snapshot | None) -> list[str]:
    """One sentence for every broken rule, with the bucket it is about in front."""
    buckets: dict[tuple[bytes, int], list[DataFile]] = defaultdict(list)
    for entry in live_files(context.stores, snapshot):
        if entry.bucket >= 0 and context.has_key:
            buckets[entry.partition, entry.bucket].append(entry.file)
    findings = []
    for (partition, bucket), files in sorted(buckets.items()):
        directory = context.partition_directory(partition)
        place = f"{directory}/bucket-{bucket}" if directory else f"bucket-{bucket}"
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


__all__ = ["check_buckets", "check_snapshots"]
