"""The rows of one snapshot, for those who go through a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.metadata.snapshot import Snapshot
from lakebed.table.context import TableContext
from lakebed.table.read import SplitReader, projected_fields
from lakebed.table.scan import plan_scan


def rows_of(
    context: TableContext, snapshot: Snapshot, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Merged rows batch by batch, of these columns; all of them without."""
    reader = SplitReader(context, projected_fields(context, columns), None)
    for split in plan_scan(context, snapshot, None).splits:
        yield from reader.read(split)
