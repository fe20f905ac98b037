"""Decides for every row of a batch which partition and bucket it belongs to, and hands the rows over in groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.fixed import assign_buckets
from lakebed.options import BUCKET, BUCKET_FUNCTION_TYPE
from lakebed.table.context import TableContext
from lakebed.types.binary_row import EMPTY_ROW, encode_rows

UNAWARE_BUCKET = 0
"""Tables without key and without buckets keep all files of a partition in this directory."""


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Rows of one bucket, in arrival order, with their kinds."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array


class Router:
    """Routes batches of one table."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._bucket_count = int(context.options[BUCKET])
        self._bucket_fields = context.schema.fields_of(context.schema.bucket_keys) if self._bucket_count > 0 else ()

    @property
    def total_buckets(self) -> int:
        """What manifests record as the number of buckets: -1 where rows are not hashed."""
        return self._bucket_count if self._bucket_count > 0 else -1

    def route(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[RoutedRows]:
        """Groups of the batch; rows keep their order within each."""
        if rows.num_rows == 0:
            return
        partition_numbers, partitions = self._partitions(rows)
        buckets = self._buckets(rows)
        groups = partition_numbers * (max(self._bucket_count, 1)) + buckets
        if groups[0] == groups[-1] and np.all(groups == groups[0]):
            yield RoutedRows(partitions[0], int(buckets[0]), rows, kinds)
            return
        order = np.argsort(groups, kind="stable")
        sorted_groups = groups[order]
        indices = pa.array(order)
        rows, kinds = rows.take(indices), kinds.take(indices)
        bounds = np.flatnonzero(np.diff(sorted_groups)) + 1
        for start, end in zip([0, *bounds.tolist()], [*bounds.tolist(), len(order)], strict=True):
            first = order[start]
            yield RoutedRows(
                partitions[int(partition_numbers[first])],
                int(buckets[first]),
                rows.slice(start, end - start),
                kinds.slice(start, end - start),
            )

    def _buckets(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if self._bucket_count <= 0:
            return np.full(rows.num_rows, UNAWARE_BUCKET, dtype=np.int64)
        columns = [rows.column(field.name) for field in self._bucket_fields]
        types = [field.type for field in self._bucket_fields]
        function = self._context.options[BUCKET_FUNCTION_TYPE]
        return assign_buckets(columns, types, self._bucket_count, function).astype(np.int64)

    def _partitions(self, rows: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], list[bytes]]:
        """A number for each row's partition, and the partition row behind each number."""
        fields = self._context.partition_fields
        if not fields:
            return np.zeros(rows.num_rows, dtype=np.int64), [EMPTY_ROW]
        numbers = np.zeros(rows.num_rows, dtype=np.int64)
        for field in fields:
            encoded = pc.dictionary_encode(rows.column(field.name), null_encoding="encode")
            codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            # Renumbering after each column keeps the product small, however many columns there are.
            _, numbers = np.unique(numbers * len(encoded.dictionary) + codes, return_inverse=True)
        _, first_rows = np.unique(numbers, return_index=True)
        distinct = rows.select([field.name for field in fields]).take(pa.array(first_rows))
        encoded_rows = encode_rows(distinct.columns, self._context.partition_types)
        return numbers.astype(np.int64), encoded_rows.to_pylist()
