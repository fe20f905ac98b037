"""Options of reading: which snapshot, which changes, cut into which pieces."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import ON_READ, ON_WRITE, READS, Kind, Option
from lakebed.units import LONG_MAX, MIB

_BRANCHES: Final = "leave the option out: a branch that can not be read is always an error here"
_CHAINS: Final = "such branches are of chain tables, which are not available in this version; leave the option out"
_TRAVEL: Final = "choose the state with `t.at(snapshot=...)`, `t.at(tag=...)` or `t.at(timestamp=...)`"
_FILTER: Final = "filter the rows: `t.to_arrow(filter=...)`"

SCAN_MODE = Option(
    "scan.mode",
    Kind.CHOICE,
    "default",
    "Where a read starts; `default` decides from the other scan options.",
    choices=(
        "default",
        "latest-full",
        "full",
        "latest",
        "compacted-full",
        "from-timestamp",
        "from-snapshot",
        "from-snapshot-full",
        "from-file-creation-time",
        "from-creation-timestamp",
        "latest-delta",
        "incremental",
    ),
    aliases=("log.scan",),
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
SCAN_SNAPSHOT_ID = Option[int | None](
    "scan.snapshot-id",
    Kind.INTEGER,
    None,
    "Read the table as of this snapshot.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
SCAN_TAG_NAME = Option[str | None](
    "scan.tag-name",
    Kind.TEXT,
    None,
    "Read the table as of this tag.",
    honoured=True,
    scope=ON_READ,
)
SCAN_TIMESTAMP_MILLIS = Option[int | None](
    "scan.timestamp-millis",
    Kind.INTEGER,
    None,
    "Read the last snapshot committed by this time, in milliseconds since 1970 UTC.",
    minimum=-LONG_MAX - 1,
    maximum=LONG_MAX,
    aliases=("log.scan.timestamp-millis",),
    honoured=True,
    scope=ON_READ,
)
SCAN_TIMESTAMP = Option[str | None](
    "scan.timestamp",
    Kind.TEXT,
    None,
    "Read the last snapshot committed by this local time, as in `2026-05-01 12:30:00`.",
    pattern=r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?",
    form="a local time, such as `2026-05-01 12:30:00`",
    honoured=True,
    scope=ON_READ,
)
SCAN_VERSION = Option[str | None](
    "scan.version",
    Kind.TEXT,
    None,
    "Read the table as of the tag with this name, or else the snapshot with this number.",
    honoured=True,
    scope=ON_READ,
)
SCAN_WATERMARK = Option[int | None](
    "scan.watermark",
    Kind.INTEGER,
    None,
    "Read the first snapshot whose watermark has reached this value.",
    minimum=-LONG_MAX - 1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
SCAN_FILE_CREATION_TIME_MILLIS = Option[int | None](
    "scan.file-creation-time-millis",
    Kind.INTEGER,
    None,
    "Read only data files created at this time or later.",
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
SCAN_CREATION_TIME_MILLIS = Option[int | None](
    "scan.creation-time-millis",
    Kind.INTEGER,
    None,
    "Start at the first snapshot since this time, or else with files created since.",
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
INCREMENTAL_BETWEEN = Option[str | None](
    "incremental-between",
    Kind.TEXT,
    None,
    "Read what changed after the first snapshot (or tag) up to the second, as in `5,10`.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
INCREMENTAL_BETWEEN_TIMESTAMP = Option[str | None](
    "incremental-between-timestamp",
    Kind.TEXT,
    None,
    "Read what changed after the first time up to the second.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
INCREMENTAL_BETWEEN_SCAN_MODE = Option(
    "incremental-between-scan-mode",
    Kind.CHOICE,
    "auto",
    "Where those changes come from: new files, changelog files, or a comparison of the two states.",
    choices=("auto", "delta", "changelog", "diff"),
    honoured=True,
    scope=ON_READ,
)
INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT = Option(
    "incremental-between-tag-to-snapshot",
    Kind.BOOLEAN,
    False,
    "Read changes between two tags like those between their snapshots, without comparing the two states.",
    honoured=True,
    scope=ON_READ,
)
INCREMENTAL_TO_AUTO_TAG = Option[str | None](
    "incremental-to-auto-tag",
    Kind.TEXT,
    None,
    "Read what changed from the tag before up to this one.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
SCAN_BUCKET = Option[int | None](
    "scan.bucket",
    Kind.INTEGER,
    None,
    "Read one bucket only.",
    minimum=0,
    instead=_FILTER,
    scope=ON_READ,
    affects=READS,
)
SCAN_PARTITIONS = Option[str | None](
    "scan.partitions",
    Kind.TEXT,
    None,
    "Read these partitions only: `dt=1,hh=2;dt=1,hh=3`, or the largest with `max_pt()` or `max_two_pt()`.",
    aliases=("lookup.dynamic-partition",),
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
SCAN_FALLBACK_BRANCH = Option[str | None](
    "scan.fallback-branch",
    Kind.TEXT,
    None,
    "Branch that supplies partitions which the table does not have.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
SCAN_FALLBACK_BRANCH_READ_FAIL_FAST = Option(
    "scan.fallback-branch.read-fail-fast",
    Kind.BOOLEAN,
    False,
    "Fail at once when that branch can not be read.",
    instead=_BRANCHES,
    scope=ON_READ,
    tuning=True,
)
SCAN_PRIMARY_BRANCH = Option[str | None](
    "scan.primary-branch",
    Kind.TEXT,
    None,
    "Branch whose partitions are read before those of the table.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
SCAN_FALLBACK_SNAPSHOT_BRANCH = Option[str | None](
    "scan.fallback-snapshot-branch",
    Kind.TEXT,
    None,
    "Branch of a chain table that holds full partitions.",
    instead=_CHAINS,
    scope=ON_READ,
    affects=READS,
)
SCAN_FALLBACK_DELTA_BRANCH = Option[str | None](
    "scan.fallback-delta-branch",
    Kind.TEXT,
    None,
    "Branch of a chain table that holds changes.",
    instead=_CHAINS,
    scope=ON_READ,
    affects=READS,
)
SCAN_PLAN_SORT_PARTITION = Option(
    "scan.plan-sort-partition",
    Kind.BOOLEAN,
    False,
    "Read partitions in the order of their values.",
    instead="sort the rows after reading",
    scope=ON_READ,
)
SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED = Option[int | None](
    "scan.plan-auto-tag-for-read.time-retained",
    Kind.DURATION,
    None,
    "Guard the snapshot of a batch read with a tag that lives this long.",
    instead="create a tag before the read",
    scope=ON_READ,
)
SCAN_IGNORE_CORRUPT_FILES = Option(
    "scan.ignore-corrupt-files",
    Kind.BOOLEAN,
    False,
    "Leave out files that can not be read.",
    instead="a read never leaves rows out silently; restore the file or roll back",
    scope=ON_READ,
)
SCAN_IGNORE_LOST_FILES = Option(
    "scan.ignore-lost-files",
    Kind.BOOLEAN,
    False,
    "Leave out files that are gone.",
    instead="a read never leaves rows out silently; restore the file or roll back",
    scope=ON_READ,
)
SCAN_MANIFEST_PARALLELISM = Option[int | None](
    "scan.manifest.parallelism",
    Kind.INTEGER,
    None,
    "Manifests that are read at a time.",
    instead="leave the option out; the result is the same",
    scope=ON_READ,
    tuning=True,
)
SOURCE_SPLIT_TARGET_SIZE = Option(
    "source.split.target-size",
    Kind.SIZE,
    128 * MIB,
    "Size of the pieces that a read is cut into.",
    honoured=True,
    scope=ON_READ,
)
SOURCE_SPLIT_OPEN_FILE_COST = Option(
    "source.split.open-file-cost",
    Kind.SIZE,
    4 * MIB,
    "Smallest size a file counts with, so that a piece does not get too many files.",
    honoured=True,
    scope=ON_READ,
)
SOURCE_SPLIT_TARGET_SIZE_WITH_COLUMN_PRUNING = Option(
    "source.split.target-size-with-column-pruning",
    Kind.BOOLEAN,
    False,
    "Count only the columns that are read when a read is cut.",
    instead="raise `source.split.target-size` when few columns are read",
    scope=ON_READ,
    tuning=True,
)
READ_BATCH_SIZE = Option(
    "read.batch-size",
    Kind.INTEGER,
    65_536,
    "Rows per batch while reading.",
    minimum=1,
    honoured=True,
    scope=ON_READ,
    paimon="differs: the default there is 1024",
)
LAKEBED_PARALLELISM = Option[int | None](
    "lakebed.parallelism",
    Kind.INTEGER,
    None,
    "Threads that a read or a compaction uses; as many as there are cores by default. The result is the same.",
    minimum=1,
    honoured=True,
    scope=ON_READ | ON_WRITE,
    paimon="ours",
)
READ_CHANGELOG = Option(
    "read.changelog",
    Kind.BOOLEAN,
    False,
    "Return each row's kind as a column `rowkind` in front, and rows that went as well, as `t$audit_log` does.",
    honoured=True,
    scope=ON_READ,
    affects=READS,
)
TABLE_READ_SEQUENCE_NUMBER_ENABLED = Option(
    "table-read.sequence-number.enabled",
    Kind.BOOLEAN,
    False,
    "Return each row's sequence number in the audit log.",
    honoured=True,
    scope=ON_READ,
)
READ_ALLOW_FULLSCAN = Option(
    "read.allow.fullScan",
    Kind.BOOLEAN,
    True,
    "Allow reads of a partitioned table whose filter leaves no partition out.",
    honoured=True,
    scope=ON_READ,
)
