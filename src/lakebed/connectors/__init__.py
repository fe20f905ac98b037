"""Sources and sinks that SQL defines: `CREATE TABLE ... WITH ('connector' = '...')`, as a pipeline runs them.

A source of changes (`postgres-cdc`, `mysql-cdc`, `kafka` with a format of changes) is landed in the lake by one sync
for each server (`landing_groups`, `land`) and then read through `reading_query`. A source of rows (`datagen`,
`filesystem`, `kafka` with rows) is read by position: into its target at once (`RowInsert`), or landed as well
(`landing_insert`). A sink takes rows with their kinds, of such a source or of any query over tables of the lake
(`SinkInsertTarget`, which a `StreamingInsert` writes to).
"""

from __future__ import annotations

from lakebed.connectors.landing import (
    is_synced,
    land,
    landed_name,
    landing_groups,
    reading_query,
)
from lakebed.connectors.registry import CONNECTORS, Connector, RowReader, Sink, is_row_source, reader, sink
from lakebed.connectors.row_insert import RowInsert, is_row_by_row, landing_insert
from lakebed.connectors.sink_target import SinkInsertTarget

__all__ = [
    "CONNECTORS",
    "Connector",
    "RowInsert",
    "RowReader",
    "Sink",
    "SinkInsertTarget",
    "is_row_by_row",
    "is_row_source",
    "is_synced",
    "land",
    "landed_name",
    "landing_groups",
    "landing_insert",
    "reader",
    "reading_query",
    "sink",
]
