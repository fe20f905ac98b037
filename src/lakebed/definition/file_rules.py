"""From a table's options to how its files are written and its commits are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from lakebed.commit.committer import CommitRules, Committer
from lakebed.commit.manifest_merge import ManifestMergeRules
from lakebed.commit.row_ids import RowIdRules
from lakebed.datafiles.index.build import BITMAP, BLOOM, BSI, RANGE_BITMAP, IndexSpec
from lakebed.datafiles.rolling_writer import WriteRules
from lakebed.datafiles.statistics import parse_stats_mode
from lakebed.definition.context import TableContext, once_per_context
from lakebed.errors import CommitConflict, InvalidOption, InvalidSchema, did_you_mean
from lakebed.formats import FORMATS
from lakebed.formats.base import DEFAULT_ROW_GROUP_BYTES, FileFormat, WriteSettings
from lakebed.formats.text.settings import TEXT_FORMATS, text_settings
from lakebed.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    CHANGELOG_FILE_STATS_MODE,
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
    FIELD_STATS_MODE,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION,
    FILE_COMPRESSION_PER_LEVEL,
    FILE_COMPRESSION_ZSTD_LEVEL,
    FILE_FORMAT,
    FILE_FORMAT_PER_LEVEL,
    FILE_INDEX_BITMAP_COLUMNS,
    FILE_INDEX_BLOOM_FILTER_COLUMNS,
    FILE_INDEX_BSI_COLUMNS,
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_INDEX_RANGE_BITMAP_COLUMNS,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_MODE,
    METADATA_STATS_MODE_PER_LEVEL,
    ROW_TRACKING_ENABLED,
    ROW_TRACKING_PARTITION_GROUP_ON_COMMIT,
    TARGET_FILE_ROW_NUM,
    TARGET_FILE_SIZE,
    WRITE_SEQUENCE_NUMBER_INIT_MODE,
    Names,
    Option,
    Options,
)
from lakebed.records import dataclass
from lakebed.schema.later import judged
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.version import VERSION

KEYED_TARGET_SIZE_BYTES = 128 << 20
APPEND_TARGET_SIZE_BYTES = 256 << 20


@once_per_context
def write_rules(context: TableContext, level: int = 0) -> WriteRules:
    """Format, sizes and statistics of new data files, which may differ by level where there is a key."""
    options = context.options
    of_level = LevelRules.of(options, level) if context.has_key else LevelRules()
    default_size = KEYED_TARGET_SIZE_BYTES if context.has_key else APPEND_TARGET_SIZE_BYTES
    choice = data_choice(options, of_level)
    if choice.format.name in TEXT_FORMATS:
        check_file_choices(context.schema, options, context.name)  # the table may be somebody else's
    table_mode = of_level.stats_mode or options[METADATA_STATS_MODE]
    settings = WriteSettings(
        compression=choice.compression,
        zstd_level=options[FILE_COMPRESSION_ZSTD_LEVEL],
        row_group_bytes=options[FILE_BLOCK_SIZE] or DEFAULT_ROW_GROUP_BYTES,
        table_options=options.raw,
    )
    return WriteRules(
        choice.format,
        settings,
        options[TARGET_FILE_SIZE] or default_size,
        options[TARGET_FILE_ROW_NUM],
        _stats_modes(context, table_mode),
        options[METADATA_STATS_DENSE_STORE],
        index_specs(context.schema, options),
        options[FILE_INDEX_IN_MANIFEST_THRESHOLD],
        options[FILE_SUFFIX_INCLUDE_COMPRESSION],
    )


def _stats_modes(context: TableContext, table_mode: str) -> Callable[[str], str]:
    own = {names[0]: mode for names, mode in context.options.fields_with(FIELD_STATS_MODE).items() if mode}
    return defaultdict(lambda: table_mode, own).__getitem__


@once_per_context
def changelog_write_rules(context: TableContext, level: int = 0) -> WriteRules:
    """The same for changelog files: as data files of that level, where nothing else is said."""
    options, rules = context.options, write_rules(context, level)
    mode = options[CHANGELOG_FILE_STATS_MODE]
    choice = changelog_choice(options, LevelRules.of(options, level) if context.has_key else LevelRules())
    return replace(
        rules,
        format=choice.format,
        settings=replace(rules.settings, compression=choice.compression),
        stats_mode_of=rules.stats_mode_of if mode is None else lambda _: mode,
        indexes=(),
    )


def latest_schema_id(context: TableContext) -> int:
    """Read afresh: our files fit the table only as long as the schema they were written with is part of it."""
    ids, ours = context.schemas.ids(), context.schema
    if ours.id not in ids or not context.schemas.still_says(ours):
        raise CommitConflict(
            f"table `{context.name}` was dropped, or made anew, since this write began",
            hint="open the table again and redo the write",
        )
    if ids[-1] != ours.id:
        check_same_meaning(context, SchemaStore(context.fileio, context.paths.schema_directory))
    return ids[-1]


def check_same_meaning(context: TableContext, schemas: SchemaStore) -> None:
    """Raises if files made under the context's schema would mean something else under the latest one."""
    latest = schemas.latest()
    if latest is None or latest.id == context.schema.id or context.keeps_schema:
        return
    for verdict in judged(context.schema, latest):
        raise CommitConflict(
            f"table `{context.name}`: since this began, somebody has let {verdict.what} {verdict.step}: "
            f"{verdict.reason}",
            hint="open the table again and redo it; nothing was changed",
        )


