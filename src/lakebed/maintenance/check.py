"""Whether a table is in order: its metadata in all retained snapshots, levels and index files, and if asked its data.

Parts that each know one kind of rule: `metadata/consistency` (manifests and counts), `lsm/checker` (levels of a
bucket), `maintenance/check` (index files), `maintenance/check` (ids of rows), `maintenance/check_data` (what stands in
data files, `deep` only).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from lakebed.commit.index_changes import current_entries
from lakebed.definition.context import TableContext
from lakebed.definition.row_rules import vectors_at
from lakebed.errors import LakebedError
from lakebed.lsm.checker import check_levels
from lakebed.maintenance.check_data import check_data, check_told
from lakebed.maintenance.repair import look_at_operations
from lakebed.metadata.consistency import check_history
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.entries import live_files
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, HASH_INDEX, IndexEntry
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED


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
    findings += [*_check_buckets(context, live), *_check_indexes(context, snapshot, live)]
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


# --- Whether the index files of a snapshot speak of files that are there: deletion vectors, and hashes of keys ----


def _check_indexes(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> list[str]:
    """One sentence for every broken rule; only metadata is read."""
    try:
        entries = current_entries(context.stores, snapshot)
    except LakebedError as error:
        return [f"snapshot {snapshot.id}: its index manifest can not be read: {error.message}"]
    return [*_check_vectors(context, entries, live), *_check_hashes(context, entries, live)]


def _check_vectors(
    context: TableContext, entries: Sequence[IndexEntry], live: Sequence[ManifestEntry]
) -> Iterator[str]:
    files = {entry.file.file_name: entry for entry in live}
    seen: Counter[str] = Counter()
    for index in entries:
        if index.index_type != DELETION_VECTORS_INDEX:
            continue
        place = context.bucket_place(index.partition, index.bucket)
        ranges = index.deletion_vector_ranges or ()
        if index.row_count != len(ranges):
            yield f"{place}: {index.file_name} counts {index.row_count} deletion vectors and lists {len(ranges)}"
        for vector in ranges:
            seen[vector.data_file_name] += 1
            entry = files.get(vector.data_file_name)
            if entry is None:
                yield f"{place}: {index.file_name} marks rows of {vector.data_file_name}, which is not in the table"
                continue
            if (entry.partition, entry.bucket) != (index.partition, index.bucket):
                yield f"{place}: {index.file_name} marks rows of {vector.data_file_name}, which lies in another bucket"
            count = vector.cardinality
            if count is not None and not 0 < count <= entry.file.row_count:
                yield f"{place}: {count} rows of {vector.data_file_name} are marked, which has {entry.file.row_count}"
    for name, count in seen.items():
        if count > 1:
            yield f"{name} has {count} deletion vectors"


def _check_hashes(context: TableContext, entries: Sequence[IndexEntry], live: Sequence[ManifestEntry]) -> Iterator[str]:
    indexed = Counter((each.partition, each.bucket) for each in entries if each.index_type == HASH_INDEX)
    for (partition, bucket), count in sorted(indexed.items()):
        if count > 1:
            yield f"{context.bucket_place(partition, bucket)}: {count} index files hold the keys of one bucket"
    if not context.bucket_mode.has_hash_index:
        return
    for partition, bucket in sorted({(entry.partition, entry.bucket) for entry in live} - set(indexed)):
        yield f"{context.bucket_place(partition, bucket)}: no index file tells its keys"


# ------------------------------------------------------------------------------------------------------------------
# Whether the ids of rows are as they should be: given out once, and one file standing for all columns of a range.


_Place = tuple[bytes, int, int, int]
"""Partition, bucket, first id and count of the rows of a range."""


def check_row_ids(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> list[str]:
    """One sentence for every broken rule; only metadata is read."""
    if context.has_key or not context.tracks_rows:
        return []
    ranges: dict[_Place, list[ManifestEntry]] = defaultdict(list)
    findings = []
    for entry in live:
        file = entry.file
        if file.first_row_id is None:
            continue
        ranges[entry.partition, entry.bucket, file.first_row_id, file.row_count].append(entry)
        end = file.first_row_id + file.row_count
        if end > (snapshot.next_row_id or 0):
            findings.append(
                f"{file.file_name} has rows with ids up to {end - 1}, snapshot {snapshot.id} gives out "
                f"{snapshot.next_row_id} next"
            )
    findings += _check_overlaps(ranges)
    if context.options[DATA_EVOLUTION_ENABLED]:
        findings += _check_marks(context, snapshot, ranges)
    else:
        findings += [
            f"{' and '.join(entry.file.file_name for entry in entries)} have rows with the same ids from {place[2]} on"
            for place, entries in ranges.items()
            if len(entries) > 1
        ]
    return findings


def _check_overlaps(ranges: dict[_Place, list[ManifestEntry]]) -> Iterator[str]:
    """Rows with the same id are the same row, so they lie in one place, in files that hold the same rows."""
    end, before = 0, ""
    for place, entries in sorted(ranges.items(), key=lambda item: item[0][2:]):
        first, count = place[2:]
        name = entries[0].file.file_name
        if first < end:
            yield f"{before} and {name} share ids from {first} on, and do not hold the same rows"
        if first + count > end:
            end, before = first + count, name


def _check_marks(context: TableContext, snapshot: Snapshot, ranges: dict[_Place, list[ManifestEntry]]) -> Iterator[str]:
    """Marks count in the oldest file of a range; elsewhere other readers do not look for them."""
    try:
        vectors = vectors_at(context, snapshot)
    except LakebedError:
        return  # told by the check of index files
    for entries in ranges.values():
        oldest = min(entries, key=lambda entry: (entry.file.max_sequence_number, entry.file.file_name))
        for entry in entries:
            if entry is not oldest and entry.file.file_name in vectors:
                yield (
                    f"rows of {entry.file.file_name} are marked as deleted, which has to be in "
                    f"{oldest.file.file_name}, the oldest file of the same rows"
                )


__all__ = ["check_row_ids", "check_snapshots", "check_table"]
