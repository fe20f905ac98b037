"""Options that name columns, and options that must stay as they are once a table has data.

A renamed column is renamed in these options too, and a column named by one of them can not be dropped. All option keys
that this package looks at are spelled out here and nowhere else in it. What an option means is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BUCKET = "bucket"
BUCKET_KEY = "bucket-key"
FILE_FORMAT = "file.format"
PATH = "path"
PRIMARY_KEY = "primary-key"
PRIMARY_KEY_NULLABLE = "primary-key.nullable"
PARTITION = "partition"
NULL_TO_NOT_NULL_DISABLED = "alter-column-null-to-not-null.disabled"
EXPLICIT_CASTS_DISABLED = "disable-explicit-type-casting"
ADD_BEFORE_PARTITION = "add-column-before-partition"
DELETION_VECTORS = "deletion-vectors.enabled"
DELETION_VECTORS_MODIFIABLE = "deletion-vectors.modifiable"
CLUSTERING_COLUMNS = "clustering.columns"
PK_CLUSTERING_OVERRIDE = "pk-clustering-override"

FIXED_ONCE_WRITTEN = frozenset(
    {
        "type",
        BUCKET_KEY,
        "bucket-function.type",
        "merge-engine",
        "data-file.path-directory",
        "rowkind.field",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        PRIMARY_KEY,
        PRIMARY_KEY_NULLABLE,
        PARTITION,
        "force-lookup",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "dynamic-bucket.initial-buckets",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        PK_CLUSTERING_OVERRIDE,
    }
)
"""Options that decide how existing files are laid out or merged."""

ONLY_SWITCHED_ON = frozenset({"ignore-delete", "ignore-update-before"})
"""Switches that may go from false to true only: what was dropped meanwhile does not come back."""

_COLUMN_LISTS = frozenset(
    {
        BUCKET_KEY,
        "sequence.field",
        "rowkind.field",
        "record-level.time-field",
        "changelog-producer.row-deduplicate-ignore-fields",
        "partial-update.remove-record-on-sequence-group",
        CLUSTERING_COLUMNS,
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
    }
)
"""Options whose value is a comma-separated list of columns."""

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
