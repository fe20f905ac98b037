"""Options of snapshots, tags and partitions: what is made, kept and dropped over time."""

from __future__ import annotations

from typing import Final

from lakebed.options.option import INT_MAX, Kind, Names, Option
from lakebed.units import HOUR_MS

_TAGS: Final = "leave the option out; what else makes tags by itself works, see `tag.automatic-creation`"
_PARTITIONS: Final = "leave the option out: partitions whose values have another format do not expire"
_DONE: Final = "partitions are marked done at the end of a batch job, or by `t.mark_partition_done(...)`"
_HOOKS: Final = "Java classes can not be called from here; do the work after the write has returned"

TAG_CALLBACKS = Option[Names](
    "tag.callbacks",
    Kind.LIST,
    (),
    "Java classes to call after a tag was created.",
    instead=f"{_HOOKS}; `t.with_options({{'tag.callbacks': ''}})` leaves them out",
)
SNAPSHOT_NUM_RETAINED_MIN = Option(
    "snapshot.num-retained.min",
    Kind.INTEGER,
    10,
    "Fewest snapshots to keep.",
    minimum=1,
    honoured=True,
)
SNAPSHOT_NUM_RETAINED_MAX = Option(
    "snapshot.num-retained.max",
    Kind.INTEGER,
    INT_MAX,
    "Most snapshots to keep.",
    minimum=1,
    honoured=True,
)
SNAPSHOT_TIME_RETAINED = Option(
    "snapshot.time-retained",
    Kind.DURATION,
    HOUR_MS,
    "How long a snapshot is kept.",
    honoured=True,
)
SNAPSHOT_EXPIRE_LIMIT = Option(
    "snapshot.expire.limit",
    Kind.INTEGER,
    50,
    "Most snapshots that expire in one go.",
    minimum=1,
    honoured=True,
)
SNAPSHOT_EXPIRE_EXECUTION_MODE = Option(
    "snapshot.expire.execution-mode",
    Kind.CHOICE,
    "sync",
    "Whether a commit waits for the expiry of old snapshots.",
    choices=("sync", "async"),
    honoured_choices=("sync",),
    honoured=True,
    instead="expiry takes place before the commit returns; for short commits set `write-only` and expire elsewhere",
)
SNAPSHOT_CLEAN_EMPTY_DIRECTORIES = Option(
    "snapshot.clean-empty-directories",
    Kind.BOOLEAN,
    False,
    "Remove directories that became empty when snapshots expired.",
    aliases=("snapshot.expire.clean-empty-directories",),
    honoured=True,
)
SNAPSHOT_WATERMARK_IDLE_TIMEOUT = Option[int | None](
    "snapshot.watermark-idle-timeout",
    Kind.DURATION,
    None,
    "Quiet time of a source after which snapshots go on without it.",
    instead=_TAGS,
)
TAG_AUTOMATIC_CREATION = Option(
    "tag.automatic-creation",
    Kind.CHOICE,
    "none",
    "What creates tags: nothing, the clock, the watermark, or the end of a batch job.",
    choices=("none", "process-time", "watermark", "batch"),
    honoured=True,
)
TAG_CREATION_PERIOD = Option(
    "tag.creation-period",
    Kind.CHOICE,
    "daily",
    "How often a tag is created.",
    choices=("daily", "hourly", "two-hours"),
    honoured=True,
)
TAG_CREATION_PERIOD_DURATION = Option[int | None](
    "tag.creation-period-duration",
    Kind.DURATION,
    None,
    "How often a tag is created, as a duration.",
    honoured=True,
)
TAG_CREATION_DELAY = Option(
    "tag.creation-delay",
    Kind.DURATION,
    0,
    "How long late rows may still enter a period's tag.",
    honoured=True,
)
TAG_PERIOD_FORMATTER = Option(
    "tag.period-formatter",
    Kind.CHOICE,
    "with_dashes",
    "How a period is spelled in the name of its tag.",
    choices=("with_dashes", "without_dashes", "without_dashes_and_spaces"),
    honoured=True,
)
TAG_NUM_RETAINED_MAX = Option[int | None](
    "tag.num-retained-max",
    Kind.INTEGER,
    None,
    "Most automatic tags to keep.",
    minimum=1,
    honoured=True,
)
TAG_DEFAULT_TIME_RETAINED = Option[int | None](
    "tag.default-time-retained",
    Kind.DURATION,
    None,
    "How long a new tag is kept.",
    honoured=True,
)
TAG_TIME_EXPIRE_ENABLED = Option(
    "tag.time-expire-enabled",
    Kind.BOOLEAN,
    True,
    "Let tags expire after commits when their time is over.",
    honoured=True,
)
TAG_AUTOMATIC_COMPLETION = Option(
    "tag.automatic-completion",
    Kind.BOOLEAN,
    False,
    "Create the tags of periods that were missed.",
    honoured=True,
)
TAG_BATCH_CUSTOMIZED_NAME = Option[str | None](
    "tag.batch.customized-name",
    Kind.TEXT,
    None,
    "Name of the tag that a batch job creates.",
    honoured=True,
)
TAG_CREATE_SUCCESS_FILE = Option(
    "tag.create-success-file",
    Kind.BOOLEAN,
    False,
    "Write a marker file for every new tag.",
    honoured=True,
)
SINK_PROCESS_TIME_ZONE = Option[str | None](
    "sink.process-time-zone",
    Kind.TEXT,
    None,
    "Time zone in which the clock is read for automatic tags; without it, that of the machine.",
    honoured=True,
)
SINK_WATERMARK_TIME_ZONE = Option(
    "sink.watermark-time-zone",
    Kind.TEXT,
    "UTC",
    "Time zone in which watermarks are read for automatic tags.",
    honoured=True,
)
PARTITION_EXPIRATION_TIME = Option[int | None](
    "partition.expiration-time",
    Kind.DURATION,
    None,
    "Age at which a partition is dropped.",
    honoured=True,
)
PARTITION_EXPIRATION_STRATEGY = Option(
    "partition.expiration-strategy",
    Kind.TEXT,
    "values-time",
    "Whether a partition's age comes from its values (`values-time`) or from its last change (`update-time`).",
    honoured=True,
)
PARTITION_EXPIRATION_CHECK_INTERVAL = Option(
    "partition.expiration-check-interval",
    Kind.DURATION,
    HOUR_MS,
    "How often the age of partitions is looked at.",
    honoured=True,
)
PARTITION_EXPIRATION_MAX_NUM = Option(
    "partition.expiration-max-num",
    Kind.INTEGER,
    100,
    "Most partitions that expire in one go.",
    minimum=1,
    honoured=True,
)
PARTITION_EXPIRATION_BATCH_SIZE = Option[int | None](
    "partition.expiration-batch-size",
    Kind.INTEGER,
    None,
    "Partitions dropped per commit when many expire.",
    minimum=1,
    honoured=True,
)
PARTITION_TIMESTAMP_PATTERN = Option[str | None](
    "partition.timestamp-pattern",
    Kind.TEXT,
    None,
    "How partition columns make up a time, as in `$dt $hour:00:00`.",
    honoured=True,
)
PARTITION_TIMESTAMP_FORMATTER = Option[str | None](
    "partition.timestamp-formatter",
    Kind.TEXT,
    None,
    "Java format of that time.",
    honoured=True,
)
PARTITION_TIMESTAMP_FORMAT_STRICT = Option(
    "partition.timestamp-format.strict",
    Kind.BOOLEAN,
    False,
    "Fail on partition values that do not have that format.",
    instead=_PARTITIONS,
)
END_INPUT_CHECK_PARTITION_EXPIRE = Option(
    "end-input.check-partition-expire",
    Kind.BOOLEAN,
    False,
    "Look at the age of partitions at the end of a batch job.",
    honoured=True,
)
PARTITION_MARK_DONE_ACTION = Option[Names](
    "partition.mark-done-action",
    Kind.LIST,
    ("success-file",),
    "What is done to tell others that a partition is complete.",
    honoured=True,
)
PARTITION_MARK_DONE_ACTION_CUSTOM_CLASS = Option[str | None](
    "partition.mark-done-action.custom.class",
    Kind.TEXT,
    None,
    "Java class that does it.",
    instead=_HOOKS,
)
PARTITION_MARK_DONE_ACTION_HTTP_URL = Option[str | None](
    "partition.mark-done-action.http.url",
    Kind.TEXT,
    None,
    "Address that is told over HTTP.",
    honoured=True,
)
PARTITION_MARK_DONE_ACTION_HTTP_PARAMS = Option[str | None](
    "partition.mark-done-action.http.params",
    Kind.TEXT,
    None,
    "Text that is sent along.",
    honoured=True,
)
PARTITION_MARK_DONE_ACTION_MODE = Option(
    "partition.mark-done-action.mode",
    Kind.CHOICE,
    "process-time",
    "Whether the clock or the watermark says that a partition is complete.",
    choices=("process-time", "watermark"),
    instead=_DONE,
)
PARTITION_MARK_DONE_RECOVER_FROM_STATE = Option(
    "partition.mark-done.recover-from-state",
    Kind.BOOLEAN,
    True,
    "Mark partitions again after a Flink job was restored.",
    instead=_DONE,
)
PARTITION_END_INPUT_TO_DONE = Option(
    "partition.end-input-to-done",
    Kind.BOOLEAN,
    False,
    "Mark partitions done at the end of a batch job.",
    honoured=True,
)
PARTITION_IDLE_TIME_TO_DONE = Option[int | None](
    "partition.idle-time-to-done",
    Kind.DURATION,
    None,
    "Quiet time after which a partition is marked done.",
    instead=_DONE,
)
PARTITION_TIME_INTERVAL = Option[int | None](
    "partition.time-interval",
    Kind.DURATION,
    None,
    "Time that one partition covers.",
    instead=_DONE,
)
PARTITION_IDLE_TIME_TO_REPORT_STATISTIC = Option(
    "partition.idle-time-to-report-statistic",
    Kind.DURATION,
    0,
    "Quiet time after which a partition's statistics go to the metastore.",
    instead="lakebed reports no statistics to a metastore; leave the option out",
    tuning=True,
)
METASTORE_PARTITIONED_TABLE = Option(
    "metastore.partitioned-table",
    Kind.BOOLEAN,
    False,
    "Keep the list of partitions in the metastore as well.",
    instead="lakebed writes to no metastore; leave the option out",
    tuning=True,
)
METASTORE_TAG_TO_PARTITION = Option[str | None](
    "metastore.tag-to-partition",
    Kind.TEXT,
    None,
    "Show tags as partitions in the metastore, under this column name.",
    instead="lakebed writes to no metastore; leave the option out",
    tuning=True,
)
METASTORE_TAG_TO_PARTITION_PREVIEW = Option(
    "metastore.tag-to-partition.preview",
    Kind.CHOICE,
    "none",
    "Show tags in the metastore before they are created.",
    choices=("none", "process-time", "watermark", "batch"),
    instead="lakebed writes to no metastore; leave the option out",
    tuning=True,
)
