"""Decides for every row of a batch which partition and bucket it belongs to, and hands the rows over in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.base import Buckets
from lakebed.bucket.fixed import assign_buckets
from lakebed.bucket.hashing import Hashes, hash_rows
from lakebed.errors import InvalidArgument
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import BUCKET, BUCKET_FUNCTION_TYPE
from lakebed.table.bucket_modes import BucketMode, bucket_mode
from lakebed.table.context import TableContext
from lakebed.types.binary_row import EMPTY_ROW, encode_rows

UNAWARE_BUCKET = 0
"""Tables without key and without buckets keep all files of a partition in this directory."""

Assign = Callable[[bytes, Hashes], Buckets]
"""Buckets of keys of one partition, given their hashes: what a table with dynamic buckets needs."""

_Rows = npt.NDArray[np.int64]
"""Positions of rows in a batch."""

CountOf = Callable[[bytes], int | None]
"""The number of buckets of a partition, None as long as it has none: what a table with postponed buckets needs."""


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Rows of one bucket, in arrival order, with their kinds."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array


class Router:
    """Routes batches of one table."""

    def __init__(self, context: TableContext, assign: Assign | None = None, count_of: CountOf | None = None) -> None:
        self._context = context
        self._mode = bucket_mode(context.schema, context.options)
        self._assign = assign
        self._bucket_count = int(context.options[BUCKET])
        self._count_of = count_of or (lambda _: None)
        is_hashed = self._mode in (BucketMode.FIXED, BucketMode.POSTPONE)
        self._bucket_fields = context.schema.fields_of(context.schema.bucket_keys) if is_hashed else ()

    def total_buckets(self, partition: bytes) -> int:
        """What manifests record as the number of buckets: -1 where rows are not hashed, -2 for rows that wait."""
        if self._mode is BucketMode.POSTPONE:
            return self._count_of(partition) or POSTPONE_BUCKET
        return self._bucket_count if self._mode is BucketMode.FIXED else -1

    def route(
        self, rows: pa.RecordBatch, kinds: pa.Array, buckets: npt.NDArray[np.int64] | None = None
    ) -> Iterator[RoutedRows]:
        """Groups of the batch; rows keep their order within each. `buckets` are given if somebody else chose them."""
        if rows.num_rows == 0:
            return
        partition_numbers, partitions = partitions_of(self._context, rows)
        if buckets is None:
            buckets = self._buckets(rows, partition_numbers, partitions)
        steps = buckets - buckets.min()
        groups = partition_numbers * (int(steps.max()) + 1) + steps
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

    def _buckets(
        self, rows: pa.RecordBatch, partition_numbers: npt.NDArray[np.int64], partitions: list[bytes]
    ) -> npt.NDArray[np.int64]:
        if self._mode is BucketMode.UNAWARE:
            return np.full(rows.num_rows, UNAWARE_BUCKET, dtype=np.int64)
        if self._mode is BucketMode.FIXED:
            return self._hashed(rows, self._bucket_count)
        if self._mode is BucketMode.POSTPONE:
            keys = rows.select([field.name for field in self._bucket_fields])
            return self._by_partition(
                partition_numbers, partitions, lambda where, mine: self._postponed(where, keys, mine)
            )
        if self._assign is None:
            raise InvalidArgument(
                f"rows of table `{self._context.name}` are routed without their buckets",
                hint="pass the buckets that were assigned to them, or an assigner",
            )
        assign, hashes = self._assign, key_hashes(self._context, rows)
        return self._by_partition(partition_numbers, partitions, lambda where, mine: assign(where, hashes[mine]))

    def _hashed(self, rows: pa.RecordBatch, bucket_count: int) -> npt.NDArray[np.int64]:
        columns = [rows.column(field.name) for field in self._bucket_fields]
        types = [field.type for field in self._bucket_fields]
        function = self._context.options[BUCKET_FUNCTION_TYPE]
        return assign_buckets(columns, types, bucket_count, function).astype(np.int64)

    def _postponed(self, partition: bytes, keys: pa.RecordBatch, mine: _Rows) -> npt.NDArray[np.int64]:
        count = self._count_of(partition)
        if count is None:
            return np.full(len(mine), POSTPONE_BUCKET, dtype=np.int64)
        return self._hashed(keys.take(pa.array(mine)), count)

    @staticmethod
    def _by_partition(
        partition_numbers: npt.NDArray[np.int64],
        partitions: list[bytes],
        choose: Callable[[bytes, _Rows], npt.NDArray[Any]],
    ) -> npt.NDArray[np.int64]:
        """Buckets that are chosen for the rows of one partition at a time."""
        buckets = np.empty(len(partition_numbers), dtype=np.int64)
        order = np.argsort(partition_numbers, kind="stable")
        ends = np.cumsum(np.bincount(partition_numbers, minlength=len(partitions)))
        for partition, mine in zip(partitions, np.split(order, ends[:-1]), strict=True):
            buckets[mine] = choose(partition, mine)
        return buckets


def partitions_of(context: TableContext, rows: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], list[bytes]]:
    """A number for each row's partition, and the partition row behind each number."""
    fields = context.partition_fields
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
    encoded_rows = encode_rows(distinct.columns, context.partition_types)
    return numbers.astype(np.int64), encoded_rows.to_pylist()


def key_hashes(context: TableContext, rows: pa.RecordBatch) -> Hashes:
    """The hash of each row's key within its partition."""
    return hash_rows([rows.column(field.name) for field in context.key_fields], context.key_types)
