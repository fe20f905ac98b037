"""Whether the index files of a snapshot speak of files that are there: deletion vectors, and hashes of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lakebed.commit.index_changes import current_entries
from lakebed.errors import LakebedError
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, HASH_INDEX, IndexEntry
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext


def check_indexes(context: TableContext, snapshot: Snapshot, live: Sequence[ManifestEntry]) -> list[str]:
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


__all__ = ["check_indexes"]
