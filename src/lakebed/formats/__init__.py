"""Data files in and out: Parquet (the default), ORC and Avro, Arrow on both sides, with statistics for manifests.

A format is one class that fulfils `base.FileFormat` and one line in `FORMATS`.
"""

from __future__ import annotations

from lakebed.errors import Unsupported, did_you_mean
from lakebed.formats.avro import AvroFormat
from lakebed.formats.base import (
    ColumnStats,
    FileFormat,
    FileStats,
    FormatReader,
    FormatWriter,
    WriteSettings,
)
from lakebed.formats.orc import OrcFormat
from lakebed.formats.parquet import ParquetFormat

__all__ = [
    "FORMATS",
    "ColumnStats",
    "FileFormat",
    "FileStats",
    "FormatReader",
    "FormatWriter",
    "WriteSettings",
    "format_of_file",
]

FORMATS: dict[str, FileFormat] = {
    file_format.name: file_format for file_format in (ParquetFormat(), OrcFormat(), AvroFormat())
}

_OTHERS = frozenset({"json", "csv", "text", "txt", "blob", "lance"})
"""Extensions of data files that Paimon writes and this package does not read."""

_TEXT_CODECS = frozenset({"gz", "gzip", "bz2", "deflate", "snappy", "lz4", "zst", "zstd"})


def format_of_file(file_name: str) -> FileFormat:
    """The format of a data file, by the last extension of its name. Text formats append that of their codec."""
    parts = file_name.lower().rsplit("/", 1)[-1].split(".")
    if len(parts) > 2 and parts[-1] in _TEXT_CODECS:
        parts.pop()
    extension = parts[-1] if len(parts) > 1 else ""
    if extension in FORMATS:
        return FORMATS[extension]
    hint = "only parquet, orc and avro data files can be read; let the engine that wrote it rewrite the table"
    if extension not in _OTHERS:
        hint = did_you_mean(extension, FORMATS)
    raise Unsupported(f"data file `{file_name}` is of the unknown format `{extension}`", hint=hint)
