"""Which format and which compression files of a table get: data files by their level, changelog files.

The one place that knows what counts where several options speak, and whether what they choose goes together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakebed.errors import InvalidOption, InvalidSchema
from lakebed.formats import FORMATS
from lakebed.formats.base import FileFormat
from lakebed.formats.text_settings import TEXT_FORMATS, text_settings
from lakebed.formats.text_writer import check_compression
from lakebed.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    FILE_COMPRESSION,
    FILE_FORMAT,
    ROW_TRACKING_ENABLED,
    Options,
)
from lakebed.schema.table_schema import TableSchema
from lakebed.table.level_rules import LevelRules, levels_named

_ONLY_FOR_TEXT = "bzip2"
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


def check_text_files(schema: TableSchema, options: Options, table: str) -> None:
    """Raises if a table would write files of text that could not be read back, or others as only those can be."""
    for choice in _all_choices(schema, options):
        kind = choice.format.name
        if kind not in TEXT_FORMATS:
            if choice.compression == _ONLY_FOR_TEXT:
                raise InvalidOption(
                    f"table `{table}`: {kind} files can not have the compression `{_ONLY_FOR_TEXT}`",
                    hint="set `file.compression` to zstd, or leave it out",
                )
            continue
        text_settings(kind, options.raw, f"table `{table}`", InvalidOption, _OTHER_FORMAT)
        check_compression(kind, choice.compression)
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


__all__ = ["FileChoice", "changelog_choice", "check_text_files", "data_choice"]
