"""Whether a schema and its options make sense together. Asked when a table is created, altered, and opened to write."""

from __future__ import annotations

import logging
from functools import cache

from lakebed.bucket import BUCKET_FUNCTIONS
from lakebed.calls import warn_caller
from lakebed.datafiles.statistics import parse_stats_mode
from lakebed.definition.bucket_mode import assigner_rules, bucket_mode
from lakebed.definition.changelog_rules import check_producer
from lakebed.definition.context import merge_setup
from lakebed.definition.file_rules import check_file_choices, check_index_options, check_level_rules
from lakebed.definition.row_rules import check_record_expiry, check_row_options
from lakebed.definition.shown_defaults import check_shown_defaults
from lakebed.definition.views import check_view_rules
from lakebed.errors import InvalidOption, InvalidSchema, Unsupported, did_you_mean
from lakebed.formats import FORMATS
from lakebed.merge import MERGE_ENGINES
from lakebed.merge.deduplicate import Deduplicate
from lakebed.metadata.paths import TablePaths, escape
from lakebed.options import (
    AGGREGATION_REMOVE_RECORD_ON_DELETE,
    BUCKET,
    BUCKET_APPEND_ORDERED,
    BUCKET_FUNCTION_TYPE,
    BUCKET_KEY,
    CHANGELOG_FILE_FORMAT,
    CLUSTERING_COLUMNS,
    CLUSTERING_INCREMENTAL,
    COMMIT_FORCE_COMPACT,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_SIZE_RATIO,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    DATA_EVOLUTION_ENABLED,
    DATA_FILE_PATH_DIRECTORY,
    DELETION_VECTORS_ENABLED,
    FIELD_AGGREGATE_FUNCTION,
    FIELD_COUNT_LIMIT,
    FIELD_DISTINCT,
    FIELD_IGNORE_RETRACT,
    FIELD_LIST_AGG_DELIMITER,
    FIELD_NESTED_KEY,
    FIELD_NESTED_KEY_NULL_STRATEGY,
    FIELD_NESTED_SEQUENCE_FIELD,
    FIELD_SEQUENCE_GROUP,
    FIELD_STATS_MODE,
    FIELD_TS_FIELD,
    FIELDS_DEFAULT_AGGREGATE_FUNCTION,
    FILE_FORMAT,
    FULL_COMPACTION_DELTA_COMMITS,
    IGNORE_DELETE,
    MANIFEST_SORT_ENABLED,
    MANIFEST_SORT_PARTITION_FIELD,
    MERGE_ENGINE,
    METADATA_STATS_MODE,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE,
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
    PARTITION_LEGACY_NAME,
    POSTPONE_BATCH_WRITE_FIXED_BUCKET,
    PRECOMMIT_COMPACT,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    SEQUENCE_SNAPSHOT_ORDERING,
    TABLE_READ_SEQUENCE_NUMBER_ENABLED,
    VISIBILITY_CALLBACK_ENABLED,
    WRITE_ONLY,
    FieldOption,
    Options,
)
from lakebed.options.later import Later
from lakebed.schema.later import handle_verdicts
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import BINARIES, STRINGS, is_nested, is_root, walk_fields

_log = logging.getLogger(__name__)

_LONGEST_PARTITION_COLUMN_BYTES = 120
"""File systems allow 255 bytes for `column=value`: half of it is the column's."""


_DIRECTIVES = ("__BLOB_FIELD", "__BLOB_DESCRIPTOR_FIELD", "__BLOB_VIEW_FIELD", "__VECTOR_FIELD")


