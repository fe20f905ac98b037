"""System tables: what the metadata of a table says, as tables. One file each; this is their list."""

from __future__ import annotations

from typing import Any

from lakebed.registry import Registry
from lakebed.table.system.base import SystemTable, TableState

SYSTEM_TABLES: Registry[SystemTable[TableState, Any]] = Registry(
    "lakebed.table.system",
    {
        "aggregation_fields": "aggregation_fields.AGGREGATION_FIELDS",
        "branches": "branches.BRANCHES",
        "buckets": "buckets.BUCKETS",
        "commits_metrics": "commits_metrics.COMMITS_METRICS",
        "compactions": "compactions.COMPACTIONS",
        "consumers": "consumers.CONSUMERS",
        "files": "files.FILES",
        "file_indexes": "file_indexes.FILE_INDEXES",
        "file_key_ranges": "file_key_ranges.FILE_KEY_RANGES",
        "manifests": "manifests.MANIFESTS",
        "options": "options.OPTIONS",
        "partitions": "partitions.PARTITIONS",
        "schemas": "schemas.SCHEMAS",
        "snapshots": "snapshots.SNAPSHOTS",
        "statistics": "statistics.STATISTICS",
        "table_indexes": "table_indexes.TABLE_INDEXES",
        "tags": "tags.TAGS",
        "why": "why.WHY",
    },
)
"""Definitions by the name that stands behind the table's, as in `t$snapshots`."""

__all__ = ["SYSTEM_TABLES"]
