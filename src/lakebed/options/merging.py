"""Options that decide which values survive when rows of one key meet."""

from __future__ import annotations

from lakebed.options.option import INT_MAX, ON_WRITE, READS, READS_AND_WRITES, FieldOption, Kind, Names, Option

MERGE_ENGINE = Option(
    "merge-engine",
    Kind.CHOICE,
    "deduplicate",
    "What becomes of rows with the same key: keep the newest, update column by column, aggregate, keep the first.",
    choices=("deduplicate", "partial-update", "aggregation", "first-row"),
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
IGNORE_DELETE = Option(
    "ignore-delete",
    Kind.BOOLEAN,
    False,
    "Drop incoming deletes (`-D` and `-U` rows), so that a row once written stays.",
    aliases=("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
    honoured=True,
    scope=ON_WRITE,
)
IGNORE_UPDATE_BEFORE = Option(
    "ignore-update-before",
    Kind.BOOLEAN,
    False,
    "Drop incoming `-U` rows, which say what a row was before an update.",
    honoured=True,
    scope=ON_WRITE,
)
SEQUENCE_FIELD = Option[Names](
    "sequence.field",
    Kind.LIST,
    (),
    "Columns that decide which row of a key is the newest; without it, the order of arrival does.",
    honoured=True,
)
SEQUENCE_FIELD_SORT_ORDER = Option(
    "sequence.field.sort-order",
    Kind.CHOICE,
    "ascending",
    "Whether the largest or the smallest sequence value is the newest.",
    choices=("ascending", "descending"),
    honoured=True,
)
SEQUENCE_SNAPSHOT_ORDERING = Option(
    "sequence.snapshot-ordering",
    Kind.BOOLEAN,
    False,
    "Let rows of later snapshots win, whichever writer they come from.",
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
SEQUENCE_AUTO_PADDING = Option(
    "sequence.auto-padding",
    Kind.TEXT,
    "false",
    "Put deletes before inserts of one commit that have the same sequence value (`true` or `row-kind-flag`).",
    pattern=r"(?i)\s*(true|false|((row-kind-flag|second-to-micro|millis-to-micro)\s*,?\s*)*)\s*",
    form="`true`, `false`, or names out of `row-kind-flag`, `second-to-micro` and `millis-to-micro`",
    honoured=True,
    scope=ON_WRITE,
    paimon="differs: Paimon dropped it in 0.8 and never took a boolean",
)
WRITE_SEQUENCE_NUMBER_INIT_MODE = Option(
    "write.sequence-number-init-mode",
    Kind.CHOICE,
    "scan",
    "Where a writer learns the next sequence number: from the files of the bucket, or (if it never compacts) from the "
    "snapshot, which keeps the highest one of the table.",
    choices=("scan", "snapshot"),
    honoured=True,
    scope=ON_WRITE,
)
ROWKIND_FIELD = Option[str | None](
    "rowkind.field",
    Kind.TEXT,
    None,
    "Text column that holds each row's kind (`+I`, `-U`, `+U`, `-D`); it stays in the table.",
    immutable=True,
    honoured=True,
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE = Option(
    "partial-update.remove-record-on-delete",
    Kind.BOOLEAN,
    False,
    "Let a `-D` row remove the whole row of a partial-update table.",
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP = Option[Names](
    "partial-update.remove-record-on-sequence-group",
    Kind.LIST,
    (),
    "Sequence groups whose `-D` rows remove the whole row of a partial-update table.",
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
AGGREGATION_REMOVE_RECORD_ON_DELETE = Option(
    "aggregation.remove-record-on-delete",
    Kind.BOOLEAN,
    False,
    "Let a `-D` row remove the whole row of an aggregation table.",
    immutable=True,
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELDS_DEFAULT_AGGREGATE_FUNCTION = Option[str | None](
    "fields.default-aggregate-function",
    Kind.TEXT,
    None,
    "Aggregate function of columns that name none; `last_non_null_value` if this is not set either.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_AGGREGATE_FUNCTION = FieldOption[str | None](
    "fields.<field>.aggregate-function",
    Kind.TEXT,
    None,
    "Aggregate function of one column.",
    honoured=True,
    affects=READS_AND_WRITES,
)
LAKEBED_COUNT_FIELDS = Option[Names](
    "lakebed.count-fields",
    Kind.LIST,
    (),
    "Columns whose aggregate function is `count`, which other engines know as `sum`; set when a table is created.",
    honoured=True,
    paimon="ours",
)
FIELD_SEQUENCE_GROUP = FieldOption[Names](
    "fields.<fields>.sequence-group",
    Kind.LIST,
    (),
    "Columns that are updated only when the sequence columns named in the key have grown.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_IGNORE_RETRACT = FieldOption(
    "fields.<field>.ignore-retract",
    Kind.BOOLEAN,
    False,
    "Leave the column as it is when a row is taken back.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_DISTINCT = FieldOption(
    "fields.<field>.distinct",
    Kind.BOOLEAN,
    False,
    "Collect or concatenate each value only once.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_LIST_AGG_DELIMITER = FieldOption(
    "fields.<field>.list-agg-delimiter",
    Kind.TEXT,
    ",",
    "What `listagg` puts between two values.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_NESTED_KEY = FieldOption[Names](
    "fields.<field>.nested-key",
    Kind.LIST,
    (),
    "Members that identify a row inside the array of `nested_update`.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_NESTED_SEQUENCE_FIELD = FieldOption[Names](
    "fields.<field>.nested-sequence-field",
    Kind.LIST,
    (),
    "Members that decide which of two array rows with the same nested key is newer.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_NESTED_KEY_NULL_STRATEGY = FieldOption(
    "fields.<field>.nested-key-null-strategy",
    Kind.CHOICE,
    "merge",
    "What `nested_update` does with array rows whose nested key is null.",
    choices=("merge", "ignore", "error"),
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_COUNT_LIMIT = FieldOption(
    "fields.<field>.count-limit",
    Kind.INTEGER,
    INT_MAX,
    "Most rows an array of `nested_update` may hold.",
    minimum=0,
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_TS_FIELD = FieldOption[str | None](
    "fields.<field>.ts-field",
    Kind.TEXT,
    None,
    "Member that holds the time of a map entry for `merge_map_with_keytime`; without it, the last member.",
    honoured=True,
    affects=READS_AND_WRITES,
)
FIELD_DEFAULT_VALUE = FieldOption[str | None](
    "fields.<field>.default-value",
    Kind.TEXT,
    None,
    "What a read shows in place of null in this column; the stored value stays null.",
    honoured=True,
    affects=READS,
    paimon="differs: Paimon dropped it in 1.3 for column defaults that are applied when writing",
)
RECORD_LEVEL_EXPIRE_TIME = Option[int | None](
    "record-level.expire-time",
    Kind.DURATION,
    None,
    "Age at which compaction may drop a row.",
    honoured=True,
)
RECORD_LEVEL_TIME_FIELD = Option[str | None](
    "record-level.time-field",
    Kind.TEXT,
    None,
    "Column that holds the time a row's age is counted from.",
    honoured=True,
)
