"""Keys that do not tell their partition: an index of all keys of the table knows where each is."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from lakebed.commit.message import CommitMessage
from lakebed.metadata.snapshot import Snapshot
from lakebed.table.bucket_modes import CROSS_PARTITION
from lakebed.table.context import TableContext
from lakebed.table.cross_partition import CrossPartition, check_only_crossing
from lakebed.table.placement.base import PlacedRows, Placement, PlacementSetup
from lakebed.table.routing import partitions_of
from lakebed.table.table_keys import KnownKeys, share_mark


class Crossing(Placement):
    """A key that comes with another partition leaves the one it was in, or stays, as the merge engine has it."""

    mode = CROSS_PARTITION

    def __init__(self, setup: PlacementSetup) -> None:
        super().__init__(setup)
        kept = setup.kept_keys if setup.overwrite is None else None
        self._keys = CrossPartition(setup.context, setup.base, setup.part, is_taught=setup.is_taught, kept=kept)

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        if self.setup.overwrite is not None and rows.num_rows:
            self.check_replaced(partitions_of(self.context, rows))
        return PlacedRows(*self._keys.place(rows, kinds))

    def learn(self, known: KnownKeys, row_count: int) -> None:
        self._keys.learn(known, row_count)

    def finish(self) -> None:
        if self.setup.overwrite is not None:
            self._keys.check_replaced(self.setup.overwrite, self.context.stores.snapshots.latest())
        self._keys.finish()

    def remember(self, snapshot: Snapshot) -> None:
        self._keys.remember(snapshot)

    def abort(self) -> None:
        self._keys.abort()

    def file_prefix(self, prefix: str) -> str:
        return prefix if self.setup.part is None else f"{prefix}-{share_mark(self.setup.part)}"

    @classmethod
    def check_commit(cls, context: TableContext, messages: Collection[CommitMessage], latest: Snapshot | None) -> None:
        check_only_crossing(context, messages, latest)


__all__ = ["Crossing"]
