"""`t$file_key_ranges`: one row for each data file of the snapshot, with its key range and no statistics."""

from __future__ import annotations

from lakebed.metadata.manifest import ManifestEntry
from lakebed.table.system import file_columns as columns
from lakebed.table.system.base import SystemTable, TableState

FILE_KEY_RANGES = SystemTable[TableState, ManifestEntry](
    "file_key_ranges",
    lambda state: state.files,
    (
        columns.PARTITION,
        columns.BUCKET,
        columns.FILE_PATH,
        columns.FILE_FORMAT,
        columns.SCHEMA_ID,
        columns.LEVEL,
        columns.RECORD_COUNT,
        columns.FILE_SIZE,
        columns.MIN_KEY,
        columns.MAX_KEY,
        columns.FIRST_ROW_ID,
    ),
)

__all__ = ["FILE_KEY_RANGES"]
