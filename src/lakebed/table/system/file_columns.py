"""Columns that several system tables about data files share: where a file is, its key range, its statistics.

Statistics are shown under the table's schema of the moment: columns found by id, values cast, and columns that a file
does not know counted as null in all its rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.errors import InvalidData
from lakebed.formats import format_name
from lakebed.metadata.data_file import DataFile, FileSource
from lakebed.metadata.manifest import ManifestEntry
from lakebed.schema.evolution import map_fields
from lakebed.schema.table_schema import TableSchema
from lakebed.table.system.base import Column, TableState, each
from lakebed.table.system.texts import object_texts, partition_texts
from lakebed.types.binary_row import EMPTY_ROW, decode_rows
from lakebed.types.logical import DataField

Entries = Sequence[ManifestEntry]
_OfGroup = Callable[[TableSchema, tuple[DataField, ...], Sequence[DataFile]], list[list[str]]]
"""From a schema, its columns with statistics and files written so to texts: a list for each column of the table."""


def file_path(context: TableContext, entry: ManifestEntry) -> str:
    """Where a data file lies."""
    return entry.file.external_path or context.data_file_path(entry.partition, entry.bucket, entry.file.file_name)


def _partitions(state: TableState, entries: Entries) -> list[str]:
    return partition_texts(state.context, [entry.partition for entry in entries])


PARTITION = Column("partition", "STRING", _partitions)
BUCKET = each("bucket", "INT NOT NULL", lambda entry: entry.bucket)
FILE_PATH = Column[TableState, ManifestEntry](
    "file_path", "STRING NOT NULL", lambda state, entries: [file_path(state.context, entry) for entry in entries]
)
FILE_FORMAT = each("file_format", "STRING NOT NULL", lambda entry: format_name(entry.file.file_name))
SCHEMA_ID = each("schema_id", "BIGINT NOT NULL", lambda entry: entry.file.schema_id)
LEVEL = each("level", "INT NOT NULL", lambda entry: entry.file.level)
RECORD_COUNT = each("record_count", "BIGINT NOT NULL", lambda entry: entry.file.row_count)
FILE_SIZE = each("file_size_in_bytes", "BIGINT NOT NULL", lambda entry: entry.file.size_bytes)
FIRST_ROW_ID = each("first_row_id", "BIGINT", lambda entry: entry.file.first_row_id)


def file_source(file: DataFile) -> str | None:
    """What made a file, by name."""
    known = {int(source): source.name for source in FileSource}
    return None if file.file_source is None else known.get(file.file_source, str(file.file_source))


# Keys ----------------------------------------------------------------------------------------------------------------


def key_texts(context: TableContext, files: Sequence[DataFile], keys: Sequence[bytes]) -> list[str | None]:
    """Keys as `[1, a]`, each read under its file's schema; None for files without."""
    texts: list[str | None] = [None] * len(keys)
    groups: dict[int, list[int]] = defaultdict(list)
    for i, (file, key) in enumerate(zip(files, keys, strict=True)):
        if key[:4] != EMPTY_ROW[:4]:
            groups[file.schema_id].append(i)
    for schema_id, members in groups.items():
        schema = context.schemas.get(schema_id)
        fields = schema.fields_of(schema.trimmed_primary_key)
        columns = decode_rows([keys[i] for i in members], [field.type for field in fields])
        parts = [object_texts(column, field.type) for column, field in zip(columns, fields, strict=True)]
        for place, i in enumerate(members):
            texts[i] = "[" + ", ".join(part[place] for part in parts) + "]"
    return texts


MIN_KEY = Column[TableState, ManifestEntry](
    "min_key",
    "STRING",
    lambda state, entries: key_texts(state.context, _files(entries), [entry.file.min_key for entry in entries]),
)
MAX_KEY = Column[TableState, ManifestEntry](
    "max_key",
    "STRING",
    lambda state, entries: key_texts(state.context, _files(entries), [entry.file.max_key for entry in entries]),
)


def _files(entries: Entries) -> list[DataFile]:
    return [entry.file for entry in entries]


# Statistics ----------------------------------------------------------------------------------------------------------


