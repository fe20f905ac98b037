"""How a table's rows find their buckets, from its schema and options: the one place that tells the modes apart."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from lakebed.bucket.dynamic import AssignerRules
from lakebed.metadata.paths import POSTPONE_BUCKET
from lakebed.options import (
    BUCKET,
    DYNAMIC_BUCKET_ASSIGNER_PARALLELISM,
    DYNAMIC_BUCKET_INITIAL_BUCKETS,
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
    LAKEBED_PARALLELISM,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET,
    Options,
)
from lakebed.records import dataclass
from lakebed.schema.table_schema import TableSchema


class TaskNeeds(Enum):
    """What one of several tasks must get, so that together they write what one writer would have written."""

    ANY_ROWS = "any rows"
    WHOLE_BUCKETS = "all rows of its buckets"
    SHARE_OF_KEYS = "all rows of its keys, whatever partition they are in"
    SHARE_OF_TABLE_KEYS = "all rows of its keys, and where the table has these"
    ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True)
class BucketMode:
    """A way from a row to its bucket, and what others must know of it. `write/placement` has the code of each."""

    name: str
    is_of: Callable[[TableSchema, Options], bool]
    """Whether a table has this mode, unless one before it among `BUCKET_MODES` is the table's."""
    needs: TaskNeeds
    has_buckets: bool = True
    """Whether rows of a bucket are numbered, and have an order."""
    hashes_keys: bool = False
    """Whether a bucket follows from the hash of a key and the number of buckets."""
    indexes_keys: bool = False
    """Whether it is remembered where a key is: a key may move, and there is one writer at a time."""
    crosses_partitions: bool = False
    """Whether the key does not tell the partition."""
    postpones: bool = False
    """Whether rows may wait for a compaction to choose their bucket."""

    @property
    def has_hash_index(self) -> bool:
        """Whether index files in each partition have the hashes of its keys."""
        return self.indexes_keys and not self.crosses_partitions

    @property
    def places_alone(self) -> bool:
        """Whether a task can place its rows without knowing what others have."""
        return self.needs in (TaskNeeds.ANY_ROWS, TaskNeeds.WHOLE_BUCKETS)

    @property
    def is_shared(self) -> bool:
        """Whether several tasks may write to one bucket, if their numbers are kept apart."""
        return self.needs is TaskNeeds.WHOLE_BUCKETS

    def __str__(self) -> str:
        return self.name


FIXED = BucketMode("fixed", lambda schema, options: options[BUCKET] > 0, TaskNeeds.WHOLE_BUCKETS, hashes_keys=True)
"""The hash of the bucket key, modulo the number of buckets."""

UNAWARE = BucketMode("unaware", lambda schema, _: not schema.primary_keys, TaskNeeds.ANY_ROWS, has_buckets=False)
"""No key and no buckets: all rows of a partition together."""

POSTPONE = BucketMode(
    "postpone",
    lambda schema, options: options[BUCKET] == POSTPONE_BUCKET,
    TaskNeeds.ALL_ROWS,
    hashes_keys=True,
    postpones=True,
)
"""Compaction decides."""

DYNAMIC = BucketMode(
    "dynamic",
    lambda schema, _: set(schema.partition_keys) <= set(schema.primary_keys),
    TaskNeeds.SHARE_OF_KEYS,
    indexes_keys=True,
)
"""An index of key hashes in each partition."""

CROSS_PARTITION = BucketMode(
    "cross-partition", lambda *_: True, TaskNeeds.SHARE_OF_TABLE_KEYS, indexes_keys=True, crosses_partitions=True
)
"""As dynamic, but the key does not tell the partition: an index of all keys of the table."""

BUCKET_MODES = [FIXED, UNAWARE, POSTPONE, DYNAMIC, CROSS_PARTITION]
"""A table has the first that is its own."""


def bucket_mode(schema: TableSchema, options: Options) -> BucketMode:
    """The mode of a table."""
    return next(mode for mode in BUCKET_MODES if mode.is_of(schema, options))


def lets_rows_wait(schema: TableSchema, options: Options) -> bool:
    """Whether writes leave the choice of buckets to compaction."""
    return bucket_mode(schema, options).postpones and not options[POSTPONE_BATCH_WRITE_FIXED_BUCKET]


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
