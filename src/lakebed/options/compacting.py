"""Options of compaction: when files are rewritten, which ones, and into what order."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_WRITE, READS_AND_WRITES, Kind, Names, Option

_SORTING: Final = "rows are sorted while they are written (`clustering.columns`), or by `t.compact(order_by=...)`"

WRITE_ONLY = Option(
    "write-only",
    Kind.BOOLEAN,
    False,
    "Only write: leave compaction and the expiry of snapshots to another job.",
    aliases=("write.compaction-skip",),
    honoured=True,
    scope=ON_WRITE,
)
NUM_SORTED_RUN_COMPACTION_TRIGGER = Option(
    "num-sorted-run.compaction-trigger",
    Kind.INTEGER,
    5,
    "Sorted runs in a bucket at which compaction starts.",
    minimum=1,
    honoured=True,
)
NUM_SORTED_RUN_STOP_TRIGGER = Option[int | None](
    "num-sorted-run.stop-trigger",
    Kind.INTEGER,
    None,
    "Sorted runs at which writing waits for compaction; without it, three more than the trigger.",
    minimum=1,
    honoured=True,
)
NUM_LEVELS = Option[int | None](
    "num-levels",
    Kind.INTEGER,
    None,
    "Levels of a bucket, level 0 included; without it, one more than the trigger.",
    minimum=2,
    honoured=True,
)
COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT = Option(
    "compaction.max-size-amplification-percent",
    Kind.INTEGER,
    200,
    "Size of the newer runs, in percent of the oldest, at which everything is compacted.",
    honoured=True,
)
COMPACTION_SIZE_RATIO = Option(
    "compaction.size-ratio",
    Kind.INTEGER,
    1,
    "Percent by which the next run may be larger and still be taken along.",
    honoured=True,
)
COMPACTION_OPTIMIZATION_INTERVAL = Option[int | None](
    "compaction.optimization-interval",
    Kind.DURATION,
    None,
    "How often a full compaction is done for the sake of readers.",
    honoured=True,
)
COMPACTION_TOTAL_SIZE_THRESHOLD = Option[int | None](
    "compaction.total-size-threshold",
    Kind.SIZE,
    None,
    "Buckets smaller than this are always compacted in full.",
    honoured=True,
)
COMPACTION_INCREMENTAL_SIZE_THRESHOLD = Option[int | None](
    "compaction.incremental-size-threshold",
    Kind.SIZE,
    None,
    "Size of the new data at which a bucket is compacted in full.",
    honoured=True,
)
COMPACTION_OFFPEAK_START_HOUR = Option(
    "compaction.offpeak.start.hour",
    Kind.INTEGER,
    -1,
    "First hour of the quiet time of day; -1 for none.",
    minimum=-1,
    maximum=23,
    honoured=True,
)
COMPACTION_OFFPEAK_END_HOUR = Option(
    "compaction.offpeak.end.hour",
    Kind.INTEGER,
    -1,
    "Hour at which the quiet time ends; -1 for none.",
    minimum=-1,
    maximum=23,
    honoured=True,
)
COMPACTION_OFFPEAK_RATIO = Option(
    "compaction.offpeak-ratio",
    Kind.INTEGER,
    0,
    "Percent that is added to the size ratio in the quiet time, by the local clock.",
    honoured=True,
)
COMPACTION_FORCE_UP_LEVEL_0 = Option(
    "compaction.force-up-level-0",
    Kind.BOOLEAN,
    False,
    "Take all files of level 0 into every compaction.",
    honoured=True,
)
COMPACTION_FORCE_REWRITE_ALL_FILES = Option(
    "compaction.force-rewrite-all-files",
    Kind.BOOLEAN,
    False,
    "Rewrite every file in a full compaction, also those that need no change.",
    honoured=True,
)
COMPACTION_SMALL_FILE_RATIO = Option(
    "compaction.small-file-ratio",
    Kind.DECIMAL,
    0.7,
    "Part of the target file size below which a file counts as small.",
    honoured=True,
)
COMPACTION_MIN_FILE_NUM = Option(
    "compaction.min.file-num",
    Kind.INTEGER,
    5,
    "Small files that must come together before a table without a key compacts them.",
    minimum=1,
    honoured=True,
)
COMPACTION_FILE_NUM_LIMIT = Option(
    "compaction.file-num-limit",
    Kind.INTEGER,
    100_000,
    "Most files that one compaction of a table without buckets looks at.",
    minimum=1,
    honoured=True,
)
COMPACTION_DELETE_RATIO_THRESHOLD = Option(
    "compaction.delete-ratio-threshold",
    Kind.DECIMAL,
    0.2,
    "Part of deleted rows at which a file of a table without a key is rewritten.",
    honoured=True,
)
COMPACTION_SKIP_EXPIRED_PARTITIONS = Option(
    "compaction.skip-expired-partitions",
    Kind.BOOLEAN,
    False,
    "Leave out partitions that are due to expire by their values.",
    honoured=True,
)
COMMIT_FORCE_COMPACT = Option(
    "commit.force-compact",
    Kind.BOOLEAN,
    False,
    "Compact before every commit.",
    honoured=True,
    scope=ON_WRITE,
)
CLUSTERING_COLUMNS = Option[Names](
    "clustering.columns",
    Kind.LIST,
    (),
    "Columns that rows of a batch write are sorted by before they are cut into files, in tables with neither a key nor "
    "buckets: filters on them skip files.",
    aliases=("sink.clustering.by-columns",),
    honoured=True,
    scope=ON_WRITE,
)
CLUSTERING_STRATEGY = Option(
    "clustering.strategy",
    Kind.CHOICE,
    "auto",
    "How several clustering columns make one order: one after the other, or along a curve on which rows that are close "
    "in all of them lie together. `auto`: `order` for one column, `zorder` for up to four, `hilbert` for more.",
    choices=("auto", "order", "zorder", "hilbert"),
    aliases=("sink.clustering.strategy",),
    honoured=True,
    scope=ON_WRITE,
)
CLUSTERING_INCREMENTAL = Option(
    "clustering.incremental",
    Kind.BOOLEAN,
    False,
    "Let compactions sort new files by the clustering columns, and those sorted before only once new ones are many "
    "beside them, instead of joining small files; for tables with neither a key nor buckets.",
    honoured=True,
)
CLUSTERING_INCREMENTAL_MODE = Option(
    "clustering.incremental.mode",
    Kind.CHOICE,
    "global-sort",
    "Whether clustering sorts across tasks or within each.",
    choices=("global-sort", "local-sort"),
    instead=_SORTING,
    tuning=True,
)
CLUSTERING_INCREMENTAL_OPTIMIZE_WRITE = Option(
    "clustering.incremental.optimize-write",
    Kind.BOOLEAN,
    False,
    "Cluster rows already while they are written.",
    instead=_SORTING,
    tuning=True,
)
CLUSTERING_HISTORY_PARTITION_IDLE_TO_FULL_SORT = Option[int | None](
    "clustering.history-partition.idle-to-full-sort",
    Kind.DURATION,
    None,
    "Quiet time after which a partition is clustered in full.",
    instead=_SORTING,
    tuning=True,
)
CLUSTERING_HISTORY_PARTITION_LIMIT = Option(
    "clustering.history-partition.limit",
    Kind.INTEGER,
    5,
    "Most quiet partitions that are clustered in one go.",
    instead=_SORTING,
    tuning=True,
)
PK_CLUSTERING_OVERRIDE = Option(
    "pk-clustering-override",
    Kind.BOOLEAN,
    False,
    "Order the files of a table with a key by its clustering columns instead of the key.",
    immutable=True,
    instead=_SORTING,
    affects=READS_AND_WRITES,
)
ZORDER_VAR_LENGTH_CONTRIBUTION = Option(
    "zorder.var-length-contribution",
    Kind.INTEGER,
    8,
    "Bytes that a text or binary column adds to a z-order.",
    minimum=1,
    honoured=True,
)
SORT_COMPACTION_RANGE_STRATEGY = Option(
    "sort-compaction.range-strategy",
    Kind.CHOICE,
    "SIZE",
    "Whether a sorting compaction gives each task the same bytes or the same number of rows.",
    choices=("SIZE", "QUANTITY"),
    instead=_SORTING,
    tuning=True,
)
SORT_COMPACTION_LOCAL_SAMPLE_MAGNIFICATION = Option(
    "sort-compaction.local-sample.magnification",
    Kind.INTEGER,
    1000,
    "Rows each task samples, per task, before a sorting compaction.",
    minimum=20,
    instead=_SORTING,
    tuning=True,
)
