"""`t$manifests`: one row for each manifest of the snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.metadata.entries import all_metas
from lakebed.metadata.manifest_list import ManifestMeta
from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.table.system.texts import partition_texts


def _bounds(state: TableState, metas: Sequence[ManifestMeta], *, greatest: bool) -> list[str]:
    stats = [meta.partition_stats for meta in metas]
    return partition_texts(state.context, [item.max_values if greatest else item.min_values for item in stats])


MANIFESTS = SystemTable[TableState, ManifestMeta](
    "manifests",
    lambda state: all_metas(state.context.stores, state.snapshot),
    (
        each("file_name", "STRING NOT NULL", lambda meta: meta.file_name),
        each("file_size", "BIGINT NOT NULL", lambda meta: meta.size_bytes),
        each("num_added_files", "BIGINT NOT NULL", lambda meta: meta.num_added_files),
        each("num_deleted_files", "BIGINT NOT NULL", lambda meta: meta.num_deleted_files),
        each("schema_id", "BIGINT NOT NULL", lambda meta: meta.schema_id),
        Column("min_partition_stats", "STRING", lambda state, metas: _bounds(state, metas, greatest=False)),
        Column("max_partition_stats", "STRING", lambda state, metas: _bounds(state, metas, greatest=True)),
        each("min_row_id", "BIGINT", lambda meta: meta.min_row_id),
        each("max_row_id", "BIGINT", lambda meta: meta.max_row_id),
    ),
)

__all__ = ["MANIFESTS"]
