"""Buckets that an index of key hashes remembers, one index for each partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.metadata.entries import Bucket
from lakebed.metadata.index_manifest import IndexEntry
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.bucket_modes import DYNAMIC
from lakebed.table.context import TableContext
from lakebed.table.key_index import KeyIndex, check_only_writer
from lakebed.table.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.table.routing import by_partition, key_hashes, partitions_of


class Dynamic(Placement):
    """New keys fill the last bucket, then a new one."""

    mode = DYNAMIC

    def __init__(self, setup: PlacementSetup) -> None:
        super().__init__(setup)
        self._index = KeyIndex(setup.context, setup.fileio, setup.base, setup.part)

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        hashes, partitions = key_hashes(self.context, rows), partitions_of(self.context, rows)
        self.check_replaced(partitions)
        buckets = by_partition(partitions, lambda where, mine: self._index.assign(where, hashes[mine]))
        return PlacedRows(rows, kinds, buckets, partitions)

    def index_files(self, buckets: Collection[Bucket]) -> Mapping[Bucket, IndexEntry]:
        return self._index.files(buckets)

    def remember(self, snapshot: Snapshot) -> None:
        self._index.remember()

    @classmethod
    def check_commit(cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
        check_only_writer(context, messages, latest)


__all__ = ["Dynamic"]
