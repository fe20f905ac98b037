"""Gives the rows of new files their ids: numbers that no other row of the table ever has, and that stay with the row.

Ids are given when a commit is certain to build on some snapshot, not when rows are written: the counter is in the
snapshot. A file gets the id of its first row, the others follow by position. Files whose rows carry ids of their own,
because they were rewritten, get none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.manifest import EntryKind, ManifestEntry
from lakebed.records import dataclass
from lakebed.schema.system_columns import ROW_ID


@dataclass(frozen=True, slots=True)
class RowIdRules:
    """How a table numbers its rows. `by_partition`: the rows of a partition get ids without gaps in each commit."""

    by_partition: bool = True


def number_rows(
    entries: Sequence[ManifestEntry], first_row_id: int, snapshot_id: int, rules: RowIdRules
) -> tuple[list[ManifestEntry], int]:
    """The entries with ids and with the snapshot as the sequence number of what is new, and the next free id."""
    new = [index for index, entry in enumerate(entries) if entry.kind == EntryKind.ADD]
    if rules.by_partition:
        partitions = dict.fromkeys(entries[index].partition for index in new)
        ranks = {partition: rank for rank, partition in enumerate(partitions)}
        new.sort(key=lambda index: ranks[entries[index].partition])
    numbered = list(entries)
    next_row_id = first_row_id
    for index in new:
        file = _stamped(entries[index].file, snapshot_id)
        if file.file_source == FileSource.APPEND and file.first_row_id is None and not has_own_ids(file):
            file = replace(file, first_row_id=next_row_id)
            next_row_id += file.row_count
        numbered[index] = replace(entries[index], file=file)
    return numbered, next_row_id


def has_own_ids(file: DataFile) -> bool:
    """Whether the rows of a file carry their ids as a column."""
    return file.write_cols is not None and ROW_ID.name in file.write_cols


def _stamped(file: DataFile, snapshot_id: int) -> DataFile:
    """Writers leave 0 for what only the commit knows."""
    if file.min_sequence_number == 0:
        return replace(file, min_sequence_number=snapshot_id, max_sequence_number=snapshot_id)
    if file.max_sequence_number == 0:
        return replace(file, max_sequence_number=snapshot_id)
    return file


__all__ = ["RowIdRules", "has_own_ids", "number_rows"]
