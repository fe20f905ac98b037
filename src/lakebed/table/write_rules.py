"""From a table's options to how its files are written and its commits are made."""

from __future__ import annotations

from dataclasses import replace

from lakebed.commit.committer import CommitRules, Committer
from lakebed.commit.manifest_merge import ManifestMergeRules
from lakebed.commit.row_ids import RowIdRules
from lakebed.datafiles.rolling_writer import WriteRules
from lakebed.errors import CommitConflict
from lakebed.formats import FORMATS
from lakebed.formats.base import DEFAULT_ROW_GROUP_BYTES, WriteSettings
from lakebed.formats.text_settings import TEXT_FORMATS
from lakebed.options import (
    CHANGELOG_FILE_STATS_MODE,
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
    FIELD_STATS_MODE,
    FILE_BLOCK_SIZE,
    FILE_COMPRESSION_ZSTD_LEVEL,
    FILE_INDEX_IN_MANIFEST_THRESHOLD,
    FILE_SUFFIX_INCLUDE_COMPRESSION,
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
    METADATA_STATS_DENSE_STORE,
    METADATA_STATS_MODE,
    ROW_TRACKING_PARTITION_GROUP_ON_COMMIT,
    TARGET_FILE_ROW_NUM,
    TARGET_FILE_SIZE,
    WRITE_SEQUENCE_NUMBER_INIT_MODE,
)
from lakebed.schema.later import judged
from lakebed.schema.store import SchemaStore
from lakebed.table.context import TableContext
from lakebed.table.file_choices import changelog_choice, check_text_files, data_choice
from lakebed.table.index_rules import index_specs
from lakebed.table.level_rules import LevelRules
from lakebed.table.postponed import waiting_format
from lakebed.version import VERSION

KEYED_TARGET_SIZE_BYTES = 128 << 20
APPEND_TARGET_SIZE_BYTES = 256 << 20


def write_rules(context: TableContext, level: int = 0) -> WriteRules:
    """Format, sizes and statistics of new data files, which may differ by level where there is a key."""
    options = context.options
    of_level = LevelRules.of(options, level) if context.has_key else LevelRules()
    default_size = KEYED_TARGET_SIZE_BYTES if context.has_key else APPEND_TARGET_SIZE_BYTES
    choice = data_choice(options, of_level)
    if choice.format.name in TEXT_FORMATS:
        check_text_files(context.schema, options, context.name)  # the table may be somebody else's
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
        lambda column: options.field(FIELD_STATS_MODE, column) or table_mode,
        options[METADATA_STATS_DENSE_STORE],
        index_specs(context.schema, options),
        options[FILE_INDEX_IN_MANIFEST_THRESHOLD],
        options[FILE_SUFFIX_INCLUDE_COMPRESSION],
    )


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
    schemas = SchemaStore(context.fileio, context.paths.schema_directory)
    ids, ours = schemas.ids(), context.schema
    if ours.id not in ids or schemas.get(ours.id) != ours:
        raise CommitConflict(
            f"table `{context.name}` was dropped, or made anew, since this write began",
            hint="open the table again and redo the write",
        )
    check_same_meaning(context, schemas)
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


def waiting_rules(context: TableContext) -> WriteRules:
    """The same for rows that wait for their bucket: nobody looks for single rows among them."""
    rules = write_rules(context)
    file_format = FORMATS[waiting_format(context, rules.format.name)]
    settings = rules.settings
    if rules.format.name in TEXT_FORMATS and file_format is not rules.format:
        settings = replace(settings, compression=file_format.default_compression)  # the other one is for whole files
    return replace(rules, format=file_format, settings=settings, stats_mode_of=lambda _: "none", indexes=())


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