def validate_table(schema: TableSchema, options: Options, table: str) -> None:
    """Raises on the first thing that does not fit, naming it."""
    check_fixed_options(schema, options, table)
    _check_names(schema, table)
    _check_partitions(schema, options, table)
    _check_bucket(schema, options, table)
    _check_sequence_field(schema, options, table)
    _check_snapshot_ordering(schema, options, table)
    _check_row_kind_field(schema, options, table)
    _check_merge_options(schema, options, table)
    _check_compaction_options(schema, options, table)
    check_shown_defaults(schema, options, table)
    check_record_expiry(schema, options, table)
    check_producer(schema, options, table)
    check_view_rules(options, table)
    check_row_options(schema, options, table)
    _check_precommit(schema, options, table)
    check_index_options(schema, options, table)
    _check_sequence_numbers(schema, options, table)
    check_level_rules(schema, options, table)
    _check_data_directory(options, table)
    _check_manifest_sort(schema, options, table)
    _check_directives(schema, table)
    _check_visibility(schema, options, table)
    if options[FILE_FORMAT] not in FORMATS:
        raise InvalidOption(
            f"table `{table}`: `file.format` is `{options[FILE_FORMAT]}`",
            hint=did_you_mean(str(options[FILE_FORMAT]), FORMATS),
        )
    for name in {options[FILE_FORMAT], options[CHANGELOG_FILE_FORMAT] or options[FILE_FORMAT]}:
        FORMATS[name].check(schema.fields)
    check_file_choices(schema, options, table)
    _check_clustering(schema, options, table)
    parse_stats_mode(str(options[METADATA_STATS_MODE]))
    for mode in options.fields_with(FIELD_STATS_MODE).values():
        parse_stats_mode(str(mode))


def _check_data_directory(options: Options, table: str) -> None:
    directory = options[DATA_FILE_PATH_DIRECTORY]
    if directory is None:
        return
    parts = directory.strip("/").split("/")
    if not all(part.strip() and part not in (".", "..") for part in parts) or parts[0] in TablePaths.METADATA_NAMES:
        raise InvalidOption(
            f"table `{table}`: `{DATA_FILE_PATH_DIRECTORY.key}` is `{directory}`, which is no place for data files",
            hint="name a directory inside the table that is not one of "
            + ", ".join(f"`{name}`" for name in TablePaths.METADATA_NAMES),
        )


def _check_directives(schema: TableSchema, table: str) -> None:
    """Raises for comments by which Paimon gives a column another type: nobody means them as words for people."""
    for field in walk_fields(schema.fields):
        if (field.description or "").strip().startswith(_DIRECTIVES):
            raise Unsupported(
                f"table `{table}`: the comment of column `{field.name}` asks for large values or vectors in files of "
                "their own",
                hint="these are not in this version: give the column another comment",
            )


def _check_manifest_sort(schema: TableSchema, options: Options, table: str) -> None:
    """Raises for an order of manifests that Paimon refuses: it could not open the table."""
    if not options[MANIFEST_SORT_ENABLED]:
        return
    if not schema.partition_keys and not options[DATA_EVOLUTION_ENABLED]:
        raise InvalidOption(
            f"table `{table}`: `{MANIFEST_SORT_ENABLED.key}` is for partitioned tables", hint="leave the option out"
        )
    name = options[MANIFEST_SORT_PARTITION_FIELD]
    if name and name not in schema.partition_keys:
        raise InvalidOption(
            f"table `{table}`: `{MANIFEST_SORT_PARTITION_FIELD.key}` names `{name}`, which is not a partition column",
            hint=did_you_mean(name, schema.partition_keys),
        )


def _check_visibility(schema: TableSchema, options: Options, table: str) -> None:
    """Raises where a write could not promise that its rows are seen: their compaction is somebody else's."""
    if not options[VISIBILITY_CALLBACK_ENABLED]:
        return
    reason = ""
    if bucket_mode(schema, options).postpones and not options[POSTPONE_BATCH_WRITE_FIXED_BUCKET]:
        reason = "postponed buckets: rows wait for theirs"
    elif options[DELETION_VECTORS_ENABLED] and schema.primary_keys and options[WRITE_ONLY]:
        reason = f"`{WRITE_ONLY.key}`: rows wait for somebody else's compaction"
    if reason:
        raise InvalidOption(
            f"table `{table}`: `{VISIBILITY_CALLBACK_ENABLED.key}` does not go with {reason}",
            hint="leave one of them out; `CALL sys.compact` makes rows visible",
        )


