"""Options that name columns.

A renamed column is renamed in these options too, and a column named by one of them can not be dropped. What an option
means is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lakebed import options as table
from lakebed.records import dataclass

BUCKET = table.BUCKET.key
BUCKET_KEY = table.BUCKET_KEY.key
FILE_FORMAT = table.FILE_FORMAT.key
PATH = table.PATH.key
PRIMARY_KEY = table.PRIMARY_KEY.key
PRIMARY_KEY_NULLABLE = table.PRIMARY_KEY_NULLABLE.key
PARTITION = table.PARTITION.key
NULL_TO_NOT_NULL_DISABLED = table.ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED.key
EXPLICIT_CASTS_DISABLED = table.DISABLE_EXPLICIT_TYPE_CASTING.key
ADD_BEFORE_PARTITION = table.ADD_COLUMN_BEFORE_PARTITION.key
DELETION_VECTORS = table.DELETION_VECTORS_ENABLED.key
DELETION_VECTORS_MODIFIABLE = table.DELETION_VECTORS_MODIFIABLE.key
CLUSTERING_COLUMNS = table.CLUSTERING_COLUMNS.key
PK_CLUSTERING_OVERRIDE = table.PK_CLUSTERING_OVERRIDE.key

_COLUMN_LISTS = frozenset(
    option.key
    for option in (
        table.BUCKET_KEY,
        table.SEQUENCE_FIELD,
        table.ROWKIND_FIELD,
        table.RECORD_LEVEL_TIME_FIELD,
        table.CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
        table.PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP,
        table.CLUSTERING_COLUMNS,
        table.LAKEBED_COUNT_FIELDS,
        table.BLOB_FIELD,
        table.BLOB_DESCRIPTOR_FIELD,
        table.BLOB_VIEW_FIELD,
    )
)
"""Options whose value is a comma-separated list of columns."""

_MEMBER_LISTS = (table.FIELD_NESTED_KEY, table.FIELD_NESTED_SEQUENCE_FIELD, table.FIELD_TS_FIELD)
"""Options of a column whose value is a list of members of the rows in it."""

# `fields.<column,…>.<setting>`; `fields.default-aggregate-function` has no column and does not match.
_PER_FIELD = re.compile(r"fields\.(?P<names>.+)\.(?P<setting>[^.]+)")
# `file-index.<kind>.columns` lists columns; `file-index.<kind>.<column>.<setting>` tunes one of them.
_INDEX_LIST = re.compile(r"file-index\.[^.]+\.columns")
_INDEX_SETTING = re.compile(r"(?P<head>file-index\.[^.]+\.)(?P<names>.+)(?P<tail>\.[^.]+)")
_SEQUENCE_GROUP = "sequence-group"


@dataclass(frozen=True, slots=True)
class ColumnMention:
    """One option that names columns: in its key, its value, or both."""

    key: str
    columns: tuple[str, ...]


def split_names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated option value."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def is_true(options: Mapping[str, str], key: str, default: bool = False) -> bool:
    """The switch `key`, or its default."""
    text = options.get(key)
    return default if text is None else text.strip().lower() == "true"


def column_mentions(options: Mapping[str, str]) -> Iterator[ColumnMention]:
    """Every option that names columns, with the columns it names."""
    for key, value in options.items():
        columns = _names_in_key(key)
        if _lists_columns(key):
            columns += tuple(_without_map_key(name) for name in split_names(value))
        if columns:
            yield ColumnMention(key, columns)


def member_mentions(options: Mapping[str, str], column: str) -> Iterator[ColumnMention]:
    """Options of a nested column that name members of the rows in it."""
    for option in _MEMBER_LISTS:
        key = option.key_for(column)
        if key in options:
            yield ColumnMention(key, split_names(options[key]))


def renamed_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The options with column `old` called `new`, in keys and in values."""
    changed = {}
    for key, value in options.items():
        new_value = _renamed_list(value, old, new) if _lists_columns(key) else value
        changed[_renamed_key(key, old, new)] = new_value
    return changed


def _lists_columns(key: str) -> bool:
    match = _PER_FIELD.fullmatch(key)
    if match:
        return match["setting"] == _SEQUENCE_GROUP
    return key in _COLUMN_LISTS or _INDEX_LIST.fullmatch(key) is not None


def _names_in_key(key: str) -> tuple[str, ...]:
    match = _PER_FIELD.fullmatch(key) or _INDEX_SETTING.fullmatch(key)
    return tuple(_without_map_key(name) for name in split_names(match["names"])) if match else ()


def _renamed_key(key: str, old: str, new: str) -> str:
    match = _PER_FIELD.fullmatch(key) or _INDEX_SETTING.fullmatch(key)
    if match is None or old not in _names_in_key(key):
        return key
    start, end = match.span("names")
    return key[:start] + _renamed_list(match["names"], old, new) + key[end:]


def _renamed_list(text: str, old: str, new: str) -> str:
    names = split_names(text)
    if old not in (_without_map_key(name) for name in names):
        return text  # keeps the user's own spacing
    return ",".join(new + name[len(old) :] if _without_map_key(name) == old else name for name in names)


def _without_map_key(name: str) -> str:
    """File indexes may name one key of a map column, as in `tags[color]`."""
    return name.partition("[")[0] if name.endswith("]") else name