@once_per_context
def waiting_rules(context: TableContext) -> WriteRules:
    """The same for rows that wait for their bucket: nobody looks for single rows among them."""
    rules = write_rules(context)
    file_format = FORMATS[waiting_format(context, rules.format.name)]
    settings = rules.settings
    if rules.format.name in TEXT_FORMATS and file_format is not rules.format:
        settings = replace(settings, compression=file_format.default_compression)  # the other one is for whole files
    return replace(rules, format=file_format, settings=settings, stats_mode_of=lambda _: "none", indexes=())


@once_per_context
def committer_for(context: TableContext) -> Committer:
    """The committer of a table."""
    options = context.options
    rules = CommitRules(
        ManifestMergeRules(
            options[MANIFEST_TARGET_FILE_SIZE],
            options[MANIFEST_MERGE_MIN_COUNT],
            options[MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE],
        ),
        options[COMMIT_MAX_RETRIES],
        options[COMMIT_TIMEOUT],
        options[COMMIT_MIN_RETRY_WAIT],
        options[COMMIT_MAX_RETRY_WAIT],
        RowIdRules(options[ROW_TRACKING_PARTITION_GROUP_ON_COMMIT]) if context.tracks_rows else None,
        options[WRITE_SEQUENCE_NUMBER_INIT_MODE] == "snapshot",
    )
    return Committer(context.name, context.stores, context.partition_types, rules, context.clock, f"lakebed-{VERSION}")


# --- Which format and which compression files of a table get: data files by their level, changelog files ----------
#
# The one place that knows what counts where several options speak, and whether what they choose goes together.


_OTHER_FORMAT = "set the option otherwise, or `file.format` to parquet, orc or avro"


@dataclass(frozen=True, slots=True)
class FileChoice:
    """A format and a compression."""

    format: FileFormat
    compression: str


def data_choice(options: Options, level: LevelRules) -> FileChoice:
    """For data files of a level, of which `level` says what is particular."""
    file_format = FORMATS[level.format or options[FILE_FORMAT]]
    compression = level.compression or options.get(FILE_COMPRESSION) or file_format.default_compression
    return FileChoice(file_format, compression)


def changelog_choice(options: Options, level: LevelRules) -> FileChoice:
    """For changelog files: as data files of the level, where nothing else is said."""
    as_data = data_choice(options, level)
    own_format, compression = options[CHANGELOG_FILE_FORMAT], options[CHANGELOG_FILE_COMPRESSION]
    if own_format is None:
        return FileChoice(as_data.format, compression or as_data.compression)
    file_format = FORMATS[own_format]
    said = compression or level.compression or options.get(FILE_COMPRESSION)
    return FileChoice(file_format, said or file_format.default_compression)


