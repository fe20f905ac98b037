"""`t$table_indexes`: one row for each index file of the snapshot: key hashes, deletion vectors, global indexes."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.metadata.index_manifest import GlobalIndex, IndexEntry
from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.table.system.texts import partition_texts

_RANGES = "ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>"


def _partitions(state: TableState, entries: Sequence[IndexEntry]) -> list[str]:
    return partition_texts(state.context, [entry.partition for entry in entries])


def _ranges(entry: IndexEntry) -> list[dict[str, object]] | None:
    if entry.deletion_vector_ranges is None:
        return None
    return [
        {"f0": vector.data_file_name, "f1": vector.offset, "f2": vector.length, "_CARDINALITY": vector.cardinality}
        for vector in entry.deletion_vector_ranges
    ]


def _member(name: str, data_type: str, member: str) -> Column[TableState, IndexEntry]:
    """A column that only files of global indexes have."""
    return each(name, data_type, lambda entry: entry.global_index and getattr(entry.global_index, member))


def _indexed_names(state: TableState, entries: Sequence[IndexEntry]) -> list[str | None]:
    names = {field.id: field.name for field in state.context.schema.fields}

    def of_index(index: GlobalIndex | None) -> str | None:
        if index is None:
            return None
        found = [names.get(number) for number in (index.index_field_id, *(index.extra_field_ids or ()))]
        # A column that was dropped since leaves the name empty rather than half.
        return None if None in found else ",".join(name for name in found if name is not None)

    return [of_index(entry.global_index) for entry in entries]


TABLE_INDEXES = SystemTable[TableState, IndexEntry](
    "table_indexes",
    lambda state: state.index_files,
    (
        Column("partition", "STRING", _partitions),
        each("bucket", "INT NOT NULL", lambda entry: entry.bucket),
        each("index_type", "STRING NOT NULL", lambda entry: entry.index_type),
        each("file_name", "STRING NOT NULL", lambda entry: entry.file_name),
        each("file_size", "BIGINT NOT NULL", lambda entry: entry.size_bytes),
        each("row_count", "BIGINT NOT NULL", lambda entry: entry.row_count),
        each("dv_ranges", _RANGES, _ranges),
        _member("row_range_start", "BIGINT", "row_range_start"),
        _member("row_range_end", "BIGINT", "row_range_end"),
        _member("index_field_id", "INT", "index_field_id"),
        Column("index_field_name", "STRING", _indexed_names),
    ),
)

__all__ = ["TABLE_INDEXES"]
