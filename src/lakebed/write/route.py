"""Which partition every row of a batch belongs to, and the rows of a batch in groups, once their buckets are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import Partitions, partitions_of
from lakebed.records import dataclass

_Rows = npt.NDArray[np.int64]
"""Positions of rows in a batch."""


@dataclass(frozen=True, slots=True)
class RoutedRows:
    """Rows of one bucket, in arrival order, with their kinds."""

    partition: bytes
    bucket: int
    rows: pa.RecordBatch
    kinds: pa.Array


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
