"""Brings known keys to the tasks that write, where keys do not tell their partition: all keys are read once, in a job.

Known keys travel among the rows, in a column of their own, and come to a task before the first row does. Each task gets
those of its share, as it gets the rows; and how many rows are in the buckets that it hands out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from lakebed.definition.context import TableContext
from lakebed.metadata.snapshot import Snapshot
from lakebed.read.splits import Split
from lakebed.spark.read import packed
from lakebed.spark.session import prepare_worker
from lakebed.write.files import FileMaker
from lakebed.write.placement.table_keys import KnownKeys, TableKeys, shares_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KNOWN = "_lakebed_known"
_ORDER = "_lakebed_order"
_TYPE = pa.struct(
    [
        ("key", pa.binary()),
        ("hash", pa.int32()),
        ("partition", pa.binary()),
        ("bucket", pa.int32()),
        ("rows", pa.int64()),
        ("written_ms", pa.int64()),
    ]
)
_SPARK_TYPE = "struct<key: binary, hash: int, partition: binary, bucket: int, rows: bigint, written_ms: bigint>"


def with_known_keys(
    context: TableContext, frame: DataFrame, share: str, parts: int, base: Snapshot
) -> DataFrame | None:
    """The rows of a frame, which tells their shares, in the tasks that write them, after the keys of a snapshot.

    None if the snapshot has no keys.
    """
    splits = TableKeys(context).splits(base)
    if not splits:
        return None
    known = _known(frame.sparkSession, context, packed(splits, parts), share, parts)
    columns = [name for name in frame.columns if name != share]
    rows = frame.withColumn(_ORDER, sf.monotonically_increasing_id()).withColumn(_KNOWN, sf.lit(None).cast(_SPARK_TYPE))
    together = rows.unionByName(known, allowMissingColumns=True).repartitionById(parts, sf.col(share))
    ordered = together.sortWithinPartitions(sf.col(_KNOWN).isNull(), sf.col(_ORDER))
    return ordered.select(*(sf.col("`" + name.replace("`", "``") + "`") for name in columns), sf.col(_KNOWN))


def learn(maker: FileMaker, piece: pa.Table) -> pa.Table:
    """Has a writer learn the keys that come with rows; the rows without them."""
    known = piece.column(_KNOWN).combine_chunks()
    is_key = pc.is_valid(known)
    if pc.any(is_key).as_py():
        for keys, row_count in _groups(known.filter(is_key)):
            maker.learn(keys, row_count)
    return piece.filter(pc.invert(is_key)).drop_columns([_KNOWN])


def _known(
    spark: SparkSession, context: TableContext, groups: Sequence[list[Split]], share: str, parts: int
) -> DataFrame:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        reader = TableKeys(context)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for split in groups[number]:
                    row_count = 0
                    for found in reader.in_split(split):
                        row_count += len(found.keys)
                        yield _batch(share, shares_of(found.hashes, parts), found, 0)
                    counted = KnownKeys(split.partition, split.bucket, np.zeros(1, np.int32), pa.nulls(1, pa.binary()))
                    yield _batch(share, np.array([split.bucket % parts]), counted, row_count)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, f"{share} int, {_KNOWN} {_SPARK_TYPE}")


def _batch(share: str, shares: np.ndarray, known: KnownKeys, row_count: int) -> pa.RecordBatch:
    count = len(known.keys)
    columns = [
        known.keys.cast(pa.binary()),
        pa.array(known.hashes, pa.int32()),
        pa.repeat(pa.scalar(known.partition, pa.binary()), count),
        pa.repeat(pa.scalar(known.bucket, pa.int32()), count),
        pa.repeat(pa.scalar(row_count, pa.int64()), count),
        pa.repeat(pa.scalar(known.written_ms, pa.int64()), count),
    ]
    struct = pa.StructArray.from_arrays(columns, fields=list(_TYPE))
    return pa.record_batch({share: pa.array(shares.astype(np.int32)), _KNOWN: struct})


def _groups(known: pa.StructArray) -> Iterator[tuple[KnownKeys, int]]:
    """Keys by their partition and bucket, and the rows of that bucket as far as they are told."""
    partitions = known.field("partition").dictionary_encode()
    buckets = np.asarray(known.field("bucket")).astype(np.int64)
    codes = np.asarray(partitions.indices).astype(np.int64) << 32 | buckets
    order = np.argsort(codes, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        first = int(group[0])
        members = known.take(pa.array(group))
        keys = members.filter(pc.is_valid(members.field("key")))
        row_count = int(np.asarray(members.field("rows")).sum())
        hashes = np.asarray(keys.field("hash")).astype(np.int32)
        partition = partitions.dictionary[partitions.indices[first].as_py()].as_py()
        written_ms = int(np.asarray(members.field("written_ms")).max())
        yield KnownKeys(partition, int(buckets[first]), hashes, keys.field("key"), written_ms), row_count


__all__ = ["learn", "with_known_keys"]