def check_file_choices(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if files can not be compressed as asked, or a table would write text that could not be read back."""
    for choice in _all_choices(schema, options):
        kind = choice.format.name
        try:
            choice.format.check_compression(choice.compression)
        except InvalidOption as error:
            raise InvalidOption(f"table `{table}`: {error.message}", hint=str(error.hint)) from error
        if kind not in TEXT_FORMATS:
            continue
        text_settings(kind, options.raw, f"table `{table}`", InvalidOption, _OTHER_FORMAT)
        if kind != "json" and schema.primary_keys:
            reason = "Paimon takes its columns for others" if kind == "csv" else "it holds one column"
            raise InvalidSchema(
                f"table `{table}`: {kind} is no format for files of a table with a primary key, which hold more than "
                f"its columns: {reason}",
                hint="leave the key out, or choose json, parquet, orc or avro",
            )
        if kind == "text" and options[ROW_TRACKING_ENABLED]:
            raise InvalidOption(
                f"table `{table}`: `{ROW_TRACKING_ENABLED.key}` stores ids beside rows, and text files hold one column",
                hint="leave the option out, or set `file.format` to another format",
            )


def _all_choices(schema: TableSchema, options: Options) -> Iterator[FileChoice]:
    if not schema.primary_keys:
        yield data_choice(options, LevelRules())
        return
    for level in (LevelRules(), *(LevelRules.of(options, level) for level in levels_named(options))):
        yield data_choice(options, level)
        yield changelog_choice(options, level)


# --- What the options say of single levels: format, compression and statistics of the files there -----------------
#
# New rows lie on level 0 for a short while and are read often, old ones lie higher and are read much: so they may be
# stored differently. A file that moves up as it is keeps what it was written with.


@dataclass(frozen=True, slots=True)
class LevelRules:
    """What is said of one level; None where it is as on all others."""

    format: str | None = None
    compression: str | None = None
    stats_mode: str | None = None

    @staticmethod
    def of(options: Options, level: int) -> LevelRules:
        """The rules of a level."""
        return LevelRules(
            _by_level(options, FILE_FORMAT_PER_LEVEL).get(level),
            _by_level(options, FILE_COMPRESSION_PER_LEVEL).get(level),
            _by_level(options, METADATA_STATS_MODE_PER_LEVEL).get(level),
        )


def check_level_rules(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if a format or compression does not exist, a format can not hold the columns, or a level comes twice."""
    for option in (FILE_FORMAT_PER_LEVEL, FILE_COMPRESSION_PER_LEVEL, METADATA_STATS_MODE_PER_LEVEL):
        if len(_by_level(options, option)) < len(options[option]):
            raise InvalidOption(f"table `{table}`: `{option.key}` names a level twice", hint="name each level once")
    for name in _by_level(options, FILE_FORMAT_PER_LEVEL).values():
        if name not in FORMATS:
            raise InvalidOption(
                f"table `{table}`: `{FILE_FORMAT_PER_LEVEL.key}` names format `{name}`",
                hint=did_you_mean(name, FORMATS),
            )
        FORMATS[name].check(schema.fields)
    for name in _by_level(options, FILE_COMPRESSION_PER_LEVEL).values():
        if name not in FILE_COMPRESSION.choices:
            raise InvalidOption(
                f"table `{table}`: `{FILE_COMPRESSION_PER_LEVEL.key}` names compression `{name}`",
                hint=did_you_mean(name, FILE_COMPRESSION.choices),
            )
    for mode in _by_level(options, METADATA_STATS_MODE_PER_LEVEL).values():
        parse_stats_mode(mode)


def levels_named(options: Options) -> list[int]:
    """Levels of which a format or a compression is said."""
    return sorted({*_by_level(options, FILE_FORMAT_PER_LEVEL), *_by_level(options, FILE_COMPRESSION_PER_LEVEL)})


def _by_level(options: Options, option: Option[Names]) -> dict[int, str]:
    pairs = (item.partition(":") for item in options[option])
    return {int(level): value.strip().lower() for level, _, value in pairs}


# --- Which indexes the files of a table get: the `file-index.*` options -------------------------------------------


_LISTS: dict[str, Option[Names]] = {
    BLOOM: FILE_INDEX_BLOOM_FILTER_COLUMNS,
    BITMAP: FILE_INDEX_BITMAP_COLUMNS,
    RANGE_BITMAP: FILE_INDEX_RANGE_BITMAP_COLUMNS,
    BSI: FILE_INDEX_BSI_COLUMNS,
}


def index_specs(schema: TableSchema, options: Options) -> tuple[IndexSpec, ...]:
    """The indexes of each new file."""
    specs = []
    for kind, option in _LISTS.items():
        settings = _settings(kind, options[option], options)
        for name in options[option]:
            column, key = _column_and_key(name)
            chosen = settings.get(column, {}) | settings[name]
            specs.append(IndexSpec(schema.field(column), kind, chosen, key))
    return tuple(specs)


def check_index_options(schema: TableSchema, options: Options, table: str) -> None:
    """Raises on the first index that can not be made, naming its option."""
    for option in _LISTS.values():
        for name in options[option]:
            column, _ = _column_and_key(name)
            if column not in schema.field_names:
                raise InvalidOption(
                    f"table `{table}`: `{option.key}` names `{column}`, which is not a column",
                    hint=did_you_mean(column, schema.field_names),
                )
    for spec in index_specs(schema, options):
        try:
            spec.check()
        except InvalidOption as error:
            raise InvalidOption(f"table `{table}`: {error.message}", hint=error.hint) from error


def _column_and_key(name: str) -> tuple[str, str | None]:
    """`m[key]` is one key of a MAP column."""
    column, bracket, key = name.partition("[")
    return (column, key[:-1]) if bracket and name.endswith("]") else (name, None)


def _settings(kind: str, names: Names, options: Options) -> dict[str, dict[str, str]]:
    """`file-index.<kind>.<column>.<setting>`, by column, or by key of a map."""
    prefix = f"file-index.{kind}."
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    found |= {_column_and_key(name)[0]: {} for name in names}
    for key, text in options.raw.items():
        column, dot, setting = key.removeprefix(prefix).rpartition(".")
        if not key.startswith(prefix) or not dot:
            continue
        if column not in found:
            raise InvalidOption(
                f"option `{key}` is about an index that column `{column}` does not have",
                hint=f"name it in `{_LISTS[kind].key}`, or leave the option out",
            )
        found[column][setting] = text
    return found


def waiting_format(context: TableContext, wanted: str) -> str:
    """The format of waiting files: Avro, which writes and reads whole rows fastest, unless it lacks a type."""
    try:
        FORMATS["avro"].check(context.schema.fields)
    except InvalidSchema:
        return wanted
    return "avro"


__all__ = [
    "FileChoice",
    "LevelRules",
    "changelog_choice",
    "check_file_choices",
    "check_level_rules",
    "data_choice",
    "levels_named",
]
