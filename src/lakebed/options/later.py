"""What becomes of stored rows when an option of a table changes later: the one table that everybody asks.

Some options only say how fast or where to; others decide what stored rows mean, and the same files would show other
rows under another value. Each option has one entry: cases from top to bottom, of which the first that applies counts.
ALTER, handles with options of their own, hints and schema versions written by other engines are all judged by it, and
the reference page is made from it. What a change of columns does stands beside it, in `schema.later`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

from lakebed.errors import InvalidOption
from lakebed.options import changelogs as cl
from lakebed.options import committing as ct
from lakebed.options import compacting as cp
from lakebed.options import files as fi
from lakebed.options import keys as ky
from lakebed.options import lifecycle as lc
from lakebed.options import merging as mg
from lakebed.options import reading as rd
from lakebed.options import streaming as st
from lakebed.options import tracking as tr
from lakebed.options import views as vw
from lakebed.options import writing as wr
from lakebed.options.option import FieldOption, Option
from lakebed.options.table import OPTIONS, find_option
from lakebed.options.view import Options
from lakebed.records import dataclass

__all__ = ["Case", "Later", "OptionChange", "changed_options", "rule_of"]


class Later(Enum):
    """What a change asks for; the value is the word of the reference page."""

    FREE = "free"
    COMPACTION = "compaction first"
    """All rows are folded under the old value before the new one counts. ALTER does it, and says so."""
    PLACING = "waiting rows first"
    """Rows that wait for a bucket are brought there under the old value. ALTER does it, and says so."""
    FITTING = "values must fit"
    """Stored values are read first; the change is refused if the new type can not hold one."""
    EMPTY = "empty table"
    """Refused once the table has a snapshot."""
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class OptionChange:
    """One option on its way from one value to another, and what the table is like."""

    option: Option[object]
    key: str
    """As it is written, with the column in it if there is one."""
    before: Options
    after: Options
    has_key: bool
    is_partitioned: bool

    def shown(self, options: Options) -> str:
        """The value as a user writes it; nothing that was never set has none."""
        text = options.raw.get(self.key)
        if text is not None:
            return f"`{text}`"
        default = self.option.default
        return "no value" if default in (None, (), "") else f"`{self.option.text(default)}`".replace("\n", "\\n")

    def engine_in(self, *names: str) -> bool:
        """Whether the table has one of these merge engines."""
        return self.has_key and self.after[mg.MERGE_ENGINE] in names


@dataclass(frozen=True, slots=True)
class Case:
    """What a change asks for under some condition, and why. `when` is the condition in words; empty: always."""

    later: Later
    reason: str
    when: str = ""
    applies: Callable[[OptionChange], bool] = lambda change: True
    instead: str = ""
    """The next step of a user whose change is refused."""


_COPY: Final = "create a new table with the wanted value and copy the rows"
_FOLDING: Final = ("aggregation", "partial-update")
_SERIALISED: Final = frozenset({"hll_sketch", "theta_sketch", "rbm32", "rbm64"})


def _free(reason: str) -> tuple[Case, ...]:
    return (Case(Later.FREE, reason),)


def _empty(reason: str) -> tuple[Case, ...]:
    return (Case(Later.EMPTY, reason, instead=_COPY),)


def _without_key(reason: str = "only rows of one key are ever merged") -> Case:
    return Case(Later.FREE, reason, "the table has no primary key", lambda change: not change.has_key)


def _when_folding(reason: str) -> tuple[Case, ...]:
    """An option that only engines look at which fold column by column."""
    return (
        Case(
            Later.FREE,
            "no other merge engine looks at it",
            "the merge engine is neither `aggregation` nor `partial-update`",
            lambda change: not change.engine_in(*_FOLDING),
        ),
        Case(Later.COMPACTION, reason),
    )


# --- conditions ------------------------------------------------------------------------------------------------------


def _is_on(options: Options, option: Option[bool]) -> bool:
    return bool(options[option])


def _is_switched_off(option: Option[bool]) -> Callable[[OptionChange], bool]:
    return lambda change: _is_on(change.before, option) and not _is_on(change.after, option)


def _writers_tell(change: OptionChange) -> bool:
    return all(options[cl.CHANGELOG_PRODUCER] in ("none", "input") for options in (change.before, change.after))


def _vectors_are_fixed(change: OptionChange) -> bool:
    # The switch that allows it may come with the same change, but it must not be taken away by it.
    return not change.after[tr.DELETION_VECTORS_MODIFIABLE]


def _counts_levels_anew(change: OptionChange) -> bool:
    # A change of the producer folds all rows, and leaves them where they count as told.
    tells = all(options[cl.CHANGELOG_PRODUCER] == "full-compaction" for options in (change.before, change.after))
    return change.has_key and tells and _levels(change.before) != _levels(change.after)


def _levels(options: Options) -> int:
    return options[cp.NUM_LEVELS] or options[cp.NUM_SORTED_RUN_COMPACTION_TRIGGER] + 1


def _is_serialised(change: OptionChange) -> bool:
    return any(
        _SERIALISED
        & {
            str(value or "").strip().lower()
            for value in (options.raw.get(change.key), options[mg.FIELDS_DEFAULT_AGGREGATE_FUNCTION])
        }
        for options in (change.before, change.after)
    )


def _was_dynamic(change: OptionChange) -> bool:
    old, new = change.before[ky.BUCKET], change.after[ky.BUCKET]
    return old != new and -1 in (old, new)


def _may_have_waiting_rows(change: OptionChange) -> bool:
    return change.before[ky.BUCKET] == -2


# --- groups of options that need no word of their own ----------------------------------------------------------------

_TUNING: Final = "says how work is done, not which rows come of it"
_NEW_FILES: Final = "every file says itself how it is made; it counts for files written from now on"
_THIS_READ: Final = "chooses what a read shows; stored rows do not depend on it"
_FROM_NOW_ON: Final = "counts for rows written, and for events told, from now on"
_UPKEEP: Final = "says what is kept, and for how long, from now on"

_FREE: Final[Mapping[str, tuple[Option[object], ...]]] = {
    "it is the query of a materialized table, which statements about those change": (
        *(vw.LAKEBED_VIEW_QUERY, vw.LAKEBED_VIEW_DEFINITION, vw.LAKEBED_VIEW_HIDDEN_COLUMNS),
    ),
    _TUNING: (
        *(ky.DYNAMIC_BUCKET_ASSIGNER_PARALLELISM, ky.CROSS_PARTITION_UPSERT_INDEX_TTL),
        *(ky.CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM, ky.POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM),
        *(mg.WRITE_SEQUENCE_NUMBER_INIT_MODE, mg.SEQUENCE_AUTO_PADDING),
        *(cl.FULL_COMPACTION_DELTA_COMMITS, cl.LOOKUP_WAIT, cl.LOOKUP_COMPACT, cl.LOOKUP_COMPACT_MAX_INTERVAL),
        *(cl.LOOKUP_CACHE_FILE_RETENTION, cl.LOOKUP_CACHE_MAX_DISK_SIZE, cl.LOOKUP_CACHE_MAX_MEMORY_SIZE),
        *(cl.PRECOMMIT_COMPACT, cl.DELETE_FORCE_PRODUCE_CHANGELOG),
        *(cp.WRITE_ONLY, cp.NUM_SORTED_RUN_STOP_TRIGGER, cp.COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT),
        *(cp.COMPACTION_SIZE_RATIO, cp.COMPACTION_OPTIMIZATION_INTERVAL, cp.COMPACTION_TOTAL_SIZE_THRESHOLD),
        *(cp.COMPACTION_INCREMENTAL_SIZE_THRESHOLD, cp.COMPACTION_OFFPEAK_START_HOUR, cp.COMPACTION_OFFPEAK_END_HOUR),
        *(cp.COMPACTION_OFFPEAK_RATIO, cp.COMPACTION_FORCE_UP_LEVEL_0, cp.COMPACTION_FORCE_REWRITE_ALL_FILES),
        *(cp.COMPACTION_SMALL_FILE_RATIO, cp.COMPACTION_MIN_FILE_NUM, cp.COMPACTION_FILE_NUM_LIMIT),
        *(cp.COMPACTION_DELETE_RATIO_THRESHOLD, cp.COMMIT_FORCE_COMPACT, cp.ZORDER_VAR_LENGTH_CONTRIBUTION),
        *(cp.CLUSTERING_INCREMENTAL, cp.COMPACTION_SKIP_EXPIRED_PARTITIONS),
        *(tr.DATA_EVOLUTION_COMPACTION_REWRITE_ROW_IDS, tr.DATA_EVOLUTION_REASSIGN_SKIP_CONTIGUOUS_ROW_COUNT),
        *(wr.WRITE_MODE, wr.WRITE_BUFFER_SIZE, wr.WRITE_BUFFER_SPILLABLE, wr.WRITE_BUFFER_SPILL_MAX_DISK_SIZE),
        *(wr.LOCAL_MERGE_BUFFER_SIZE, wr.SPILL_COMPRESSION, wr.SPILL_COMPRESSION_ZSTD_LEVEL),
        *(wr.LOCAL_SORT_MAX_NUM_FILE_HANDLES, wr.OVERWRITE_UPGRADE, wr.SINK_ROLLING_POLICY_FILE_SIZE),
        *(wr.SINK_ROLLING_POLICY_ROLLOVER_INTERVAL, wr.SINK_ROLLING_POLICY_CHECK_INTERVAL),
        *(wr.END_INPUT_WATERMARK, wr.LAKEBED_ONE_PROCESS_WRITE_MAX_SIZE),
        *(ct.COMMIT_USER_PREFIX, ct.COMMIT_MAX_RETRIES, ct.COMMIT_TIMEOUT, ct.COMMIT_MIN_RETRY_WAIT),
        *(ct.COMMIT_MAX_RETRY_WAIT, ct.COMMIT_FORCE_CREATE_SNAPSHOT, ct.SNAPSHOT_IGNORE_EMPTY_COMMIT),
        ct.VISIBILITY_CALLBACK_ENABLED,
        *(tr.ROW_TRACKING_PARTITION_GROUP_ON_COMMIT, tr.DELETION_VECTORS_MODIFIABLE),
    ),
    _NEW_FILES: (
        *(fi.FILE_FORMAT, fi.FILE_COMPRESSION, fi.FILE_COMPRESSION_ZSTD_LEVEL, fi.FILE_BLOCK_SIZE),
        cp.CLUSTERING_STRATEGY,
        *(fi.TARGET_FILE_SIZE, fi.TARGET_FILE_ROW_NUM, fi.DATA_FILE_PREFIX, fi.FILE_SUFFIX_INCLUDE_COMPRESSION),
        *(fi.FILE_FORMAT_PER_LEVEL, fi.FILE_COMPRESSION_PER_LEVEL, fi.METADATA_STATS_MODE_PER_LEVEL),
        *(fi.METADATA_STATS_MODE, fi.FIELD_STATS_MODE, fi.METADATA_STATS_DENSE_STORE, fi.MANIFEST_COMPRESSION),
        *(fi.MANIFEST_TARGET_FILE_SIZE, fi.MANIFEST_MERGE_MIN_COUNT, fi.MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE),
        *(fi.FILE_INDEX_BLOOM_FILTER_COLUMNS, fi.FILE_INDEX_BITMAP_COLUMNS, fi.FILE_INDEX_RANGE_BITMAP_COLUMNS),
        *(fi.FILE_INDEX_BSI_COLUMNS, fi.FILE_INDEX_COLUMN_SETTING, fi.FILE_INDEX_IN_MANIFEST_THRESHOLD),
        *(cl.CHANGELOG_FILE_FORMAT, cl.CHANGELOG_FILE_COMPRESSION, cl.CHANGELOG_FILE_STATS_MODE),
        *(cl.CHANGELOG_FILE_PREFIX, tr.DELETION_VECTORS_BITMAP64, tr.DELETION_VECTOR_INDEX_FILE_TARGET_SIZE),
    ),
    _THIS_READ: (
        *(option for option in vars(rd).values() if isinstance(option, Option) and option.honoured),
        *(option for option in vars(st).values() if isinstance(option, Option) and option.honoured),
        *(mg.FIELD_DEFAULT_VALUE, fi.CSV_MODE, fi.FILE_INDEX_READ_ENABLED, ky.POSTPONE_MERGE_ON_READ),
        *(tr.DELETION_VECTORS_MERGE_ON_READ,),
    ),
    _FROM_NOW_ON: (
        *(ky.BUCKET_APPEND_ORDERED, ky.DYNAMIC_BUCKET_TARGET_ROW_NUM, ky.DYNAMIC_BUCKET_MAX_BUCKETS),
        *(ky.POSTPONE_DEFAULT_BUCKET_NUM, ky.POSTPONE_TARGET_ROW_NUM_PER_BUCKET, ky.POSTPONE_TARGET_SIZE_PER_BUCKET),
        *(ky.POSTPONE_BATCH_WRITE_FIXED_BUCKET, mg.LAKEBED_COUNT_FIELDS),
        *(cl.CHANGELOG_PRODUCER_ROW_DEDUPLICATE, cl.CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS),
        *(cl.CHANGELOG_PRODUCER_INPUT_NORMALIZE, cl.CHANGELOG_PRODUCER_IGNORE_DELETE),
        *(wr.DYNAMIC_PARTITION_OVERWRITE, wr.ADD_COLUMN_BEFORE_PARTITION, wr.DISABLE_EXPLICIT_TYPE_CASTING),
        wr.WRITE_HIVE_STYLE_DYNAMIC_PARTITION_ENABLED,
        *(wr.ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED, wr.WRITE_MERGE_SCHEMA, wr.WRITE_MERGE_SCHEMA_TYPE_WIDENING),
        *(wr.WRITE_MERGE_SCHEMA_EXPLICIT_CAST, tr.CDC_UPDATE_AS, tr.LAKEBED_CDC_COLUMNS, tr.LAKEBED_CDC_BACKFILL),
        tr.LAKEBED_CDC_KEEPS,
    ),
    _UPKEEP: (
        *(option for option in vars(lc).values() if isinstance(option, Option) and option.honoured),
        *(cl.CHANGELOG_NUM_RETAINED_MIN, cl.CHANGELOG_NUM_RETAINED_MAX, cl.CHANGELOG_TIME_RETAINED),
        *(mg.RECORD_LEVEL_EXPIRE_TIME, mg.RECORD_LEVEL_TIME_FIELD),
    ),
}
"""Options that change freely, by the reason why."""

_PATHS: Final = "it stands in the paths of files, which are not stored anywhere else: all of them would be lost"
_STORED_RETRACTS: Final = "retracts that are stored would take away other rows than they did when they were written"

_JUDGED: Final[Mapping[Option[object], tuple[Case, ...]]] = {
    # Keys and buckets
    ky.PRIMARY_KEY: (
        Case(
            Later.NEVER,
            "files are sorted, and rows merged, by it",
            "the table has one",
            lambda change: bool(change.before[ky.PRIMARY_KEY]),
            instead="copy the rows to a new table instead",
        ),
        *_empty("files are sorted, and rows merged, by it"),
    ),
    ky.PARTITION: (
        Case(
            Later.NEVER,
            "files lie in directories named after it",
            "the table has some",
            lambda change: bool(change.before[ky.PARTITION]),
            instead="copy the rows to a new table instead",
        ),
        *_empty("files lie in directories named after it"),
    ),
    ky.PATH: (Case(Later.NEVER, "a table lies where its catalog says", instead="move the table with its catalog"),),
    ky.PRIMARY_KEY_NULLABLE: _empty("files hold their keys as nullable, or not"),
    ky.TYPE: _empty("it decides what the files are"),
    ky.BUCKET: (
        Case(
            Later.EMPTY,
            "a table keeps or lacks fixed buckets for life",
            "to or from -1",
            _was_dynamic,
            instead=_COPY,
        ),
        Case(
            Later.PLACING,
            "rows that wait for a bucket would wait for ever",
            "from -2",
            _may_have_waiting_rows,
        ),
        Case(
            Later.FREE,
            "every partition keeps its number of buckets, and refuses rows for another, until it is rescaled or "
            "overwritten",
        ),
    ),
    fi.DATA_FILE_PATH_DIRECTORY: _empty("files that are there would be looked for in another directory"),
    ky.BUCKET_KEY: _empty("rows would be looked for in other buckets than they lie in"),
    ky.BUCKET_FUNCTION_TYPE: _empty("rows would be looked for in other buckets than they lie in"),
    ky.DYNAMIC_BUCKET_INITIAL_BUCKETS: _empty("hashes of keys are shared out among assigners by it"),
    # Merging
    mg.MERGE_ENGINE: _empty("rows that are not merged yet, and those that were, would mean something else"),
    mg.IGNORE_DELETE: (
        _without_key("deletes are kept out when rows are written"),
        Case(
            Later.EMPTY,
            "deletes dropped meanwhile would be missing",
            "from true to false",
            _is_switched_off(mg.IGNORE_DELETE),
            instead=_COPY,
        ),
        Case(Later.COMPACTION, "deletes that are stored would be ignored from now on, and their rows return"),
    ),
    mg.IGNORE_UPDATE_BEFORE: (
        _without_key("retracts are kept out when rows are written"),
        Case(
            Later.EMPTY,
            "retracts dropped meanwhile would be missing",
            "from true to false",
            _is_switched_off(mg.IGNORE_UPDATE_BEFORE),
            instead=_COPY,
        ),
        Case(Later.COMPACTION, "retracts that are stored would be ignored from now on"),
    ),
    mg.SEQUENCE_FIELD: (
        _without_key(),
        Case(Later.COMPACTION, "of rows that are stored several times another would be the newest"),
    ),
    mg.SEQUENCE_FIELD_SORT_ORDER: (
        Case(
            Later.FREE,
            "there are no columns to order by",
            "`sequence.field` is not set",
            lambda change: (
                not change.has_key or not (change.before[mg.SEQUENCE_FIELD] or change.after[mg.SEQUENCE_FIELD])
            ),
        ),
        Case(Later.COMPACTION, "of rows that are stored several times another would be the newest"),
    ),
    mg.SEQUENCE_SNAPSHOT_ORDERING: _empty("rows are numbered by their snapshots, or by their writers"),
    mg.ROWKIND_FIELD: _empty("kinds of stored rows were taken from the column, and not counted by all engines"),
    mg.PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE: _empty(_STORED_RETRACTS),
    mg.PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP: _empty(_STORED_RETRACTS),
    mg.AGGREGATION_REMOVE_RECORD_ON_DELETE: _empty(_STORED_RETRACTS),
    mg.FIELDS_DEFAULT_AGGREGATE_FUNCTION: (
        Case(
            Later.EMPTY,
            "stored bytes are sketches or bitmaps of one kind, which no other function can read",
            "to or from `hll_sketch`, `theta_sketch`, `rbm32` or `rbm64`",
            lambda change: change.engine_in(*_FOLDING) and _is_serialised(change),
            instead=_COPY,
        ),
        *_when_folding("rows that are not merged yet would be folded by the new function"),
    ),
    mg.FIELD_AGGREGATE_FUNCTION: (
        Case(
            Later.EMPTY,
            "stored bytes are sketches or bitmaps of one kind, which no other function can read",
            "to or from `hll_sketch`, `theta_sketch`, `rbm32` or `rbm64`",
            lambda change: change.engine_in(*_FOLDING) and _is_serialised(change),
            instead=_COPY,
        ),
        *_when_folding("rows that are not merged yet would be folded by the new function"),
    ),
    mg.FIELD_SEQUENCE_GROUP: _when_folding("parts of stored rows would win or lose by other columns"),
    mg.FIELD_IGNORE_RETRACT: _when_folding(_STORED_RETRACTS),
    mg.FIELD_DISTINCT: _when_folding("values that are stored several times would be left out, or counted again"),
    mg.FIELD_LIST_AGG_DELIMITER: _when_folding("texts that are not joined yet would be joined otherwise"),
    mg.FIELD_NESTED_KEY: _when_folding("elements of stored arrays would replace others than they did"),
    mg.FIELD_NESTED_SEQUENCE_FIELD: _when_folding("elements of stored arrays would replace others than they did"),
    mg.FIELD_NESTED_KEY_NULL_STRATEGY: _when_folding("elements of stored arrays would be kept that were not, or go"),
    mg.FIELD_COUNT_LIMIT: _when_folding("elements of stored arrays would be kept that were not, or go"),
    mg.FIELD_TS_FIELD: _when_folding("another member would say which entry of a stored map is the newest"),
    # Changelog
    cl.CHANGELOG_PRODUCER: (
        _without_key("a table without a key has none"),
        Case(
            Later.FREE,
            "writers tell from now on, or no longer; files are merged as before",
            "between `none` and `input`",
            _writers_tell,
        ),
        Case(
            Later.COMPACTION,
            "levels hold complete rows under one producer and parts of them under another, and what is not compacted "
            "yet would be told twice or never",
        ),
    ),
    cl.FORCE_LOOKUP: _empty("levels hold complete rows with it and parts of them without it"),
    # Compaction
    cp.NUM_LEVELS: (
        Case(
            Later.EMPTY,
            "what lies on the highest level has been told: on another one it would be told again",
            "`changelog-producer` stays `full-compaction` and the number of levels changes",
            _counts_levels_anew,
            instead="copy the rows to a new table",
        ),
        Case(Later.FREE, "files stay on their levels; `t$ro` shows rows again after the next full compaction"),
    ),
    cp.NUM_SORTED_RUN_COMPACTION_TRIGGER: (
        Case(
            Later.EMPTY,
            "without `num-levels` it says how many levels there are, and what lies on the highest has been told",
            "`changelog-producer` stays `full-compaction` and the number of levels changes",
            _counts_levels_anew,
            instead="set `num-levels` to the number of levels there are (the old value and one) with the same change",
        ),
        Case(Later.FREE, _TUNING),
    ),
    cp.CLUSTERING_COLUMNS: (
        Case(
            Later.EMPTY,
            "files are sorted by them instead of by the key",
            "`pk-clustering-override` is set",
            lambda change: cp.PK_CLUSTERING_OVERRIDE.key in change.before.raw,
            instead=_COPY,
        ),
        Case(Later.FREE, "counts for files that are sorted from now on"),
    ),
    # Files
    fi.PARTITION_DEFAULT_NAME: (
        Case(
            Later.FREE,
            "there are no directories of partitions",
            "the table has no partitions",
            lambda change: not change.is_partitioned,
        ),
        *_empty(_PATHS),
    ),
    fi.PARTITION_LEGACY_NAME: (
        Case(
            Later.FREE,
            "there are no directories of partitions",
            "the table has no partitions",
            lambda change: not change.is_partitioned,
        ),
        *_empty(_PATHS),
    ),
    **{
        option: _empty("files of text do not say how they are spelled, and other engines read all of them by it")
        for option in (
            *(fi.CSV_FIELD_DELIMITER, fi.CSV_LINE_DELIMITER, fi.CSV_QUOTE_CHARACTER, fi.CSV_ESCAPE_CHARACTER),
            *(fi.CSV_INCLUDE_HEADER, fi.CSV_NULL_LITERAL, fi.JSON_LINE_DELIMITER, fi.TEXT_LINE_DELIMITER),
        )
    },
    fi.MANIFEST_FORMAT: _empty("manifests do not say in which format they are"),
    # Deletion vectors and tracking
    tr.DELETION_VECTORS_ENABLED: (
        Case(
            Later.EMPTY,
            "rows that are marked as deleted would return, or old rows that nobody has marked would show",
            "unless `deletion-vectors.modifiable` is true",
            _vectors_are_fixed,
            instead=f"set `{tr.DELETION_VECTORS_MODIFIABLE.key}` to true first: then the table is compacted fully when "
            "it changes",
        ),
        Case(
            Later.FREE,
            "nothing is marked yet",
            "the table has no primary key and begins to mark",
            lambda change: not change.has_key and change.after[tr.DELETION_VECTORS_ENABLED],
        ),
        Case(
            Later.COMPACTION,
            "rows that are marked as deleted would return, or old rows that nobody has marked would show",
        ),
    ),
    tr.ROW_TRACKING_ENABLED: _empty("rows that are stored have no ids, or would lose them"),
    tr.DATA_EVOLUTION_ENABLED: _empty("columns of one row lie in several files"),
}
"""Options that decide what stored rows mean, or where they lie."""

_FOREIGN_LAYOUTS: Final = frozenset(
    {
        *(fi.ORC_TIMESTAMP_LTZ_LEGACY_TYPE, tr.VECTOR_FIELD, tr.VECTOR_FILE_FORMAT, tr.FIELD_MAP_STORAGE_LAYOUT),
        *(tr.BLOB_AS_DESCRIPTOR, tr.CHAIN_TABLE_ENABLED),
    }
)
_NOT_HONOURED: Final = (
    Case(Later.FREE, "lakebed refuses to set it, and nothing that it stores depends on it"),
    Case(
        Later.EMPTY,
        "it decides what files of another engine mean; lakebed refuses to set it, and tables that have it",
        instead=_COPY,
    ),
)


def _rules() -> dict[str, tuple[Case, ...]]:
    rules = {option.key: cases for option, cases in _JUDGED.items()}
    for reason, options in _FREE.items():
        for option in options:
            # What is judged by itself stands above, whatever group it is of.
            rules.setdefault(option.key, _free(reason))
    for option in OPTIONS:
        if option.key not in rules and not option.honoured:
            rules[option.key] = (_NOT_HONOURED[1 if option.immutable or option in _FOREIGN_LAYOUTS else 0],)
    return rules


_RULES: Final = _rules()


def rule_of(option: Option[object]) -> tuple[Case, ...]:
    """The cases of an option, the first of which that applies counts. KeyError if it is not in the table."""
    return _RULES[option.key]


def changed_options(
    before: Mapping[str, str], after: Mapping[str, str], *, has_key: bool, is_partitioned: bool
) -> Iterator[tuple[OptionChange, Case]]:
    """Every option whose value differs, with the case that counts. Properties that are no options mean nothing."""
    old, new = Options({}).with_overrides(before), Options({}).with_overrides(after)
    for key in dict.fromkeys((*old.raw, *new.raw)):
        option = None if old.raw.get(key) == new.raw.get(key) else find_option(key)
        if option is None or _value(option, key, old) == _value(option, key, new):
            continue
        change = OptionChange(option, key, old, new, has_key, is_partitioned)
        yield change, next(case for case in rule_of(option) if case.applies(change))


def _value(option: Option[object], key: str, options: Options) -> object:
    """What the option is set to; a text that says nothing to us is a value of its own."""
    text = options.raw.get(key)
    if isinstance(option, FieldOption):
        option = option.named(key)
    if text is None:
        return option.default
    try:
        return option.parse(text)
    except InvalidOption:
        return text