def _check_sequence_numbers(schema: TableSchema, options: Options, table: str) -> None:
    if options[TABLE_READ_SEQUENCE_NUMBER_ENABLED] and not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}`: `{TABLE_READ_SEQUENCE_NUMBER_ENABLED.key}` needs rows with sequence numbers,"
            " which a table without primary key has not",
            hint="leave the option out, or give the table a primary key",
        )


def check_fixed_options(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if a handle has set an option otherwise than the table that decides what its rows mean."""
    for verdict in handle_verdicts(schema, options.raw):
        hint = verdict.instead if verdict.key == BUCKET.key else "leave it out, or create another table"
        if verdict.later is Later.COMPACTION:
            hint = f"leave it out, or change the table: ALTER TABLE does what is needed first ({verdict.later.value})"
        raise InvalidOption(
            f"table `{table}`: {verdict.what} can not {verdict.step} for one handle of it: {verdict.reason}", hint=hint
        )


def _check_names(schema: TableSchema, table: str) -> None:
    for field in walk_fields(schema.fields):
        if any(ord(char) < 0x20 or ord(char) == 0x7F for char in field.name):
            raise InvalidSchema(
                f"table `{table}`: column name {field.name!r} has a control character in it",
                hint="use printable characters: Arrow and other engines cut or refuse such names",
            )


def _check_partitions(schema: TableSchema, options: Options, table: str) -> None:
    for field in schema.fields_of(schema.partition_keys):
        if is_root(field.type, BINARIES) and options[PARTITION_LEGACY_NAME]:
            raise InvalidSchema(
                f"table `{table}`: partition column `{field.name}` is {field.type}, which has no directory name",
                hint=f"partition by another column, or set option `{PARTITION_LEGACY_NAME.key}` to false",
            )
        if len(escape(field.name).encode()) > _LONGEST_PARTITION_COLUMN_BYTES:
            raise InvalidSchema(
                f"table `{table}`: the name of partition column `{field.name[:20]}…` is too long for a directory name",
                hint=f"use at most {_LONGEST_PARTITION_COLUMN_BYTES} bytes",
            )


def _check_bucket(schema: TableSchema, options: Options, table: str) -> None:
    bucket = int(options[BUCKET])
    keys = options[BUCKET_KEY]
    if bucket == 0 or bucket < -2:
        raise InvalidOption(
            f"table `{table}`: `bucket` is {bucket}", hint="use a number of buckets of at least 1, or -1"
        )
    if bucket == -1 and keys:
        raise InvalidOption(
            f"table `{table}`: `bucket-key` is set but `bucket` is -1",
            hint="set `bucket` to the number of buckets, or leave `bucket-key` out",
        )
    if bucket > 0 and not schema.primary_keys and not keys:
        raise InvalidOption(
            f"table `{table}` has {bucket} buckets but neither a primary key nor a `bucket-key`",
            hint="set `bucket-key` to the columns to hash, or leave `bucket` out",
        )
    if bucket_mode(schema, options).indexes_keys:
        assigner_rules(options)
    is_crossing = bucket_mode(schema, options).crosses_partitions
    if is_crossing and options[IGNORE_DELETE] and options[MERGE_ENGINE] == Deduplicate.name:
        raise InvalidOption(
            f"table `{table}`: `{IGNORE_DELETE.key}` does not go with dynamic buckets and a primary key without the "
            "partition columns: a key that moves to another partition is deleted where it was",
            hint="include the partition columns in the primary key, or leave the option out",
        )
    if bucket == -2 and not schema.primary_keys:
        raise InvalidOption(f"table `{table}`: `bucket` = -2 needs a primary key", hint="add one, or set bucket = -1")
    for name in schema.bucket_keys:
        field = schema.field(name)
        if name in schema.partition_keys or is_nested(field.type):
            raise InvalidOption(
                f"table `{table}`: column `{name}` ({field.type}) can not be a bucket key",
                hint="choose columns of plain types that are not partition columns",
            )
        if schema.primary_keys and name not in schema.primary_keys:
            raise InvalidOption(
                f"table `{table}`: bucket key `{name}` is not in the primary key",
                hint=f"choose among {', '.join(schema.trimmed_primary_key)}",
            )
    if bucket > 0:
        types = [field.type for field in schema.fields_of(schema.bucket_keys)]
        BUCKET_FUNCTIONS[options[BUCKET_FUNCTION_TYPE]].check(types)


def _check_sequence_field(schema: TableSchema, options: Options, table: str) -> None:
    names = list(options[SEQUENCE_FIELD] or [])
    if names and not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}`: `sequence.field` needs a primary key, since only rows of one key have an order",
            hint="add a primary key, or leave the option out",
        )
    for name in names:
        if name not in schema.field_names:
            raise InvalidOption(
                f"table `{table}`: `sequence.field` names column `{name}`, which does not exist",
                hint=did_you_mean(name, schema.field_names),
            )
        if is_nested(schema.field(name).type):
            raise InvalidOption(
                f"table `{table}`: `sequence.field` column `{name}` is {schema.field(name).type}, which has no order",
                hint="choose a number, time or text column",
            )
        if options.field(FIELD_AGGREGATE_FUNCTION, name) is not None:
            # Whatever the merge engine: Paimon does not open the table.
            raise InvalidOption(
                f"table `{table}`: column `{name}` of `sequence.field` has an aggregate function",
                hint="a column that orders rows holds the newest value: leave its function out",
            )
    if len(set(names)) != len(names):
        raise InvalidOption(f"table `{table}`: `sequence.field` names a column twice", hint="name each column once")
    if names and bucket_mode(schema, options).crosses_partitions:
        raise InvalidOption(
            f"table `{table}`: `sequence.field` does not go with dynamic buckets and a primary key without the "
            "partition columns, since rows of a key in two partitions are never compared",
            hint="include the partition columns in the primary key, or leave the option out",
        )


