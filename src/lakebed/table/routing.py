"""Which partition every row of a batch belongs to, and the rows of a batch in groups, once their buckets are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bucket.hashing import Hashes, hash_rows
from lakebed.table.context import TableContext
from lakebed.types.binary_row import EMPTY_ROW, encode_rows

_Rows = npt.NDArray[np.int64]
"""Positions of rows in a batch."""


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Rows of one bucket, in arrival order, with their kinds."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array


Partitions = tuple[npt.NDArray[np.int64], list[bytes]]
"""A number for each row's partition, and the partition row behind each number."""


def grouped(
    context: TableContext,
    rows: pa.RecordBatch,
    kinds: pa.Array,
    buckets: npt.NDArray[np.int64],
    partitions: Partitions | None = None,
) -> Iterator[RoutedRows]:
    """Rows of each partition and bucket; they keep their order within each."""
    if rows.num_rows == 0:
        return
    numbers, found = partitions or partitions_of(context, rows)
    steps = buckets - buckets.min()
    groups = numbers * (int(steps.max()) + 1) + steps
    if groups[0] == groups[-1] and np.all(groups == groups[0]):
        yield RoutedRows(found[int(numbers[0])], int(buckets[0]), rows, kinds)
        return
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    indices = pa.array(order)
    rows, kinds = rows.take(indices), kinds.take(indices)
    bounds = np.flatnonzero(np.diff(sorted_groups)) + 1
    for start, end in zip([0, *bounds.tolist()], [*bounds.tolist(), len(order)], strict=True):
        first = order[start]
        yield RoutedRows(
            found[int(numbers[first])],
            int(buckets[first]),
            rows.slice(start, end - start),
            kinds.slice(start, end - start),
        )


def by_partition(partitions: Partitions, choose: Callable[[bytes, _Rows], npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Buckets that are chosen for the rows of one partition at a time."""
    numbers, found = partitions
    buckets = np.empty(len(numbers), dtype=np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(found)))
    for partition, mine in zip(found, np.split(order, ends[:-1]), strict=True):
        buckets[mine] = choose(partition, mine)
    return buckets


def partitions_of(context: TableContext, rows: pa.RecordBatch) -> Partitions:
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
