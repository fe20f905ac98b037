"""Buckets that are chosen later: rows wait for a compaction, or, of a batch, until all of its rows have come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import POSTPONE_DEFAULT_BUCKET_NUM
from lakebed.table.bucket_modes import POSTPONE
from lakebed.table.placement.base import Numbers, PlacedRows, Placement, PlacementSetup
from lakebed.table.placement.fixed import hashed
from lakebed.table.postponed import KeptRows, batch_count
from lakebed.table.routing import by_partition, partitions_of


class Postponed(Placement):
    """Partitions that have buckets get their rows at once, unless all rows are to wait."""

    mode = POSTPONE

    def __init__(self, setup: PlacementSetup) -> None:
        super().__init__(setup)
        self._counts = dict(setup.bucket_counts)
        self._kept: KeptRows | None = None

    def place(self, rows: pa.RecordBatch, kinds: pa.Array) -> PlacedRows:
        partitions = partitions_of(self.context, rows)
        self.check_replaced(partitions)
        keys = rows.select(list(self.context.schema.bucket_keys))
        without: list[tuple[bytes, Numbers]] = []

        def choose(partition: bytes, mine: Numbers) -> Numbers:
            count = self._count_of(partition)
            if count is not None:
                return hashed(self.context, keys.take(pa.array(mine)), count)
            without.append((partition, mine))
            return np.full(len(mine), POSTPONE_BUCKET, dtype=np.int64)

        buckets = by_partition(partitions, choose)
        if not without or self.context.lets_rows_wait:
            return PlacedRows(rows, kinds, buckets, partitions)
        for partition, mine in without:
            self._keep(partition, rows.take(pa.array(mine)), kinds.take(pa.array(mine)))
        placed = buckets != POSTPONE_BUCKET
        keep = pa.array(placed)
        return PlacedRows(rows.filter(keep), kinds.filter(keep), buckets[placed])

    def _keep(self, partition: bytes, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Until all rows have come: the number of buckets follows from how many they are."""
        self._kept = self._kept or KeptRows()
        self._kept.add(partition, rows, kinds)

    def kept_back(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        if self._kept is not None:
            for partition, sizes in self._kept.sizes().items():
                self._counts[partition] = batch_count(self.context.options, *sizes)
            yield from self._kept.take()

    def total_buckets(self, partition: bytes) -> int:
        return self._count_of(partition) or POSTPONE_BUCKET

    def abort(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def _count_of(self, partition: bytes) -> int | None:
        """The number of buckets of a partition; None as long as it is not known."""
        count = self._counts.get(partition)
        if count is None and not self.context.lets_rows_wait:
            count = self.setup.states().bucket_count(partition) if self.setup.overwrite is None else None
            count = count or self.context.options[POSTPONE_DEFAULT_BUCKET_NUM]
            if count is not None:
                self._counts[partition] = count
        return count


__all__ = ["Postponed"]
