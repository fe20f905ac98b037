"""`t$buckets`: one row for each bucket that has files, by partition and number."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.table.system.base import Column, SystemTable, TableState, each
from lakebed.table.system.file_groups import SUMS, FileGroup, by_bucket
from lakebed.table.system.texts import partition_texts


def _partitions(state: TableState, groups: Sequence[FileGroup]) -> list[str]:
    return partition_texts(state.context, [group.partition for group in groups])


def _buckets(state: TableState) -> list[FileGroup]:
    groups = by_bucket(state.files)
    order = zip(_partitions(state, groups), groups, strict=True)
    return [group for _, group in sorted(order, key=lambda pair: (pair[0], pair[1].bucket))]


BUCKETS = SystemTable[TableState, FileGroup](
    "buckets",
    _buckets,
    (
        Column("partition", "STRING", _partitions),
        each("bucket", "INT NOT NULL", lambda group: group.bucket),
        *SUMS,
    ),
)

__all__ = ["BUCKETS"]
