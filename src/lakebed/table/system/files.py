"""`t$files`: one row for each data file of the snapshot, with its statistics under the schema of the moment."""

from __future__ import annotations

from lakebed.metadata.manifest import ManifestEntry
from lakebed.table.system import file_columns as columns
from lakebed.table.system.base import SystemTable, TableState, each

FILES = SystemTable[TableState, ManifestEntry](
    "files",
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
        columns.NULL_VALUE_COUNTS,
        columns.MIN_VALUE_STATS,
        columns.MAX_VALUE_STATS,
        each("min_sequence_number", "BIGINT", lambda entry: entry.file.min_sequence_number),
        each("max_sequence_number", "BIGINT", lambda entry: entry.file.max_sequence_number),
        each("creation_time", "TIMESTAMP(3)", lambda entry: entry.file.creation_time_ms),
        each("deleteRowCount", "BIGINT", lambda entry: entry.file.delete_row_count),
        each("file_source", "STRING", lambda entry: columns.file_source(entry.file)),
        columns.FIRST_ROW_ID,
        each("write_cols", "ARRAY<STRING>", lambda entry: entry.file.write_cols),
    ),
)

__all__ = ["FILES"]
