"""Every family that there is: the one list from which the page, a scrape and OpenTelemetry's instruments are made.

Names stay. A label has few values: names of tables, kinds, how something ended; never a snapshot, a file or a row.
"""

from __future__ import annotations

from lakebed.metrics.instruments import COUNTER, GAUGE, HISTOGRAM, Instrument

_TABLE = ("table",)
_ENDED = ("table", "outcome")
_SYNC = ("source", "database")

SCAN_PLAN_DURATION = Instrument(
    HISTOGRAM, "scan", "plan_duration", "s", _ENDED, "Planning a read: from metadata to the files that it opens."
)
SCAN_FILES = Instrument(COUNTER, "scan", "files", "{file}", _TABLE, "Data files that planned reads open.")
SCAN_FILE_SIZE = Instrument(COUNTER, "scan", "file_size", "By", _TABLE, "Sizes of these files, as they are stored.")
SCAN_ROWS = Instrument(COUNTER, "scan", "rows", "{row}", _TABLE, "Rows that reads of this process gave.")
SCAN_READ_TIME = Instrument(
    COUNTER, "scan", "read_time", "s", _TABLE, "Time in which threads of this process read, merged and filtered them."
)

WRITE_DURATION = Instrument(
    HISTOGRAM, "write", "duration", "s", _ENDED, "A write, from its beginning to the end of its commit."
)
WRITE_ROWS = Instrument(COUNTER, "write", "rows", "{row}", ("table", "kind"), "Committed rows: data or changelog.")
WRITE_FILES = Instrument(COUNTER, "write", "files", "{file}", ("table", "kind"), "Files that hold them.")
WRITE_FILE_SIZE = Instrument(COUNTER, "write", "file_size", "By", ("table", "kind"), "Sizes of these files.")

COMMIT_DURATION = Instrument(
    HISTOGRAM,
    "commit",
    "duration",
    "s",
    ("table", "kind", "outcome"),
    "A commit: from the look at the newest snapshot to its own, all attempts together.",
)
COMMIT_ATTEMPTS = Instrument(COUNTER, "commit", "attempts", "{attempt}", ("table", "kind"), "Attempts at a commit.")
COMMIT_RETRIES = Instrument(
    COUNTER, "commit", "retries", "{attempt}", ("table", "kind"), "Attempts that others were faster than."
)

COMPACTION_DURATION = Instrument(
    HISTOGRAM, "compaction", "duration", "s", _ENDED, "A round of compaction, its commit included."
)
COMPACTION_READ_FILES = Instrument(COUNTER, "compaction", "read_files", "{file}", _TABLE, "Files that were merged.")
COMPACTION_READ_SIZE = Instrument(COUNTER, "compaction", "read_size", "By", _TABLE, "Sizes of these files.")
COMPACTION_WRITTEN_FILES = Instrument(
    COUNTER, "compaction", "written_files", "{file}", _TABLE, "Files that came in their places."
)
COMPACTION_WRITTEN_SIZE = Instrument(COUNTER, "compaction", "written_size", "By", _TABLE, "Sizes of these files.")

LOOKUP_DURATION = Instrument(HISTOGRAM, "lookup", "duration", "s", _ENDED, "Finding the rows of some keys.")
LOOKUP_KEYS = Instrument(COUNTER, "lookup", "keys", "{key}", _TABLE, "Keys that were looked up.")
LOOKUP_ROWS = Instrument(COUNTER, "lookup", "rows", "{row}", _TABLE, "Rows that were found.")

STREAM_READ_ROWS = Instrument(
    COUNTER, "stream", "read_rows", "{row}", _TABLE, "Changes that followers of a table in this process took."
)
STREAM_READ_LAG = Instrument(
    GAUGE, "stream", "read_lag", "s", _TABLE, "Age of the snapshot that a follower took last, when it took it."
)
STREAM_WRITE_DURATION = Instrument(
    HISTOGRAM,
    "stream",
    "write_duration",
    "s",
    ("table", "kind", "outcome"),
    "A step of a stream into a table: a micro-batch of a query, or a step of a streaming INSERT.",
)
STREAM_WRITTEN_ROWS = Instrument(
    COUNTER, "stream", "written_rows", "{row}", ("table", "kind"), "Rows that these steps committed."
)

CDC_BATCH_DURATION = Instrument(
    HISTOGRAM, "cdc", "batch_duration", "s", (*_SYNC, "outcome"), "A batch of a sync, commits of its tables included."
)
CDC_ROWS = Instrument(COUNTER, "cdc", "rows", "{row}", _TABLE, "Changes of the source that are in the table.")
CDC_SIZE = Instrument(COUNTER, "cdc", "size", "By", _TABLE, "Sizes of these changes, as they came from the source.")
CDC_LAG = Instrument(
    GAUGE, "cdc", "lag", "s", _TABLE, "From the last change's time in the source to its commit in the table."
)
CDC_LOG_LAG = Instrument(
    GAUGE, "cdc", "log_lag", "By", _SYNC, "What the source's log holds beyond the sync's position, when last asked."
)
CDC_RECONNECTS = Instrument(
    COUNTER, "cdc", "reconnects", "{restart}", _SYNC, "How often a sync began again after its source was away."
)
CDC_PARKED_TABLES = Instrument(GAUGE, "cdc", "parked_tables", "{table}", _SYNC, "Tables that wait for a cure.")
CDC_DEAD_LETTERS = Instrument(COUNTER, "cdc", "dead_letters", "{row}", _SYNC, "Rows that were put aside.")
CDC_SKIPPED_RECORDS = Instrument(
    COUNTER, "cdc", "skipped_records", "{record}", _SYNC, "Messages that could not be read and were left out."
)

VIEW_REFRESH_DURATION = Instrument(
    HISTOGRAM,
    "view",
    "refresh_duration",
    "s",
    _ENDED,
    "A refresh of a materialized table; a good one ends as `incremental`, `full` or `none`.",
)
VIEW_CHANGED_ROWS = Instrument(
    COUNTER, "view", "changed_rows", "{row}", ("table", "kind"), "Rows it inserted, updated and deleted."
)

OBJECT_STORE_REQUEST_DURATION = Instrument(
    HISTOGRAM,
    "object_store",
    "request_duration",
    "s",
    ("action", "outcome"),
    "Something asked of an object store, until it was answered or given up.",
)
OBJECT_STORE_RETRIES = Instrument(
    COUNTER, "object_store", "retries", "{request}", ("action",), "Requests that were repeated: there was no answer."
)


FAMILIES = tuple(each for each in list(globals().values()) if isinstance(each, Instrument))
"""All of them, in the order of the page."""


__all__ = ["FAMILIES"]
