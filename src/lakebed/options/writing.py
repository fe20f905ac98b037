"""Options of writing: buffers, overwriting, what a write may do to the schema."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_WRITE, Kind, Option
from lakebed.units import KIB, LONG_MAX, MIB

_MEMORY: Final = "Arrow manages memory here; use `write-buffer-size` to bound what a writer holds"
_SPILL: Final = "only write buffers of tables with a key go to disk; use `write-buffer-size` to bound what they hold"

WRITE_MODE = Option[str | None](
    "write-mode",
    Kind.CHOICE,
    None,
    "Whether a writer commits once at its end (`batch`) or again and again (`stream`). Without it, streams commit each "
    "micro-batch and other writers once. `change-log` and `append-only` are of old and mean nothing any more.",
    choices=("batch", "stream", "change-log", "append-only"),
    ignored_choices=("change-log", "append-only"),
    honoured=True,
    scope=ON_WRITE,
    paimon="differs: Paimon knew it until 0.5, with other values",
)
WRITE_BUFFER_SIZE = Option(
    "write-buffer-size",
    Kind.SIZE,
    256 * MIB,
    "Memory a writer fills before it sorts the rows and writes them to a file.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_BUFFER_SPILLABLE = Option(
    "write-buffer-spillable",
    Kind.BOOLEAN,
    True,
    "Let full buffers of tables with a key go to local disk (`TMPDIR` says where), so that a commit makes fewer files.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_BUFFER_SPILL_MAX_DISK_SIZE = Option(
    "write-buffer-spill.max-disk-size",
    Kind.SIZE,
    LONG_MAX,
    "Local disk that spilled buffers may take; beyond it they become files of the table.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_BUFFER_FOR_APPEND = Option(
    "write-buffer-for-append",
    Kind.BOOLEAN,
    False,
    "Buffer the rows of tables without a key as well.",
    instead=_MEMORY,
    scope=ON_WRITE,
    tuning=True,
)
WRITE_MAX_WRITERS_TO_SPILL = Option(
    "write-max-writers-to-spill",
    Kind.INTEGER,
    10,
    "Open writers of a batch append above which rows go to local disk.",
    instead=_SPILL,
    scope=ON_WRITE,
    tuning=True,
)
WRITE_BATCH_SIZE = Option(
    "write.batch-size",
    Kind.INTEGER,
    1024,
    "Rows handed to the file format at a time.",
    aliases=("orc.write.batch-size",),
    instead="batches are written as they come; leave the option out",
    scope=ON_WRITE,
    tuning=True,
)
LAKEBED_ONE_PROCESS_WRITE_MAX_SIZE = Option(
    "lakebed.one-process-write.max-size",
    Kind.SIZE,
    256 * MIB,
    'Most that `df.write.format("lakebed")` has one process place where keys must be looked for: more is refused.',
    honoured=True,
    scope=ON_WRITE,
    paimon="ours",
)
WRITE_BATCH_MEMORY = Option(
    "write.batch-memory",
    Kind.SIZE,
    128 * MIB,
    "Memory handed to the file format at a time.",
    instead=_MEMORY,
    scope=ON_WRITE,
    tuning=True,
)
LOCAL_MERGE_BUFFER_SIZE = Option[int | None](
    "local-merge-buffer-size",
    Kind.SIZE,
    None,
    "Memory for merging rows before they are sent to the task of their bucket; here the write buffer does it.",
    honoured=True,
    scope=ON_WRITE,
)
SORT_SPILL_THRESHOLD = Option[int | None](
    "sort-spill-threshold",
    Kind.INTEGER,
    None,
    "Readers of one merge above which some go to local disk.",
    instead=_SPILL,
    tuning=True,
)
SORT_SPILL_BUFFER_SIZE = Option(
    "sort-spill-buffer-size",
    Kind.SIZE,
    64 * MIB,
    "Memory of a sort before it goes to local disk.",
    instead=_SPILL,
    tuning=True,
)
SORT_ENGINE = Option(
    "sort-engine",
    Kind.CHOICE,
    "loser-tree",
    "Algorithm that merges sorted runs.",
    choices=("loser-tree", "min-heap"),
    instead="runs are merged by vectorised sorting; leave the option out",
    tuning=True,
)
SPILL_COMPRESSION = Option(
    "spill-compression",
    Kind.CHOICE,
    "zstd",
    "Compression of spilled rows.",
    choices=("zstd", "lz4", "lzo", "none"),
    honoured_choices=("zstd", "lz4", "none"),
    honoured=True,
)
SPILL_COMPRESSION_ZSTD_LEVEL = Option(
    "spill-compression.zstd-level",
    Kind.INTEGER,
    1,
    "Level of that compression when it is zstd.",
    minimum=1,
    maximum=22,
    honoured=True,
)
LOCAL_SORT_MAX_NUM_FILE_HANDLES = Option(
    "local-sort.max-num-file-handles",
    Kind.INTEGER,
    128,
    "Files an external sort may have open at a time.",
    minimum=2,
    honoured=True,
)
PAGE_SIZE = Option(
    "page-size", Kind.SIZE, 64 * KIB, "Size of a memory page of the writer.", instead=_MEMORY, tuning=True
)
CACHE_PAGE_SIZE = Option(
    "cache-page-size", Kind.SIZE, 64 * KIB, "Size of a memory page of caches.", instead=_MEMORY, tuning=True
)
ASYNC_FILE_WRITE = Option(
    "async-file-write",
    Kind.BOOLEAN,
    True,
    "Write files in a thread of their own.",
    instead="leave the option out; the result is the same",
    scope=ON_WRITE,
    tuning=True,
)
FILE_OPERATION_THREAD_NUM = Option[int | None](
    "file-operation.thread-num",
    Kind.INTEGER,
    None,
    "File operations, such as deletes, that may run at a time.",
    aliases=("delete-file.thread-num",),
    instead="leave the option out; the result is the same",
    tuning=True,
)
DYNAMIC_PARTITION_OVERWRITE = Option(
    "dynamic-partition-overwrite",
    Kind.BOOLEAN,
    True,
    "Let an overwrite replace only the partitions its rows belong to, not the whole table.",
    honoured=True,
    scope=ON_WRITE,
)
OVERWRITE_UPGRADE = Option(
    "overwrite-upgrade",
    Kind.BOOLEAN,
    True,
    "Move the files of an overwrite of a table with a key straight to the highest level.",
    honoured=True,
    scope=ON_WRITE,
)
PARTITION_SINK_STRATEGY = Option(
    "partition.sink-strategy",
    Kind.CHOICE,
    "NONE",
    "Whether rows are sent to tasks by partition before they are written.",
    choices=("NONE", "HASH", "PARTITION_DYNAMIC"),
    instead="send rows to tasks by partition before writing them",
    scope=ON_WRITE,
    tuning=True,
)
ADD_COLUMN_BEFORE_PARTITION = Option(
    "add-column-before-partition",
    Kind.BOOLEAN,
    False,
    "Put a new column before the partition columns instead of last.",
    honoured=True,
)
END_INPUT_WATERMARK = Option[int | None](
    "end-input.watermark",
    Kind.INTEGER,
    None,
    "Watermark that the commit of a batch write sets, in milliseconds since 1970; streams set their own.",
    honoured=True,
    scope=ON_WRITE,
)
DISABLE_EXPLICIT_TYPE_CASTING = Option(
    "disable-explicit-type-casting",
    Kind.BOOLEAN,
    False,
    "Refuse column type changes that can lose information.",
    honoured=True,
)
ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED = Option(
    "alter-column-null-to-not-null.disabled",
    Kind.BOOLEAN,
    True,
    "Refuse to make a column that may hold nulls NOT NULL.",
    honoured=True,
)
WRITE_MERGE_SCHEMA = Option(
    "write.merge-schema",
    Kind.BOOLEAN,
    False,
    "Add columns that the incoming rows have and the table has not.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_MERGE_SCHEMA_TYPE_WIDENING = Option(
    "write.merge-schema.type-widening",
    Kind.BOOLEAN,
    False,
    "Widen columns to the types of the incoming rows.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_MERGE_SCHEMA_EXPLICIT_CAST = Option(
    "write.merge-schema.explicit-cast",
    Kind.BOOLEAN,
    False,
    "Change column types also where that can lose information.",
    honoured=True,
    scope=ON_WRITE,
)
WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED = Option(
    "write.hive-style-dynamic-partition.enabled",
    Kind.BOOLEAN,
    False,
    "INSERT ... PARTITION (p) takes the values of `p` after all others, as Hive does, instead of in the table's order.",
    honoured=True,
    scope=ON_WRITE,
)
SINK_ROLLING_POLICY_FILE_SIZE = Option[int | None](
    "sink.rolling-policy.file-size",
    Kind.SIZE,
    None,
    "Size at which a writer begins another file, in place of `target-file-size`; compactions keep to the latter.",
    honoured=True,
    scope=ON_WRITE,
    paimon="ours",
)
SINK_ROLLING_POLICY_ROLLOVER_INTERVAL = Option[int | None](
    "sink.rolling-policy.rollover-interval",
    Kind.DURATION,
    None,
    "Longest time that written rows wait for their commit: the longest interval between micro-batches of a stream.",
    honoured=True,
    scope=ON_WRITE,
    paimon="ours",
)
SINK_ROLLING_POLICY_CHECK_INTERVAL = Option[int | None](
    "sink.rolling-policy.check-interval",
    Kind.DURATION,
    None,
    "How often that time is looked at, by writers to which rows come one batch after the other.",
    honoured=True,
    scope=ON_WRITE,
    paimon="ours",
)
