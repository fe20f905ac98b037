"""Which rows of a state are gone although their files are there, and what a table's options say about marking rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lakebed.commit.index_changes import current_entries
from lakebed.metadata.deletion_vector import DeletionVectorStore, Positions, VectorRules
from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX, IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BUCKET,
    DELETION_VECTOR_INDEX_FILE_TARGET_SIZE,
    DELETION_VECTORS_BITMAP64,
)
from lakebed.table.context import TableContext
from lakebed.table.splits import Vectors


def vectors_at(context: TableContext, snapshot: Snapshot | None) -> Vectors:
    """The deletion vectors of a snapshot. They count whatever the options say now: the rows are gone."""
    return context.vector_store.places(current_entries(context.stores, snapshot))


def mark_rows(
    context: TableContext,
    store: DeletionVectorStore,
    current: Sequence[IndexEntry],
    marked: Mapping[tuple[bytes, int], Mapping[str, Positions]],
    gone: Collection[str] = (),
) -> tuple[list[IndexEntry], list[IndexEntry]]:
    """Writes new vectors of data files, given by bucket and name; the index files that go, and those that come.

    A bucket has one index file. Without buckets there are many, of which only those are written again that hold an old
    vector of one of the data files. Vectors of data files that are `gone` are not kept.
    """
    options = context.options
    is_bucketed = context.has_key or options[BUCKET] > 0
    target_bytes = None if is_bucketed else options[DELETION_VECTOR_INDEX_FILE_TARGET_SIZE]
    rules = VectorRules(64 if options[DELETION_VECTORS_BITMAP64] else 32, target_bytes)
    removed: list[IndexEntry] = []
    added: list[IndexEntry] = []
    for (partition, bucket), vectors in marked.items():
        old = [
            entry
            for entry in current
            if (entry.partition, entry.bucket, entry.index_type) == (partition, bucket, DELETION_VECTORS_INDEX)
            and (is_bucketed or any(part.data_file_name in vectors for part in entry.deletion_vector_ranges or ()))
        ]
        kept = {name: place for name, place in store.places(old).items() if name not in vectors and name not in gone}
        others = {name: store.read(place) for name, place in kept.items()}
        removed += old
        added += store.write(partition, bucket, {**others, **vectors}, rules)
    return removed, added


__all__ = ["mark_rows", "vectors_at"]