def _check_snapshot_ordering(schema: TableSchema, options: Options, table: str) -> None:
    if not options[SEQUENCE_SNAPSHOT_ORDERING]:
        return
    key = SEQUENCE_SNAPSHOT_ORDERING.key
    if not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}`: `{key}` needs a primary key, since only rows of one key have an order",
            hint="add a primary key, or leave the option out",
        )
    if options[SEQUENCE_FIELD]:
        raise InvalidOption(
            f"table `{table}`: `{key}` and `{SEQUENCE_FIELD.key}` both say which row is the newest",
            hint="leave one of them out",
        )
    # What the table says: a handle that compacts may set it to false for itself.
    if not Options(schema.options)[WRITE_ONLY]:
        raise InvalidOption(
            f"table `{table}`: `{key}` requires {WRITE_ONLY.key} = true, since rows have no number before their "
            "snapshot is there",
            hint=f"set `{WRITE_ONLY.key}` to true, and compact with t.compact() or CALL sys.compact",
        )


def _check_row_kind_field(schema: TableSchema, options: Options, table: str) -> None:
    name = options[ROWKIND_FIELD]
    if name is None:
        return
    if not schema.primary_keys:
        raise InvalidOption(
            f"table `{table}`: `rowkind.field` needs a primary key", hint="add one, or leave the option out"
        )
    if name not in schema.field_names:
        raise InvalidOption(
            f"table `{table}`: `rowkind.field` names column `{name}`, which does not exist",
            hint=did_you_mean(name, schema.field_names),
        )
    if not is_root(schema.field(name).type, STRINGS):
        raise InvalidSchema(
            f"table `{table}`: `rowkind.field` column `{name}` is {schema.field(name).type}",
            hint="make it STRING: it holds +I, -U, +U or -D",
        )


_AGGREGATING = ("partial-update", "aggregation")
_ENGINES_OF = {
    PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE: ("partial-update",),
    PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP: ("partial-update",),
    FIELD_SEQUENCE_GROUP: ("partial-update",),
    AGGREGATION_REMOVE_RECORD_ON_DELETE: ("aggregation",),
    FIELDS_DEFAULT_AGGREGATE_FUNCTION: _AGGREGATING,
    FIELD_AGGREGATE_FUNCTION: _AGGREGATING,
    FIELD_IGNORE_RETRACT: _AGGREGATING,
    FIELD_DISTINCT: _AGGREGATING,
    FIELD_LIST_AGG_DELIMITER: _AGGREGATING,
    FIELD_NESTED_KEY: _AGGREGATING,
    FIELD_NESTED_SEQUENCE_FIELD: _AGGREGATING,
    FIELD_NESTED_KEY_NULL_STRATEGY: _AGGREGATING,
    FIELD_COUNT_LIMIT: _AGGREGATING,
    FIELD_TS_FIELD: _AGGREGATING,
}
"""Merge engines that look at an option; with any other it has no effect."""

_COMPACTING = (
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
    NUM_LEVELS,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_SIZE_RATIO,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMMIT_FORCE_COMPACT,
    FULL_COMPACTION_DELTA_COMMITS,
)
"""Options of the tree that only a primary-key table has."""
_CLUSTERING = (
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_SIZE_RATIO,
)
"""Those of them that a table has whose files are sorted step by step."""


def _check_compaction_options(schema: TableSchema, options: Options, table: str) -> None:
    for option in _COMPACTING:
        if options.has(option) and not schema.primary_keys:
            if option is FULL_COMPACTION_DELTA_COMMITS and options[BUCKET] == -1:
                raise InvalidOption(
                    f"table `{table}`: `{option.key}` has no effect without a primary key",
                    hint="tables without a key have no sorted runs: leave it out",
                )
            if not (options[CLUSTERING_INCREMENTAL] and option in _CLUSTERING):
                _warn_of_runs(table, option.key)
    levels = options[NUM_LEVELS]
    if levels is not None and levels < 2:
        raise InvalidOption(
            f"table `{table}`: `{NUM_LEVELS.key}` is {levels}",
            hint="use at least 2: level 0 for new files and one to compact them into",
        )


@cache
def _warn_of_runs(table: str, key: str) -> None:
    """It can change no result, and other engines take it in silence."""
    _log.warning("table `%s`: `%s` has no effect without a primary key: there are no sorted runs", table, key)


@cache
def _warn_of_idle_option(table: str, key: str, engine: str | None, engines: tuple[str, ...]) -> None:
    """Other engines take such options in silence, so there are tables that have them."""
    _log.warning(
        "table `%s`: `%s` has no effect %s; it belongs to merge engine %s",
        table,
        key,
        f"with merge engine `{engine}`" if engine else "without a primary key",
        " or ".join(f"`{name}`" for name in engines),
    )


def _check_merge_options(schema: TableSchema, options: Options, table: str) -> None:
    engine = options[MERGE_ENGINE] if schema.primary_keys else None
    for option, engines in _ENGINES_OF.items():
        is_set = options.fields_with(option) if isinstance(option, FieldOption) else options.has(option)
        if is_set and engine not in engines:
            _warn_of_idle_option(table, option.key, engine, engines)
    if engine is not None:
        MERGE_ENGINES[engine].check(merge_setup(schema, options), table)
    elif options.has(MERGE_ENGINE):
        raise InvalidOption(
            f"table `{table}` has `merge-engine` but no primary key, so no two rows ever merge",
            hint="add a primary key, or leave the option out",
        )


def _check_precommit(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if the option could have no effect."""
    if options[PRECOMMIT_COMPACT] and (schema.primary_keys or options[BUCKET] != -1):
        raise InvalidOption(
            f"table `{table}`: `{PRECOMMIT_COMPACT.key}` is for tables without primary key and without buckets",
            hint="leave it out: files of buckets are merged by the compaction after the commit",
        )


def _check_clustering(schema: TableSchema, options: Options, table: str) -> None:
    """Raises for columns that rows can not be sorted by, and for what Paimon does not allow beside it."""
    check_clustering_columns(schema, options, table)
    is_ordered = options[BUCKET] != -1 and not options[CLUSTERING_INCREMENTAL]
    if options[CLUSTERING_COLUMNS] and (schema.primary_keys or is_ordered):
        warn_caller(
            f"table `{table}`: `{CLUSTERING_COLUMNS.key}` has no effect: rows of a table with "
            f"{'a primary key' if schema.primary_keys else 'buckets'} have an order of their own"
        )
    if options[CLUSTERING_INCREMENTAL]:
        _check_incremental(schema, options, table)


def check_clustering_columns(schema: TableSchema, options: Options, table: str) -> None:
    for name in options[CLUSTERING_COLUMNS]:
        if name not in schema.field_names:
            raise InvalidOption(
                f"table `{table}`: `{CLUSTERING_COLUMNS.key}` names column `{name}`, which it has not",
                hint=did_you_mean(name, schema.field_names),
            )
        if is_nested(schema.field(name).type):
            raise InvalidOption(
                f"table `{table}`: `{CLUSTERING_COLUMNS.key}` names column `{name}`, which is nested and has no order",
                hint="name other columns",
            )


def _check_incremental(schema: TableSchema, options: Options, table: str) -> None:
    reason = ""
    if schema.primary_keys:
        reason = "a primary key"
    elif options[DATA_EVOLUTION_ENABLED]:
        reason = f"`{DATA_EVOLUTION_ENABLED.key}`"
    elif options[BUCKET] != -1 and options[BUCKET_APPEND_ORDERED]:
        reason = f"buckets and `{BUCKET_APPEND_ORDERED.key}`"
    elif options[BUCKET] != -1 and options[DELETION_VECTORS_ENABLED]:
        reason = f"buckets and `{DELETION_VECTORS_ENABLED.key}`"
    if reason:
        raise InvalidOption(
            f"table `{table}`: `{CLUSTERING_INCREMENTAL.key}` does not go with {reason}", hint="leave one of them out"
        )
