"""System tables: what the metadata of a table says, as tables. One file each; this is their list."""

from __future__ import annotations

from typing import Any

from lakebed.table.system.aggregation_fields import AGGREGATION_FIELDS
from lakebed.table.system.base import SystemTable, TableState
from lakebed.table.system.branches import BRANCHES
from lakebed.table.system.buckets import BUCKETS
from lakebed.table.system.consumers import CONSUMERS
from lakebed.table.system.file_indexes import FILE_INDEXES
from lakebed.table.system.file_key_ranges import FILE_KEY_RANGES
from lakebed.table.system.files import FILES
from lakebed.table.system.manifests import MANIFESTS
from lakebed.table.system.options import OPTIONS
from lakebed.table.system.partitions import PARTITIONS
from lakebed.table.system.schemas import SCHEMAS
from lakebed.table.system.snapshots import SNAPSHOTS
from lakebed.table.system.statistics import STATISTICS
from lakebed.table.system.table_indexes import TABLE_INDEXES
from lakebed.table.system.tags import TAGS

SYSTEM_TABLES: dict[str, SystemTable[TableState, Any]] = {
    definition.name: definition
    for definition in (
        AGGREGATION_FIELDS,
        BRANCHES,
        BUCKETS,
        CONSUMERS,
        FILES,
        FILE_INDEXES,
        FILE_KEY_RANGES,
        MANIFESTS,
        OPTIONS,
        PARTITIONS,
        SCHEMAS,
        SNAPSHOTS,
        STATISTICS,
        TABLE_INDEXES,
        TAGS,
    )
}
"""Definitions by the name that stands behind the table's, as in `t$snapshots`."""

__all__ = ["SYSTEM_TABLES"]
