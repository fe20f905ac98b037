"""`t$statistics`: what the latest analysis of the table found, if the snapshot carries one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

from lakebed.metadata.statistics import TableStatistics, read_statistics
from lakebed.table.system.base import SystemTable, TableState, each


def _statistics(state: TableState) -> Iterator[TableStatistics]:
    if state.snapshot is not None and state.snapshot.statistics is not None:
        yield read_statistics(state.context.fileio, state.context.paths, state.snapshot.statistics)


def _pretty(columns: object) -> str:
    """JSON as Java lays it out."""
    if not columns:
        return "{ }"
    return json.dumps(columns, indent=2, separators=(",", " : "), ensure_ascii=False, default=_plain_number)


def _plain_number(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(type(value).__name__)


STATISTICS = SystemTable[TableState, TableStatistics](
    "statistics",
    _statistics,
    (
        each("snapshot_id", "BIGINT NOT NULL", lambda found: found.snapshot_id),
        each("schema_id", "BIGINT NOT NULL", lambda found: found.schema_id),
        each("mergedRecordCount", "BIGINT", lambda found: found.merged_record_count),
        each("mergedRecordSize", "BIGINT", lambda found: found.merged_record_size),
        each("colstat", "STRING", lambda found: _pretty(found.columns)),
    ),
)

__all__ = ["STATISTICS"]
