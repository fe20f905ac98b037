"""Options that say what a table is: its keys, its buckets, its branch."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_CREATE, READS, READS_AND_WRITES, Kind, Names, Option
from lakebed.units import GIB, LONG_MAX

_POSTPONE: Final = "give the table a fixed number of buckets instead of postponing the choice"
_BRANCHES: Final = "open the branch as `table$branch_x`, or give the option for one read or write: t.with_options(...)"

PRIMARY_KEY = Option[Names](
    "primary-key",
    Kind.LIST,
    (),
    "Columns of the primary key, for statements that have no place of their own for it.",
    immutable=True,
    honoured=True,
    scope=ON_CREATE,
)
PARTITION = Option[Names](
    "partition",
    Kind.LIST,
    (),
    "Columns the table is partitioned by, for statements that have no place of their own for it.",
    immutable=True,
    honoured=True,
    scope=ON_CREATE,
)
PRIMARY_KEY_NULLABLE = Option(
    "primary-key.nullable",
    Kind.BOOLEAN,
    False,
    "Allow nulls in key columns; two null values are then the same key.",
    immutable=True,
    honoured=True,
)
TYPE = Option(
    "type",
    Kind.CHOICE,
    "table",
    "What kind of thing the table is.",
    choices=("table", "format-table", "materialized-table", "object-table", "lance-table", "iceberg-table"),
    honoured_choices=("table",),
    instead="lakebed keeps only file-store tables",
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
BUCKET = Option(
    "bucket",
    Kind.INTEGER,
    -1,
    "Number of buckets per partition; -1 lets the table decide (with a key: dynamic, without: no buckets), "
    "-2 postpones the choice to compaction.",
    minimum=-2,
    honoured=True,
)
BUCKET_KEY = Option[Names](
    "bucket-key",
    Kind.LIST,
    (),
    "Columns whose values choose a row's bucket; without it, the primary key less the partition columns.",
    immutable=True,
    honoured=True,
)
BUCKET_FUNCTION_TYPE = Option(
    "bucket-function.type",
    Kind.CHOICE,
    "default",
    "How the bucket key becomes a bucket number: hash of the binary row, remainder of an integer, or Hive's hash.",
    choices=("default", "mod", "hive"),
    immutable=True,
    honoured=True,
)
BUCKET_APPEND_ORDERED = Option(
    "bucket-append-ordered",
    Kind.BOOLEAN,
    True,
    "Keep the rows of a bucket in the order they were written (tables without a primary key).",
    honoured=True,
)
DYNAMIC_BUCKET_TARGET_ROW_NUM = Option(
    "dynamic-bucket.target-row-num",
    Kind.INTEGER,
    2_000_000,
    "Rows after which a dynamic bucket counts as full.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
)
DYNAMIC_BUCKET_INITIAL_BUCKETS = Option[int | None](
    "dynamic-bucket.initial-buckets",
    Kind.INTEGER,
    None,
    "Buckets a new partition of a dynamic-bucket table starts with.",
    minimum=1,
    immutable=True,
    honoured=True,
)
DYNAMIC_BUCKET_MAX_BUCKETS = Option(
    "dynamic-bucket.max-buckets",
    Kind.INTEGER,
    -1,
    "Most buckets a partition of a dynamic-bucket table may have; -1 is no limit.",
    minimum=-1,
    honoured=True,
)
DYNAMIC_BUCKET_ASSIGNER_PARALLELISM = Option[int | None](
    "dynamic-bucket.assigner-parallelism",
    Kind.INTEGER,
    None,
    "How many tasks hand out dynamic buckets.",
    minimum=1,
    honoured=True,
)
CROSS_PARTITION_UPSERT_INDEX_TTL = Option[int | None](
    "cross-partition-upsert.index-ttl",
    Kind.DURATION,
    None,
    "How long a key's partition is remembered when the primary key does not hold the partition columns.",
    honoured=True,
)
CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM = Option(
    "cross-partition-upsert.bootstrap-parallelism",
    Kind.INTEGER,
    10,
    "Threads that load the key index when a writer across partitions starts.",
    minimum=1,
    honoured=True,
)
POSTPONE_DEFAULT_BUCKET_NUM = Option[int | None](
    "postpone.default-bucket-num",
    Kind.INTEGER,
    None,
    "Buckets a partition gets when its postponed rows are first placed.",
    minimum=1,
    honoured=True,
)
POSTPONE_TARGET_ROW_NUM_PER_BUCKET = Option[int | None](
    "postpone.target-row-num-per-bucket",
    Kind.INTEGER,
    None,
    "Rows per bucket when the number of buckets is estimated from the postponed rows.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
)
POSTPONE_TARGET_SIZE_PER_BUCKET = Option(
    "postpone.target-size-per-bucket",
    Kind.SIZE,
    GIB,
    "Bytes per bucket when the number of buckets is estimated from the postponed files.",
    honoured=True,
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET = Option(
    "postpone.batch-write-fixed-bucket",
    Kind.BOOLEAN,
    True,
    "Let batch writes of a postponed table go straight to real buckets.",
    honoured=True,
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM = Option(
    "postpone.batch-write-fixed-bucket.max-parallelism",
    Kind.INTEGER,
    2048,
    "Most buckets a batch write of a postponed table may choose for a partition.",
    honoured=True,
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_RESCALE_LOAD_FACTOR = Option(
    "postpone.batch-write-fixed-bucket.rescale-load-factor",
    Kind.INTEGER,
    32,
    "How many times too few a partition's buckets may be before a batch write makes more of them.",
    instead=_POSTPONE,
    tuning=True,
)
POSTPONE_MERGE_ON_READ = Option(
    "postpone.merge-on-read",
    Kind.BOOLEAN,
    False,
    "Let batch reads see rows that still wait for their bucket.",
    honoured=True,
    affects=READS,
)
BRANCH = Option(
    "branch",
    Kind.TEXT,
    "main",
    "Branch of the table that is read and written.",
    instead=_BRANCHES,
    affects=READS_AND_WRITES,
)
AUTO_CREATE = Option(
    "auto-create",
    Kind.BOOLEAN,
    False,
    "Create the table's directory when it is first used.",
    instead="create the table with `create_table`",
)
PATH = Option[str | None](
    "path",
    Kind.TEXT,
    None,
    "Directory of the table.",
    instead="the catalog decides where a table lives; leave the option out",
)
