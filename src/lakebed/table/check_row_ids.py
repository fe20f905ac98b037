"""Whether the ids of rows are as they should be: given out once, and one file standing for all columns of a range."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lakebed.errors import LakebedError
from lakebed.metadata.manifest import ManifestEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import DATA_EVOLUTION_ENABLED
from lakebed.table.context import TableContext
from lakebed.table.vectors import vectors_at

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


__all__ = ["check_row_ids"]
