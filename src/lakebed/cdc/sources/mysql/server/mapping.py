"""Tables of the source as the lake describes them: types by the mapping, NOT NULL, comments, defaults."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from lakebed.cdc.envelope import Description, SourceColumn, SourceName, SourceTable
from lakebed.cdc.formats.mysql_types import TINYINT1_NOT_BOOL, TO_STRING, mysql_type
from lakebed.cdc.sources.mysql.columns import Column, TableColumns
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.types.logical import ArrayType, DataType, with_nullable

TO_NULLABLE: Final = "to-nullable"
MODES: Final = (
    TINYINT1_NOT_BOOL,
    "bigint-unsigned-to-bigint",
    "char-to-string",
    "longtext-to-bytes",
    "decimal-no-change",
    "allow-non-string-to-string",
    TO_STRING,
    TO_NULLABLE,
)
"""Modes of `type_mapping`. Those about changes of types are the pipeline's; they mean nothing here."""


def modes_of(given: str | Iterable[str]) -> tuple[str, ...]:
    """Modes as a list or a comma-separated text, with hyphens or underscores."""
    texts = given.split(",") if isinstance(given, str) else list(given)
    modes = tuple(dict.fromkeys(text.strip().lower().replace("_", "-") for text in texts if text.strip()))
    for mode in modes:
        if mode not in MODES:
            raise InvalidOption(f"`{mode}` is no mode of type_mapping", hint=did_you_mean(mode, MODES))
    return modes


def definition(column: Column) -> str:
    """The type as MySQL writes it."""
    sign = " unsigned" if column.unsigned else ""
    match column.kind:
        case "tinyint":
            return f"tinyint({column.width}){sign}" if column.width == 1 else f"tinyint{sign}"
        case "decimal":
            return f"decimal({column.length},{column.scale})"
        case "bit" | "char" | "varchar" | "binary" | "varbinary":
            return f"{column.kind}({column.length})"
        case "datetime" | "timestamp" | "time":
            return f"{column.kind}({column.scale})"
        case _:
            return column.kind + sign


def _lake_type(column: Column, modes: tuple[str, ...], *, is_key: bool = False) -> DataType:
    """The type of the lake, with its NOT NULL."""
    kind = mysql_type(definition(column), modes)
    nullable = not is_key and (column.nullable or TO_NULLABLE in modes)
    return with_nullable(kind, nullable)


def describe(table: TableColumns, modes: tuple[str, ...]) -> Description:
    """What the pipeline is told of a table."""
    columns: list[SourceColumn] = []
    for column in table.columns:
        kind = _lake_type(column, modes, is_key=column.name in table.primary_key)
        columns.append(SourceColumn(column.name, kind, column.comment or None, default_text(column, kind)))
    return Description(tuple(columns), table.primary_key, table.comment or None)


def default_text(column: Column, kind: DataType) -> str | None:
    """The default as a text of the lake's type; None if it has none there."""
    text = column.default
    if text is None or (column.kind in ("date", "datetime", "timestamp") and text.startswith("0000")):
        return None
    if column.kind == "bit":
        return text.strip("b'") if column.length == 1 else None
    if isinstance(kind, ArrayType):
        return json.dumps([member for member in text.split(",") if member], ensure_ascii=False)
    return text


def source_table(table: TableColumns, modes: tuple[str, ...]) -> SourceTable:
    """A table as the source offers it."""
    return SourceTable(SourceName(table.database, "", table.table), describe(table, modes))


__all__ = ["MODES", "TO_NULLABLE", "default_text", "definition", "describe", "modes_of", "source_table"]
