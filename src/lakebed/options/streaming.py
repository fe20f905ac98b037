"""Options of reading a table as a stream: where it is, how far it got, how much it takes at a time."""

from __future__ import annotations

from lakebed.options.option import ON_READ, Kind, Option
from lakebed.units import LONG_MAX, SECOND_MS

SCAN_BOUNDED_WATERMARK = Option[int | None](
    "scan.bounded.watermark",
    Kind.INTEGER,
    None,
    "Watermark at which a stream ends.",
    minimum=-LONG_MAX - 1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
CONTINUOUS_DISCOVERY_INTERVAL = Option(
    "continuous.discovery-interval",
    Kind.DURATION,
    10 * SECOND_MS,
    "How often a stream looks for new snapshots.",
    honoured=True,
    scope=ON_READ,
)
STREAMING_READ_SNAPSHOT_DELAY = Option[int | None](
    "streaming.read.snapshot.delay",
    Kind.DURATION,
    None,
    "How old a snapshot must be before a stream reads it.",
    honoured=True,
    scope=ON_READ,
)
STREAMING_READ_OVERWRITE = Option(
    "streaming-read-overwrite",
    Kind.BOOLEAN,
    False,
    "Let a stream see what overwrites change.",
    honoured=True,
    scope=ON_READ,
)
STREAMING_READ_APPEND_OVERWRITE = Option(
    "streaming-read-append-overwrite",
    Kind.BOOLEAN,
    False,
    "Let a stream see the new rows of overwrites of a table without a key.",
    honoured=True,
    scope=ON_READ,
)
CONSUMER_ID = Option[str | None](
    "consumer-id",
    Kind.TEXT,
    None,
    "Name under which a stream's progress is kept in the table.",
    honoured=True,
    scope=ON_READ,
)
CONSUMER_EXPIRATION_TIME = Option[int | None](
    "consumer.expiration-time",
    Kind.DURATION,
    None,
    "Quiet time after which a consumer is forgotten.",
    honoured=True,
)
CONSUMER_IGNORE_PROGRESS = Option(
    "consumer.ignore-progress",
    Kind.BOOLEAN,
    False,
    "Start a stream anew although its consumer has progress.",
    honoured=True,
    scope=ON_READ,
)
CONSUMER_MODE = Option(
    "consumer.mode",
    Kind.CHOICE,
    "exactly-once",
    "Accepted without effect: progress is recorded once changes are consumed, so a reader may meet some again.",
    choices=("exactly-once", "at-least-once"),
    honoured=True,
    scope=ON_READ,
    paimon="differs: a switch of Flink's checkpoints",
)
CONSUMER_CHANGELOG_ONLY = Option(
    "consumer.changelog-only",
    Kind.BOOLEAN,
    False,
    "Let a consumer hold back the expiry of changelogs but not of snapshots.",
    honoured=True,
    scope=ON_READ,
)
READ_STREAM_MAXFILESPERTRIGGER = Option[int | None](
    "read.stream.maxFilesPerTrigger",
    Kind.INTEGER,
    None,
    "Most files that a stream takes at a time.",
    minimum=1,
    honoured=True,
    scope=ON_READ,
)
READ_STREAM_MAXBYTESPERTRIGGER = Option[int | None](
    "read.stream.maxBytesPerTrigger",
    Kind.INTEGER,
    None,
    "Most bytes that a stream takes at a time.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
READ_STREAM_MAXROWSPERTRIGGER = Option[int | None](
    "read.stream.maxRowsPerTrigger",
    Kind.INTEGER,
    None,
    "Most rows that a stream takes at a time; those of one file always come together.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
READ_STREAM_MINROWSPERTRIGGER = Option[int | None](
    "read.stream.minRowsPerTrigger",
    Kind.INTEGER,
    None,
    "Rows that a stream waits for before it takes any.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
READ_STREAM_MAXTRIGGERDELAYMS = Option[int | None](
    "read.stream.maxTriggerDelayMs",
    Kind.INTEGER,
    None,
    "Milliseconds that rows wait at most for others to come.",
    minimum=1,
    maximum=LONG_MAX,
    honoured=True,
    scope=ON_READ,
)
READ_CHANGE_FEED = Option(
    "read.change-feed",
    Kind.BOOLEAN,
    False,
    "Let streams on Spark show `_change_type`, `_commit_version` and `_commit_timestamp` behind the columns.",
    aliases=("readChangeFeed",),
    honoured=True,
    scope=ON_READ,
    paimon="ours",
)
SCAN_REMOVE_NORMALIZE = Option(
    "scan.remove-normalize",
    Kind.BOOLEAN,
    False,
    "Accepted without effect: there is no normalising step to remove.",
    aliases=("log.scan.remove-normalize",),
    honoured=True,
    scope=ON_READ,
    paimon="differs: a switch of Flink's planner",
)
