"""Buckets that are chosen later: rows wait for a compaction, or, of a batch, until all of its rows have come."""

from __future__ import annotations

import math
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from lakebed.definition.bucket_mode import POSTPONE
from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import partitions_of
from lakebed.errors import CorruptFile
from lakebed.metadata.data_file import DataFile
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import (
    DATA_FILE_PREFIX,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM,
    POSTPONE_DEFAULT_BUCKET_NUM,
    POSTPONE_TARGET_ROW_NUM_PER_BUCKET,
    POSTPONE_TARGET_SIZE_PER_BUCKET,
    Options,
)
from lakebed.types import key_value
from lakebed.write.placement.base import Numbers, PlacedRows, Placement, PlacementSetup
from lakebed.write.placement.fixed import hashed
from lakebed.write.route import by_partition


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
                self._counts[partition] = _batch_count(self.context.options, *sizes)
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


# ------------------------------------------------------------------------------------------------------------------
# Rows of a table with postponed buckets that wait in a directory of their own, and how many buckets they will get.
#
# Nobody sees waiting rows until a compaction brings them to real buckets (`write/waiting_rows`). Batch writes need not
# wait: they go to real buckets at once, and only rows of a partition that has no buckets yet are kept back until all
# of them have come, since the number of buckets follows from their number or size.


_KEPT_IN_MEMORY_BYTES = 32 << 20
_WRITER_MARK = "-w-"

UNNUMBERED = -1
"""The sequence number of waiting rows: they get one in their bucket."""


def for_stream(context: TableContext) -> TableContext:
    """The same table for a writer that commits again and again: its rows always wait."""
    if not context.bucket_mode.postpones:
        return context
    return context.with_schema(
        context.schema, Options({**context.options.raw, POSTPONE_BATCH_WRITE_FIXED_BUCKET.key: "false"})
    )


def waiting_file_prefix(context: TableContext, commit_user: str) -> str:
    """Start of the names of one writer's waiting files: they tell the writer, since its rows are to stay in order."""
    new_id = context.ids.new_id()
    number = zlib.crc32(new_id.encode()) & 0x7FFF_FFFF
    return f"{context.options[DATA_FILE_PREFIX]}-u-{commit_user}-s-{number}{_WRITER_MARK}{new_id}"


def in_writing_order(files: list[DataFile]) -> list[DataFile]:
    """Waiting files of a partition, those of one writer together and in their order; writers have no order."""
    by_writer: dict[str, list[DataFile]] = {}
    # Files of the same moment stay in the order of the manifests, which is that of their making.
    for file in sorted(files, key=lambda file: file.creation_time_ms or 0):
        by_writer.setdefault(_writer_of(file), []).append(file)
    return [file for group in by_writer.values() for file in group]


def first_count(options: Options, row_count: int, size_bytes: int) -> int:
    """How many buckets a partition without any gets for so many waiting rows."""
    wanted = options[POSTPONE_DEFAULT_BUCKET_NUM]
    if wanted is not None:
        return wanted
    rows_per_bucket = options[POSTPONE_TARGET_ROW_NUM_PER_BUCKET]
    if rows_per_bucket is not None:
        return max(1, -(-row_count // rows_per_bucket))
    return max(1, -(-size_bytes // options[POSTPONE_TARGET_SIZE_PER_BUCKET]))


def _batch_count(options: Options, row_count: int, size_bytes: int) -> int:
    """The same for rows that go to their buckets at once: a power of two, so that more can follow evenly."""
    wanted = options[POSTPONE_DEFAULT_BUCKET_NUM]
    if wanted is not None:
        return wanted
    most = options[POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM]
    needed = min(first_count(options, row_count, size_bytes), most)
    return min(1 << (needed - 1).bit_length(), most)


class KeptRows:
    """Rows of partitions that wait for their number of buckets: compressed, on local disk once they are many."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_KEPT_IN_MEMORY_BYTES)  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._row_counts: dict[bytes, int] = {}
        self._plain_bytes: dict[bytes, int] = {}

    def add(self, partition: bytes, rows: pa.RecordBatch, kinds: pa.Array) -> None:
        """Takes rows of a partition in arrival order, with their kinds."""
        schema = pa.schema([key_value.KIND_FIELD, *rows.schema])
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._writer = pa.ipc.new_stream(self._file, schema, options=options)
        self._writer.write_batch(pa.RecordBatch.from_arrays([kinds, *rows.columns], schema=schema))
        self._row_counts[partition] = self._row_counts.get(partition, 0) + rows.num_rows
        self._plain_bytes[partition] = self._plain_bytes.get(partition, 0) + rows.nbytes

    def sizes(self) -> dict[bytes, tuple[int, int]]:
        """Rows and bytes of each partition. Bytes are compressed ones: a partition's share of all."""
        ratio = self._file.tell() / max(1, sum(self._plain_bytes.values()))
        return {
            partition: (count, math.ceil(self._plain_bytes[partition] * ratio))
            for partition, count in self._row_counts.items()
        }

    def take(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """All rows in their order, with their kinds. They are gone afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._file.seek(0)
            for batch in pa.ipc.open_stream(self._file):
                yield batch.drop_columns([key_value.VALUE_KIND]), batch.column(key_value.VALUE_KIND)
        self.close()

    def close(self) -> None:
        """Gives the rows up."""
        self._file.close()


def _writer_of(file: DataFile) -> str:
    writer, mark, _ = file.file_name.rpartition(_WRITER_MARK)
    if not mark:
        raise CorruptFile(
            f"waiting file {file.file_name} does not tell which writer made it",
            hint="its name was changed, or it was put there by hand; the order of its rows can not be known",
        )
    return writer


__all__ = ["Postponed"]