def null_count_texts(context: TableContext, files: Sequence[DataFile]) -> list[str]:
    """Null counts as `{a=0, b=2}`, columns by name."""

    def of_group(schema: TableSchema, kept: tuple[DataField, ...], group: Sequence[DataFile]) -> list[list[str]]:
        places = {field.id: place for place, field in enumerate(kept)}
        known_ids = {field.id for field in schema.fields}
        return [
            [_null_count(file, field, places, known_ids, len(kept)) for file in group]
            for field in context.schema.fields
        ]

    return _by_schema(context, files, of_group)


def _null_count(file: DataFile, field: DataField, places: dict[int, int], known_ids: set[int], width: int) -> str:
    if field.id not in known_ids:
        return str(file.row_count)
    counts = file.value_stats.null_counts or ()
    place = places.get(field.id)
    count = counts[place] if place is not None and len(counts) == width else None
    return "null" if count is None else str(count)


def bound_texts(context: TableContext, files: Sequence[DataFile], *, greatest: bool) -> list[str]:
    """Smallest or greatest values as `{a=1, b=null}`, columns by name; null is unknown, or a column without values."""

    def of_group(schema: TableSchema, kept: tuple[DataField, ...], group: Sequence[DataFile]) -> list[list[str]]:
        known = [place for place, file in enumerate(group) if len(file.value_stats.null_counts or ()) == len(kept)]
        stats = [group[place].value_stats for place in known]
        rows = [item.max_values if greatest else item.min_values for item in stats]
        columns = decode_rows(rows, [field.type for field in kept]) if rows and kept else []
        decoded = {field.id: column for field, column in zip(kept, columns, strict=False)}
        texts = []
        for field in context.schema.fields:
            column = ["null"] * len(group)
            for place, text in zip(known, _evolved(field, schema, decoded, len(known)), strict=True):
                column[place] = text
            texts.append(column)
        return texts

    return _by_schema(context, files, of_group)


def _evolved(field: DataField, schema: TableSchema, decoded: dict[int, pa.Array], length: int) -> list[str]:
    values = decoded.get(field.id)
    if values is None:
        return ["null"] * length
    evolution = map_fields([field], schema)
    try:
        batch = evolution.apply(pa.RecordBatch.from_arrays([values], [evolution.file_fields[0].name]))
    except InvalidData:
        return ["null"] * length  # a bound that the column's type of today can not hold says nothing
    return object_texts(batch.column(0), field.type)


def _by_schema(context: TableContext, files: Sequence[DataFile], of_group: _OfGroup) -> list[str]:
    """Files in groups of equal schema and equal columns with statistics, and the columns' texts put together."""
    texts = [""] * len(files)
    groups: dict[tuple[int, tuple[str, ...] | None], list[int]] = defaultdict(list)
    for i, file in enumerate(files):
        names = file.write_cols if file.value_stats_cols is None else file.value_stats_cols
        groups[file.schema_id, names].append(i)
    order = sorted(range(len(context.schema.fields)), key=lambda n: context.schema.fields[n].name)
    for (schema_id, names), members in groups.items():
        schema = context.schemas.get(schema_id)
        kept = schema.fields if names is None else schema.fields_of(names)
        columns = of_group(schema, kept, [files[i] for i in members])
        for place, i in enumerate(members):
            texts[i] = "{" + ", ".join(f"{context.schema.fields[n].name}={columns[n][place]}" for n in order) + "}"
    return texts


NULL_VALUE_COUNTS = Column[TableState, ManifestEntry](
    "null_value_counts", "STRING NOT NULL", lambda state, entries: null_count_texts(state.context, _files(entries))
)
MIN_VALUE_STATS = Column[TableState, ManifestEntry](
    "min_value_stats",
    "STRING NOT NULL",
    lambda state, entries: bound_texts(state.context, _files(entries), greatest=False),
)
MAX_VALUE_STATS = Column[TableState, ManifestEntry](
    "max_value_stats",
    "STRING NOT NULL",
    lambda state, entries: bound_texts(state.context, _files(entries), greatest=True),
)
