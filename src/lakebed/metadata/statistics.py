"""Statistics of a whole table, as an analysis leaves them: rows, bytes and bounds of columns.

A snapshot names the file, and later snapshots go on naming it. Column statistics stay as the JSON they are: engines
add members of their own. Nothing here computes any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakebed.fileio.base import FileIO
from lakebed.metadata.json_file import JsonFile
from lakebed.metadata.paths import TablePaths
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What an analysis found. Counts are of merged rows; None where it did not say."""

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None
    merged_record_size: int | None
    columns: Mapping[str, Any]


def read_statistics(fileio: FileIO, paths: TablePaths, name: str) -> TableStatistics:
    """The statistics in a file; `CorruptFile` names it when it holds none."""
    path = paths.statistics_file(name)
    file = JsonFile(fileio.read_bytes(path), path)
    return TableStatistics(
        file.integer("snapshotId"),
        file.integer("schemaId"),
        file.optional_integer("mergedRecordCount"),
        file.optional_integer("mergedRecordSize"),
        file.optional_object("colStats") or {},
    )


__all__ = ["TableStatistics", "read_statistics"]
