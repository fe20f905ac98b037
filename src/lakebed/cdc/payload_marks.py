"""What Spark's workers tell the driver of payloads: how many changes, how recent, and whether values are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import UNCHANGED, decode_rows

MARKS_DDL: Final = "ordinal bigint, rows bigint, latest_ms bigint, unchanged boolean"
_SCHEMA: Final = pa.schema(
    [("ordinal", pa.int64()), ("rows", pa.int64()), ("latest_ms", pa.int64()), ("unchanged", pa.bool_())]
)


def payload_marks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each chunk that has a payload."""
    for batch in batches:
        found = []
        for ordinal, payload in zip(batch.column(0), batch.column(1), strict=True):
            if payload.is_valid:
                rows = decode_rows(payload.as_buffer())
                found.append((ordinal.as_py(), rows.num_rows, latest_ms(rows), lacks_values(rows)))
        columns = [[row[place] for row in found] for place in range(len(_SCHEMA))]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def latest_ms(rows: pa.RecordBatch) -> int | None:
    """When the last of a payload's changes was made; None if it does not say, as in the copy."""
    latest = pc.max(rows.column(1)).cast(pa.int64()).as_py() if rows.num_rows else None
    return latest or None


def lacks_values(rows: pa.RecordBatch) -> bool:
    """Whether values of a payload are missing."""
    return any(name.startswith(UNCHANGED) for name in rows.schema.names)


__all__ = ["MARKS_DDL", "lacks_values", "latest_ms", "payload_marks"]
