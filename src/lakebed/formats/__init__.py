"""Data files in and out: Parquet (the default), ORC and Avro, Arrow on both sides, with statistics for manifests.
CSV, JSON and text files, as Paimon has them, hold no statistics.

A format is one class that fulfils `base.FileFormat` and one line in `FORMATS`.
"""

from __future__ import annotations

from lakebed.errors import Unsupported, did_you_mean
from lakebed.formats.base import (
    ColumnStats,
    FileFormat,
    FileStats,
    FormatReader,
    FormatWriter,
    Stretches,
    WriteSettings,
)
from lakebed.formats.text.settings import Written
from lakebed.formats.text.stream import EXTENSIONS
from lakebed.registry import Registry

__all__ = [
    "FORMATS",
    "ColumnStats",
    "FileFormat",
    "FileStats",
    "FormatReader",
    "FormatWriter",
    "Stretches",
    "WriteSettings",
    "Written",
    "format_name",
    "format_of_file",
]

FORMATS: Registry[FileFormat] = Registry(
    "lakebed.formats",
    {
        "parquet": "parquet.format.PARQUET",
        "orc": "orc.ORC",
        "avro": "avro.format.AVRO",
        "csv": "text.files.CSV",
        "json": "text.files.JSON",
        "text": "text.files.TEXT",
    },
)

_OTHERS = frozenset({"txt", "blob", "lance"})
"""Extensions of data files that Paimon writes and this package does not read."""


def format_name(file_name: str) -> str:
    """The last extension of a data file's name, but for that of a codec, which text formats append."""
    parts = file_name.lower().rsplit("/", 1)[-1].split(".")
    if len(parts) > 2 and parts[-1] in EXTENSIONS:
        parts.pop()
    return parts[-1] if len(parts) > 1 else ""


def format_of_file(file_name: str) -> FileFormat:
    """The format of a data file, by its name."""
    extension = format_name(file_name)
    if extension in FORMATS:
        return FORMATS[extension]
    hint = "known are parquet, orc, avro, csv, json and text; let the engine that wrote it rewrite the table"
    if extension not in _OTHERS:
        hint = did_you_mean(extension, FORMATS)
    raise Unsupported(f"data file `{file_name}` is of the unknown format `{extension}`", hint=hint)
