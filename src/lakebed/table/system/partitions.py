"""`t$partitions`: one row for each partition that has files, by name."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.metadata.index_manifest import DELETION_VECTORS_INDEX
from lakebed.options import PARTITION_DEFAULT_NAME
from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.table.system.file_groups import SUMS, FileGroup, by_partition
from lakebed.table.system.texts import partition_names


def _names(state: TableState, groups: Sequence[FileGroup]) -> list[str]:
    default_name = state.context.options[PARTITION_DEFAULT_NAME]
    return partition_names(state.context, [group.partition for group in groups], default_name)


def _partitions(state: TableState) -> list[FileGroup]:
    groups = by_partition(state.files)
    order = _names(state, groups)
    return [group for _, group in sorted(zip(order, groups, strict=True), key=lambda pair: pair[0])]


def _deleted_counts(state: TableState, groups: Sequence[FileGroup]) -> list[int | None]:
    """Rows that deletion vectors hide; None where a vector does not say how many."""
    counts: dict[bytes, int | None] = {}
    for entry in state.index_files:
        if entry.index_type == DELETION_VECTORS_INDEX:
            for vector in entry.deletion_vector_ranges or ():
                known = counts.get(entry.partition, 0)
                unknown = known is None or vector.cardinality is None
                counts[entry.partition] = None if unknown else (known or 0) + (vector.cardinality or 0)
    return [counts.get(group.partition, 0) for group in groups]


PARTITIONS = SystemTable[TableState, FileGroup](
    "partitions",
    _partitions,
    (
        Column("partition", "STRING", _names),
        *SUMS,
        # A catalog with a memory of its own would know these; a directory does not.
        each("created_at", "TIMESTAMP(3)", lambda group: None),
        each("created_by", "STRING", lambda group: None),
        each("updated_by", "STRING", lambda group: None),
        each("options", "STRING", lambda group: None),
        each("total_buckets", "INT NOT NULL", lambda group: group.total_buckets),
        each("done", "BOOLEAN NOT NULL", lambda group: False),
        Column("deleted_record_count", "BIGINT", _deleted_counts),
    ),
)

__all__ = ["PARTITIONS"]
