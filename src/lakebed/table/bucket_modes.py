"""How a table's rows find their buckets, from its schema and options: the one place that tells the modes apart."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import Enum

from lakebed.bucket.dynamic import AssignerRules
from lakebed.options import (
    BUCKET,
    DYNAMIC_BUCKET_ASSIGNER_PARALLELISM,
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
    LAKEBED_PARALLELISM,
    Options,
)
from lakebed.schema.table_schema import TableSchema


class BucketMode(Enum):
    """Ways from a row to its bucket."""

    FIXED = "fixed"
    """The hash of the bucket key, modulo the number of buckets."""
    UNAWARE = "unaware"
    """No key and no buckets: all rows of a partition together."""
    DYNAMIC = "dynamic"
    """An index of key hashes in each partition."""
    CROSS_PARTITION = "cross-partition"
    """As dynamic, but the key does not tell the partition: an index of all keys of the table."""
    POSTPONE = "postpone"
    """Compaction decides."""


def bucket_mode(schema: TableSchema, options: Options) -> BucketMode:
    """The mode of a table."""
    bucket = int(options[BUCKET])
    if bucket > 0:
        return BucketMode.FIXED
    if not schema.primary_keys:
        return BucketMode.UNAWARE
    if bucket == -2:
        return BucketMode.POSTPONE
    covers_partitions = set(schema.partition_keys) <= set(schema.primary_keys)
    return BucketMode.DYNAMIC if covers_partitions else BucketMode.CROSS_PARTITION


@dataclass(frozen=True, slots=True)
class WritePart:
    """Which of several writers of one commit this is: it gets the keys whose hashes leave its number as remainder."""

    number: int
    count: int


def shared_rules(options: Options, workers: int) -> AssignerRules:
    """How dynamic buckets are handed out by several writers at once, each of which is one assigner everywhere."""
    rules = assigner_rules(options, workers)
    return replace(rules, channels=rules.assigners)


def assigner_rules(options: Options, workers: int | None = None) -> AssignerRules:
    """How dynamic buckets are handed out; `workers` is how many assigners there are if the table does not say."""
    most = options[DYNAMIC_BUCKET_MAX_BUCKETS]
    return AssignerRules.of(
        options[DYNAMIC_BUCKET_TARGET_ROW_NUM],
        most,
        options[DYNAMIC_BUCKET_INITIAL_BUCKETS],
        options[DYNAMIC_BUCKET_ASSIGNER_PARALLELISM],
        workers or _workers_here(options, most),
    )


def _workers_here(options: Options, max_buckets: int) -> int:
    """One, since few full buckets serve better than many small ones.

    Where their number is limited they will all be needed, and are used from the start as far as this machine works on
    so many at a time.
    """
    return 1 if max_buckets < 1 else min(max_buckets, options[LAKEBED_PARALLELISM] or os.cpu_count() or 1)
