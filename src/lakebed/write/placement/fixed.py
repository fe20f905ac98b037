"""Buckets by the hash of the bucket key, and tables without buckets: a row tells its place by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.bucket.fixed import assign_buckets
from lakebed.definition.bucket_mode import FIXED, UNAWARE
from lakebed.definition.context import TableContext
from lakebed.options import BUCKET, BUCKET_FUNCTION_TYPE
from lakebed.write.placement.base import Numbers, PlacedRows, Placement

_UNAWARE_BUCKET = 0
"""Tables without key and without buckets keep all files of a partition in this directory."""


class Fixed(Placement):
    """As many buckets in every partition as the option says."""

    mode = FIXED

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        return PlacedRows(rows, kinds, hashed(self.context, rows, self._count))

    def total_buckets(self, partition: bytes) -> int:
        return self._count

    @property
    def _count(self) -> int:
        return int(self.context.options[BUCKET])


class Unaware(Placement):
    """All rows of a partition together."""

    mode = UNAWARE

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        return PlacedRows(rows, kinds, np.full(rows.num_rows, _UNAWARE_BUCKET, dtype=np.int64))


def hashed(context: TableContext, rows: pa.RecordBatch, bucket_count: int) -> Numbers:
    """The buckets of rows, given how many there are."""
    fields = context.schema.fields_of(context.schema.bucket_keys)
    columns = [rows.column(field.name) for field in fields]
    function = context.options[BUCKET_FUNCTION_TYPE]
    return assign_buckets(columns, [field.type for field in fields], bucket_count, function).astype(np.int64)


__all__ = ["Fixed", "Unaware", "hashed"]
